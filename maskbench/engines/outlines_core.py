"""outlines-core (`pip install outlines-core`): a schema becomes one regular expression."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np

from maskbench.documents import Whitespace
from maskbench.engines import base


class OutlinesCoreEngine(base.Engine):
    """Its automaton is built for the vocabulary in advance, so compiling is slow."""

    name = "outlines-core"

    def __init__(self, setup: base.EngineSetup) -> None:
        with base.needed("outlines-core", "outlines-core"):
            import outlines_core
        self._outlines: Any = outlines_core
        spec = setup.tokenizer
        # The texts of the tokens; outlines-core would fetch a tokenizer by its name.
        ids: dict[bytes, list[int]] = {}
        for token, text in enumerate(base.token_texts(spec)):
            if text:
                ids.setdefault(text, []).append(token)
        self._end = spec.eos_token_ids[0]
        self._vocabulary = outlines_core.Vocabulary(self._end, ids)
        # It has one pattern for all places, and so none with a space after commas and colons only.
        self._unsupported = base.unsupported_mode(
            setup,
            "outlines-core",
            whitespace=(Whitespace.FLEXIBLE, Whitespace.COMPACT),
            property_orders=("declared",),
        )
        self._whitespace = " ?" if setup.whitespace is Whitespace.FLEXIBLE else ""
        self.bitmask = np.zeros(base.mask_words(spec.vocab_size), dtype=np.int32)

    def versions(self) -> dict[str, str]:
        """Return the package version and the options of compilations."""
        return {
            "outlines-core": importlib.metadata.version("outlines-core"),
            "options": f"whitespace_pattern={self._whitespace!r}",
        }

    def compile(self, schema: str) -> base.Compiled:
        """Compile a schema; raises `RefusedError`."""
        self._refuse_unsupported()
        outlines = self._outlines
        try:
            regex = outlines.json_schema.build_regex_from_schema(schema, self._whitespace)
            index = outlines.Index(regex, self._vocabulary)
        except (ValueError, TypeError, RuntimeError) as error:
            raise base.refusal(str(error)) from error
        return _Compiled(outlines.Guide, index, self.bitmask, self._end)


class _Compiled(base.Compiled):
    def __init__(self, guide_type: Any, index: Any, bitmask: Any, end: int) -> None:
        self._guide_type = guide_type
        self._index = index
        self._bitmask = bitmask
        self._end = end

    def session(self) -> base.Session:
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

        return base.Session(fill=fill, accept=accept, problem=lambda: None)
