"""MiniMax M2."""

from ffwd.tools.format import ARGUMENTS, NAME, TaggedArguments, ToolFormat

MINIMAX_M2 = ToolFormat(
    name="minimax-m2",
    source="the chat template of MiniMax-M2",
    call=('<invoke name="', NAME, '">\n', ARGUMENTS, "</invoke>\n"),
    arguments=TaggedArguments(
        before_name='<parameter name="',
        before_string='">',
        before_value='">',
        after_value="</parameter>\n",
        excluding=("</parameter>", "</invoke>", "</minimax:tool_call>"),
        words=("null", "none", "nil"),
        trimmed=True,
    ),
    begin=("<minimax:tool_call>\n",),
    end=("</minimax:tool_call>",),
    excluding=("<minimax:tool_call>",),
)
"""MiniMax M2 and M2.1."""
