"""The slow twin of `ffwd.engine`: a request in Python, and the rows of a step one by one."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import ffwd
from ffwd import CompiledGrammar
from ffwd.adapters.shared.matcher import RequestMatcher


class SlowRequest:
    """What `EngineRequest` is, on top of `Matcher`."""

    def __init__(
        self, compiled: CompiledGrammar, stop_token_ids: Iterable[int] = (), *, narrow: bool = False
    ) -> None:
        self._matcher = RequestMatcher(compiled, narrow=narrow)
        width = compiled.vocabulary.vocab_size
        known = set(compiled.vocabulary.eos_token_ids)
        self._stops = {t for t in stop_token_ids if 0 <= t < width and t not in known}
        self._stopped = False

    @property
    def matcher(self) -> ffwd.Matcher:
        return self._matcher.matcher

    def accept_tokens(self, request_id: str, tokens: Sequence[int]) -> bool:
        count = self._advance(tokens)
        if count == len(tokens) or self.is_terminated():
            return True
        self.rollback(count)
        return False

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        if self.is_terminated():
            return []
        count = self._advance(tokens)
        self.rollback(count)
        return tokens[:count]

    def rollback(self, num_tokens: int) -> None:
        if num_tokens and self._stopped:
            self._stopped = False
            num_tokens -= 1
        self._matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        self._matcher.fill(bitmask, batch_index)
        if not self._stops:
            return
        row = np.asarray(bitmask)[batch_index].view(np.uint32)
        allowed = row_bits(row)
        if self.matcher.is_accepting():
            allowed |= self._stops
        elif not allowed <= self._stops:
            allowed -= self._stops
        row[:] = 0
        for token in allowed:
            row[token // 32] |= np.uint32(1 << token % 32)

    def forced(self, max_tokens: int) -> list[int]:
        tokens: list[int] = []
        if not self._stopped:
            for token in self._matcher.forced(max_tokens):
                may_stop = self._stops and self.matcher.is_accepting()
                if may_stop or not self.matcher.accept_token(token):
                    break
                tokens.append(token)
            self.matcher.rollback(len(tokens))
        return tokens

    def is_terminated(self) -> bool:
        return self._stopped or self._matcher.is_terminated

    def reset(self) -> None:
        self._stopped = False
        self._matcher.reset()

    def _advance(self, tokens: Sequence[int]) -> int:
        for count, token in enumerate(tokens):
            if self.is_terminated():
                return count
            if token in self._stops and self.matcher.is_accepting():
                self._stopped = True
            elif not self._matcher.accept([token]):
                return count
        return len(tokens)


def row_bits(row: Any) -> set[int]:
    """The tokens that a row allows."""
    bits = np.unpackbits(np.ascontiguousarray(row).view(np.uint8), bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def slow_rows(
    request: SlowRequest,
    drafts: Sequence[int],
    words: int,
    bounds: tuple[int, int, Sequence[int]] = (0, 0, ()),
) -> Any:
    """The rows of one request, as vLLM's own loop fills them: int32 [1 + drafts, words]."""
    grammar_start, constraint_start, excluded = bounds
    rows = np.full((len(drafts) + 1, words), -1, np.int32)
    accepted = 0
    padded = False
    for at in range(len(drafts) + 1):
        if not padded and at >= constraint_start and not request.is_terminated():
            request.fill_bitmask(rows, at)
        elif not padded and at < constraint_start:
            for token in excluded:
                rows.view(np.uint32)[at, token // 32] &= np.uint32(~(1 << token % 32) & 0xFFFFFFFF)
        if at == len(drafts):
            break
        if drafts[at] == -1:
            padded = True
        elif not padded and at >= grammar_start:
            if request.is_terminated() or not request.accept_tokens("", [drafts[at]]):
                rows[at + 1 :] = rows[at]
                break
            accepted += 1
    request.rollback(accepted)
    return rows
