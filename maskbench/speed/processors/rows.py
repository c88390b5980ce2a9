"""The rows of a batch in each engine: its fastest calls to accept tokens and fill masks."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

import numpy as np
import torch

import ffwd

ENGINES = ("ffwd", "xgrammar", "llguidance")


class Rows(Protocol):
    """The matchers of a batch, one for each row; a row's may be replaced."""

    matchers: list[Any]

    def accept(self, tokens: Sequence[int | None]) -> None:
        """Accept a token in each row; none where there is None."""

    def fill(self, bits: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        """Fill the masks [rows, words] of all rows."""

    def force(self, row: int, text: Sequence[int]) -> list[int]:
        """Accept the tokens that a row forces, and return them.

        `text` are the next tokens of its document, for an engine that forces characters only.
        """


class Peers:
    """The engines with one tokenizer, and what they compile.

    Args:
        vocabulary: ffwd's.
        tokenizer: That of transformers.
        vocab_size: The width of the scores.
        threads: For the engines that take a number of threads.
        engines: Those that are wanted; the peers have flexible white space only.
        whitespace: Of ffwd's grammars.

    """

    def __init__(
        self,
        vocabulary: ffwd.Vocabulary,
        tokenizer: Any,
        vocab_size: int,
        threads: int,
        *,
        engines: Sequence[str] = ENGINES,
        whitespace: Literal["flexible", "compact"] = "flexible",
    ) -> None:
        self.vocabulary = vocabulary
        self.vocab_size = vocab_size
        self.missing = [name for name in engines if importlib.util.find_spec(name) is None]
        self.names = [name for name in engines if name not in self.missing]
        self._whitespace = whitespace
        ends = list(vocabulary.eos_token_ids)
        if "xgrammar" in self.names:
            import xgrammar

            self._compiler = xgrammar.GrammarCompiler(
                xgrammar.TokenizerInfo.from_huggingface(
                    tokenizer, vocab_size=vocab_size, stop_token_ids=ends
                ),
                max_threads=threads,
            )
        if "llguidance" in self.names:
            import llguidance
            import llguidance.hf

            self._executor = llguidance.LLExecutor(threads)
            self._tokenizer = llguidance.hf.from_tokenizer(
                tokenizer, n_vocab=vocab_size, eos_token=ends
            )

    def ffwd(self, schema: str) -> ffwd.CompiledGrammar:
        """Compile a schema by ffwd."""
        return ffwd.compile(ffwd.json_schema(schema, whitespace=self._whitespace), self.vocabulary)

    def xgrammar(self, schema: str) -> Any:
        """Compile a schema by XGrammar."""
        return self._compiler.compile_json_schema(schema, strict_mode=False)

    def matcher(self, engine: str, schema: str) -> Any:
        """Compile a schema and return a matcher at its beginning."""
        if engine == "ffwd":
            return self.ffwd(schema).matcher()
        if engine == "xgrammar":
            import xgrammar

            return xgrammar.GrammarMatcher(self.xgrammar(schema))
        import llguidance

        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
        return llguidance.LLMatcher(self._tokenizer, grammar)

    def rows(self, engine: str, schemas: Sequence[str]) -> Rows:
        """Return new matchers for the rows of a batch."""
        matchers = [self.matcher(engine, schema) for schema in schemas]
        if engine == "llguidance":
            return LlguidanceRows(matchers, self._executor)
        return FfwdRows(matchers) if engine == "ffwd" else XgrammarRows(matchers, self.vocabulary)

    def take(self, schema: str, tokens: Sequence[int]) -> bool:
        """Whether every engine accepts the tokens."""
        try:
            for engine in self.names:
                matcher = self.matcher(engine, schema)
                if engine == "xgrammar":
                    accepted = all(matcher.accept_token(token) for token in tokens)
                else:
                    accepted = matcher.validate_tokens(list(tokens)) == len(tokens)
                if not accepted:
                    return False
        except (ffwd.FfwdError, RuntimeError, ValueError):
            return False
        return True


def accepts(matcher: Any, token: int) -> bool:
    """Accept a token, by any engine's matcher; False if it is refused."""
    accept: Callable[[int], bool] = getattr(matcher, "accept_token", None) or matcher.consume_token
    return accept(token)


class FfwdRows:
    """One call fills all rows."""

    def __init__(self, matchers: list[ffwd.Matcher]) -> None:
        self.matchers = matchers

    def accept(self, tokens: Sequence[int | None]) -> None:
        """Accept a token in each row; none where there is None."""
        for matcher, token in zip(self.matchers, tokens, strict=True):
            if token is not None:
                matcher.accept_token(token)

    def fill(self, bits: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        """Fill the masks of all rows."""
        ffwd.fill_bitmasks(self.matchers, bits)

    def force(self, row: int, text: Sequence[int]) -> list[int]:
        """Accept the tokens that a row forces, and return them."""
        matcher: ffwd.Matcher = self.matchers[row]
        forced = matcher.fast_forward_tokens()
        matcher.accept_tokens(forced)
        return forced


class XgrammarRows:
    """A row at a time, as XGrammar's own processor does."""

    def __init__(self, matchers: list[Any], vocabulary: ffwd.Vocabulary) -> None:
        self.matchers = matchers
        self._vocabulary = vocabulary

    def accept(self, tokens: Sequence[int | None]) -> None:
        """Accept a token in each row; none where there is None."""
        for matcher, token in zip(self.matchers, tokens, strict=True):
            if token is not None:
                matcher.accept_token(token)

    def fill(self, bits: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        """Fill the masks of all rows."""
        tensor = torch.from_numpy(bits)
        for row, matcher in enumerate(self.matchers):
            matcher.fill_next_token_bitmask(tensor, row)

    def force(self, row: int, text: Sequence[int]) -> list[int]:
        """Accept the tokens of the text that lie within the forced characters, and return them.

        XGrammar leaves it to its caller to tokenize these characters. Here that costs nothing.
        """
        matcher = self.matchers[row]
        characters = matcher.find_jump_forward_string().encode()
        forced: list[int] = []
        for token in text:
            piece = self._vocabulary.token_bytes(token)
            if not piece or not characters.startswith(piece) or not matcher.accept_token(token):
                break
            characters = characters[len(piece) :]
            forced.append(token)
        return forced


class LlguidanceRows:
    """The parallel calls that llguidance's documentation names."""

    def __init__(self, matchers: list[Any], executor: Any) -> None:
        import llguidance.torch

        self.matchers = matchers
        self._executor = executor
        self._calls = llguidance.torch

    def accept(self, tokens: Sequence[int | None]) -> None:
        """Accept a token in each row; none where there is None."""
        given = zip(self.matchers, tokens, strict=True)
        pairs = [(matcher, token) for matcher, token in given if token is not None]
        self._calls.consume_token_par(self._executor, pairs)

    def fill(self, bits: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        """Fill the masks of all rows."""
        places = [(matcher, row) for row, matcher in enumerate(self.matchers)]
        self._calls.fill_next_token_bitmask_par(self._executor, places, torch.from_numpy(bits))

    def force(self, row: int, text: Sequence[int]) -> list[int]:
        """Accept the tokens that a row forces, and return them."""
        matcher = self.matchers[row]
        forced: list[int] = matcher.compute_ff_tokens()
        if forced:
            matcher.consume_tokens(forced)
        return forced


class RowsProcessor:
    """A logits processor of rows: accept, fill, mask in place, and nothing else."""

    def __init__(
        self, rows: Rows, vocab_size: int, apply: Callable[[torch.Tensor, torch.Tensor], object]
    ) -> None:
        self._rows = rows
        self._bits = ffwd.allocate_bitmask(len(rows.matchers), vocab_size)
        self._apply = apply
        self._first = True

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Mask the scores [rows, width] of the tokens after `input_ids` [rows, length]."""
        if not self._first:
            self._rows.accept(input_ids[:, -1].tolist())
        self._first = False
        self._rows.fill(self._bits)
        self._apply(scores, torch.from_numpy(self._bits).to(scores.device))
        return scores
