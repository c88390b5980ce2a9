"""XGrammar (`pip install xgrammar`): `xgrammar` is strict, `xgrammar-compliant` is not.

Its default is the strict mode: objects and arrays may have only the members and items that the
schema names, as if `unevaluatedProperties` and `unevaluatedItems` were false. Without it both are
what JSON Schema says; MaskBench calls that compliant.
"""

from __future__ import annotations

import importlib.metadata
import inspect
from functools import partial
from typing import Any, ClassVar

from maskbench.documents import Whitespace
from maskbench.engines import base

CACHE_BYTES = 2 << 30


class XGrammarEngine(base.Engine):
    """One compile thread. It has forced text, but no forced tokens.

    The compiler's cache stays on, as a server has it: it also holds masks that different grammars
    share, without which compiling takes about ten times as long. With `cold_store` it is emptied
    before each schema. A schema that occurs twice in the data is found in it.
    """

    name: ClassVar[str] = "xgrammar"
    strict_mode: ClassVar[bool] = True

    def __init__(self, setup: base.EngineSetup) -> None:
        with base.needed("XGrammar", "xgrammar transformers"):
            import xgrammar
            from transformers import PreTrainedTokenizerFast
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
        self._options: dict[str, Any] = {"strict_mode": self.strict_mode}
        if setup.whitespace is Whitespace.FLEXIBLE:
            self._options["any_whitespace"] = True
        else:
            self._options |= {
                "any_whitespace": False,
                "separators": setup.whitespace.separators,
            }
        # Older releases do not know the option, and have the declared order only.
        known = inspect.signature(self._compiler.compile_json_schema).parameters
        orders = ("declared", "any") if "any_order" in known else ("declared",)
        self._unsupported = base.unsupported_mode(setup, "this XGrammar", property_orders=orders)
        if setup.property_order == "any":
            self._options["any_order"] = True

    def versions(self) -> dict[str, str]:
        """Return the package version and the options of compilations."""
        return {
            "xgrammar": importlib.metadata.version("xgrammar"),
            "options": f"{self._options}, cold_store={self._cold_store}",
        }

    def forget(self) -> None:
        """Evict the compiler's cache."""
        if self._cold_store:
            self._compiler.clear_cache()

    def compile(self, schema: str) -> base.Compiled:
        """Compile a schema; raises `RefusedError`."""
        self._refuse_unsupported()
        try:
            compiled = self._compiler.compile_json_schema(schema, **self._options)
        except (RuntimeError, ValueError) as error:
            raise base.RefusedError(_reason(error), str(error)) from error
        return _Compiled(self._xgrammar.GrammarMatcher, compiled, self._tensor)

    def compile_grammar(self, kind: str, text: str) -> base.Compiled:
        """Compile EBNF, which GBNF without `.` is, or a regular expression."""
        try:
            if kind == "regex":
                compiled = self._compiler.compile_regex(text)
            elif kind in ("ebnf", "gbnf"):
                compiled = self._compiler.compile_grammar(text)
            else:
                raise base.RefusedError("no such format", f"XGrammar reads no {kind}")
        except (RuntimeError, ValueError) as error:
            raise base.RefusedError(_reason(error), str(error)) from error
        return _Compiled(self._xgrammar.GrammarMatcher, compiled, self._tensor)


class XGrammarCompliantEngine(XGrammarEngine):
    """Members and items that the schema does not name may come, as JSON Schema has it."""

    name = "xgrammar-compliant"
    strict_mode = False


class _Compiled(base.Compiled):
    def __init__(self, matcher_type: Any, compiled: Any, tensor: Any) -> None:
        self._matcher_type = matcher_type
        self._compiled = compiled
        self._tensor = tensor

    def session(self) -> base.Session:
        matcher = self._matcher_type(self._compiled)
        return base.Session(
            fill=partial(matcher.fill_next_token_bitmask, self._tensor),
            accept=matcher.accept_token,
            problem=lambda: None,
            rollback=matcher.rollback,
            fork=getattr(matcher, "fork", None),  # older releases have none
        )


def _reason(error: Exception) -> str:
    """Return the message without the time and source line of the failed check before it."""
    message = str(error)
    _, separator, rest = message.partition("] ")
    return base.short_reason(rest.partition(": ")[2] or rest if separator else message)
