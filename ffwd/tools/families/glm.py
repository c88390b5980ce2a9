"""GLM 4.5, 4.6 and 4.7."""

from ffwd.tools.format import ARGUMENTS, NAME, TaggedArguments, ToolFormat

_EXCLUDING = ("</arg_value>", "<arg_key>", "</tool_call>")

GLM45 = ToolFormat(
    name="glm-4.5",
    source="the chat templates of GLM-4.5 and GLM-4.6",
    call=("<tool_call>", NAME, "\n", ARGUMENTS, "</tool_call>"),
    arguments=TaggedArguments(
        before_name="<arg_key>",
        before_string="</arg_key>\n<arg_value>",
        before_value="</arg_key>\n<arg_value>",
        after_value="</arg_value>\n",
        excluding=_EXCLUDING,
    ),
    separator=("\n",),
    excluding=("<tool_call>",),
)
"""GLM 4.5 and 4.6."""

GLM47 = ToolFormat(
    name="glm-4.7",
    source="the chat template of GLM-4.7",
    call=("<tool_call>", NAME, ARGUMENTS, "</tool_call>"),
    arguments=TaggedArguments(
        before_name="<arg_key>",
        before_string="</arg_key><arg_value>",
        before_value="</arg_key><arg_value>",
        after_value="</arg_value>",
        excluding=_EXCLUDING,
    ),
    excluding=("<tool_call>",),
)
"""GLM 4.7."""
