"""Random conversations, beside mistral-common: the same ids, or both refuse."""

import json
import random
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, seed, settings
from hypothesis import strategies as st
from mistralvocabularies import NAMES, mistral, reference, tokenizer

from ffwd.chat import ConversationError

SHAPES, EXAMPLES = 24, 4

CONTROL_NAMES = [
    *("<s>", "</s>", "<unk>", "<pad>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[SYSTEM_PROMPT]"),
    *("[/TOOL_RESULTS]", "[TOOL_CONTENT]", "[ARGS]", "[THINK]", "<0x0A>", "[IMG]", "[control_8]"),
]
pieces = st.one_of(
    st.sampled_from(["Hello", "world", " ", "  ", "\n", "\n\n", "\t", "é", "中文", "👩‍👩‍👧", "☺"]),
    st.sampled_from(
        ["\u2581", "\u2581a", "{}", '{"a": 1}', "def f(x):", "\u00a0", "\u0301", "1234567"]
    ),
    st.sampled_from(CONTROL_NAMES),
    st.text(max_size=6),
)
texts = st.lists(pieces, max_size=4).map("".join)
json_texts = st.one_of(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
        ),
        max_leaves=4,
    ).map(json.dumps),
    st.sampled_from(
        ["", "{}", '{"a":  1}', '{"a": "\\u00e9"}', '"x"', "{", "null", "NaN", "1e999"]
    ),
    texts,
)
call_ids = st.permutations(["abcdefghi", "123456789", "A1b2C3d4E"])
odd_ids = st.sampled_from(["null", "", "short", "abcdefgh\n", "abcdefghi\n", "abcdefghi"])
names = st.sampled_from(["get_weather", "f", "a-b_C9", "x" * 64])
odd_names = st.sampled_from(["get_weather", "", "with space", "ü", "x" * 65, "f\n", "f\n\n"])
parameters = st.sampled_from(
    [
        None,
        {},
        {"type": "object", "properties": {"ü": {"type": "string"}}},
        {"properties": {"a": {"pattern": "a+"}}, "required": ["a"]},
    ]
)
bad_parameters = st.sampled_from([{"type": "nonsense"}, {"properties": 3}, {"pattern": "("}, {}])


def chunks(kinds: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    text = texts.map(lambda text: {"type": "text", "text": text})
    thinking = st.tuples(texts, st.booleans()).map(
        lambda made: {"type": "thinking", "thinking": made[0], "closed": made[1]}
    )
    return st.lists(text if kinds == ["text"] else text | thinking, min_size=1, max_size=3)


class Author:
    """Writes messages: usual ones, or, where `wild`, anything that a client might send."""

    def __init__(self, draw: Any, name: str, shape: int) -> None:
        self.draw, self.wild = draw, shape % 3 == 0
        # How messages follow each other is by the number of the shape; Hypothesis, which is fond
        # of the smallest, would mostly write the same. What is in them it draws.
        self._random = random.Random(shape)
        self.number = int(name.removesuffix("-tekken")[1:])

    def chance(self, percent: int) -> bool:
        return self._random.random() * 100 < percent

    def strange(self, percent: int = 8) -> bool:
        return self.wild and self.chance(percent)

    def text(self, *, filled: bool = False) -> Any:
        text = self.draw(texts)
        return text if text or not filled or self.strange() else "Fine."

    def system(self) -> dict[str, Any]:
        kinds = ["text", "thinking"] if self.number == 13 or self.strange() else ["text"]
        content = self.draw(chunks(kinds)) if self.chance(15) else self.text()
        return {"role": "system", "content": content}

    def user(self) -> dict[str, Any]:
        content = self.draw(chunks(["text"])) if self.chance(15) else self.text()
        return {"role": "user", "content": None if self.strange(3) else content}

    def assistant(self) -> dict[str, Any]:
        made: dict[str, Any] = {"role": "assistant", "content": self.text(filled=True)}
        if self.chance(15):
            kinds = ["text", "thinking"] if self.number >= 13 or self.strange() else ["text"]
            made["content"] = [*self.draw(chunks(kinds)), {"type": "text", "text": "."}]
        if (self.number > 1 and self.chance(40)) or self.strange():
            made["tool_calls"] = self.calls()
            if self.number < 7 or self.chance(50):
                made["content"] = self.draw(st.sampled_from(["", None]))
        if self.strange():
            made["content"] = self.draw(st.sampled_from(["", None, [], " "]))
        if self.strange():
            made["prefix"] = self.draw(st.booleans())
        return made

    def calls(self) -> list[dict[str, Any]]:
        number = 1 if self.number == 2 and not self.wild else self._random.randint(1, 3)
        found = []
        for index in range(0 if self.strange() else number):
            arguments = self.draw(st.one_of(json_texts, st.none(), st.just({"é": [1, "ü"]})))
            name = self.draw(odd_names if self.strange() else names)
            call_id = self.draw(odd_ids) if self.strange() else self.draw(call_ids)[index]
            call = {"function": {"name": name, "arguments": arguments}, "id": call_id}
            if self.strange() or (self.number == 2 and self.chance(50)):
                del call["id"]
            if self.chance(50):
                call["type"] = "function"
            found.append(call)
        return found

    def result(self, call: dict[str, Any]) -> dict[str, Any]:
        made = {"role": "tool", "content": self.draw(json_texts), "tool_call_id": call.get("id")}
        if self.chance(15):
            made["content"] = self.draw(chunks(["text"]))
        if self.strange():
            made["tool_call_id"] = self.draw(odd_ids | st.none())
        if self.chance(50):
            made["name"] = self.draw(odd_names if self.strange() else names)
        return made

    def conversation(self) -> list[dict[str, Any]]:
        draw = self.draw
        made = [self.system()] if self.chance(60) else []
        for _ in range(self._random.randint(0, 2)):
            made += [self.user() for _ in range(1 + self.chance(20))]
            if self.chance(10):
                made += [self.system(), self.user()]
            while True:
                answer = self.assistant()
                made.append(answer)
                calls = answer.get("tool_calls") or []
                made += [self.result(call) for call in draw(st.permutations(calls))]
                if self.strange() and made[-1]["role"] == "tool":
                    made.pop()
                if not calls:
                    break
        if not made or made[-1]["role"] != "tool" or self.chance(70):
            made.append(self.user())
        if made[-1]["role"] == "user" and self.chance(30):
            last = {"role": "assistant", "content": self.text(filled=True), "prefix": True}
            made.append(last | (self.assistant() if self.strange() else {}))
        if self.wild and self.chance(40):
            made = draw(st.permutations(made))[: self._random.randint(0, 5)]
        return made

    def tools(self) -> list[dict[str, Any]] | None:
        draw, wild = self.draw, self.wild and self.chance(30)
        if self.chance(50):
            return None
        found = []
        for _ in range(self._random.randint(0, 2)):
            function: dict[str, Any] = {"name": draw(odd_names if wild else names)}
            if self.chance(60):
                function["description"] = draw(texts | st.none())
            if self.chance(80):
                function["parameters"] = draw(bad_parameters if wild else parameters)
            if self.chance(20):
                function["strict"] = draw(st.booleans())
            tool = {"type": "function", "function": function}
            if wild and self.chance(10):
                del tool[draw(st.sampled_from(["type", "function"]))]
            found.append(tool)
        return found


@dataclass
class Request:
    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None
    mode: str = "test"


@st.composite
def requests(draw: Any, name: str, shape: int) -> Request:
    author = Author(draw, name, shape)
    messages, tools = author.conversation(), author.tools()
    return Request(messages, tools, "serving" if shape % 4 == 1 else "test")


def expected(name: str, request: Request) -> list[int] | None:
    """What mistral-common gives; None where it refuses, in whatever way."""
    options: dict[str, Any] = {"model": "any"} if request.mode == "serving" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return reference(name, request.mode).ids(
                request.messages, tools=request.tools, **options
            )
        except Exception:
            return None


def compare(name: str, request: Request) -> bool:
    """Whether neither refuses; fails where one does, or where the ids differ."""
    ids = expected(name, request)
    # What the tests' tekken.json of V15 states as the default.
    settings = {"reasoning_effort": "none"} if name == "v15" else None
    try:
        prompt = mistral(name, mode=request.mode).render(
            request.messages, tokenizer=tokenizer(name), tools=request.tools, settings=settings
        )
    except ConversationError:
        assert ids is None
        return False
    assert prompt.ids == ids
    # The text is what the ids stand for; to SentencePiece `▁` is a space.
    text = prompt.text
    if tokenizer(name).kind == "sentencepiece":
        text = text.replace("\u2581", " ")
    assert tokenizer(name).decode(prompt.ids, skip_special_tokens=False) == text
    return True


@pytest.mark.parametrize("name", NAMES)
def test_conversations(name: str) -> None:
    """Equal ids or two refusals; and enough of what is compared is in the conversations."""
    seen: Counter[str] = Counter()

    def run(request: Request) -> None:
        if not compare(name, request):
            seen["refused"] += 1
            return
        seen["valid"] += 1
        seen["calls"] += any(message.get("tool_calls") for message in request.messages)
        seen["results"] += any(message["role"] == "tool" for message in request.messages)
        seen["prefix"] += bool(request.messages[-1].get("prefix"))
        seen["tools"] += bool(request.tools)
        seen["thinking"] += '"thinking"' in json.dumps(request.messages)

    for shape in range(SHAPES):
        quiet = settings(
            max_examples=EXAMPLES,
            suppress_health_check=list(HealthCheck),
        )
        seed(shape)(quiet(given(request=requests(name, shape))(run)))()
    wanted = {"valid", "refused", "prefix", "tools"}
    wanted |= {"calls", "results"} if name != "v1" else set()
    wanted |= {"thinking"} if name in ("v13", "v15") else set()
    assert not {what for what in wanted if seen[what] < 3}, seen


SPECIAL = {
    "nothing": [],
    "only a system prompt": [{"role": "system", "content": "Only this"}],
    "two users around a system prompt": [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "b"},
        {"role": "user", "content": "c"},
    ],
    "the assistant begins": [
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "b"},
    ],
    "the system prompt is last": [
        {"role": "user", "content": "a"},
        {"role": "system", "content": "b"},
    ],
    "a result comes first": [
        {"role": "tool", "content": "1", "tool_call_id": "abcdefghi", "name": "f"},
        {"role": "user", "content": "b"},
    ],
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", SPECIAL)
def test_special_cases(name: str, which: str) -> None:
    compare(name, Request(SPECIAL[which], None))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("v1", "v2")])
@seed(20240608)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(prefix=texts, suffix=st.none() | texts)
@example(prefix="prefix", suffix="suffix")
@example(prefix="", suffix="\ufe0f")
def test_fill_in_the_middle(name: str, prefix: str, suffix: str | None) -> None:
    prompt = mistral(name).fill_in_the_middle(prefix, suffix, tokenizer=tokenizer(name))
    assert prompt.ids == reference(name).infill(prefix, suffix)
