"""What `Matcher.explain` returns."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

Stage = Literal["free_text", "prefix", "grammar", "ended"]
Kind = Literal["end", "terminal", "token", "key", "value", "punctuation", "before"]


@dataclass(frozen=True, slots=True)
class RulePlace:
    """A rule of a grammar, and where its source has it.

    Attributes:
        name: What it is called.
        source: What the source is written in, such as `Lark`; `None`, as are the others, where the
            rule has no source.
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
    """Something that may come.

    Attributes:
        kind: What kind of thing it is: the end of the text, a terminal of a grammar, a token of a
            set, a key or a value of JSON, punctuation of JSON, or what comes before the grammar.
        what: In words; of a terminal its text in quotes, or its expression between slashes.
        begun: Whether a part of it has come.
        rules: Up to 4 rules of the grammar that have the terminal.
        pointers: Where the schemas stand that ask for it, as JSON pointers.
        example: Bytes with which it can go on up to its end, if short ones are known.
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
    """Why something may not come.

    Attributes:
        message: In words.
        rules: Rules of the grammar that ask for something else.
        pointers: Schemas that forbid it or ask for something else, as JSON pointers.
    """

    message: str
    rules: tuple[RulePlace, ...]
    pointers: tuple[str, ...]

    def __str__(self) -> str:
        return self.message + _where(self.rules, self.pointers)


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a token or a text may come.

    Attributes:
        token: The token, if it was one.
        text: Its bytes; empty if it is no text.
        allowed: For a token what the mask says; after the end, where a mask has the end tokens so
            that a finished row can be sampled, nothing is allowed.
        good_bytes: How many of the bytes are fine: after them some text of the grammar goes on.
        refused_byte: The first byte after which none does. `None` if there is none: then the text
            is fine, and something else masks the token.
        reasons: Why; empty if it is allowed.
        instead: What may come after the bytes that are fine.
        num_more: How much more, beside `instead`.
        instead_bytes: The bytes that may come there, sorted.
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
    """What may come next in a text, and whether a token or a text may.

    Attributes:
        num_tokens: How many tokens have been accepted.
        stage: Where the text stands: in free text before that of the grammar, in a prefix that the
            prompt has left over, in the grammar's text, or after its end.
        is_accepting: Whether the text may end here.
        expected: What may come, up to 48 items.
        num_more: How much more may come, beside `expected`.
        next_bytes: The bytes of text that may come next, sorted; none in free text, where any may.
            A token of a set that is taken as a whole need not begin with one of them.
        completion: Tokens with which the text can end; see `Matcher.shortest_completion`. `None`
            where that takes too long to find.
        completion_text: What those tokens spell.
        notes: What else narrows the masks: a budget, canonical tokens.
        answer: About the token or text that was asked about.
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
        """The same as plain dictionaries, tuples, text, numbers and bytes."""
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
    """The explanation of what the native core has found out."""
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
