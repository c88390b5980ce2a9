"""Mistral's prompts: ids that are known, tools, placements, parts, truncation."""

import itertools
from typing import Any

import pytest
import realtokenizers
from mistralvocabularies import NAMES, mistral, reference, tokenizer

from ffwd.chat import (
    ControlPart,
    ConversationError,
    MissingControlTokensError,
    MistralFormat,
    PromptLengthError,
    TextPart,
)
from ffwd.tokenizer import load

H = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": "How are you?"},
]
SYSTEM = {"role": "system", "content": "Be helpful"}

_PIECES = [1, 3, 23325, 4, 16127, 29576, 2, 3]
_V1 = [733, 16289, 28793]
_V1_END = [733, 28748, 16289, 28793]


def render(name: str, messages: Any, **options: Any) -> Any:
    return mistral(name).render(messages, tokenizer=tokenizer(name), **options)


# ------------------------------------------------------------------------------------ known ids


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        (
            "v1",
            [1, *_V1, 22557, *_V1_END, 15359, 28808, 2, *_V1, 1602, 460, 368, 28804, *_V1_END],
        ),
        *((name, [*_PIECES, 2370, 1228, 1136, 29572, 4]) for name in ("v2", "v3", "v7")),
        ("v3-tekken", [1, 3, 22177, 4, 37133, 1033, 2, 3, 7801, 1584, 1636, 1063, 4]),
    ],
)
def test_a_conversation(name: str, ids: list[int]) -> None:
    assert render(name, H).ids == ids


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        (
            "v1",
            [
                *(1, *_V1, 1739, 10865, 13, 13, 16230, *_V1_END, 15359, 28808, 2),
                *(*_V1, 1602, 460, 368, 28804, *_V1_END),
            ],
        ),
        *(
            (name, [*_PIECES, 2507, 11633, 781, 781, 6428, 1228, 1136, 29572, 4])
            for name in ("v2", "v3")
        ),
        (
            "v3-tekken",
            [1, 3, 22177, 4, 37133, 1033, 2, 3, 5934, 20351, 1267, 7801, 1584, 1636, 1063, 4],
        ),
        ("v7", [1, 16, 2507, 11633, 17, *_PIECES[1:], 2370, 1228, 1136, 29572, 4]),
    ],
)
def test_a_system_prompt(name: str, ids: list[int]) -> None:
    assert render(name, [SYSTEM, *H]).ids == ids


@pytest.mark.parametrize(
    ("name", "ids"),
    [("v3", [1, 13, 29481, 18788, 11, 12166]), ("v3-tekken", [1, 16, 6453, 61310, 14, 26930])],
)
def test_fill_in_the_middle(name: str, ids: list[int]) -> None:
    prompt = mistral(name).fill_in_the_middle("prefix", "suffix", tokenizer=tokenizer(name))
    assert prompt.ids == ids
    assert [
        span and prompt.text[span.characters.start : span.characters.stop] for span in prompt.spans
    ] == [
        "prefix",
        "suffix",
    ]


def test_fill_in_the_middle_is_refused_where_there_is_none() -> None:
    """mistral-common writes V2's as the unknown token."""
    with pytest.raises(ConversationError, match="v1 has no fill in the middle"):
        mistral("v1").fill_in_the_middle("a", "b", tokenizer=tokenizer("v1"))
    with pytest.raises(MissingControlTokensError) as caught:
        mistral("v2").fill_in_the_middle("a", "b", tokenizer=tokenizer("v2"))
    assert caught.value.tokens == ("[PREFIX]", "[SUFFIX]")
    assert 0 in reference("v2").infill("a", "b")
    with pytest.raises(ConversationError, match="prefix"):
        mistral("v3").fill_in_the_middle(None, "b", tokenizer=tokenizer("v3"))  # type: ignore[arg-type]


CALL = {"id": "abcdefghi", "function": {"name": "f", "arguments": '{"x": "é"}'}}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object"}, "strict": True},
    }
]
CALLED = [
    {"role": "user", "content": "Call"},
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "content": '{"y":1}', "tool_call_id": "abcdefghi", "name": "f"},
]
_TOOLS = (
    '[AVAILABLE_TOOLS]_[{"type": "function", "function": {"name": "f", "description": "", '
    '"parameters": {"type": "object"}}}][/AVAILABLE_TOOLS]'
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "v2",
            '[INST]_Call[/INST][TOOL_CALLS]_[{"name": "f", "arguments": {"x": "é"}}]</s>'
            '[TOOL_RESULTS]_[{"name": "f", "content": {"y": 1}}][/TOOL_RESULTS]',
        ),
        (
            "v3",
            '[INST]_Call[/INST][TOOL_CALLS]_[{"name": "f", "arguments": {"x": "é"}, '
            '"id": "abcdefghi"}]</s>'
            '[TOOL_RESULTS]_{"content": {"y": 1}, "call_id": "abcdefghi"}[/TOOL_RESULTS]',
        ),
        (
            "v7",
            '[INST]_Call[/INST][TOOL_CALLS]_[{"name": "f", "arguments": {"x": "é"}, '
            '"id": "abcdefghi"}]</s>'
            '[TOOL_RESULTS]_abcdefghi[TOOL_CONTENT]_{"y":1}[/TOOL_RESULTS]',
        ),
        (
            "v11",
            '[INST]Call[/INST][TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"x": "é"}</s>'
            '[TOOL_RESULTS]abcdefghi[TOOL_CONTENT]{"y":1}[/TOOL_RESULTS]',
        ),
        (
            "v13",
            '[INST]Call[/INST][TOOL_CALLS]f[ARGS]{"x": "é"}</s>'
            '[TOOL_RESULTS]{"y":1}[/TOOL_RESULTS]',
        ),
    ],
)
def test_tools(name: str, text: str) -> None:
    """How each version writes a list of tools, a call and its result; and the ids are equal."""
    prompt = render(name, CALLED, tools=TOOLS)
    space = " " if tokenizer(name).kind == "sentencepiece" else ""
    assert prompt.text == f"<s>{_TOOLS}{text}".replace("_[", f"{space}[").replace("]_", f"]{space}")
    assert prompt.ids == reference(name).ids(CALLED, tools=TOOLS)


def test_v2_leaves_out_the_calls_of_earlier_turns() -> None:
    messages = [*CALLED, {"role": "assistant", "content": "One."}, {"role": "user", "content": "!"}]
    assert render("v2", messages).text == "<s>[INST] Call[/INST] One.</s>[INST] ![/INST]"
    assert "[TOOL_CALLS]" in render("v3", messages).text


def test_tools_of_v1_are_left_out() -> None:
    assert render("v1", H, tools=TOOLS).ids == render("v1", H).ids
    with pytest.raises(ConversationError, match="v1 has no tools"):
        render("v1", CALLED)


@pytest.mark.parametrize("name", ["v1", "v2", "v3"])
def test_from_a_tokenizer_json(name: str) -> None:
    """The same vocabulary as Hugging Face has it: its control tokens tell the version."""
    own = load(realtokenizers.load(f"mistral-{name}").tokenizer)
    known = MistralFormat.for_tokenizer(own)
    assert known == mistral(name)
    for messages in (H, [SYSTEM, *H], [{"role": "user", "content": "a  b\u2581c 中"}]):
        prompt = known.render(messages, tokenizer=own)
        assert prompt.ids == render(name, messages).ids
        assert prompt.spans == render(name, messages).spans


# ------------------------------------------------------------------------------- placement, parts


@pytest.mark.parametrize(
    ("name", "placement", "text"),
    [
        ("v1", None, "<s> [INST] S\n\na [/INST] b</s> [INST] c [/INST] d</s> [INST] e [/INST]"),
        ("v1", "last", "<s> [INST] a [/INST] b</s> [INST] c [/INST] d</s> [INST] S\n\ne [/INST]"),
        ("v3", None, "<s>[INST] a[/INST] b</s>[INST] c[/INST] d</s>[INST] S\n\ne[/INST]"),
        ("v3", "first", "<s>[INST] S\n\na[/INST] b</s>[INST] c[/INST] d</s>[INST] e[/INST]"),
        ("v3", 1, "<s>[INST] a[/INST] b</s>[INST] S\n\nc[/INST] d</s>[INST] e[/INST]"),
        ("v3-tekken", -2, "<s>[INST]a[/INST]b</s>[INST]S\n\nc[/INST]d</s>[INST]e[/INST]"),
        (
            "v7",
            None,
            "<s>[SYSTEM_PROMPT] S[/SYSTEM_PROMPT][INST] a[/INST] b</s>[INST] c[/INST] d</s>"
            "[INST] e[/INST]",
        ),
        (
            "v7",
            "last",
            "<s>[INST] a[/INST] b</s>[INST] c[/INST] d</s>[SYSTEM_PROMPT] S[/SYSTEM_PROMPT]"
            "[INST] e[/INST]",
        ),
    ],
)
def test_a_system_prompt_can_be_placed(name: str, placement: Any, text: str) -> None:
    roles = ["system", "user", "assistant", "user", "assistant", "user"]
    messages = [{"role": role, "content": c} for role, c in zip(roles, "Sabcde", strict=True)]
    prompt = mistral(name, system_placement=placement).render(messages, tokenizer=tokenizer(name))
    assert prompt.text == text
    with pytest.raises(ConversationError, match="cannot be placed at 3"):
        mistral(name, system_placement=3).render(messages, tokenizer=tokenizer(name))


@pytest.mark.parametrize("name", NAMES)
def test_each_message_is_found_again(name: str) -> None:
    """Also those that are joined, in characters and in tokens."""
    messages = [
        {"role": "system", "content": "Short answers."},
        {"role": "user", "content": "Hello there"},
        {"role": "user", "content": "ça va?"},
        {"role": "assistant", "content": "Oui  "},
        {"role": "user", "content": "▁ and 中文 🙂"},
    ]
    prompt = render(name, messages)
    own = tokenizer(name)
    for message, span in zip(messages, prompt.spans, strict=True):
        text = message["content"]
        if message["role"] == "assistant" and name != "v1":
            text = text.rstrip(" ")
        assert prompt.text[span.characters.start : span.characters.stop] == text
        parts = prompt.parts[span.parts.start : span.parts.stop]
        assert "".join(part.text for part in parts) == text
        ids = prompt.ids[span.tokens.start : span.tokens.stop]
        written = b"".join(own.token_bytes(i) or b"" for i in ids).decode()
        expected = text.replace("▁", " ") if own.kind == "sentencepiece" else text
        # A token may have some of what is beside the message, at either end.
        assert expected in written
        assert len(written) <= len(expected) + 6


@pytest.mark.parametrize("name", NAMES)
def test_a_prefix_is_continued(name: str) -> None:
    prefix = {"role": "assistant", "content": "Well, I  ", "prefix": True}
    prompt = render(name, [*H, prefix])
    text = "Well, I  " if name == "v1" else "Well, I"
    assert prompt.prefill == text
    assert prompt.text.endswith(text)
    if name != "v15":  # whose tekken.json has settings by default
        assert prompt.ids == reference(name).ids([*H, prefix])
    same = [*H, {"role": "assistant", "content": "Well, I  "}]
    assert render(name, same, continue_final_message=True).ids == prompt.ids
    with pytest.raises(ConversationError, match="last message"):
        render(name, same)
    with pytest.raises(ConversationError, match="an assistant's message at the end"):
        render(name, H, continue_final_message=True)


def test_what_a_prompt_says_of_itself() -> None:
    prompt = render("v3", H)
    assert prompt.end_token_ids == (2,)
    assert prompt.stop == ()
    assert prompt.generation_start
    assert prompt.prefill == ""
    assert prompt.thinking is None
    assert not mistral("v3").text_delimiters
    assert render("v1", H).stop == ("[/INST]",)
    assert mistral("v1").text_delimiters
    kinds = [type(part) for part in prompt.parts]
    assert kinds[:3] == [ControlPart, ControlPart, TextPart]
    assert mistral("v3").count_tokens(H, tokenizer=tokenizer("v3")) == len(prompt.ids)


def test_reasoning() -> None:
    """Sections of V13; one that is left open is where the prompt ends."""
    thinking = {"type": "thinking", "thinking": "Hm", "closed": False}
    messages = [*H, {"role": "assistant", "content": [thinking], "prefix": True}]
    prompt = render("v13", messages)
    assert prompt.text.endswith("[/INST][THINK]Hm")
    assert prompt.prefill == "Hm"
    section = prompt.thinking
    assert section is not None
    assert (section.opened_by, section.closed_by) == ("[THINK]", "[/THINK]")
    assert section.close_token_id == tokenizer("v13").token_to_id("[/THINK]")
    assert prompt.ids == reference("v13").ids(messages)
    closed = [*H[:1], {"role": "assistant", "reasoning_content": "Hm", "content": "Hi"}, *H[2:]]
    assert "[THINK]Hm[/THINK]Hi</s>" in render("v13", closed).text
    for name in ("v3", "v7", "v11"):
        with pytest.raises(ConversationError, match="reasoning"):
            render(name, closed)


def test_settings_are_for_v15() -> None:
    prompt = render("v15", H, settings={"reasoning_effort": "high"})
    assert '[MODEL_SETTINGS]{"reasoning_effort": "high"}[/MODEL_SETTINGS][INST]' in prompt.text
    assert prompt.ids == reference("v15").ids(H, reasoning_effort="high")
    with pytest.raises(ConversationError, match="v13 has no settings"):
        render("v13", H, settings={"reasoning_effort": "high"})


# -------------------------------------------------------------------------------------- truncation


def test_truncation_keeps_the_newest_turns() -> None:
    """As many as fit: compared with trying all of them."""
    messages: list[Any] = [SYSTEM]
    for number in range(6):
        messages += [
            {"role": "user", "content": f"Question {number} " * (number + 1)},
            *CALLED[1:],
            {"role": "assistant", "content": "An answer"},
        ]
    messages.append({"role": "user", "content": "And now?"})
    own, form = tokenizer("v3"), mistral("v3")
    suffixes = [[SYSTEM, *messages[1 + 4 * n :]] for n in range(7)]
    counts = [form.count_tokens(kept, tokenizer=own) for kept in suffixes]
    assert all(a > b for a, b in itertools.pairwise(counts))
    for limit in [count + more for count in counts for more in (0, 1)]:
        made = form.truncate(messages, max_tokens=limit, tokenizer=own)
        best = next(n for n, count in enumerate(counts) if count <= limit)
        assert (made.messages, made.num_tokens) == (suffixes[best], counts[best])
        assert made.dropped == tuple(range(1, 1 + 4 * best))
    with pytest.raises(PromptLengthError) as caught:
        form.truncate(messages, max_tokens=counts[-1] - 1, tokenizer=own)
    assert (caught.value.num_tokens, caught.value.limit) == (counts[-1], counts[-1] - 1)
