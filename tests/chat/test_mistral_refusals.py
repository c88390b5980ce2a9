"""What Mistral's prompts refuse: what mistral-common does, each with the message that it is."""

from typing import Any

import pytest
from mistral_common.exceptions import MistralCommonException
from mistralvocabularies import mistral, reference, tokenizer
from realtokenizers import load as load_real
from versions import HAS_NEW_MISTRAL_COMMON

import ffwd.tokenizer
from ffwd import FfwdError
from ffwd.chat import (
    LLAMA3,
    MISTRAL,
    ConversationError,
    MissingControlTokensError,
    MistralFormat,
)

H = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": "How are you?"},
]
SYSTEM = {"role": "system", "content": "Be helpful"}


def render(name: str, messages: Any, **options: Any) -> Any:
    return mistral(name).render(messages, tokenizer=tokenizer(name), **options)


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
    "a name of a user": ("v3", [{**USER, "name": "u"}], 0),
    "a name of an answer": (
        "v3",
        [USER, {"role": "assistant", "content": "a", "name": "b"}, USER],
        1,
    ),
    "a name of a system prompt": ("v7", [{"role": "system", "content": "s", "name": "b"}, USER], 0),
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
    # 1.12 takes them.
    if which != "two results in v2" or HAS_NEW_MISTRAL_COMMON:
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


@pytest.mark.parametrize("name", ["v2", "v3", "v7", "v11"])
def test_the_older_role_of_a_result(name: str) -> None:
    """`function` is `tool`, as OpenAI's interface had it before."""
    asked = [USER, answer(tool_calls=[call()])]
    older = {**result(), "role": "function"}
    assert render(name, [*asked, older]).ids == render(name, [*asked, result()]).ids
