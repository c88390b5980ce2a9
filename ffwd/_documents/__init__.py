"""Documents of a grammar, for tests and data: at random, and at the edges of a schema."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ffwd import _compile
from ffwd._compile import DEFAULT_LIMITS
from ffwd._documents.boundary_walk import BoundaryWalk, Ledger
from ffwd._documents.cursor import Cursor, byte_vocabulary
from ffwd._documents.random_walk import RandomWalk
from ffwd._documents.text_walk import TextWalk
from ffwd._documents.texts import Texts
from ffwd._limits import Limits
from ffwd._native import CompiledGrammar
from ffwd.grammar import Grammar, JsonSchema

MAX_BYTES = 4096


def sample_documents(
    grammar: Grammar,
    count: int,
    *,
    seed: int = 0,
    max_bytes: int = MAX_BYTES,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[str]:
    """Return valid documents of a grammar at random, for tests and as test data.

        for text in ffwd.sample_documents(ffwd.json_schema(schema), 100):
            handle(json.loads(text))

    The call compiles the grammar, and the iterator writes a document at each step. The choices are
    drawn uniformly: docs/cli.md has the distribution. The same arguments give the same documents on
    every machine, and a larger `count` continues the same list. A document of a JSON Schema has no
    white space that its `whitespace` leaves open.

    Args:
        grammar: From `json_schema`, `regex`, `lark` or another function of `ffwd.grammar`.
        count: The number of documents.
        seed: Other seeds give other documents.
        max_bytes: The most bytes of one document, in UTF-8.
        limits: Those of the compilation and of each call of a matcher.

    Raises:
        ValueError: `count` is negative, or `max_bytes` is not positive.
        BudgetError: No document has at most `max_bytes` bytes, with `needed`.
        GrammarError, SchemaError, LimitExceededError, TypeError: As `ffwd.compile` raises them; the
            iterator raises a `LimitExceededError` at a document that meets a limit.

    """
    _check(count, max_bytes)
    compiled = _compile.compile(grammar, byte_vocabulary(), limits=limits)
    texts = _texts(grammar) if isinstance(grammar, JsonSchema) else None
    any_order = isinstance(grammar, JsonSchema) and grammar.property_order == "any"
    memo: dict[object, Any] = {}

    def documents() -> Iterator[str]:
        for index in range(count):
            source = random.Random(f"{seed}/{index}")
            cursor = Cursor(compiled, max_bytes)
            if texts is None:
                yield TextWalk(cursor, source, max_bytes=max_bytes).run()
            else:
                yield RandomWalk(
                    cursor, texts, memo, source, max_bytes=max_bytes, any_order=any_order
                ).run()

    return documents()


def boundary_documents(
    schema: JsonSchema,
    count: int | None = None,
    *,
    max_bytes: int = MAX_BYTES,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[str]:
    """Return valid documents at the edges of a JSON Schema, all of them different.

        for text in ffwd.boundary_documents(ffwd.json_schema(schema)):
            handle(json.loads(text))

    The first is the shortest. Others have all properties, one property alone, each listed value or
    each kind of value. There are empty and long arrays and strings, deep nesting, unusual
    characters, and numbers at the bounds of the schema and of common types. The same arguments give
    the same documents, in the same order.

    Args:
        schema: From `json_schema` or `schema_of`.
        count: The most documents; `None` for all, which are finitely many.
        max_bytes: The most bytes of one document, in UTF-8.
        limits: Those of the compilation and of each call of a matcher.

    Raises:
        ValueError: `count` is negative, or `max_bytes` is not positive.
        BudgetError: No document has at most `max_bytes` bytes, with `needed`.
        SchemaError, LimitExceededError, TypeError: As `ffwd.compile` raises them; the iterator
            raises a `LimitExceededError` at a document that meets a limit.

    """
    if not isinstance(schema, JsonSchema):
        raise TypeError(f"schema must be a JsonSchema, not {type(schema).__name__}")
    _check(count or 0, max_bytes)
    compiled = _compile.compile(schema, byte_vocabulary(), limits=limits)
    return _distinct(_boundary(compiled, _texts(schema), max_bytes), count)


def _boundary(compiled: CompiledGrammar, texts: Texts, max_bytes: int) -> Iterator[str]:
    memo: dict[object, Any] = {}
    ledger = Ledger()

    def walk(style: str, script: tuple[int, ...] = ()) -> BoundaryWalk:
        return BoundaryWalk(
            Cursor(compiled, max_bytes), texts, memo, ledger, script=script, style=style
        )

    yield walk("script").run()
    yield walk("deep").run()
    is_dense = True
    while is_dense or ledger.scripts:
        if is_dense:
            dense = walk("dense")
            text = dense.run()
            is_dense = dense.is_new
            yield text
        if ledger.scripts:
            yield walk("script", ledger.scripts.popleft()).run()


def _distinct(documents: Iterator[str], count: int | None) -> Iterator[str]:
    seen: set[str] = set()
    while count is None or len(seen) < count:
        text = next(documents, None)
        if text is None:
            return
        if text not in seen:
            seen.add(text)
            yield text


def _texts(schema: JsonSchema) -> Texts:
    return Texts([schema.schema, *(text for _, text in schema.registry)])


def _check(count: int, max_bytes: int) -> None:
    if count < 0:
        raise ValueError(f"count must not be negative, not {count}")
    if max_bytes < 1:
        raise ValueError(f"max_bytes must be positive, not {max_bytes}")
