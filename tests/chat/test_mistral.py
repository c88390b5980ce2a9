"""Mistral's prompts: ids that are known, placements, refusals, and which version it is."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from mistral_common.exceptions import MistralCommonException
from mistralvocabularies import NAMES, file, mistral, reference, tokenizer
from realtokenizers import load as load_real

import ffwd.tokenizer
from ffwd import FfwdError
from ffwd.chat import (
    LLAMA3,
    MISTRAL,
    ControlPart,
    ConversationError,
    FormatError,
    MissingControlTokensError,
    MistralFormat,
    MistralVersion,
    PromptLengthError,
    TextPart,
    detect_version,
    version_of_file,
    version_of_name,
)

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


# ---------------------------------------------------------------------------------------- refusals

USER, ANSWER = H[0], H[1]


def answer(**changes: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", **changes}


def result(**changes: Any) -> dict[str, Any]:
    return {"role": "tool", "content": "1", "tool_call_id": "abcdefghi", **changes}


def call(**changes: Any) -> dict[str, Any]:
    function = {"name": changes.pop("name", "f"), "arguments": changes.pop("arguments", "{}")}
    return {"id": "abcdefghi", "function": function, **changes}


REFUSED: dict[str, tuple[str, list[Any], int | None]] = {
    "no messages": ("v3", [], None),
    "the assistant alone": ("v3", [ANSWER], 0),
    "a tool alone": ("v3", [result()], 0),
    "the assistant is last": ("v3", [USER, ANSWER], 1),
    "a tool after a user": ("v3", [USER, result()], 1),
    "a tool after a system prompt": ("v3", [SYSTEM, result()], 1),
    "a system prompt after an answer": ("v3", [USER, ANSWER, SYSTEM, USER], 2),
    "a system prompt after a result": (
        "v3",
        [USER, answer(tool_calls=[call()]), result(), SYSTEM, USER],
        3,
    ),
    "an unknown role": ("v3", [{"role": "wizard", "content": "x"}], 0),
    "no role": ("v3", [{"content": "x"}], 0),
    "a user without content": ("v3", [{"role": "user"}], 0),
    "content that is a number": ("v3", [{"role": "user", "content": 3}], 0),
    "an image": ("v1", [{"role": "user", "content": [{"type": "image_url"}]}], 0),
    "a thinking user": ("v13", [{"role": "user", "content": [{"type": "thinking"}]}], 0),
    "an empty answer": ("v3", [USER, answer(), USER], 1),
    "an empty answer of v7": ("v7", [USER, answer(), USER], 1),
    "text and a call": ("v3", [USER, answer(content="x", tool_calls=[call()]), result()], 1),
    "text, then a call": ("v3", [USER, ANSWER, answer(tool_calls=[call()]), result()], 1),
    "a prefix in the middle": ("v3", [USER, {**ANSWER, "prefix": True}, USER], 1),
    "a prefix that is text": ("v3", [USER, {**ANSWER, "prefix": "maybe"}], 1),
    "calls without results": (
        "v3",
        [USER, answer(tool_calls=[call()]), USER, ANSWER, USER],
        3,
    ),
    "a call without an id": ("v3", [USER, answer(tool_calls=[call(id="null")]), result()], 1),
    "an id that is too short": ("v3", [USER, answer(tool_calls=[call(id="abc")]), result()], 1),
    "a result without an id": (
        "v3",
        [USER, answer(tool_calls=[call()]), result(tool_call_id=None)],
        2,
    ),
    "a result with a bad id": (
        "v3",
        [USER, answer(tool_calls=[call()]), result(tool_call_id="x")],
        2,
    ),
    "a bad name of a function": ("v3", [USER, answer(tool_calls=[call(name="a b")]), result()], 1),
    "a bad name of a result": ("v3", [USER, answer(tool_calls=[call()]), result(name="a b")], 2),
    "two results in v2": (
        "v2",
        [USER, answer(tool_calls=[call(), call()]), result(), result()],
        3,
    ),
    "results that no call asks for": (
        "v11",
        [USER, answer(tool_calls=[call()]), result(tool_call_id="123456789")],
        2,
    ),
    "two results for a call": (
        "v11",
        [USER, answer(tool_calls=[call()]), result(), result()],
        3,
    ),
    "two calls of one id": ("v11", [USER, answer(tool_calls=[call(), call()]), result()], 1),
    "v13 without an id": (
        "v13",
        [USER, answer(tool_calls=[call(id="")]), result(tool_call_id="")],
        1,
    ),
    "tool calls that are text": ("v3", [USER, answer(tool_calls="f()")], 1),
}


def refuses(name: str, messages: Any, mode: str = "test", **options: Any) -> bool:
    """Whether mistral-common does, by an error of pydantic's or its own, or by an assertion."""
    try:
        reference(name, mode).ids(messages, **options)
    except (ValueError, AssertionError, MistralCommonException):
        return True
    return False


@pytest.mark.parametrize("which", REFUSED)
def test_refusals(which: str) -> None:
    """mistral-common refuses it too, and ours says which message it is."""
    name, messages, index = REFUSED[which]
    assert refuses(name, messages)
    with pytest.raises(ConversationError) as ours:
        render(name, messages)
    assert ours.value.index == index
    if index is not None:
        assert f"message {index}" in str(ours.value)


def test_serving_refuses_open_calls() -> None:
    messages = [USER, answer(tool_calls=[call()]), USER]
    for name in ("v3", "v11"):
        assert render(name, messages).ids == reference(name).ids(messages)
        assert refuses(name, messages, mode="serving", model="m")
        with pytest.raises(ConversationError, match="as many results"):
            mistral(name, mode="serving").render(messages, tokenizer=tokenizer(name))


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function"},
        {"type": "function", "function": {"name": "a b"}},
        {"type": "function", "function": {"name": "f", "parameters": {"type": "nonsense"}}},
        {"type": "function", "function": {"name": "f", "parameters": []}},
        {"type": "function", "function": {"name": 3}},
        {"type": "function", "function": {"name": "f", "description": 3}},
        {"type": "retrieval", "function": {"name": "f"}},
    ],
)
def test_refused_tools(tool: Any) -> None:
    assert refuses("v3", H, tools=[tool])
    with pytest.raises(ConversationError, match="tool 0"):
        render("v3", H, tools=[tool])


HOSTILE: list[Any] = [
    "text",
    {"role": "user", "content": "x"},
    [3],
    [None],
    [["user", "x"]],
    None,
    [{"role": ["user"], "content": "x"}],
    [{"role": "user", "content": [3]}],
    [{"role": "user", "content": [{"type": "text", "text": None}]}],
    [{"role": "user", "content": "\ud800"}],
    [USER, answer(tool_calls=[call(arguments="[" * 100_000)]), result()],
    [USER, answer(tool_calls=[call(arguments="1" * 5000)]), result()],
    [USER, answer(tool_calls=[call(arguments='"\\ud800"')]), result()],
    [USER, answer(tool_calls=[{"function": None}]), result()],
    [USER, answer(tool_calls=[{"function": {"name": "f"}}]), result()],
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
@pytest.mark.parametrize("name", ["v1", "v3", "v13"])
def test_hostile_input_is_a_typed_error(name: str, number: int) -> None:
    with pytest.raises(FfwdError):
        render(name, HOSTILE[number])


@pytest.mark.parametrize("tools", [5, "f", {"a": 1}, [None], [5], [[]]])
def test_tools_that_are_none(tools: Any) -> None:
    with pytest.raises(ConversationError, match="tool"):
        render("v3", H, tools=tools)


@pytest.mark.parametrize("settings", [5, "f", [("a", 1)]])
def test_settings_that_are_none(settings: Any) -> None:
    with pytest.raises(ConversationError, match="settings"):
        render("v15", H, settings=settings)


@pytest.mark.parametrize("messages", HOSTILE[:7])
def test_hostile_conversations_are_not_cut(messages: Any) -> None:
    for known in (mistral("v3"), MISTRAL, LLAMA3):
        with pytest.raises(FfwdError):
            known.truncate(messages, max_tokens=10, tokenizer=tokenizer("v3"))


def test_a_vocabulary_of_another_version_is_refused() -> None:
    with pytest.raises(MissingControlTokensError) as caught:
        mistral("v7").render(H, tokenizer=tokenizer("v2"))
    assert caught.value.tokens == ("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]")
    gpt2 = ffwd.tokenizer.load(load_real("gpt2").tokenizer)
    with pytest.raises(MissingControlTokensError, match=r"<s>, </s>"):
        mistral("v1").render(H, tokenizer=gpt2)


def test_wrong_options() -> None:
    with pytest.raises(ConversationError, match="system_placement"):
        mistral("v3", system_placement="middle")
    with pytest.raises(ConversationError, match="system_placement"):
        mistral("v3", system_placement=True)
    with pytest.raises(ConversationError, match="mode"):
        mistral("v3", mode="finetuning")
    with pytest.raises(ConversationError, match="version"):
        MistralFormat(version="v3")  # type: ignore[arg-type]


# --------------------------------------------------------------------------------- which version


@pytest.mark.parametrize("name", NAMES)
def test_the_version_of_a_file(name: str) -> None:
    found = detect_version(tokenizer(name))
    assert found.version is mistral(name).version
    assert (found.found_by, found.guessed) == ("file", False)
    assert MistralFormat.for_tokenizer(tokenizer(name)) == mistral(name)


@pytest.mark.parametrize("name", ["v1", "v2", "v3", "v7"])
def test_the_version_of_a_sentencepiece_vocabulary(name: str, tmp_path: Path) -> None:
    """Its control tokens tell, where its name does not."""
    path = tmp_path / "tokenizer.model"
    path.write_bytes(file(name).read_bytes())
    found = detect_version(ffwd.tokenizer.load(path))
    assert (found.version, found.found_by, found.guessed) == (
        mistral(name).version,
        "tokens",
        False,
    )


class Names:
    """Only names of tokens."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def token_to_id(self, content: str) -> int | None:
        return self.names.index(content) if content in self.names else None


def test_the_version_by_tokens_may_be_a_guess() -> None:
    tekken = Names("[INST]", "[SYSTEM_PROMPT]", "[PREFIX]", "<SPECIAL_20>")
    found = detect_version(tekken)
    assert (found.version, found.guessed) == (MistralVersion.V3, True)
    named = detect_version(tekken, model="Mistral-Large-Instruct-2411")
    assert (named.version, named.found_by, named.guessed) == (MistralVersion.V7, "name", True)
    assert detect_version(Names("[INST]", "[ARGS]")).version is MistralVersion.V11
    assert detect_version(Names("[INST]", "[ARGS]", "[THINK]")).version is MistralVersion.V13
    assert detect_version(Names("[INST]", "[MODEL_SETTINGS]")).version is MistralVersion.V15


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("mistralai/Mistral-7B-Instruct-v0.1", "v1"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "v1"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "v3"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "v1"),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", "v3"),
        ("open-mixtral-8x22b-2404", "v3"),
        ("mistral-small-2402", "v2"),
        ("mistral-large-2402", "v2"),
        ("mistral-large-2407", "v3"),
        ("mistralai/Mistral-Large-Instruct-2407", "v3"),
        ("mistralai/Mistral-Small-Instruct-2409", "v3"),
        ("mistralai/Codestral-22B-v0.1", "v3"),
        ("mistralai/Mathstral-7B-v0.1", "v3"),
        ("mistralai/Mamba-Codestral-7B-v0.1", "v3"),
        ("mistralai/Mistral-Nemo-Instruct-2407", "v3"),
        ("mistralai/Pixtral-12B-2409", "v3"),
        ("mistralai/Ministral-8B-Instruct-2410", "v3"),
        ("mistralai/Mistral-Large-Instruct-2411", "v7"),
        ("mistralai/Pixtral-Large-Instruct-2411", "v7"),
        ("mistralai/Mistral-Small-24B-Instruct-2501", "v7"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "v11"),
        ("mistralai/Devstral-Small-2507", "v13"),
        ("something else", None),
    ],
)
def test_the_version_of_a_name(model: str, version: str | None) -> None:
    found = version_of_name(model)
    assert (found and found.version.value) == version
    assert found is None or found.guessed


def test_a_file_of_no_known_version(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    path.write_text('{"config": {"version": "v99"}}')
    with pytest.raises(FormatError, match="v99"):
        version_of_file(path)
    path.write_text("{")
    with pytest.raises(FormatError, match=r"no tekken\.json"):
        version_of_file(path)
    path.write_text("[]")
    assert version_of_file(path) is None
    with pytest.raises(FileNotFoundError):
        version_of_file(tmp_path / "missing.json")


# -------------------------------------------------------------------------------------- truncation


def test_truncation_keeps_the_newest_turns() -> None:
    """As many as fit: compared with trying all of them."""
    messages: list[Any] = [SYSTEM]
    for number in range(6):
        messages += [
            {"role": "user", "content": f"Question {number} " * (number + 1)},
            answer(tool_calls=[call()]),
            result(),
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
