"""The three parts of the work: tokens, matchers, grammars."""

from __future__ import annotations

import gc
import random
import time
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

import ffwd
from ffwd import CompiledGrammar, Matcher, Vocabulary
from ffwd.adapters.shared.cache import GrammarCache
from maskbench.conformance.soak import grammars
from maskbench.conformance.soak.memory import Curve, record, resident
from maskbench.documents import Encoder

_LONGEST = 400
"""Tokens of a text that is written at random."""

_ALIVE = 64
"""Matchers that live at the same time."""


class SoakError(RuntimeError):
    """A token that the mask allows was refused, or a document's."""


class Soak:
    """The shared state of the parts of the work.

    Args:
        vocabulary: Of the tokenizer; its shared memory is bounded by the caller.
        encoder: The tokenizer's own encoding.
        cache_bytes: What the compiled grammars that are kept may hold together.
        grammar_bytes: What one may hold.
        looks: How often each part looks at the resident size.

    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        encoder: Encoder,
        *,
        cache_bytes: int,
        grammar_bytes: int,
        looks: int,
    ) -> None:
        self.cache = GrammarCache(
            vocabulary,
            max_bytes=cache_bytes,
            limits=ffwd.Limits(memory_bytes=grammar_bytes),
            workers=1,
        )
        self._vocabulary = vocabulary
        self._encoder = encoder
        self._looks = looks
        self._bitmask = ffwd.allocate_bitmask(1, vocabulary.vocab_size)

    def accepts(self, total: int) -> Curve:
        """Tokens: documents with drawn values, and texts that are drawn from the masks."""
        source = random.Random("accepts")
        tokens = self._tokens(source)

        def step(_: int) -> int:
            for _ in range(100):
                next(tokens)
            return 100

        return record("accepts", total, self._looks, step)

    def let_go(self) -> int:
        """Free all grammars and what the vocabulary has built; return the resident bytes then."""
        self.cache.clear()
        for turn in range(4):
            # The allocator returns memory that was free for a while when more is requested.
            time.sleep(0.6)
            for number in range(30):
                pattern = ffwd.regex(f"a{turn}{number}[a-z]+")
                ffwd.compile(pattern, self._vocabulary).matcher().fill_bitmask(self._bitmask)
            self._vocabulary.clear_memos()
            gc.collect()
        return resident()

    def _tokens(self, source: random.Random) -> Iterator[None]:
        """Accept one token after the other, of one text after the other."""
        fixed = grammars.fixed()
        while True:
            if source.random() < 0.5:
                text = grammars.document(source)
                try:
                    matcher = self.cache.get(text.request).matcher()
                except ffwd.UnsupportedSchemaError:
                    continue
                for token in self._encoder.encode(text.document):
                    matcher.fill_bitmask(self._bitmask)
                    if not matcher.accept_token(token):
                        raise SoakError(f"token {token} of {text.document!r} was refused")
                    yield
                continue
            matcher = self.cache.get(source.choice(fixed)).matcher()
            for _ in range(source.randint(1, _LONGEST)):
                if matcher.is_terminated():
                    break
                self._go_on(matcher, source)
                yield
                if source.random() < 0.05:
                    matcher.rollback(source.randint(0, min(9, matcher.num_tokens)))

    def _go_on(self, matcher: Matcher, source: random.Random) -> None:
        """Accept a token that its mask allows."""
        matcher.fill_bitmask(self._bitmask)
        token = _some_token(self._bitmask[0], source)
        if not matcher.accept_token(token):
            raise SoakError(f"the mask allows the token {token}, which was refused")

    def matchers(self, total: int) -> Curve:
        """Matchers that are made, forked, used for a few tokens and dropped."""
        source = random.Random("matchers")
        kept = [self.cache.get(request) for request in grammars.fixed()]
        alive: deque[Matcher] = deque(maxlen=_ALIVE)
        makers: tuple[Callable[[CompiledGrammar], Matcher], ...] = (
            lambda grammar: grammar.matcher(),
            lambda grammar: grammar.matcher(max_tokens=500),
            lambda grammar: alive[-1].fork() if alive else grammar.matcher(),
        )

        def step(_: int) -> int:
            matcher = source.choice(makers)(source.choice(kept))
            for _ in range(source.randint(0, 8)):
                if matcher.is_terminated():
                    break
                self._go_on(matcher, source)
            alive.append(matcher)
            return 1

        return record("matchers", total, self._looks, step)

    def grammars(self, total: int) -> Curve:
        """Different grammars, each compiled, and a few tokens written with it."""
        source = random.Random("grammars")

        def step(number: int) -> int:
            try:
                matcher = self.cache.get(grammars.different(number)).matcher()
            except ffwd.UnsupportedSchemaError:
                return 1  # Errors must not pile up either.
            for _ in range(source.randint(1, 12)):
                if matcher.is_terminated():
                    break
                self._go_on(matcher, source)
            return 1

        return record("grammars", total, self._looks, step)


def _some_token(row: NDArray[np.int32], source: random.Random) -> int:
    """Return one of the tokens of a row; one of the last words at times, where end tokens are."""
    words = np.flatnonzero(row)
    at = int(words[source.randrange(len(words))])
    word = int(row[at]) & 0xFFFFFFFF
    bits = [bit for bit in range(32) if word >> bit & 1]
    return at * 32 + source.choice(bits)
