"""Kimi K2."""

from ffwd.tools.format import ARGUMENTS, NAME, Pattern, ToolFormat

KIMI_K2 = ToolFormat(
    name="kimi-k2",
    source="https://github.com/MoonshotAI/Kimi-K2/blob/main/docs/tool_call_guidance.md",
    call=(
        "<|tool_call_begin|>functions.",
        NAME,
        ":",
        # Calls are numbered through the whole conversation.
        Pattern("0|[1-9][0-9]{0,3}"),
        "<|tool_call_argument_begin|>",
        ARGUMENTS,
        "<|tool_call_end|>",
    ),
    begin=("<|tool_calls_section_begin|>",),
    end=("<|tool_calls_section_end|>",),
    excluding=("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
    # Both `.` and `:` stand around the name.
    names=r"[A-Za-z0-9_-]{1,256}",
)
"""Kimi K2, K2 Thinking and K2.5."""
