"""The format of calls that a chat template shows: it is read around calls that are rendered."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from ffwd.chat.errors import ChatError
from ffwd.chat.template import ChatTemplate
from ffwd.tools.errors import ToolFormatError
from ffwd.tools.format import (
    ARGUMENTS,
    NAME,
    TEXT,
    ArgumentStyle,
    JsonArguments,
    Pattern,
    Piece,
    PythonArguments,
    TaggedArguments,
    ToolFormat,
)


@dataclass(frozen=True)
class Probe:
    """A call whose name and arguments are found again wherever they are written."""

    name: str
    arguments: Mapping[str, Any]
    id: str


PROBES = (
    Probe("lookup_alpha", {"first_key": "first value", "second_key": 4711}, "callaaaa1"),
    Probe("lookup_beta", {"third_key": "third value"}, "callbbbb2"),
)
_ONE = Probe("lookup_alpha", {"first_key": "first value"}, "callaaaa1")
_USER = {"role": "user", "content": "question"}
_ANSWER = "answered so"
_NOW = datetime(2024, 7, 26)
# A text that begins a call by itself: a tag, or a control token.
_MARK = re.compile(r"<[^<>\s]+>|<[^<>\s]+(?=[\s=])|\[[A-Z_]+\]")
_ATOM = re.compile(r"<[^<>\n]*>?|\[/?[A-Z_]+\]|.", re.DOTALL)
_ID = Pattern("[A-Za-z0-9_-]{1,64}")
# Calls that are numbered: a digit by itself, in quotes or behind a colon. It is no text.
_ONE_DIGIT = re.compile(r"(?<=[\":])[0-9](?=[\"<])")
_NUMBER = "\ue000"
_INDEX = Pattern("[0-9]{1,3}")
_REASONING = re.compile(r"^\s*(?:<think>\s*)?</think>\s*")
_ENDS = re.compile(
    r"\s*(?:<\|eo[tm]_id\|>|<\|im_end\|>|</s>|<｜end▁of▁sentence｜>|<\|END_OF_TURN_TOKEN\|>.*"
    r"|<｜Assistant｜>|<\|end_of_msg\|>|<\|calls\|>|<SPECIAL_[0-9]+>|<[^<>]*eos[^<>]*>)+\s*$",
    re.DOTALL,
)


def rendered_call(template: ChatTemplate, probes: Sequence[Probe] = PROBES[:1]) -> str:
    """Return a template's rendering of an answer with these calls, up to its end.

    Raises:
        ToolFormatError: It writes none.

    """
    problem = "it does not write their names"
    for as_text in (False, True):
        message = {"role": "assistant", "content": "", "tool_calls": _calls(probes, as_text)}
        try:
            text = _render(template, message, probes)
        except ChatError as error:
            problem = str(error)
            continue
        if all(probe.name in text for probe in probes):
            return text
    raise ToolFormatError(f"{template!r} writes no calls of tools: {problem}")


def derive_format(template: ChatTemplate) -> ToolFormat:
    """Return the format of the calls that a chat template renders.

    It renders sample calls, and reads the texts around their names and arguments: before the first
    call, between two, and after the last. It also reads whether arguments are a JSON object or
    stand between tags.

    Raises:
        ToolFormatError: The template writes no calls, or in an unsupported way.

    """
    try:
        return _read(template)
    except _UnreadError as error:
        raise ToolFormatError(
            f"{template!r} writes calls in a way that cannot be read from it: {error}; give a "
            "ToolFormat"
        ) from None


class _UnreadError(Exception):
    """The format is of another kind than the expected one."""


def _read(template: ChatTemplate) -> ToolFormat:
    whole = _split(_numbered(rendered_call(template, [_ONE])), _ONE)
    style = whole.style
    if isinstance(style, TaggedArguments):
        whole, style = _tags(whole, _numbered(rendered_call(template)))
    begin, opening, closing, end = "", whole.before, whole.after, ""
    separator: str | None = None
    try:
        two = _numbered(rendered_call(template, [_ONE, PROBES[1]]))
    except ToolFormatError:
        two = ""
    if two:
        middle = _middle(two, whole)
        opening = _common_suffix(whole.before, middle)
        rest = middle[: len(middle) - len(opening)]
        closing = _common_prefix(whole.after, rest)
        separator = rest[len(closing) :]
        begin = whole.before[: len(whole.before) - len(opening)]
        end = whole.after[len(closing) :]
    begin, end = begin.lstrip(), end.rstrip()
    if not begin:
        opening = opening.lstrip()
    if not end:
        closing = closing.rstrip()
    if not begin + opening:
        raise _UnreadError("a call begins with the name of the tool")
    marks = _MARK.findall(begin + opening)
    text = _text(template)
    return ToolFormat(
        name="template",
        source=f"what {template!r} writes",
        call=(*_pieces(opening), NAME, *_pieces(whole.between), ARGUMENTS, *_pieces(closing)),
        arguments=style,
        begin=_pieces(begin),
        end=_pieces(end),
        separator=None if separator is None else _pieces(separator),
        excluding=tuple(marks[:1]),
        text_start=None if marks else rf"\s*[^\s{re.escape((begin + opening)[:1])}]",
        text=text,
        before=(TEXT,) if marks and text == (TEXT,) else None,
        spelled_in_json=opening.endswith('"'),
    )


@dataclass(frozen=True)
class _Call:
    """A rendered call: the texts before the name, between it and the arguments, and after them."""

    before: str
    between: str
    written: str
    after: str
    style: ArgumentStyle


def _split(text: str, probe: Probe) -> _Call:
    at = text.find(probe.name)
    if text.count(probe.name) != 1:
        raise _UnreadError("the name is written more than once")
    behind = text[at + len(probe.name) :]
    as_json = re.search(json_pattern(probe.arguments), behind)
    if as_json is not None:
        return _Call(
            text[:at],
            behind[: as_json.start()],
            as_json.group(),
            behind[as_json.end() :],
            JsonArguments(),
        )
    key, value = next(iter(probe.arguments.items()))
    if behind.count(key) != 1 or behind.count(value) != 1 or behind.find(value) < behind.find(key):
        raise _UnreadError("the arguments are not behind the name")
    first, last = behind.find(key), behind.find(value)
    end = last + len(value)
    if (between := behind[first + len(key) : last]) in ('="', "='"):
        return _Call(
            text[:at], behind[:first], behind[first : end + 1], behind[end + 1 :], PythonArguments()
        )
    # Two arguments show which of the texts around them belong to an argument.
    tags = TaggedArguments(
        before_name="", before_string=between, before_value="", after_value="", excluding=()
    )
    return _Call(text[:at], behind[:first], behind[first:end], behind[end:], tags)


def _tags(whole: _Call, two_arguments: str) -> tuple[_Call, TaggedArguments]:
    """Return the tags of one argument, from two adjacent ones."""
    assert isinstance(whole.style, TaggedArguments)
    (_, first), (second, number) = PROBES[0].arguments.items()
    found = re.search(
        f"{re.escape(first)}(.*?){re.escape(second)}(.*?){number}(.*)", two_arguments, re.DOTALL
    )
    if found is None:
        raise _UnreadError("the arguments are not in order")
    middle, before_value, after = found.groups()
    before_name = _common_suffix(whole.between, middle)
    after_value = middle[: len(middle) - len(before_name)]
    if not before_name.strip() or not after_value.strip() or not after.startswith(after_value):
        raise _UnreadError("the arguments have no tags")
    style = TaggedArguments(
        before_name=before_name,
        before_string=whole.style.before_string,
        before_value=before_value,
        after_value=after_value,
        excluding=(after_value.strip(),),
    )
    between = whole.between[: len(whole.between) - len(before_name)]
    after = whole.after[len(after_value) :]
    written = before_name + whole.written + after_value
    return _Call(whole.before, between, written, after, style), style


def _middle(text: str, whole: _Call) -> str:
    """Return the text between the arguments of one call and the name of the next."""
    end = text.find(whole.written)
    name = text.find(PROBES[1].name)
    if not text.startswith(whole.before) or end < 0 or name < end:
        raise _UnreadError("two calls do not stand one behind the other")
    return text[end + len(whole.written) : name].replace(PROBES[1].id, PROBES[0].id)


def _numbered(text: str) -> str:
    return _ONE_DIGIT.sub(_NUMBER, text)


def _pieces(text: str) -> tuple[Piece, ...]:
    """Return a text, with the ids and numbers of calls as patterns."""
    patterns: dict[str, Piece] = {PROBES[0].id: _ID, _NUMBER: _INDEX}
    parts = re.split(f"({PROBES[0].id}|{_NUMBER})", text)
    return tuple(patterns.get(part, part) for part in parts if part)


def _common_prefix(left: str, right: str) -> str:
    """Return the common prefix of both, without cutting a tag."""
    pairs = zip(_ATOM.findall(left), _ATOM.findall(right), strict=False)
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _common_suffix(left: str, right: str) -> str:
    """Return the common suffix of both, without cutting a tag."""
    pairs = zip(_ATOM.findall(left)[::-1], _ATOM.findall(right)[::-1], strict=False)
    same = [one for one, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    return "".join(reversed(same))


def json_pattern(value: Mapping[str, Any]) -> str:
    """Return a pattern for a flat object with any spacing."""
    members = (
        rf"{re.escape(json.dumps(key))}\s*:\s*{re.escape(json.dumps(item))}"
        for key, item in value.items()
    )
    return r"\{\s*" + r"\s*,\s*".join(members) + r"\s*\}"


def _calls(probes: Sequence[Probe], as_text: bool) -> list[dict[str, Any]]:
    return [
        {
            "id": probe.id,
            "type": "function",
            "function": {
                "name": probe.name,
                "arguments": json.dumps(probe.arguments) if as_text else dict(probe.arguments),
            },
        }
        for probe in probes
    ]


def _tool(probe: Probe) -> dict[str, Any]:
    kinds = {str: "string", int: "integer"}
    properties = {key: {"type": kinds[type(item)]} for key, item in probe.arguments.items()}
    parameters = {"type": "object", "properties": properties}
    described = {"name": probe.name, "description": "looks up", "parameters": parameters}
    return {"type": "function", "function": described}


def _render(template: ChatTemplate, message: Mapping[str, Any], probes: Sequence[Probe]) -> str:
    """Return the answer, without the text that ends every answer and the empty reasoning."""
    answer = _rendered(template, message, probes)
    plain = _rendered(template, {"role": "assistant", "content": _ANSWER}, probes)
    answer = answer.removesuffix(_common_suffix(answer, plain.rpartition(_ANSWER)[2]))
    return _ENDS.sub("", _REASONING.sub("", answer))


def _text(template: ChatTemplate) -> tuple[Piece, ...]:
    """Return how an answer without calls is written."""
    calls = {"role": "assistant", "content": "", "tool_calls": _calls(PROBES[:1], False)}
    plain = _rendered(template, {"role": "assistant", "content": _ANSWER}, PROBES[:1])
    try:
        ended = _rendered(template, calls, PROBES[:1])
    except ChatError:
        ended = plain
    before, found, after = plain.partition(_ANSWER)
    if not found:
        raise _UnreadError("the text of an answer is written otherwise")
    after = _ENDS.sub("", after.removesuffix(_common_suffix(after, ended)))
    return (*_pieces(_REASONING.sub("", before).lstrip()), TEXT, *_pieces(after.rstrip()))


def _rendered(template: ChatTemplate, message: Mapping[str, Any], probes: Sequence[Probe]) -> str:
    """Return the text after the prompt."""
    tools = [_tool(probe) for probe in probes]

    def text(*messages: Mapping[str, Any], begin: bool = False) -> str:
        return template.render_text(
            [_USER, *messages], tools=tools, add_generation_prompt=begin, now=_NOW
        )

    whole = text(message)
    return whole[len(_common_prefix(whole, text(begin=True))) :]
