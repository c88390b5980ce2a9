"""XGrammar (`pip install xgrammar`), in its strict mode."""

from __future__ import annotations

import importlib.metadata
from functools import partial
from typing import Any

from maskbench.documents import Whitespace
from maskbench.engines.base import (
    Compiled,
    Engine,
    EngineSetup,
    MissingEngineError,
    RefusedError,
    Session,
    short_reason,
)

CACHE_BYTES = 2 << 30


class XGrammarEngine(Engine):
    """One compile thread. It has forced text, but no forced tokens.

    The compiler's cache stays on, as a server has it: it also holds masks that different grammars
    share, without which compiling takes about ten times as long. With `cold_store` it is emptied
    before each schema. A schema that occurs twice in the data is found in it.
    """

    def __init__(self, setup: EngineSetup) -> None:
        try:
            import xgrammar
            from transformers import PreTrainedTokenizerFast
        except ImportError as error:
            raise MissingEngineError(
                f"XGrammar cannot be used ({error}): pip install xgrammar transformers"
            ) from error
        self._xgrammar: Any = xgrammar
        spec = setup.tokenizer
        tokenizer: Any = PreTrainedTokenizerFast.from_pretrained(str(spec.directory))
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=spec.vocab_size, stop_token_ids=list(spec.eos_token_ids)
        )
        # Without a limit the cache alone passes 10 GB before 2,000 schemas are done.
        self._compiler = xgrammar.GrammarCompiler(
            info, max_threads=1, cache_limit_bytes=CACHE_BYTES
        )
        self._cold_store = setup.cold_store
        self._tensor = xgrammar.allocate_token_bitmask(1, spec.vocab_size)
        self.bitmask = self._tensor.numpy()[0]  # the same memory
        self._options: dict[str, Any] = (
            {"any_whitespace": True, "strict_mode": True}
            if setup.whitespace is Whitespace.FLEXIBLE
            else {
                "any_whitespace": False,
                "separators": setup.whitespace.separators,
                "strict_mode": True,
            }
        )

        if setup.property_order == "any":
            # Older releases do not know the option, and have the declared order only.
            self._options["any_order"] = True

    def versions(self) -> dict[str, str]:
        """The package version and the options that schemas are compiled with."""
        return {
            "xgrammar": importlib.metadata.version("xgrammar"),
            "options": f"{self._options}, cold_store={self._cold_store}",
        }

    def forget(self) -> None:
        """Empties the compiler's cache."""
        if self._cold_store:
            self._compiler.clear_cache()

    def compile(self, schema: str) -> Compiled:
        """Compiles a schema; raises `RefusedError`."""
        try:
            compiled = self._compiler.compile_json_schema(schema, **self._options)
        except (RuntimeError, ValueError) as error:
            raise RefusedError(short_reason(_without_location(str(error))), str(error)) from error
        return _Compiled(self._xgrammar.GrammarMatcher, compiled, self._tensor)


class _Compiled(Compiled):
    def __init__(self, matcher_type: Any, compiled: Any, tensor: Any) -> None:
        self._matcher_type = matcher_type
        self._compiled = compiled
        self._tensor = tensor

    def session(self) -> Session:
        matcher = self._matcher_type(self._compiled)
        return Session(
            fill=partial(matcher.fill_next_token_bitmask, self._tensor),
            accept=matcher.accept_token,
            problem=lambda: None,
            rollback=matcher.rollback,
            fork=getattr(matcher, "fork", None),  # older releases have none
        )


def _without_location(message: str) -> str:
    """Messages begin with the time and the source line of the check that failed."""
    _, separator, rest = message.partition("] ")
    return rest.partition(": ")[2] or rest if separator else message
