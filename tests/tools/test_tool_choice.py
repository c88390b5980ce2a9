"""Which answers a request allows: `tool_choice`, parallel calls, bad tools."""

from typing import Any

import pytest
from accepting import accepts
from toolrequests import SCALARS, TOOLS, function

import ffwd
from ffwd.tools import RefusedTool, RefusedToolsError, ToolChoiceError, ToolFormatError

A = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
B = A.replace("now", "plan_route").replace("{}", '{"places":[{"name":"x","near":true}]}')
C = A.replace("now", "get_weather").replace("{}", '{"city":"Oslo","metric":false}')


def grammar(choice: Any = "auto", **options: Any) -> ffwd.Grammar:
    return ffwd.openai.tools(TOOLS, choice, **{"format": "hermes", **options})


def named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


AUTO = ["", "text", "a <tool_cal", f"text\n{A}", A, f"{A}\n{B}", f"t{C}\n{C}\n{A}"]
NEVER = [
    f"{A}text",
    "<tool_call>",
    f"{A}{B}",
    A.replace("now", "other"),
    C.replace("false", "1"),
    C.replace("Oslo", "nine chars"),
    A[:-1],
]


@pytest.mark.parametrize("choice", ["auto", None])
def test_auto_is_text_and_calls_or_either(choice: Any) -> None:
    """Text only before calls, and no text that a parser would take for a call."""
    allowed = grammar(choice)
    assert [text for text in AUTO if not accepts(allowed, text)] == []
    assert [text for text in NEVER if accepts(allowed, text)] == []


def test_none_lets_no_call_come() -> None:
    """Whatever tools there are."""
    allowed = grammar("none")
    assert [text for text in AUTO if accepts(allowed, text)] == ["", "text", "a <tool_cal"]
    assert ffwd.openai.tools([], "none", format="hermes") == allowed
    assert ffwd.openai.tools([], "auto", format="hermes") == allowed


def test_required_is_one_call_or_more() -> None:
    """And no text."""
    allowed = grammar("required")
    assert [text for text in AUTO if accepts(allowed, text)] == [A, f"{A}\n{B}"]


@pytest.mark.parametrize("form", [named("now"), {"type": "function", "name": "now"}])
def test_a_named_function_is_called_exactly_once(form: Any) -> None:
    """In the forms of chat completions and of responses."""
    allowed = grammar(form)
    assert accepts(allowed, A)
    assert not any(accepts(allowed, text) for text in ("", "text", f"{A}\n{A}", B))


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_allowed_tools_are_a_part_of_the_tools(mode: str) -> None:
    """With a mode of their own; in both forms."""
    tools = [named("now"), named("get_weather")]
    allowed = grammar({"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}})
    flat = [{"type": "function", "name": "now"}, {"type": "function", "name": "get_weather"}]
    assert grammar({"type": "allowed_tools", "mode": mode, "tools": flat}) == allowed
    assert accepts(allowed, f"{A}\n{C}")
    assert not accepts(allowed, f"{A}\n{B}")
    assert accepts(allowed, "text") == (mode == "auto")


def test_without_parallel_calls_there_is_one() -> None:
    """With text before it where that may be."""
    auto, required = (
        grammar(parallel_tool_calls=False),
        grammar("required", parallel_tool_calls=False),
    )
    assert accepts(auto, f"text{A}")
    assert accepts(required, A)
    assert not accepts(auto, f"{A}\n{A}")
    assert not accepts(required, f"{A}\n{A}")


BAD = [
    function("broken", {"type": "object", "properties": {"a": {"type": "strin"}}}),
    function("never", {"type": "object", "properties": {"a": False}, "required": ["a"]}),
    function("list", {"type": "array"}),
    function("loose", SCALARS, strict=True),
    function("now", {}),
    function("", {}),
    {"type": "web_search"},
    "text",
    {"type": "function", "function": {"name": "text", "parameters": "{"}},
]
REASONS = [
    ("broken", "/properties/a/type", "is not a type"),
    ("never", "/properties/a", "the schema has no valid value"),
    ("list", "/type", "arguments are an object"),
    ("loose", "", "missing: 'days', 'share', 'unit'"),
    ("now", "", "same name"),
    ("", "", "no name"),
    ("web_search", "", "has no tools of type 'web_search'"),
    ("", "", "a dict or a Python function"),
    ("text", "", "are not JSON"),
]


def test_bad_tools_are_refused_by_name_and_the_others_work() -> None:
    """All of them are reported, in order; by default the request is refused."""
    seen: list[RefusedTool] = []
    mixed = [BAD[0], *TOOLS, *BAD[1:]]
    skipped = ffwd.openai.tools(mixed, "required", format="hermes", on_bad_tool=seen.append)
    assert skipped == grammar("required")
    assert ffwd.openai.tools(mixed, "required", format="hermes", on_bad_tool="skip") == skipped
    assert [(tool.name, tool.pointer) for tool in seen] == [each[:2] for each in REASONS]
    for tool, (_, _, reason) in zip(seen, REASONS, strict=True):
        assert reason in tool.reason
    assert [tool.index for tool in seen] == [0, *range(4, 12)]
    with pytest.raises(RefusedToolsError) as caught:
        ffwd.openai.tools(mixed, format="hermes")
    assert [tool.name for tool in caught.value.refused] == [tool.name for tool in seen]
    assert "broken" in str(caught.value)


def test_a_tool_that_is_asked_for_is_not_left_out() -> None:
    """Also where bad ones are."""
    with pytest.raises(RefusedToolsError, match="broken"):
        ffwd.openai.tools([*TOOLS, BAD[0]], named("broken"), format="hermes", on_bad_tool="skip")
    with pytest.raises(ToolChoiceError, match="asks for 'absent'"):
        grammar(named("absent"))
    with pytest.raises(ToolChoiceError, match="no tool that can be called"):
        ffwd.openai.tools([BAD[0]], "required", format="hermes", on_bad_tool="skip")


@pytest.mark.parametrize(
    "choice",
    ["any", 3, {}, {"type": "function"}, {"type": "function", "function": {"name": 3}}, [],
     {"type": "allowed_tools"}, {"type": "allowed_tools", "mode": "none", "tools": [named("now")]},
     {"type": "allowed_tools", "mode": "auto", "tools": []},
     {"type": "allowed_tools", "allowed_tools": 1}],
)  # fmt: skip
def test_what_is_no_tool_choice(choice: Any) -> None:
    with pytest.raises(ToolChoiceError):
        grammar(choice)


def test_strict_and_not() -> None:
    """`strict: false` is any object, as in vLLM; without it the schema is followed."""
    call = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
    for strict, other in ((None, False), (False, True)):
        more = {} if strict is None else {"strict": strict}
        allowed = ffwd.openai.tools([function("f", SCALARS, **more)], "required", format="hermes")
        assert accepts(allowed, call % '{"city":"x","metric":true}')
        assert accepts(allowed, call % '{"city":1}') == other
        assert not accepts(allowed, call % "1")


def test_a_tool_without_parameters_takes_none() -> None:
    """As OpenAI says; and a schema without a type is one of objects."""
    call = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
    for parameters in (None, {}):
        allowed = ffwd.openai.tools([function("f", parameters)], "required", format="hermes")
        assert accepts(allowed, call % "{}")
        assert not accepts(allowed, call % '{"a":1}')
    untyped = function("f", {"properties": {"a": {"type": "integer"}}})
    allowed = ffwd.openai.tools([untyped], "required", format="hermes")
    assert accepts(allowed, call % '{"a":1}')
    assert not accepts(allowed, call % "[]")


def test_tools_in_every_form() -> None:
    """Of chat completions, of responses, and a Python function."""

    def now(place: str) -> str:
        """The time.

        Args:
            place: Where.

        """
        return place

    properties = {"place": {"type": "string", "description": "Where."}}
    schema = {"type": "object", "properties": properties, "required": ["place"]}
    forms = [
        function("now", schema),
        {"type": "function", "name": "now", "parameters": schema},
        now,
    ]
    made = [ffwd.openai.tools([form], format="hermes") for form in forms]
    assert made[0] == made[1] == made[2]


def test_what_is_no_format() -> None:
    with pytest.raises(ToolFormatError, match="hermes"):
        grammar(format="unknown")
    with pytest.raises(TypeError, match="format must be"):
        grammar(format=3)
    with pytest.raises(TypeError, match="tools must be a list"):
        ffwd.openai.tools("now", format="hermes")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="on_bad_tool"):
        grammar(on_bad_tool="ignore")


def test_the_models_own_tools() -> None:
    """Llama's search and code interpreter are called in a way of their own."""
    tools = [{"type": "brave_search"}, {"type": "code_interpreter"}, TOOLS[2]]
    allowed = ffwd.openai.tools(tools, format="llama3-json")
    assert accepts(allowed, '<|python_tag|>brave_search.call(query="x")')
    assert accepts(allowed, "<|python_tag|>print(1)\n")
    assert accepts(allowed, '{"name": "now", "parameters": {}}')
    assert accepts(allowed, "Some text.")
    assert not accepts(allowed, "{} text")
    chosen = ffwd.openai.tools(tools, {"type": "brave_search"}, format="llama3-json")
    assert accepts(chosen, '<|python_tag|>brave_search.call(query="x")')
    assert not accepts(chosen, "<|python_tag|>print(1)")
