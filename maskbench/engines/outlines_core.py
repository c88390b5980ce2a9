"""outlines-core (`pip install outlines-core`): a schema becomes one regular expression."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np

from maskbench.documents import Whitespace
from maskbench.engines.base import (
    Compiled,
    Engine,
    EngineSetup,
    MissingEngineError,
    RefusedError,
    Session,
    mask_words,
    short_reason,
    token_texts,
    unsupported_mode,
)


class OutlinesCoreEngine(Engine):
    """Its automaton is built for the vocabulary in advance, so compiling is slow."""

    name = "outlines-core"

    def __init__(self, setup: EngineSetup) -> None:
        try:
            import outlines_core
        except ImportError as error:
            raise MissingEngineError(
                f"outlines-core cannot be used ({error}): pip install outlines-core"
            ) from error
        self._outlines: Any = outlines_core
        spec = setup.tokenizer
        # The texts of the tokens; outlines-core would fetch a tokenizer by its name.
        ids: dict[bytes, list[int]] = {}
        for token, text in enumerate(token_texts(spec)):
            if text:
                ids.setdefault(text, []).append(token)
        self._end = spec.eos_token_ids[0]
        self._vocabulary = outlines_core.Vocabulary(self._end, ids)
        # It has one pattern for all places, and so none with a space after commas and colons only.
        self._unsupported = unsupported_mode(
            setup,
            "outlines-core",
            whitespace=(Whitespace.FLEXIBLE, Whitespace.COMPACT),
            property_orders=("declared",),
        )
        self._whitespace = " ?" if setup.whitespace is Whitespace.FLEXIBLE else ""
        self.bitmask = np.zeros(mask_words(spec.vocab_size), dtype=np.int32)

    def versions(self) -> dict[str, str]:
        """The package version and the options that schemas are compiled with."""
        return {
            "outlines-core": importlib.metadata.version("outlines-core"),
            "options": f"whitespace_pattern={self._whitespace!r}",
        }

    def compile(self, schema: str) -> Compiled:
        """Compiles a schema; raises `RefusedError`."""
        if self._unsupported is not None:
            raise RefusedError(*self._unsupported)
        outlines = self._outlines
        try:
            regex = outlines.json_schema.build_regex_from_schema(schema, self._whitespace)
            index = outlines.Index(regex, self._vocabulary)
        except (ValueError, TypeError, RuntimeError) as error:
            raise RefusedError(short_reason(str(error)), str(error)) from error
        return _Compiled(outlines.Guide, index, self.bitmask, self._end)


class _Compiled(Compiled):
    def __init__(self, guide_type: Any, index: Any, bitmask: Any, end: int) -> None:
        self._guide_type = guide_type
        self._index = index
        self._bitmask = bitmask
        self._end = end

    def session(self) -> Session:
        guide = self._guide_type(self._index)
        bitmask = self._bitmask
        end = self._end

        def fill() -> None:
            bitmask[:] = 0
            guide.write_mask_into(bitmask.ctypes.data, bitmask.size, bitmask.itemsize)

        def accept(token: int) -> bool:
            # It has no state behind the end.
            if token == end:
                return bool(guide.is_finished())
            try:
                guide.advance(token, return_tokens=False)
            except ValueError:
                return False
            return True

        return Session(fill=fill, accept=accept, problem=lambda: None)
