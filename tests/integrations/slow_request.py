"""The slow twin of `ffwd.engine`: a request in Python, and the rows of a step one by one."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import ffwd
from ffwd import CompiledGrammar


class SlowRequest:
    """What `EngineRequest` is, on top of `Matcher`, whose options it takes besides its own."""

    def __init__(
        self,
        compiled: CompiledGrammar,
        stop_token_ids: Iterable[int] = (),
        *,
        narrow: bool = False,
        **options: Any,
    ) -> None:
        self.matcher: ffwd.Matcher = compiled.matcher(**options)
        vocabulary = compiled.vocabulary
        self._width = vocabulary.vocab_size
        self._narrow = narrow and vocabulary.bpe is not None and vocabulary.bpe.exact
        known = set(vocabulary.eos_token_ids)
        self._stops = {t for t in stop_token_ids if 0 <= t < self._width and t not in known}
        self._stopped = False
        self._after_end = 0

    @property
    def num_tokens(self) -> int:
        return self.matcher.num_tokens + self._stopped + self._after_end

    def accept(self, token: int) -> bool:
        return self.accept_tokens("", [token])

    def accept_tokens(self, request_id: str, tokens: Sequence[int]) -> bool:
        count = self._advance(tokens)
        if count == len(tokens) or self.is_terminated():
            self._after_end += len(tokens) - count
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
        ignored = min(num_tokens, self._after_end)
        self._after_end -= ignored
        num_tokens -= ignored
        if num_tokens and self._stopped:
            self._stopped = False
            num_tokens -= 1
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None:
        self.matcher.fill_bitmask(bitmask, batch_index)
        row = np.asarray(bitmask)[batch_index].view(np.uint32)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little")
        if forced := self._forced_text(1):
            bits[:] = 0
            bits[forced] = 1
        stops = list(self._stops)
        if self.matcher.is_accepting():
            bits[stops] = 1
        else:
            others = bits.copy()
            others[stops] = 0
            bits = others if others.any() else bits
        row[:] = np.packbits(bits, bitorder="little").view(np.uint32)

    def forced(self, max_tokens: int) -> list[int]:
        tokens: list[int] = []
        text = [] if self.is_terminated() else self._forced_text(max_tokens)
        while len(tokens) < max_tokens and not self.is_terminated():
            if self._stops and self.matcher.is_accepting():
                break
            if len(tokens) < len(text):
                token = text[len(tokens)]
            else:
                # What is forced, narrow masks have been asked for; the end is no text.
                if self._narrow and not self.matcher.is_accepting():
                    break
                row = ffwd.allocate_bitmask(1, self._width)
                self.matcher.fill_bitmask(row)
                only = row_bits(row)
                if len(only) != 1:
                    break
                token = only.pop()
            if not self.matcher.accept_token(token):
                break
            tokens.append(token)
        self.matcher.rollback(len(tokens))
        return tokens

    def is_terminated(self) -> bool:
        return self._stopped or self.matcher.is_terminated()

    def reset(self) -> None:
        self._stopped = False
        self._after_end = 0
        self.matcher.reset()

    def _forced_text(self, max_tokens: int) -> list[int]:
        if not self._narrow:
            return []
        return self.matcher.fast_forward_tokens(max_tokens=max_tokens, look_ahead=False)

    def _advance(self, tokens: Sequence[int]) -> int:
        for count, token in enumerate(tokens):
            if self.is_terminated():
                return count
            if token in self._stops and self.matcher.is_accepting():
                self._stopped = True
            elif not 0 <= token < self._width or not self.matcher.accept_token(token):
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


def slow_tree(
    request: SlowRequest,
    tokens: Sequence[int],
    first_child: Sequence[int],
    next_sibling: Sequence[int],
    words: int,
) -> Any:
    """The rows of a tree of drafts, from the ways to its nodes: int32 [nodes, words]."""
    rows = np.full((len(tokens), words), -1, np.int32)
    parents = {}
    for parent, child in enumerate(first_child):
        while child != -1:
            parents[child] = parent
            child = next_sibling[child]
    for node in range(len(tokens)):
        way = [node]
        while way[-1]:
            if way[-1] not in parents:
                break
            way.append(parents[way[-1]])
        if way[-1]:
            continue
        drafts = [tokens[each] for each in reversed(way[:-1])]
        accepted = 0
        for token in drafts:
            request.fill_bitmask(rows, node)
            if request.is_terminated() or token not in row_bits(rows[node]):
                break
            accepted += request.accept(token)
        rows[node] = -1
        if accepted == len(drafts) and not request.is_terminated():
            request.fill_bitmask(rows, node)
        request.rollback(accepted)
    return rows
