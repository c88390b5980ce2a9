"""Qwen, Hermes, and the many that write calls as they do."""

from ffwd.tools.format import ARGUMENTS, NAME, TaggedArguments, ToolFormat

HERMES = ToolFormat(
    name="hermes",
    source="https://github.com/NousResearch/Hermes-Function-Calling and the chat templates of "
    "Qwen 2.5, Qwen 3 and QwQ",
    call=('<tool_call>\n{"name": "', NAME, '", "arguments": ', ARGUMENTS, "}\n</tool_call>"),
    separator=("\n",),
    excluding=("<tool_call>",),
    spelled_in_json=True,
)
"""Hermes 2 Pro and 3, Qwen 2.5, Qwen 3, QwQ."""

QWEN3_CODER = ToolFormat(
    name="qwen3-coder",
    source="the chat template of Qwen3-Coder; Qwen 3.5 has the same",
    call=("<tool_call>\n<function=", NAME, ">\n", ARGUMENTS, "</function>\n</tool_call>"),
    arguments=TaggedArguments(
        before_name="<parameter=",
        before_string=">\n",
        before_value=">\n",
        after_value="\n</parameter>\n",
        excluding=("</parameter>", "<parameter=", "</function>", "</tool_call>"),
        words=("null",),
    ),
    separator=("\n",),
    excluding=("<tool_call>", "<function="),
    names=r"[A-Za-z0-9_.:/-]{1,256}",
)
"""Qwen3-Coder, Qwen 3.5, Nemotron 3 Nano."""
