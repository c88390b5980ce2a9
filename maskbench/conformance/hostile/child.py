"""The process in which one case is measured, for `measure`."""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np

import ffwd
from ffwd import FfwdError, Matcher, Vocabulary
from maskbench.conformance.hostile.cases import CASES
from maskbench.runs import memory

Result = TypeVar("Result")

STEPS = 24
"""How many tokens are drawn after the text that a case begins with."""

READ = 200
"""How many tokens of that text are read one by one."""


WALK_SECONDS = 20.0
"""After which no more tokens are drawn: where each call takes long, a few say as much as many."""


class Clock:
    """The slowest call so far."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.name = ""

    def __call__(self, name: str, call: Callable[[], Result]) -> Result:
        """Make a call, and take its time, also if it fails."""
        begin = time.perf_counter()
        try:
            return call()
        finally:
            seconds = time.perf_counter() - begin
            if seconds > self.seconds:
                self.seconds, self.name = seconds, name


def walk(matcher: Matcher, begin: list[int], width: int, clock: Clock) -> None:
    """Compute masks, accept tokens, and call the other methods of a matcher."""
    bitmask = ffwd.allocate_bitmask(1, width)
    source = random.Random(1)
    end = time.monotonic() + WALK_SECONDS
    clock("shortest completion", matcher.shortest_completion)
    for step in range(min(len(begin), READ) + STEPS):
        clock("mask", partial(matcher.fill_bitmask, bitmask))
        bits = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")[:width]
        allowed = np.flatnonzero(bits)
        clock("forced bytes", matcher.forced_bytes)
        given = step < len(begin) and bool(bits[begin[step]])
        if not given and step < len(begin):
            begin = begin[:step]
        token = begin[step] if given else int(source.choice(allowed))
        clock("validate", partial(matcher.validate_tokens, [token] * 3))
        if not clock("accept", partial(matcher.accept_token, token)):
            raise AssertionError(f"token {token} is in the mask and is refused")
        if matcher.is_terminated() or time.monotonic() > end:
            break
    clock("shortest completion", matcher.shortest_completion)


def measure(name: str, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return the cost of one case, as plain data."""
    case = CASES[name]
    tokens = vocabulary_tokens(vocabulary, case.begin)
    bare = memory.resident_bytes(os.getpid())
    memory.reset_own_peak()
    clock, found = Clock(), {"outcome": "compiled", "message": "", "temporary": False}
    begin = time.perf_counter()
    compile_seconds = None
    try:
        compiled = ffwd.compile(case.grammar(), vocabulary)
        compile_seconds = time.perf_counter() - begin
        walk(compiled.matcher(), tokens, vocabulary.vocab_size, clock)
    except FfwdError as error:
        limit = getattr(error, "limit", "")
        found["outcome"] = type(error).__name__ + (f": {limit}" if limit else "")
        found["message"] = str(error)
        found["temporary"] = getattr(error, "is_temporary", False)
    if compile_seconds is None:
        compile_seconds = time.perf_counter() - begin
    peak = memory.own_peak_bytes()
    if bare is None or peak is None:
        raise OSError("the system does not say how large this process was")
    return {
        "name": name,
        **found,
        "compile_s": compile_seconds,
        "call_s": clock.seconds,
        "call": clock.name,
        "memory_bytes": max(0, peak - bare),
    }


def vocabulary_tokens(vocabulary: Vocabulary, text: bytes) -> list[int]:
    """Return the tokens of a text, always the longest that fits."""
    spelled = ((vocabulary.token_bytes(token), token) for token in range(vocabulary.vocab_size))
    texts = {text: token for text, token in spelled if text}
    longest = max(map(len, texts), default=0)
    tokens, at = [], 0
    while at < len(text):
        lengths = range(min(longest, len(text) - at), 0, -1)
        length = next((n for n in lengths if text[at : at + n] in texts), None)
        if length is None:
            break
        tokens.append(texts[text[at : at + length]])
        at += length
    return tokens


def main() -> None:
    """Measure the case that the arguments name, and write what is found."""
    name, folder, width = sys.argv[1:]
    vocabulary = ffwd.tokenizer.from_huggingface(folder, vocab_size=int(width))
    json.dump(measure(name, vocabulary), sys.stdout)


if __name__ == "__main__":
    main()
