"""Constraints on answers as keyword arguments of `generate` and of pipelines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from transformers import LogitsProcessorList
from transformers.generation.streamers import BaseStreamer

import ffwd
from ffwd import CompiledGrammar, Grammar, Vocabulary
from ffwd.adapters.shared.requests import GrammarRequest, grammar_of
from ffwd.adapters.shared.vocabulary import engine_vocabulary
from ffwd.adapters.transformers.fast_forward import FastForward
from ffwd.adapters.transformers.fit import end_tokens
from ffwd.adapters.transformers.generate import fast_forward_generate
from ffwd.adapters.transformers.processor import GrammarLogitsProcessor
from ffwd.adapters.transformers.report import GenerationReport
from ffwd.adapters.transformers.rows import GrammarOrStart
from ffwd.chat import Start
from ffwd.grammar import Writing, WritingOptions, warn_of_unknown_keywords

if TYPE_CHECKING:
    from typing_extensions import Unpack

_Rows = GrammarOrStart | list[GrammarOrStart]


class Structured:
    """Converts constraints on an answer to keyword arguments of `generate` and of pipelines.

        structured = Structured(model, tokenizer)
        model.generate(**inputs, **structured(json_schema=schema, max_new_tokens=200))

        pipe = pipeline("text-generation", model=model, tokenizer=tokenizer)
        pipe(messages, **structured(regex="[0-9]{4}-[0-9]{2}"), return_full_text=False)

    It reads the tokenizer once, and keeps the grammars that it has compiled. It may be shared
    between threads.

    Args:
        model: The model, or a pipeline, which has a tokenizer.
        tokenizer: The model's tokenizer, in any form that `ffwd.tokenizer.load` reads.
        vocabulary: Instead of a tokenizer, one that has been made from it.
        max_grammars: How many grammars are kept; the least recently used is let go first.

    Raises:
        TypeError: No tokenizer, and `model` is no pipeline that has one.
        VocabularyError: A tokenizer that cannot be read, or one with more ids than the model has
            logits.

    Attributes:
        vocabulary: What grammars are compiled for: `ffwd.compile(grammar, structured.vocabulary)`.

    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        *,
        vocabulary: Vocabulary | None = None,
        max_grammars: int = 64,
    ) -> None:
        inner = getattr(model, "model", None)
        if hasattr(inner, "generate") and hasattr(model, "tokenizer"):
            tokenizer = model.tokenizer if tokenizer is None else tokenizer
            model = inner
        config = model.config.get_text_config()
        if vocabulary is None:
            if tokenizer is None:
                raise TypeError("Structured needs a tokenizer: Structured(model, tokenizer)")
            vocabulary = engine_vocabulary(
                tokenizer,
                vocab_size=config.vocab_size,
                eos_token_ids=end_tokens(model.generation_config),
            )
        self.vocabulary = vocabulary
        # If the model stops at other tokens than those that end the grammar, they are passed on.
        differ = set(end_tokens(model.generation_config)) != set(vocabulary.eos_token_ids)
        self._eos_token_ids = list(vocabulary.eos_token_ids) if differ else None
        self._compiled: Callable[[str, str, Writing], CompiledGrammar] = lru_cache(max_grammars)(
            self._compile
        )

    def __repr__(self) -> str:
        return f"Structured({self.vocabulary!r})"

    def __call__(
        self,
        *,
        json_schema: Any = None,
        regex: str | None = None,
        choice: Sequence[str] | None = None,
        grammar: Any = None,
        response_format: Any = None,
        max_new_tokens: int | None = None,
        fast_forward: bool | FastForward = True,
        canonical: bool = False,
        streamer: BaseStreamer | None = None,
        report: GenerationReport | None = None,
        masses: bool = False,
        **options: Unpack[WritingOptions],
    ) -> dict[str, Any]:
        """Return keyword arguments for one call of `generate` or of a pipeline.

        Just one of the first five says what the answer is.

        Args:
            json_schema: A JSON Schema: a dict, JSON text, or a Python type as `ffwd.schema_of`
                takes it.
            regex: An expression in the dialect of Python's `re`, of the whole answer.
            choice: The texts of which the answer is one.
            grammar: The text of a grammar (Lark, GBNF or EBNF), an `ffwd.Grammar`, one that is
                compiled, or the `Start` of a prompt of `ffwd.chat`; a list has one for each prompt.
            response_format: As in OpenAI's API, see `ffwd.openai.response_format`; or a pydantic
                model or another class.
            max_new_tokens: Passed on to `generate`, and the answer is complete within so many
                tokens. With a limit that is given to `generate` itself, it may be cut off.
            fast_forward: Whether forced tokens skip the model, and how. False for a logits
                processor, which also works with beam search and assisted decoding.
            canonical: Leave only tokens with which the tokenizer itself would have cut the text.
            streamer: Gets the tokens.
            report: Filled with counters, with fast-forward only.
            masses: Let the logits processor note `log_masses`. With fast-forward a `report` asks
                for them: `GenerationReport(masses=True)`.
            **options: How JSON is written: all but `registry` of `ffwd.json_schema`.

        Raises:
            TypeError: Not just one says what the answer is, or one is of another type.
            FfwdError: What is wrong with a schema, an expression or a grammar.

        """
        given = {
            "json_schema": json_schema,
            "regex": regex,
            "choice": choice,
            "grammar": grammar,
            "response_format": response_format,
        }
        named = {name: one for name, one in given.items() if one is not None}
        rows = self._rows(named, Writing(**options))
        arguments: dict[str, Any] = {}
        if max_new_tokens is not None:
            arguments["max_new_tokens"] = max_new_tokens
        if self._eos_token_ids is not None:
            arguments["eos_token_id"] = self._eos_token_ids
        if fast_forward is False:
            if report is not None:
                raise TypeError("report needs fast_forward; a logits processor has its own stats")
            processor = GrammarLogitsProcessor(
                rows, canonical=canonical, max_tokens=max_new_tokens, masses=masses
            )
            arguments["logits_processor"] = LogitsProcessorList([processor])
            return arguments | ({} if streamer is None else {"streamer": streamer})
        if masses:
            raise TypeError(
                "masses=True is for fast_forward=False; with fast-forward give "
                "report=GenerationReport(masses=True)"
            )
        arguments |= {"custom_generate": fast_forward_generate, "grammar": rows}
        chosen = {
            "fast_forward": None if fast_forward is True else fast_forward,
            "canonical": canonical or None,
            "complete": True if max_new_tokens is not None else None,
            "token_streamer": streamer,
            "report": report,
        }
        return arguments | {name: one for name, one in chosen.items() if one is not None}

    def _rows(self, given: Mapping[str, Any], writing: Writing) -> _Rows:
        if len(given) != 1:
            raise TypeError(
                "say what the answer is by one of json_schema, regex, choice, grammar and"
                f" response_format, not by {' and '.join(given) or 'none of them'}"
            )
        ((name, one),) = given.items()
        if name == "grammar" and isinstance(one, list):
            return [self._grammar(each, writing) for each in one]
        if name == "grammar":
            return self._grammar(one, writing)
        kind, text = _READERS[name](one)
        return self._compiled(kind, text, writing)

    def _grammar(self, given: Any, writing: Writing) -> GrammarOrStart:
        if isinstance(given, (CompiledGrammar, Start)):
            return given
        if isinstance(given, Grammar):
            return ffwd.compile(given, self.vocabulary)
        return self._compiled("grammar", _text("grammar", given), writing)

    def _compile(self, kind: str, text: str, writing: Writing) -> CompiledGrammar:
        if kind == "response_format":
            made = ffwd.openai.response_format(json.loads(text), **writing.given())
        else:
            made = grammar_of(GrammarRequest(kind, text, **writing.options()))
            if isinstance(made, ffwd.JsonSchema):
                warn_of_unknown_keywords([made])
        return ffwd.compile(made, self.vocabulary)


def _schema(given: Any) -> tuple[str, str]:
    if isinstance(given, str):
        return "json", given
    return "json", ffwd.json_schema(given).schema


def _response_format(given: Any) -> tuple[str, str]:
    if isinstance(given, type):
        return "json", ffwd.schema_of(given, require_all=True).schema
    if not isinstance(given, Mapping) and hasattr(given, "model_dump"):
        given = given.model_dump(by_alias=True, exclude_none=True)
    if not isinstance(given, Mapping):
        raise TypeError(f"response_format must be an object, not {type(given).__name__}")
    return "response_format", json.dumps(dict(given))


def _choice(given: Any) -> tuple[str, str]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise TypeError(f"choice must be a list of texts, not {type(given).__name__}")
    return "choice", json.dumps(list(given))


def _text(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{name} must be text, not {type(given).__name__}")
    return given


_READERS: dict[str, Callable[[Any], tuple[str, str]]] = {
    "json_schema": _schema,
    "regex": lambda given: ("regex", _text("regex", given)),
    "choice": _choice,
    "response_format": _response_format,
}
