"""Engines that force tokens, as the counts of this package need them: compile, accept, force."""

from __future__ import annotations

import importlib.metadata
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ffwd
import ffwd.grammar
import ffwd.tokenizer
from maskbench.canonicality.variants import FFWD, LLGUIDANCE, Mode, Variant
from maskbench.documents import Whitespace
from maskbench.engines.base import MissingEngineError, RefusedError, short_reason
from maskbench.tokenizer import TokenizerSpec


@dataclass(frozen=True)
class Walk:
    """One text in progress."""

    accept: Callable[[int], bool]
    force: Callable[[], Sequence[int]]


class Compiled(ABC):
    """A compiled schema."""

    @abstractmethod
    def accepts(self, tokens: Sequence[int]) -> bool:
        """Whether the text of all these tokens is one that may end there."""

    @abstractmethod
    def walk(self, variant: Variant) -> Walk:
        """A text, empty so far."""


class ForcingEngine(ABC):
    """An engine that can say which tokens must come next."""

    @abstractmethod
    def __init__(self, spec: TokenizerSpec) -> None: ...

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of its package."""

    @abstractmethod
    def compile(self, schema: str, mode: Mode) -> Compiled:
        """Compiles the text of a schema. Raises `RefusedError`."""

    def unavailable(self, variant: Variant) -> str | None:
        """Why this tokenizer does not allow the variant, if it does not."""
        return None


class Ffwd(ForcingEngine):
    """ffwd, with the options of `fast_forward_tokens`."""

    def __init__(self, spec: TokenizerSpec) -> None:
        self.vocabulary = ffwd.tokenizer.from_huggingface(
            spec.directory, vocab_size=spec.vocab_size
        )

    @property
    def version(self) -> str:
        """The version of the package."""
        return ffwd.__version__

    def compile(self, schema: str, mode: Mode) -> FfwdCompiled:
        """Compiles the text of a schema. Raises `RefusedError`."""
        try:
            grammar = ffwd.grammar.json_schema(schema, whitespace=mode.whitespace.value)
            return FfwdCompiled(ffwd.compile(grammar, self.vocabulary))
        except ffwd.UnsupportedSchemaError as error:
            raise RefusedError(f"unsupported: {error.keyword}", str(error)) from error
        except ffwd.FfwdError as error:
            reason = f"{type(error).__name__}: {short_reason(str(error))}"
            raise RefusedError(reason, str(error)) from error

    def unavailable(self, variant: Variant) -> str | None:
        """Why this tokenizer does not allow the variant, if it does not."""
        matcher = ffwd.compile(ffwd.grammar.choice(["a"]), self.vocabulary).matcher()
        try:
            matcher.fast_forward_tokens(**dict(variant.options))
        except ffwd.FfwdError as error:
            return str(error)
        return None


class FfwdCompiled(Compiled):
    """A grammar of ffwd."""

    def __init__(self, grammar: ffwd.CompiledGrammar) -> None:
        self.grammar = grammar

    def accepts(self, tokens: Sequence[int]) -> bool:
        """Whether the text of all these tokens is one that may end there."""
        matcher = self.grammar.matcher()
        return matcher.accept_tokens(tokens) and matcher.is_accepting()

    def walk(self, variant: Variant) -> Walk:
        """A text, empty so far."""
        matcher = self.grammar.matcher()
        options = dict(variant.options)
        force = matcher.fast_forward_tokens
        return Walk(matcher.accept_token, lambda: force(**options))


class Llguidance(ForcingEngine):
    """llguidance, with the options that it recommends for JSON."""

    def __init__(self, spec: TokenizerSpec) -> None:
        try:
            import llguidance
        except ImportError as error:
            raise MissingEngineError(
                "llguidance is not installed: pip install llguidance"
            ) from error
        self._matcher: Any = llguidance.LLMatcher
        self._tokenizer = llguidance.LLTokenizer(
            (spec.directory / "tokenizer.json").read_text(encoding="utf-8"),
            n_vocab=spec.vocab_size,
            eos_token=list(spec.eos_token_ids),
            slices=llguidance.LLTokenizer.json_slices(),
        )

    @property
    def version(self) -> str:
        """The version of the package."""
        return importlib.metadata.version("llguidance")

    def compile(self, schema: str, mode: Mode) -> Compiled:
        """Compiles the text of a schema. Raises `RefusedError`."""
        item, key = mode.whitespace.separators
        flexible = mode.whitespace is Whitespace.FLEXIBLE
        options: dict[str, Any] = {"whitespace_flexible": flexible}
        if not flexible:
            options |= {"item_separator": item, "key_separator": key}
        try:
            grammar = self._matcher.grammar_from_json_schema(schema, overrides=options)
        except ValueError as error:
            raise RefusedError(short_reason(str(error)), str(error)) from error
        # log_level 0: nothing is printed when a document is refused.
        matcher = self._matcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            message = matcher.get_error()
            raise RefusedError(short_reason(message), message)
        return _LlguidanceCompiled(matcher)


class _LlguidanceCompiled(Compiled):
    def __init__(self, pristine: Any) -> None:
        self._pristine = pristine

    def accepts(self, tokens: Sequence[int]) -> bool:
        matcher = self._pristine.deep_copy()
        return bool(matcher.consume_tokens(list(tokens)) and matcher.is_accepting())

    def walk(self, variant: Variant) -> Walk:
        matcher = self._pristine.deep_copy()
        return Walk(matcher.consume_token, matcher.compute_ff_tokens)


ENGINES: dict[str, type[ForcingEngine]] = {FFWD: Ffwd, LLGUIDANCE: Llguidance}
