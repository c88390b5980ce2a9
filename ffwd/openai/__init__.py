"""Grammars for requests in OpenAI's form: `response_format` and `tools`."""

from ffwd.openai.formats import response_format as response_format
from ffwd.openai.strict import StrictSchemaError as StrictSchemaError
from ffwd.openai.strict import check_strict as check_strict
from ffwd.openai.tool_calls import tools as tools
