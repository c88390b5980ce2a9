"""How models write the calls of tools, and the grammars of answers with calls in them.

    grammar = ffwd.openai.tools(tools, tool_choice="auto", format=tokenizer)
    grammar = ffwd.openai.tools(tools, tool_choice="required", format="hermes")

`FORMATS` has the formats by name; `detect_format` finds the one of a model in its chat template,
and `derive_format` reads a format that has no name out of a template.
"""

from ffwd.tools.build import OnBadTool as OnBadTool
from ffwd.tools.derive import derive_format as derive_format
from ffwd.tools.detect import FormatSource as FormatSource
from ffwd.tools.detect import detect_format as detect_format
from ffwd.tools.errors import RefusedTool as RefusedTool
from ffwd.tools.errors import RefusedToolsError as RefusedToolsError
from ffwd.tools.errors import ToolChoiceError as ToolChoiceError
from ffwd.tools.errors import ToolFormatError as ToolFormatError
from ffwd.tools.errors import ToolsError as ToolsError
from ffwd.tools.families import FORMATS as FORMATS
from ffwd.tools.format import ARGUMENTS as ARGUMENTS
from ffwd.tools.format import NAME as NAME
from ffwd.tools.format import TEXT as TEXT
from ffwd.tools.format import BuiltinTool as BuiltinTool
from ffwd.tools.format import JsonArguments as JsonArguments
from ffwd.tools.format import OneOf as OneOf
from ffwd.tools.format import Pattern as Pattern
from ffwd.tools.format import PythonArguments as PythonArguments
from ffwd.tools.format import TaggedArguments as TaggedArguments
from ffwd.tools.format import TextArguments as TextArguments
from ffwd.tools.format import ToolFormat as ToolFormat
