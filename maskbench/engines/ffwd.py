"""ffwd, the engine of this repository, with the options of the run and with others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from maskbench.engines import base


def refusal(error: Exception) -> base.RefusedError:
    """Return the refusal for an error of ffwd."""
    import ffwd

    if isinstance(error, ffwd.UnsupportedSchemaError):
        return base.RefusedError(f"unsupported: {error.keyword}", str(error))
    reason = f"{type(error).__name__}: {base.short_reason(str(error))}"
    return base.RefusedError(reason, str(error))


class FfwdEngine(base.Engine):
    """Default settings. With `cold_store` the vocabulary's memos go before each schema."""

    name: ClassVar[str] = "ffwd"
    property_order: ClassVar[str | None] = None
    """None: that of the run."""
    escapes: ClassVar[str] = "canonical"

    def __init__(self, setup: base.EngineSetup) -> None:
        with base.needed("ffwd", "."):
            import ffwd
            import ffwd.grammar
            import ffwd.tokenizer
        self._ffwd: Any = ffwd
        # Independent of other work on the machine: a run has its own time limits.
        self._limits = ffwd.Limits(compile_seconds=None, call_seconds=None)
        spec = setup.tokenizer
        try:
            self._vocabulary = ffwd.tokenizer.from_huggingface(
                spec.directory, vocab_size=spec.vocab_size
            )
        except ffwd.FfwdError as error:
            raise base.MissingEngineError(f"ffwd cannot use the tokenizer: {error}") from error
        self._options = {
            "whitespace": setup.whitespace.value,
            "property_order": self.property_order or setup.property_order,
            # Verdicts are compared with validators, for which 1.0 is an integer.
            "numbers": "any",
            "escapes": self.escapes,
        }
        self._cold_store = setup.cold_store
        self._rows = ffwd.allocate_bitmask(1, spec.vocab_size)
        self.bitmask = self._rows[0]

    def versions(self) -> dict[str, str]:
        """Return the package version and the options of compilations."""
        return {
            "ffwd": self._ffwd.__version__,
            "options": f"{self._options}, cold_store={self._cold_store}",
        }

    def forget(self) -> None:
        """Evict the entries that compiled grammars of one vocabulary share."""
        if self._cold_store:
            self._vocabulary.clear_memos()

    def compile(self, schema: str) -> base.Compiled:
        """Compile a schema; raises `RefusedError`."""
        return self._compile(lambda front: front.json_schema(schema, **self._options))

    def compile_grammar(self, kind: str, text: str) -> base.Compiled:
        """Compile a grammar; raises `RefusedError`."""
        return self._compile(lambda front: getattr(front, kind)(text))

    def _compile(self, read: Callable[[Any], Any]) -> base.Compiled:
        ffwd = self._ffwd
        try:
            compiled = ffwd.compile(read(ffwd.grammar), self._vocabulary, limits=self._limits)
        except ffwd.FfwdError as error:
            raise refusal(error) from error
        return _Compiled(compiled, self._rows)


class FfwdAnyOrderEngine(FfwdEngine):
    """The same with properties in any order, whatever that of the run, to be measured beside it."""

    name = "ffwd-any"
    property_order = "any"


class FfwdEscapesEngine(FfwdEngine):
    """The same with all escapes in strings."""

    name = "ffwd-escapes"
    escapes = "any"


class _Compiled(base.Compiled):
    def __init__(self, compiled: Any, rows: Any) -> None:
        self._compiled = compiled
        self._rows = rows

    def session(self) -> base.Session:
        matcher = self._compiled.matcher()
        return base.Session(
            fill=partial(matcher.fill_bitmask, self._rows),
            accept=matcher.accept_token,
            problem=lambda: None,
            forced=matcher.fast_forward_tokens,
            rollback=matcher.rollback,
            fork=matcher.fork,
            validate=matcher.validate_tokens,
        )
