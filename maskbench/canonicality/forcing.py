"""Engines that force tokens, as the counts of this package need them: compile, accept, force."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import ffwd
import ffwd.grammar
import ffwd.tokenizer
from maskbench.canonicality.counts import ForcedWalk
from maskbench.canonicality.variants import FFWD, LLGUIDANCE, Mode, Variant
from maskbench.documents import Whitespace
from maskbench.engines.base import EngineSetup
from maskbench.engines.ffwd import refusal
from maskbench.engines.llguidance import LlguidanceEngine, options_of
from maskbench.tokenizer import TokenizerSpec


class ForcingGrammar(ABC):
    """A compiled schema."""

    @abstractmethod
    def accepts(self, tokens: Sequence[int]) -> bool:
        """Return whether the text of all these tokens is one that may end there."""

    @abstractmethod
    def walk(self, variant: Variant) -> ForcedWalk:
        """Return a walk at the start of a text."""


class ForcingEngine(ABC):
    """An engine that returns forced tokens."""

    @abstractmethod
    def __init__(self, spec: TokenizerSpec) -> None: ...

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of its package."""

    @abstractmethod
    def compile(self, schema: str, mode: Mode) -> ForcingGrammar:
        """Compile the text of a schema. Raises `RefusedError`."""

    def unavailable(self, variant: Variant) -> str | None:
        """Return why this tokenizer does not allow the variant, or None."""
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
        """Compile the text of a schema. Raises `RefusedError`."""
        try:
            grammar = ffwd.grammar.json_schema(schema, whitespace=mode.whitespace.value)
            return FfwdCompiled(ffwd.compile(grammar, self.vocabulary))
        except ffwd.FfwdError as error:
            raise refusal(error) from error

    def unavailable(self, variant: Variant) -> str | None:
        """Return why this tokenizer does not allow the variant, or None."""
        matcher = ffwd.compile(ffwd.grammar.choice(["a"]), self.vocabulary).matcher()
        try:
            matcher.fast_forward_tokens(**dict(variant.options))
        except ffwd.FfwdError as error:
            return str(error)
        return None


class FfwdCompiled(ForcingGrammar):
    """A grammar of ffwd."""

    def __init__(self, grammar: ffwd.CompiledGrammar) -> None:
        self.grammar = grammar

    def accepts(self, tokens: Sequence[int]) -> bool:
        """Return whether the text of all these tokens is one that may end there."""
        matcher = self.grammar.matcher()
        return matcher.accept_tokens(tokens) and matcher.is_accepting()

    def walk(self, variant: Variant) -> ForcedWalk:
        """Return a walk at the start of a text."""
        matcher = self.grammar.matcher()
        options = dict(variant.options)
        force = matcher.fast_forward_tokens
        return ForcedWalk(matcher.accept_token, lambda: force(**options))


class Llguidance(ForcingEngine):
    """llguidance, with the options that it recommends for JSON."""

    def __init__(self, spec: TokenizerSpec) -> None:
        self._engine = LlguidanceEngine(EngineSetup(spec, Whitespace.FLEXIBLE))

    @property
    def version(self) -> str:
        """The version of the package."""
        return self._engine.versions()["llguidance"]

    def compile(self, schema: str, mode: Mode) -> ForcingGrammar:
        """Compile the text of a schema. Raises `RefusedError`."""
        options = options_of(mode.whitespace)
        return _LlguidanceCompiled(self._engine.compile_with(schema, options).session().fork)


class _LlguidanceCompiled(ForcingGrammar):
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def accepts(self, tokens: Sequence[int]) -> bool:
        matcher = self._matcher()
        return bool(matcher.consume_tokens(list(tokens)) and matcher.is_accepting())

    def walk(self, variant: Variant) -> ForcedWalk:
        matcher = self._matcher()
        return ForcedWalk(matcher.consume_token, matcher.compute_ff_tokens)


ENGINES: dict[str, type[ForcingEngine]] = {FFWD: Ffwd, LLGUIDANCE: Llguidance}
