"""GPT-OSS: Harmony, where an answer is a row of messages in channels."""

from ffwd.tools.format import ARGUMENTS, NAME, TEXT, OneOf, ToolFormat

_JSON = OneOf(((" <|constrain|>json",), ("<|constrain|>json",), (" json",)))

HARMONY = ToolFormat(
    name="harmony",
    source="https://cookbook.openai.com/articles/openai-harmony",
    # The recipient stands in the channel's name, or before it as the chat template writes it.
    # `<|call|>` ends the answer, so it is no part of it.
    call=(
        OneOf(
            (
                ("<|channel|>commentary to=functions.", NAME, _JSON),
                (" to=functions.", NAME, "<|channel|>commentary", _JSON),
            )
        ),
        "<|message|>",
        ARGUMENTS,
    ),
    separator=None,
    text=("<|channel|>final<|message|>", TEXT),
    before=(
        "<|channel|>",
        OneOf((("analysis",), ("commentary",))),
        "<|message|>",
        TEXT,
        "<|end|><|start|>assistant",
    ),
    repeat_before=True,
    excluding=("<|start|>", "<|end|>", "<|call|>", "<|return|>", "<|channel|>", "<|message|>"),
    names=r"[A-Za-z0-9_-]{1,256}",
)
"""gpt-oss-20b and gpt-oss-120b."""
