"""vLLM's two abstract classes for structured output, on top of ffwd."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

import ffwd
from ffwd import CompiledGrammar, Matcher
from ffwd.adapters.shared.matcher import RequestMatcher
from ffwd.adapters.vllm.requests import GrammarStore, grammar_request

BITS_PER_WORD = 32
# Cached, because the look-up takes ten times as long as filling a row.
THREADS = os.cpu_count() or 1


class FfwdGrammar(StructuredOutputGrammar):  # type: ignore[misc]
    """The text of one request in progress.

    A client's `stop_token_ids` end the text as the model's end tokens do: they are masked until the
    text can end.

    Args:
        compiled: The request's grammar.
        stop_token_ids: What stops the request.

    """

    def __init__(self, compiled: CompiledGrammar, stop_token_ids: Iterable[int] = ()) -> None:
        self._matcher = RequestMatcher(compiled, narrow=True)
        width = compiled.vocabulary.vocab_size
        known = set(compiled.vocabulary.eos_token_ids)
        self._stops = frozenset(
            token for token in stop_token_ids if 0 <= token < width and token not in known
        )
        # One of `_stops` has been accepted; the matcher knows nothing of it.
        self._stopped = False

    @property
    def matcher(self) -> Matcher:
        """The matcher for `ffwd.fill_bitmasks`."""
        return self._matcher.matcher

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Accept these tokens: all of them, or none if the grammar refuses one.

        Tokens after the end are ignored.
        """
        count = self._advance(tokens)
        if count == len(tokens) or self.is_terminated():
            return True
        self.rollback(count)
        return False

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Return the longest prefix of the tokens that the grammar accepts; change nothing."""
        if self.is_terminated():
            return []
        if not self._stops:
            return tokens[: self._matcher.validate(tokens)]
        count = self._advance(tokens)
        self.rollback(count)
        return tokens[:count]

    def rollback(self, num_tokens: int) -> None:
        """Remove the last tokens, the end included."""
        if num_tokens and self._stopped:
            self._stopped = False
            num_tokens -= 1
        self._matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the allowed tokens into a row."""
        self._matcher.fill(bitmask, batch_index)
        self.add_stops(bitmask, batch_index)

    def fill_forced(self, bitmask: torch.Tensor, batch_index: int) -> bool:
        """Write a row if only one token is left; return whether it was such a row."""
        if not self._matcher.fill_forced(bitmask, batch_index):
            return False
        self.add_stops(bitmask, batch_index)
        return True

    def add_stops(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Allow the request's own stop tokens where the text can end, and only there.

        A stop token with a text of its own stays where nothing else may come.
        """
        if not self._stops:
            return
        bits = bitmask[batch_index].numpy().view("uint32")
        if self.matcher.is_accepting():
            for token in self._stops:
                bits[token // BITS_PER_WORD] |= 1 << token % BITS_PER_WORD
            return
        saved = {word: bits[word] for word in {token // BITS_PER_WORD for token in self._stops}}
        for token in self._stops:
            bits[token // BITS_PER_WORD] &= ~(1 << token % BITS_PER_WORD) & 0xFFFFFFFF
        if any(bits[word] != was for word, was in saved.items()) and not bits.any():
            for word, was in saved.items():
                bits[word] = was

    def forced(self, max_tokens: int) -> list[int]:
        """Return the next tokens, up to `max_tokens`, as long as only one is allowed."""
        if self._stopped:
            return []
        if not self._stops:
            return self._matcher.forced(max_tokens)
        # Where the text can end, the request's own stop tokens may come, too.
        tokens: list[int] = []
        for token in self._matcher.forced(max_tokens):
            if self.matcher.is_accepting() or not self.matcher.accept_token(token):
                break
            tokens.append(token)
        self.matcher.rollback(len(tokens))
        return tokens

    def is_terminated(self) -> bool:
        """Return whether an end token or a stop token has been accepted."""
        return self._stopped or self._matcher.is_terminated

    def reset(self) -> None:
        """Take back all tokens."""
        self._stopped = False
        self._matcher.reset()

    def _advance(self, tokens: Sequence[int]) -> int:
        """Accept tokens up to the first refused one, or the end; return how many were accepted."""
        if not self._stops:
            return self._matcher.accept(tokens)
        for count, token in enumerate(tokens):
            if self.is_terminated():
                return count
            if token in self._stops and self.matcher.is_accepting():
                self._stopped = True
            elif not self._matcher.accept([token]):
                return count
        return len(tokens)


def fill_rows(batch: Iterable[tuple[Any, ...]], bitmask: torch.Tensor) -> list[tuple[Any, ...]]:
    """Fill the rows that a grammar constrains, in one call; those that none does come back.

    Args:
        batch: For each row the grammar, the row's index, whether the grammar applies, and, since
            vLLM 0.33, tokens that are not to come if it does not.
        bitmask: int32 [rows, words].

    """
    ours: list[tuple[FfwdGrammar, int]] = []
    others: list[tuple[Any, ...]] = []
    for row in batch:
        grammar, index, applies, *_ = row
        if not applies or grammar.is_terminated():
            others.append(row)
        elif not grammar.fill_forced(bitmask, index):
            ours.append((grammar, index))
    if ours:
        ffwd.fill_bitmasks(
            [grammar.matcher for grammar, _ in ours],
            bitmask.numpy(),
            [index for _, index in ours],
            threads=THREADS,
        )
    for grammar, index in ours:
        grammar.add_stops(bitmask, index)
    return others


class FfwdBackend(StructuredOutputBackend):  # type: ignore[misc]
    """One engine's grammars.

    Raises:
        VocabularyError: ffwd cannot read the engine's tokenizer.

    """

    def __init__(
        self, vllm_config: Any, tokenizer: Any, vocab_size: int, *, store: GrammarStore
    ) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        self._config = vllm_config.structured_outputs_config
        self._cache = store.cache(vllm_config.model_config, tokenizer)

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> FfwdGrammar:
        """Return the grammar of a request, compiled in this thread if it is not cached.

        Raises:
            FfwdError: What is wrong with the grammar, and where.

        """
        request = grammar_request(request_type.name, grammar_spec, self._config)
        return FfwdGrammar(self._cache.get(request), stop_token_ids or ())

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Return memory for rows that allow every token."""
        width = self._cache.vocabulary.vocab_size
        return torch.from_numpy(ffwd.allocate_bitmask(max_num_seqs, width))

    def destroy(self) -> None:
        """Evict the grammars."""
        self._cache.clear()
