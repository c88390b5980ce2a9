"""GRID (`pip install 'grid-guardrail[kernel]'`): a schema becomes LALR(1) tables and a scanner."""

from __future__ import annotations

import importlib.metadata
import json
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from maskbench.documents import Whitespace
from maskbench.engines import base


@dataclass(frozen=True)
class _Tokens:
    """The tokenizer as GRID asks for it. Special tokens are in no mask but the end's."""

    texts: tuple[bytes, ...]
    """Of all tokens by id; empty for those that write nothing."""

    eos_token_id: int

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """Names by which nothing is looked up, with their ids."""
        return {f"<{token}>": token for token in range(len(self.texts))}

    @property
    def special_token_ids(self) -> frozenset[int]:
        """Return the end."""
        return frozenset((self.eos_token_id,))

    def token_bytes(self, token: int) -> bytes:
        """Return the bytes that a token writes."""
        return self.texts[token]


class GridEngine(base.Engine):
    """In its default mode, which lets through what it cannot enforce and names it.

    Grammars whose branches conflict are compiled a second time with their strings unified, as its
    documentation describes. A session is the one that it gives vLLM, on its native kernel.
    """

    name = "grid"

    def __init__(self, setup: base.EngineSetup) -> None:
        with base.needed("grid", "grid-guardrail[kernel]"):
            import grid_core  # noqa: F401 - without it, masks are computed in Python
            from grid import errors
            from grid.grammar.projection import RoleProjection
            from grid.guide import GridGuide
            from grid.jsonschema import Unsupported, compile_json_schema_grammar
            from grid.mask.cache import MaskCacheT2
            from grid.models.vllm_structured import GridGrammarSession
            from grid.serving.artifact_store import load_or_build_scanner, load_or_compile_tables
            from grid.trie.build import build_trie
        # It warns of rules that it made itself.
        warnings.filterwarnings("ignore", message="L-REC01")
        spec = setup.tokenizer
        self._errors: Any = (errors.GridError, Unsupported)
        self._conflict: Any = errors.LALRConflictError
        self._read: Any = compile_json_schema_grammar
        self._project: Any = RoleProjection.full
        self._tables: Any = load_or_compile_tables
        self._scanner: Any = load_or_build_scanner
        self._cache: Any = MaskCacheT2
        self._guide: Any = GridGuide
        self._session: Any = GridGrammarSession
        self._unsupported = base.unsupported_mode(
            setup, "grid", whitespace=(Whitespace.FLEXIBLE,), property_orders=("declared",)
        )
        texts = tuple(text or b"" for text in base.token_texts(spec))
        self._tokens = _Tokens(texts, spec.eos_token_ids[0])
        self._trie = build_trie(self._tokens)
        self._rows = np.zeros((1, base.mask_words(spec.vocab_size)), dtype=np.int32)
        self.bitmask = self._rows[0]

    def versions(self) -> dict[str, str]:
        """Return the versions of the package and of its kernel."""
        return {
            "grid-guardrail": importlib.metadata.version("grid-guardrail"),
            "grid_core": importlib.metadata.version("grid_core"),
            "options": "strict=False",
        }

    def compile(self, schema: str) -> base.Compiled:
        """Compile a schema; raises `RefusedError`."""
        self._refuse_unsupported()
        document = json.loads(schema)
        try:
            try:
                guide = self._compiled(document)
            except self._conflict:
                guide = self._compiled(document, unify_string_values=True)
        except self._errors as error:
            raise base.refusal(f"{type(error).__name__}: {error}") from error
        return _Compiled(self._session, guide, self._rows)

    def _compiled(self, document: Any, **options: bool) -> Any:
        grammar, _ = self._read(document, **options)
        return self._guide(
            tables=self._tables(self._project(grammar).build()),
            dfa=self._scanner(grammar),
            trie=self._trie,
            adapter=self._tokens,
            mask_t2=self._cache(),
        )


class _Compiled(base.Compiled):
    def __init__(self, session_type: Any, guide: Any, rows: Any) -> None:
        self._session_type = session_type
        self._guide = guide
        self._rows = rows

    def session(self) -> base.Session:
        session = self._session_type(self._guide.copy())
        return base.Session(
            fill=lambda: session.fill_bitmask(self._rows, 0),
            accept=lambda token: bool(session.accept_tokens("", [token])),
            problem=lambda: None,
            rollback=session.rollback,
            validate=session.validate_tokens,
        )
