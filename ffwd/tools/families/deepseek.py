"""DeepSeek V3, R1, V3.1 and V3.2."""

from ffwd.tools.format import ARGUMENTS, NAME, JsonArguments, TaggedArguments, ToolFormat

# The parsers of these calls take arguments of one line.
_ONE_LINE = JsonArguments(whitespace="single-space")
_BEGIN = "<｜tool▁calls▁begin｜>"
_END = "<｜tool▁calls▁end｜>"

DEEPSEEK_V3 = ToolFormat(
    name="deepseek-v3",
    source="the chat templates of DeepSeek-V3, V3-0324 and R1-0528",
    call=(
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
        NAME,
        "\n```json\n",
        ARGUMENTS,
        "\n```<｜tool▁call▁end｜>",
    ),
    arguments=_ONE_LINE,
    begin=(_BEGIN,),
    separator=("\n",),
    end=(_END,),
    excluding=(_BEGIN, "<｜tool▁call▁begin｜>"),
)
"""DeepSeek V3 and R1."""

DEEPSEEK_V31 = ToolFormat(
    name="deepseek-v3.1",
    source="the chat template of DeepSeek-V3.1",
    call=("<｜tool▁call▁begin｜>", NAME, "<｜tool▁sep｜>", ARGUMENTS, "<｜tool▁call▁end｜>"),
    arguments=_ONE_LINE,
    begin=(_BEGIN,),
    end=(_END,),
    excluding=(_BEGIN, "<｜tool▁call▁begin｜>"),
)
"""DeepSeek V3.1."""

DEEPSEEK_V32 = ToolFormat(
    name="deepseek-v3.2",
    source="encoding_dsv32.py of DeepSeek-V3.2",
    call=('<｜DSML｜invoke name="', NAME, '">\n', ARGUMENTS, "</｜DSML｜invoke>\n"),
    arguments=TaggedArguments(
        before_name='<｜DSML｜parameter name="',
        before_string='" string="true">',
        before_value='" string="false">',
        after_value="</｜DSML｜parameter>\n",
        excluding=("</｜DSML｜",),
        words=("null",),
    ),
    begin=("<｜DSML｜function_calls>\n",),
    end=("</｜DSML｜function_calls>",),
    excluding=("<｜DSML｜function_calls>",),
)
"""DeepSeek V3.2."""
