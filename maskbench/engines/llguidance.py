"""llguidance (`pip install llguidance`)."""

from __future__ import annotations

import importlib.metadata
import json
from functools import partial
from typing import Any, ClassVar

import numpy as np

from maskbench.documents import Whitespace
from maskbench.engines import base


def options_of(whitespace: Whitespace) -> dict[str, Any]:
    """Return the options with which a schema allows the whitespace."""
    if whitespace is Whitespace.FLEXIBLE:
        return {"whitespace_flexible": True}
    item, key = whitespace.separators
    return {"whitespace_flexible": False, "item_separator": item, "key_separator": key}


class LlguidanceEngine(base.Engine):
    """Masks through `unsafe_compute_mask_ptr`, the cheapest of the documented ways in."""

    name: ClassVar[str] = "llguidance"
    forcing: ClassVar[bool] = True
    """Where one text must follow, whether a mask has only the token that the
    tokenizer would write it with, rather than all that lead on."""

    def __init__(self, setup: base.EngineSetup) -> None:
        with base.needed("llguidance", "llguidance"):
            import llguidance
        self._llguidance: Any = llguidance
        spec = setup.tokenizer
        text = (spec.directory / "tokenizer.json").read_text(encoding="utf-8")
        self._tokenizer = llguidance.LLTokenizer(
            text,
            n_vocab=spec.vocab_size,
            eos_token=list(spec.eos_token_ids),
            slices=llguidance.LLTokenizer.json_slices(),
        )
        self._general: Any = None
        self._unsupported = base.unsupported_mode(
            setup, "llguidance", property_orders=("declared",)
        )
        self._options = options_of(setup.whitespace)
        self.bitmask = np.zeros(base.mask_words(spec.vocab_size), dtype=np.int32)

    def versions(self) -> dict[str, str]:
        """Return the package version and the options of compilations."""
        return {
            "llguidance": importlib.metadata.version("llguidance"),
            "options": str(self._options),
        }

    def compile(self, schema: str) -> base.Compiled:
        """Compile a schema; raises `RefusedError`."""
        self._refuse_unsupported()
        return self.compile_with(schema, self._options)

    def compile_with(self, schema: str, options: dict[str, Any]) -> base.Compiled:
        """Compile a schema with other options than the run's; raises `RefusedError`."""
        try:
            grammar = self._llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=options)
        except ValueError as error:
            raise base.refusal(str(error)) from error
        if not self.forcing:
            # Such an option is Lark's only.
            (part,) = json.loads(grammar)["grammars"]
            text = f"start: %json {json.dumps(part['json_schema'])}"
            text = f'%llguidance {{ "no_forcing": true }}\n{text}'
            grammar = self._llguidance.LLMatcher.grammar_from_lark(text)
        return self._compile(grammar, self._tokenizer)

    def compile_grammar(self, kind: str, text: str) -> base.Compiled:
        """Compile Lark or a regular expression; raises `RefusedError`."""
        if kind == "regex":
            text = f"start: /{self._llguidance.regex_to_lark(text, use_ascii='')}/"
        elif kind == "gbnf":
            try:
                text = self._llguidance.gbnf_to_lark.gbnf_to_lark(text)
            except Exception as error:  # its own kinds of errors have no common base
                raise base.refusal(str(error)) from error
        elif kind != "lark":
            raise base.RefusedError("no such format", f"llguidance reads no {kind}")
        if not self.forcing:
            text = f'%llguidance {{ "no_forcing": true }}\n{text}'
        # The slices of JSON would match other grammars' strings only by chance.
        if self._general is None:
            slices = self._llguidance.LLTokenizer.general_slices()
            self._general = self._tokenizer.with_slices(slices)
        return self._compile(self._llguidance.LLMatcher.grammar_from_lark(text), self._general)

    def _compile(self, grammar: str, tokenizer: Any) -> base.Compiled:
        # log_level 0: nothing is printed when a document is refused.
        matcher = self._llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        if matcher.is_error():
            message = matcher.get_error()
            raise base.refusal(message)
        return _Compiled(matcher, self.bitmask)


class LlguidanceUnforcedEngine(LlguidanceEngine):
    """The same with complete masks, to be compared with those of others."""

    name = "llguidance-unforced"
    forcing = False


class _Compiled(base.Compiled):
    def __init__(self, pristine: Any, bitmask: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        self._pristine = pristine
        self._pointer = bitmask.ctypes.data
        self._bytes = bitmask.nbytes

    def session(self) -> base.Session:
        # A copy shares the lexer's automaton with the original, so documents after the first
        # find it as warm as a server would.
        matcher = self._pristine.deep_copy()
        return base.Session(
            fill=partial(matcher.unsafe_compute_mask_ptr, self._pointer, self._bytes),
            accept=matcher.consume_token,
            problem=lambda: matcher.get_error() if matcher.is_error() else None,
            forced=matcher.compute_ff_tokens,
            rollback=matcher.rollback,
            fork=matcher.deep_copy,
            validate=matcher.validate_tokens,
        )
