"""ffwd, and llguidance and XGrammar if installed, on the same grammar: for `bench` and `play`."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import ffwd
from ffwd import FfwdError, Vocabulary
from ffwd.sources import SourceText


class RefusedError(Exception):
    """An engine does not take the grammar."""


@dataclass(frozen=True)
class Session:
    """One text: `fill` makes the mask of its place, `accept` says whether a token is taken."""

    fill: Callable[[], Any]
    accept: Callable[[int], Any]


class Engine(Protocol):
    """Compiles the grammar of the command, anew with each call."""

    name: str
    version: str
    bitmask: Any
    """The row that `Session.fill` fills: int32 or uint32, `[words]`."""

    def compile(self) -> Callable[[], Session]:
        """Return a function that starts texts, or raise `RefusedError`."""
        ...


class Ffwd:
    """Evict the vocabulary's shared entries before each compilation."""

    name = "ffwd"
    version = ffwd.__version__

    def __init__(self, source: SourceText, vocabulary: Vocabulary) -> None:
        self._source = source
        self._vocabulary = vocabulary
        self.bitmask = ffwd.allocate_bitmask(1, vocabulary.vocab_size)[0]

    def compile(self) -> Callable[[], Session]:
        """Compile it."""
        self._vocabulary.clear_memos()
        try:
            compiled = ffwd.compile(self._source.grammar, self._vocabulary)
        except FfwdError as error:
            raise RefusedError(str(error)) from error

        def begin() -> Session:
            matcher = compiled.matcher()
            return Session(partial(matcher.fill_bitmask, self.bitmask), matcher.accept_token)

        return begin


class Llguidance:
    """llguidance, by its cheapest documented way to masks."""

    name = "llguidance"

    def __init__(self, source: SourceText, vocabulary: Vocabulary, file: Path) -> None:
        import llguidance

        self.version = importlib.metadata.version("llguidance")
        self._library: Any = llguidance
        self._source = source
        json_slices = source.language == "json-schema"
        make_slices: Any = (
            llguidance.LLTokenizer.json_slices
            if json_slices
            else llguidance.LLTokenizer.general_slices
        )
        self._tokenizer = llguidance.LLTokenizer(
            file.read_text(encoding="utf-8"),
            n_vocab=vocabulary.vocab_size,
            eos_token=list(vocabulary.eos_token_ids),
            slices=make_slices(),
        )
        self.bitmask = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.int32)

    def compile(self) -> Callable[[], Session]:
        """Compile it."""
        matcher = self._library.LLMatcher(self._tokenizer, self._grammar(), log_level=0)
        if matcher.is_error():
            raise RefusedError(matcher.get_error())
        pointer, size = self.bitmask.ctypes.data, self.bitmask.nbytes

        def begin() -> Session:
            # A copy shares the caches of the original.
            text = matcher.deep_copy()
            return Session(partial(text.unsafe_compute_mask_ptr, pointer, size), text.consume_token)

        return begin

    def _grammar(self) -> str:
        make, source = self._library.LLMatcher, self._source
        try:
            if isinstance(source.grammar, ffwd.JsonSchema):
                found: str = make.grammar_from_json_schema(
                    source.text, overrides=_llguidance_layout(source.grammar.whitespace)
                )
            elif source.language == "lark":
                found = make.grammar_from_lark(source.text)
            elif isinstance(source.grammar, ffwd.Regex):
                found = make.grammar_from_regex(source.grammar.pattern)
            else:
                raise RefusedError(f"llguidance reads no {source.language}")
        except ValueError as error:
            raise RefusedError(str(error)) from error
        return found


class XGrammar:
    """XGrammar, not strict, with one thread and without its cache."""

    name = "xgrammar"

    def __init__(self, source: SourceText, vocabulary: Vocabulary, file: Path) -> None:
        import xgrammar
        from transformers import PreTrainedTokenizerFast

        self.version = importlib.metadata.version("xgrammar")
        self._library: Any = xgrammar
        self._source = source
        tokenizer: Any = PreTrainedTokenizerFast(tokenizer_file=str(file))
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer,
            vocab_size=vocabulary.vocab_size,
            stop_token_ids=list(vocabulary.eos_token_ids),
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._tensor = xgrammar.allocate_token_bitmask(1, vocabulary.vocab_size)
        self.bitmask = self._tensor.numpy()[0]  # the same memory

    def compile(self) -> Callable[[], Session]:
        """Compile it."""
        try:
            compiled = self._compiled()
        except (RuntimeError, ValueError) as error:
            raise RefusedError(str(error)) from error

        def begin() -> Session:
            matcher = self._library.GrammarMatcher(compiled)
            fill = partial(matcher.fill_next_token_bitmask, self._tensor)
            return Session(fill, matcher.accept_token)

        return begin

    def _compiled(self) -> Any:
        source = self._source
        if isinstance(source.grammar, ffwd.JsonSchema):
            layout: dict[str, Any] = {"any_whitespace": True}
            if source.grammar.whitespace not in ("flexible", "consistent"):
                compact = source.grammar.whitespace == "compact"
                separators = (",", ":") if compact else (", ", ": ")
                layout = {"any_whitespace": False, "separators": separators}
            return self._compiler.compile_json_schema(source.text, strict_mode=False, **layout)
        if isinstance(source.grammar, ffwd.Regex):
            return self._compiler.compile_regex(source.grammar.pattern)
        if source.language in ("ebnf", "gbnf"):
            return self._compiler.compile_grammar(source.text)
        raise RefusedError(f"XGrammar reads no {source.language}")


PEERS: dict[str, Callable[[SourceText, Vocabulary, Path], Engine]] = {
    "llguidance": Llguidance,
    "xgrammar": XGrammar,
}


def _llguidance_layout(whitespace: str) -> dict[str, Any]:
    if whitespace in ("flexible", "consistent"):  # It cannot hold a text to one layout.
        return {"whitespace_flexible": True}
    item, key = (",", ":") if whitespace == "compact" else (", ", ": ")
    return {"whitespace_flexible": False, "item_separator": item, "key_separator": key}


def peers(
    source: SourceText, vocabulary: Vocabulary, file: Path | None
) -> tuple[list[Engine], dict[str, str]]:
    """Return the engines of `PEERS` that can be used, and why others cannot.

    `file`: the tokenizer.json, which all of them read.
    """
    found: list[Engine] = []
    absent: dict[str, str] = {}
    for name, make in PEERS.items():
        if file is None:
            absent[name] = "it needs a tokenizer.json: choose a directory with one as tokenizer"
            continue
        try:
            found.append(make(source, vocabulary, file))
        except ImportError as error:
            package = (error.name or name).partition(".")[0]
            absent[name] = f"{package} is not installed: pip install {package}"
        except (RuntimeError, ValueError) as error:
            absent[name] = f"it does not take the tokenizer: {str(error).splitlines()[0]}"
    return found, absent
