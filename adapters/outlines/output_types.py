"""The output types of outlines as grammars of ffwd."""

from collections.abc import Callable
from types import FunctionType
from typing import Any

from outlines.types import dsl

import ffwd
from ffwd import FfwdError, Grammar
from ffwd.adapters.shared.requests import grammar_of_text
from ffwd.grammar import Writing, warn_of_unknown_keywords


class UnsupportedOutputTypeError(FfwdError):
    """An output type that outlines has no term for, or that asks for what ffwd does not do.

    Attributes:
        output_type: The type.

    """

    def __init__(self, output_type: Any, reason: str) -> None:
        super().__init__(f"the output type {output_type!r} is not supported: {reason}")
        self.output_type = output_type


def grammar_of(output_type: Any, writing: Writing | None = None) -> Grammar:
    """Return the grammar of an output type, as outlines understands it.

    Args:
        output_type: A grammar of ffwd; a type of `outlines.types` (`JsonSchema`, `Regex`, `CFG`,
            `Choice`, terms joined by operators); a pydantic model, dataclass, `TypedDict`,
            `Literal`, `Enum`, function, `int`, `date` or another Python type. The text of a `CFG`
            is Lark, GBNF or EBNF.
        writing: How JSON is written, and what happens to an unsupported keyword.

    A Python type that is an object in JSON has only its declared properties, as in
    `ffwd.schema_of`. A `JsonSchema` applies as it stands.

    Raises:
        GrammarError: The text of a `CFG` cannot be parsed; `ffwd.compile` finds further errors.
        UnsupportedOutputTypeError: outlines has no term for the type, or it is a `JsonSchema` with
            a `whitespace_pattern`.
        UnsupportedTypeError: A part of the type has no JSON Schema.

    """
    if isinstance(output_type, Grammar):
        return output_type
    try:
        term = dsl.python_types_to_terms(output_type)
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsupportedOutputTypeError(output_type, str(error)) from error
    writing = Writing() if writing is None else writing
    if isinstance(term, dsl.JsonSchema) and isinstance(output_type, (type, FunctionType)):
        return ffwd.json_schema(output_type, **writing.options())
    return _grammar(term, writing)


def _grammar(term: Any, writing: Writing) -> Grammar:
    if isinstance(term, dsl.JsonSchema):
        if term.whitespace_pattern is not None:
            raise UnsupportedOutputTypeError(
                term, "whitespace_pattern; use whitespace=, separators= or indent= of ffwd"
            )
        schema: ffwd.JsonSchema = ffwd.json_schema(term.schema, **writing.options())
        warn_of_unknown_keywords([schema])
        return schema
    if isinstance(term, dsl.CFG):
        return grammar_of_text(term.definition)
    if _is_regular(term):
        return ffwd.regex(dsl.to_regex(term), dialect="python")
    bounds = _REPEATED.get(type(term))
    if bounds is not None:
        return ffwd.repeat(_grammar(term.term, writing), *bounds(term))
    parts = [_grammar(dsl.python_types_to_terms(part), writing) for part in _parts(term)]
    if isinstance(term, dsl.Sequence):
        return ffwd.seq(*parts)
    if isinstance(term, (dsl.Alternatives, dsl.Choice)):
        return ffwd.choice(parts)
    raise UnsupportedOutputTypeError(term, f"ffwd does not know {type(term).__name__}")


def _parts(term: Any) -> list[Any]:
    for name in ("terms", "items", "term"):
        parts = getattr(term, name, None)
        if parts is not None:
            return [parts] if name == "term" else list(parts)
    return []


def _is_regular(term: Any) -> bool:
    """Return whether `to_regex` can express a term; it would approximate a schema."""
    if isinstance(term, (dsl.JsonSchema, dsl.CFG)):
        return False
    return all(_is_regular(dsl.python_types_to_terms(part)) for part in _parts(term))


_REPEATED: dict[type, Callable[[Any], tuple[int, int | None]]] = {
    dsl.KleeneStar: lambda term: (0, None),
    dsl.KleenePlus: lambda term: (1, None),
    dsl.Optional: lambda term: (0, 1),
    dsl.QuantifyExact: lambda term: (term.count, term.count),
    dsl.QuantifyMinimum: lambda term: (term.min_count, None),
    dsl.QuantifyMaximum: lambda term: (0, term.max_count),
    dsl.QuantifyBetween: lambda term: (term.min_count, term.max_count),
}
