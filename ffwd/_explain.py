"""The results of `Matcher.explain`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

Stage = Literal["free_text", "prefix", "grammar", "ended"]
Kind = Literal["end", "terminal", "token", "key", "value", "punctuation", "before"]


@dataclass(frozen=True, slots=True)
class RulePlace:
    """A rule of a grammar, and its position in the source.

    Attributes:
        name: Its name.
        source: The notation of the source, such as `Lark`; `None`, like `line` and `column`, for a
            rule without a source.
        line: From 1.
        column: From 1, in characters.
    """

    name: str
    source: str | None
    line: int | None
    column: int | None

    def __str__(self) -> str:
        if self.line is None:
            return self.name
        return f"{self.name} ({self.source}, line {self.line}, column {self.column})"


@dataclass(frozen=True, slots=True)
class Expected:
    """An item that is allowed next.

    Attributes:
        kind: Its kind: the end of the text, a terminal of a grammar, a token of a set, a key or a
            value of JSON, punctuation of JSON, or a part before the grammar.
        what: A description; for a terminal its text in quotes, or its expression between slashes.
        begun: Whether the output ends within it.
        rules: Up to 4 rules of the grammar that contain the terminal.
        pointers: JSON pointers of the schemas that require it.
        example: Bytes that complete it, if short ones are known.
    """

    kind: Kind
    what: str
    begun: bool
    rules: tuple[RulePlace, ...]
    pointers: tuple[str, ...]
    example: bytes | None

    def __str__(self) -> str:
        text = f"more of {self.what}" if self.begun else self.what
        return text + _where(self.rules, self.pointers)


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why a token or text is not allowed.

    Attributes:
        message: A description.
        rules: Rules of the grammar that require something else.
        pointers: JSON pointers of schemas that forbid it or require something else.
    """

    message: str
    rules: tuple[RulePlace, ...]
    pointers: tuple[str, ...]

    def __str__(self) -> str:
        return self.message + _where(self.rules, self.pointers)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer about one token or text: whether it is allowed, and why not.

    Attributes:
        token: The token, if the question was about one.
        text: Its bytes; empty for a token without text.
        allowed: For a token the bit of the mask. After the end nothing is allowed, although masks
            then have the end tokens so that a finished row can be sampled.
        good_bytes: The number of bytes that some accepted text continues.
        refused_byte: The first byte after which no accepted text continues. `None` if all bytes are
            accepted; then something else masks the token.
        reasons: The reasons; empty if it is allowed.
        instead: The items that are allowed after the good bytes.
        num_more: The number of further items, besides `instead`.
        instead_bytes: The bytes that are allowed there, sorted.
    """

    token: int | None
    text: bytes
    allowed: bool
    good_bytes: int
    refused_byte: int | None
    reasons: tuple[Reason, ...]
    instead: tuple[Expected, ...]
    num_more: int
    instead_bytes: bytes

    def __str__(self) -> str:
        subject = _quoted(self.text) if self.text else "it is no text, and"
        if self.token is not None:
            subject = f"token {self.token}: {subject}"
        if self.allowed:
            return f"{subject} may come"
        lines = [f"{subject} may not come"]
        if self.refused_byte is not None:
            byte = _quoted(bytes([self.refused_byte]))
            lines.append(
                f"  {self.good_bytes} of {len(self.text)} bytes are fine, then {byte} is refused"
            )
        lines.extend(f"  because {reason}" for reason in self.reasons)
        lines.extend(_list("  what may come instead:", self.instead, self.num_more, "    "))
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The items that are allowed next, and the answer about one token or text.

    Attributes:
        num_tokens: The number of tokens accepted so far.
        stage: The position of the matcher: in free text before the grammar, in a prefix left over
            from the prompt, in the grammar, or after the end.
        is_accepting: Whether the output may end here.
        expected: The allowed items, up to 48.
        num_more: The number of further items, besides `expected`.
        next_bytes: The bytes of text that are allowed next, sorted; empty in free text, where all
            are. A whole token of a token set need not start with one of them.
        completion: Tokens that complete the output; see `Matcher.shortest_completion`. `None` if
            they take too long to find.
        completion_text: The text of those tokens.
        notes: Other restrictions of the masks: a budget, canonical tokens.
        answer: The answer about the token or text in question.
    """

    num_tokens: int
    stage: Stage
    is_accepting: bool
    expected: tuple[Expected, ...]
    num_more: int
    next_bytes: bytes
    completion: tuple[int, ...] | None
    completion_text: bytes | None
    notes: tuple[str, ...]
    answer: Answer | None

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain dictionaries, tuples, text, numbers and bytes."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        where = {
            "free_text": "in free text before the grammar",
            "prefix": "in the prefix before the grammar",
            "grammar": "in the grammar",
            "ended": "after the end",
        }[self.stage]
        lines = [f"after {self.num_tokens} tokens, {where}"]
        lines.extend(_list("what may come:", self.expected, self.num_more, "  "))
        if self.completion:
            text = f": {_quoted(self.completion_text)}" if self.completion_text else ""
            lines.append(f"the text can end with {len(self.completion)} tokens{text}")
        lines.extend(self.notes)
        if self.answer is not None:
            lines.append(str(self.answer))
        return "\n".join(lines)


def _where(rules: tuple[RulePlace, ...], pointers: tuple[str, ...]) -> str:
    places = [f"rule {rule}" for rule in rules] + [f"schema {pointer}" for pointer in pointers]
    return f" [{', '.join(places)}]" if places else ""


def _list(title: str, items: tuple[Expected, ...], more: int, indent: str) -> list[str]:
    lines = [title] if items else []
    for item in items:
        example = f", such as {_quoted(item.example)}" if item.example else ""
        lines.append(f"{indent}{item}{example}")
    if more:
        lines.append(f"{indent}and {more} more")
    return lines


def _quoted(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return repr(data)[1:]
    return repr(text) if len(text) <= 200 else repr(text[:200]) + "…"


def _expected(data: list[dict[str, Any]]) -> tuple[Expected, ...]:
    return tuple(
        Expected(**{**item, "rules": _rules(item["rules"]), "pointers": tuple(item["pointers"])})
        for item in data
    )


def _rules(data: list[dict[str, Any]]) -> tuple[RulePlace, ...]:
    return tuple(RulePlace(**rule) for rule in data)


def explanation(data: dict[str, Any]) -> Explanation:
    """Return the explanation of the native module's data."""
    answer = data["answer"]
    if answer is not None:
        reasons = tuple(
            Reason(reason["message"], _rules(reason["rules"]), tuple(reason["pointers"]))
            for reason in answer["reasons"]
        )
        instead = _expected(answer["instead"])
        answer = Answer(**{**answer, "reasons": reasons, "instead": instead})
    completion = data["completion"]
    return Explanation(
        **{
            **data,
            "expected": _expected(data["expected"]),
            "completion": None if completion is None else tuple(completion),
            "notes": tuple(data["notes"]),
            "answer": answer,
        }
    )
