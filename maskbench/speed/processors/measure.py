"""Times of logits processors, all in turns on the same ids and scores.

The rows of a batch write documents, each of a schema of its own. At each step every processor gets
the ids so far, and scores that have just been written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import ffwd
from ffwd.adapters.transformers import GrammarLogitsProcessor
from maskbench.documents import Job

Processor = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class TokenizedDocument:
    """A schema, and the tokens of a document."""

    schema: str
    tokens: list[int]


class Peers:
    """The engines with one tokenizer, and what they compile.

    Args:
        vocabulary: ffwd's.
        tokenizer: That of transformers.
        vocab_size: The width of the scores.
        threads: For the engines that take a number of threads.

    """

    def __init__(
        self, vocabulary: ffwd.Vocabulary, tokenizer: Any, vocab_size: int, threads: int
    ) -> None:
        import llguidance.hf
        import xgrammar

        ends = list(vocabulary.eos_token_ids)
        self._vocabulary = vocabulary
        self._vocab_size = vocab_size
        self._threads = threads
        self._compiler = xgrammar.GrammarCompiler(
            xgrammar.TokenizerInfo.from_huggingface(
                tokenizer, vocab_size=vocab_size, stop_token_ids=ends
            ),
            max_threads=threads,
        )
        self._tokenizer = llguidance.hf.from_tokenizer(
            tokenizer, n_vocab=vocab_size, eos_token=ends
        )

    def _ffwd(self, schema: str) -> ffwd.CompiledGrammar:
        return ffwd.compile(ffwd.json_schema(schema, whitespace="flexible"), self._vocabulary)

    def _xgrammar(self, schema: str) -> Any:
        return self._compiler.compile_json_schema(schema, strict_mode=False)

    def _llguidance(self, schema: str) -> Any:
        import llguidance

        grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
        return llguidance.LLMatcher(self._tokenizer, grammar)

    def take(self, text: TokenizedDocument) -> bool:
        """Whether every engine accepts the document."""
        import xgrammar

        try:
            if self._ffwd(text.schema).matcher().validate_tokens(text.tokens) < len(text.tokens):
                return False
            theirs = xgrammar.GrammarMatcher(self._xgrammar(text.schema))
            if not all(theirs.accept_token(token) for token in text.tokens):
                return False
            matcher = self._llguidance(text.schema)
        except (ffwd.FfwdError, RuntimeError, ValueError):
            return False
        return bool(matcher.validate_tokens(text.tokens) == len(text.tokens))

    def processors(self, texts: Sequence[TokenizedDocument]) -> dict[str, Processor]:
        """Return a new processor of each way, for rows that write these documents.

        `masks` has what no processor can do without: accept, fill, and mask in place.
        """
        from xgrammar.contrib.hf import LogitsProcessor

        # Annotated with the classes of an old tensor type.
        theirs: Any = LogitsProcessor([self._xgrammar(text.schema) for text in texts])
        # A grammar keeps its masks, so each way has its own.
        first, second, third = ([self._ffwd(text.schema) for text in texts] for _ in range(3))
        return {
            "ffwd": GrammarLogitsProcessor(first, in_place=True),
            "ffwd, copies": GrammarLogitsProcessor(second),
            "masks": _Masks([grammar.matcher() for grammar in third], self._vocab_size),
            "xgrammar": theirs,
            "llguidance": _Llguidance(
                [self._llguidance(text.schema) for text in texts], self._vocab_size, self._threads
            ),
        }


class _Masks:
    def __init__(self, matchers: list[ffwd.Matcher], vocab_size: int) -> None:
        self._matchers = matchers
        self._bits = ffwd.allocate_bitmask(len(matchers), vocab_size)
        self._first = True

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if not self._first:
            for matcher, token in zip(self._matchers, input_ids[:, -1].tolist(), strict=True):
                matcher.accept_token(token)
        self._first = False
        ffwd.fill_bitmasks(self._matchers, self._bits)
        ffwd.apply_token_bitmask_inplace(scores, self._bits)
        return scores


class _Llguidance:
    """llguidance has no processor of its own: the fastest calls that its documentation names."""

    def __init__(self, matchers: list[Any], vocab_size: int, threads: int) -> None:
        import llguidance.torch

        self._calls = llguidance.torch
        self._executor = llguidance.LLExecutor(threads)
        self._rows = [(matcher, row) for row, matcher in enumerate(matchers)]
        self._bits = self._calls.allocate_token_bitmask(len(matchers), vocab_size)
        self._first = True

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if not self._first:
            tokens = input_ids[:, -1].tolist()
            self._calls.consume_token_par(
                self._executor,
                [(matcher, token) for (matcher, _), token in zip(self._rows, tokens, strict=True)],
            )
        self._first = False
        self._calls.fill_next_token_bitmask_par(self._executor, self._rows, self._bits)
        self._calls.apply_token_bitmask_inplace(scores, self._bits)
        return scores


def texts(jobs: Sequence[Job], peers: Peers, steps: int, count: int) -> list[TokenizedDocument]:
    """Return the first documents of at least `steps` tokens that every engine accepts.

    Their tokens are cut off there. One for each schema.
    """
    found = []
    for job in jobs:
        for document in job.documents:
            text = TokenizedDocument(job.schema, document.tokens[:steps].tolist())
            if document.valid and len(text.tokens) == steps and peers.take(text):
                found.append(text)
                break
        if len(found) == count:
            break
    return found


@dataclass(frozen=True)
class StepTimes:
    """Microseconds of a step of one way."""

    p50: float
    p99: float


def measure(
    peers: Peers, rows: Sequence[TokenizedDocument], width: int, dtype: torch.dtype, rounds: int
) -> dict[str, StepTimes]:
    """Write the documents of the rows, `rounds` times, by every way in turns.

    Raises:
        ValueError: Two ways of ffwd leave different scores.

    """
    prompt = torch.zeros((len(rows), 8), dtype=torch.long)
    tokens = torch.tensor([text.tokens for text in rows])
    torch.manual_seed(0)
    source = torch.randn(len(rows), width).to(dtype)
    scores = source.clone()
    times: dict[str, list[float]] = {}
    # The first round compiles kernels and fills caches.
    for turn in range(rounds + 1):
        processors = peers.processors(rows)
        names = list(processors)
        for step in range(tokens.shape[1]):
            ids = torch.cat([prompt, tokens[:, :step]], dim=1)
            results: dict[str, torch.Tensor] = {}
            first = step % len(names)
            for name in names[first:] + names[:first]:
                scores.copy_(source)
                started = time.perf_counter_ns()
                result = processors[name](ids, scores)
                taken = time.perf_counter_ns() - started
                if turn:
                    times.setdefault(name, []).append(taken / 1e3)
                elif name in ("ffwd", "ffwd, copies", "masks"):
                    results[name] = result.clone()
            if results and not all(torch.equal(results["masks"], r) for r in results.values()):
                raise ValueError(f"the ways of ffwd leave different scores at step {step}")
    return {
        name: StepTimes(float(np.percentile(taken, 50)), float(np.percentile(taken, 99)))
        for name, taken in times.items()
    }
