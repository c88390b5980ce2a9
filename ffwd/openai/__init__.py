"""What a request in OpenAI's form asks of an answer: `response_format` and `tools` as grammars."""

from ffwd.openai.formats import response_format as response_format
from ffwd.openai.strict import StrictSchemaError as StrictSchemaError
from ffwd.openai.strict import check_strict as check_strict
from ffwd.openai.tool_calls import tools as tools
