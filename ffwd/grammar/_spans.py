"""Grammars whose position in a text is reported, or whose tokens are limited."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from ffwd.grammar._errors import refuse_surrogates
from ffwd.grammar._grammar import Grammar, GrammarLike, as_grammar
from ffwd.grammar._repeat import check_count
from ffwd.grammar._rules import check_name
from ffwd.grammar._sequence import shown

SpanKind: TypeAlias = Literal[
    "capture", "reasoning", "content", "tool_call", "tool_name", "tool_arguments", "json"
]
"""What a piece of text is: a capture; a model's reasoning; free text of an answer; a call of a
tool, the name in it, and the arguments in it; a JSON value that is reported by pointers."""


@dataclass(frozen=True, eq=False, repr=False)
class Span(Grammar):
    """A grammar whose text is reported, made by `capture` and `span`.

    It accepts the same texts as its content.

    Attributes:
        kind: The kind of the span.
        content: The grammar.
        name: The name of a capture, or of a tool, if known in advance.

    """

    kind: SpanKind
    content: Grammar
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(SpanKind):
            raise ValueError(
                f"kind must be one of {', '.join(get_args(SpanKind))}, not {self.kind!r}"
            )
        if not isinstance(self.content, Grammar):
            raise TypeError(f"content must be a grammar, not {type(self.content).__name__}")
        if self.kind == "capture":
            check_name(self.name, "the name of a capture")
        elif not isinstance(self.name, str):
            raise TypeError(f"name must be a str, not {type(self.name).__name__}")
        refuse_surrogates(self.name, "the name")
        super().__post_init__()

    @property
    def _function(self) -> str:  # type: ignore[override]
        return "capture" if self.kind == "capture" else "span"

    def _parts(self) -> tuple[Grammar, ...]:
        return (self.content,)

    def _label(self) -> tuple[str, str]:
        return (self.kind, self.name)

    def _arguments(self) -> Iterable[tuple[str, object]]:
        if self.kind == "capture":
            return [("", self.name), ("", shown(self.content))]
        named = [("name", self.name)] if self.name else []
        return [("", self.kind), ("", shown(self.content)), *named]


@dataclass(frozen=True, eq=False, repr=False)
class Limit(Grammar):
    """A grammar with a limited number of tokens, made by `limit`.

    Attributes:
        content: The grammar.
        max_tokens: The most tokens it may take.

    """

    content: Grammar
    max_tokens: int

    _function = "limit"

    def __post_init__(self) -> None:
        if not isinstance(self.content, Grammar):
            raise TypeError(f"content must be a grammar, not {type(self.content).__name__}")
        check_count(self.max_tokens, "max_tokens")
        super().__post_init__()

    def _parts(self) -> tuple[Grammar, ...]:
        return (self.content,)

    def _label(self) -> tuple[int]:
        return (self.max_tokens,)

    def _arguments(self) -> Iterable[tuple[str, object]]:
        return [("", shown(self.content)), ("max_tokens", self.max_tokens)]


def capture(name: str, content: GrammarLike) -> Span:
    """Return a grammar whose text is reported under a name; it accepts the same texts.

    Raises:
        GrammarError: The name is empty or has a lone surrogate.
        TypeError: The name is not a str, or the content neither a grammar nor a str.

    """
    return Span("capture", as_grammar(content, "content"), name)


def span(kind: SpanKind, content: GrammarLike, *, name: str = "") -> Span:
    """Return a grammar whose text is reported with a kind, such as a tool's arguments.

    Args:
        kind: The kind; see `SpanKind`.
        content: The grammar.
        name: The name of the tool, if known in advance.

    Raises:
        TypeError: The content is neither a grammar nor a str.
        ValueError: An unknown kind.

    """
    return Span(kind, as_grammar(content, "content"), name)


def limit(content: GrammarLike, *, max_tokens: int) -> Limit:
    """Return a grammar that takes at most `max_tokens` tokens.

    Every token counts that has a byte of the part, even if it has bytes before or after it too.
    Masks exclude tokens after which the part could not end within its limit. If the limit is too
    small for every text, making a matcher raises `BudgetError`. A lexeme that normally ends at its
    longest match may end at the limit. For a budget of the whole answer see
    `CompiledGrammar.matcher(max_tokens=)`.

    Raises:
        GrammarError: `max_tokens` is negative.
        TypeError: `max_tokens` is not an int, or the content neither a grammar nor a str.

    """
    return Limit(as_grammar(content, "content"), max_tokens)
