"""Llama 3.1, 3.2, 3.3 and 4."""

from ffwd.tools.format import (
    ARGUMENTS,
    NAME,
    BuiltinTool,
    OneOf,
    PythonArguments,
    TextArguments,
    ToolFormat,
)

_SEARCH = ("<|python_tag|>", NAME, ".call(", ARGUMENTS, ")")
# Its calls begin like any JSON does, so what is not one must begin otherwise.
_NO_OBJECT = r"\s*(?:[^\s{<]|<[^|<])"
_NO_LIST = r"\s*(?:[^\s\[<]|<[^|<])"
# The name of a pythonic call: vLLM's parser wants a letter first.
_IDENTIFIER = r"[A-Za-z][A-Za-z0-9_]{0,255}"

LLAMA3_JSON = ToolFormat(
    name="llama3-json",
    source="Llama 3.1's chat template, https://www.llama.com/docs/model-cards-and-prompt-formats/"
    "llama3_1/; vLLM's llama3_json parser for several calls",
    call=('{"name": "', NAME, '", "parameters": ', ARGUMENTS, "}"),
    begin=(OneOf(((), ("<|python_tag|>",))),),
    separator=("; ",),
    before=None,
    excluding=("<|python_tag|>",),
    text_start=_NO_OBJECT,
    spelled_in_json=True,
    builtin=(
        BuiltinTool(
            type="brave_search",
            call=_SEARCH,
            arguments=PythonArguments(),
            parameters=(("query", "string"),),
        ),
        BuiltinTool(
            type="wolfram_alpha",
            call=_SEARCH,
            arguments=PythonArguments(),
            parameters=(("query", "string"),),
        ),
        BuiltinTool(
            type="code_interpreter",
            call=("<|python_tag|>", ARGUMENTS),
            arguments=TextArguments(),
        ),
    ),
)
"""Llama 3.1, 3.2 and 3.3, and Llama 4 where it is prompted for JSON."""

LLAMA3_PYTHONIC = ToolFormat(
    name="llama3-pythonic",
    source="https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_2/; vLLM's pythonic "
    "parser",
    call=(NAME, "(", ARGUMENTS, ")"),
    arguments=PythonArguments(),
    begin=("[",),
    separator=(", ",),
    end=("]",),
    before=None,
    excluding=("<|python_tag|>",),
    text_start=_NO_LIST,
    names=_IDENTIFIER,
)
"""Llama 3.2 (1B and 3B)."""

LLAMA4_PYTHONIC = ToolFormat(
    name="llama4-pythonic",
    source="https://www.llama.com/docs/model-cards-and-prompt-formats/llama4/; vLLM's "
    "llama4_pythonic parser",
    call=(NAME, "(", ARGUMENTS, ")"),
    arguments=PythonArguments(),
    # The end of `<|python_start|>` may be missing, but must not come without the start.
    begin=(OneOf((("[",), ("<|python_start|>[",))),),
    separator=(", ",),
    end=("]",),
    before=None,
    excluding=("<|python_start|>",),
    text_start=_NO_LIST,
    names=_IDENTIFIER,
)
"""Llama 4."""
