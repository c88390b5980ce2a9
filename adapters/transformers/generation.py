"""The result of one call of `ffwd.generate`: the text, its value, and its statistics."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from ffwd import Grammar, JsonSchema, ParseError, TruncatedError, TypedSchema
from ffwd.adapters.transformers.particles import Particle
from ffwd.adapters.transformers.report import GenerationStats
from ffwd.grammar import WritingOptions

T = TypeVar("T")

FinishReason = Literal["stop", "length", "cancelled"]
"""Why a text ended: by itself or at a stop string, at `max_new_tokens`, or because the caller said
so."""


@dataclass(frozen=True, kw_only=True)
class Generation(Generic[T]):
    """A model's output under a grammar.

        generation = ffwd.generate(model, tokenizer, messages, Person)
        generation.value  # a Person

    Attributes:
        text: The text of the grammar, with what was begun for the model.
        complete: Whether the text is whole: one that the grammar allows.
        finish_reason: Why it ended there.
        reasoning: What the model wrote before its answer.
        draft: With `draft_tokens` the free answer that the model wrote first.
        tokens: The generated ids, the end token and those of the reasoning included.
        prompt_tokens: The ids that the model was given.
        stats: What the call cost, with all conversations of a batch.
        log_masses: With `masses=True` a number in nats for each of `tokens`: the log probability
            that the model gave to all tokens that were allowed there, reasoning included. Of a
            forced token it is its own log probability. None without `masses=True`.
        particles: With a `sampling` other than `"masks"` the texts behind the answer, with their
            weights.
        log_evidence: With these, the log of the mean weight, in nats: an unbiased estimate of how
            probable the model's text is one of the grammar. Masks are of whole texts within
            `max_new_tokens`, so only these count.

    """

    text: str
    complete: bool
    finish_reason: FinishReason
    reasoning: str = ""
    draft: str | None = field(default=None, repr=False)
    tokens: tuple[int, ...] = field(repr=False)
    prompt_tokens: tuple[int, ...] = field(repr=False)
    stats: GenerationStats
    log_masses: tuple[float, ...] | None = field(default=None, repr=False)
    particles: tuple[Particle, ...] = field(default=(), repr=False)
    log_evidence: float | None = field(default=None, repr=False)
    _read: Callable[[str], T] = field(repr=False, compare=False)

    @property
    def log_weight(self) -> float | None:
        """The log importance weight of the tokens, in nats: the sum of `log_masses`.

        The model's probability of the tokens, divided by that of the masked sampling that has
        written them (without temperature and cuts). None without `masses=True`.
        """
        return None if self.log_masses is None else math.fsum(self.log_masses)

    @cached_property
    def value(self) -> T:
        """The text as a value: of the type that was asked for, of JSON, or the text itself.

        Raises:
            TruncatedError: The text was cut off; what to do is in the message, and what there is of
                it in `text`.
            ParseError: A validator of the type refuses it.

        """
        if not self.complete:
            raise TruncatedError.of(self.text)
        return self._read(self.text)


def reader_of(grammar: object) -> Callable[[str], Any]:
    """Return the function that converts a grammar's text to a value."""
    if isinstance(grammar, TypedSchema):
        return grammar.parse
    return _json if isinstance(grammar, JsonSchema) else _text


def as_schema(schema: Any, options: WritingOptions) -> Grammar:
    """Return the grammar of a `schema` argument of `ffwd.generate`.

    Raises:
        TypeError: It is none, or is one that says itself how JSON is written.

    """
    from ffwd import json_schema

    if isinstance(schema, Grammar):
        if options:
            raise TypeError(
                f"{', '.join(options)} is for schemas; give it to the function that made the "
                "grammar, such as ffwd.schema_of(T, whitespace=…)"
            )
        return schema
    if isinstance(schema, str) and schema.lstrip()[:1] not in ("{", "t", "f"):
        raise TypeError(
            f"the schema is the text {schema[:40]!r}, which is no JSON Schema: give ffwd.regex(…) "
            "for an expression, ffwd.choice([…]) for one of several texts, ffwd.lark(…) for a "
            "grammar"
        )
    if isinstance(schema, (list, tuple, set)):
        raise TypeError(
            f"the schema is a {type(schema).__name__}: give ffwd.choice([…]) for one of several "
            "texts"
        )
    made: Grammar = json_schema(schema, **options)
    return made


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        # Python reads no integer of more than 4,300 digits, for instance.
        raise ParseError(f"Python does not read this JSON: {error}", text=text) from error


def _text(text: str) -> str:
    return text
