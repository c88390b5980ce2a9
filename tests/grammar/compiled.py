"""Compiled grammars on a vocabulary of the 256 bytes, with a few control tokens."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import ffwd

END = 256
NAMES = {"<end>": END, "<tool>": 257, "</tool>": 258, "<think>": 259, "</think>": 260}


@cache
def byte_vocabulary(*, named: bool = False) -> ffwd.Vocabulary:
    """Bytes, an end token, and, where they are asked for, control tokens with names."""
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    names = NAMES if named else {}
    tokens += [None] * (len(names) or 1)
    return ffwd.Vocabulary(tokens, eos_token_ids=[END], token_names=names)


def accepts(grammar: ffwd.CompiledGrammar, text: str | list[int]) -> bool:
    """Whether a whole text, or these tokens, belong to a grammar."""
    tokens = list(text.encode()) if isinstance(text, str) else text
    matcher = grammar.matcher()
    return matcher.accept_tokens(tokens) and matcher.accept_token(END)


def mask(matcher: ffwd.Matcher, size: int) -> npt.NDArray[np.bool_]:
    """Which tokens may come."""
    bitmask = ffwd.allocate_bitmask(1, size)
    matcher.fill_bitmask(bitmask, 0)
    return unpacked(bitmask[0], size)


def unpacked(row: npt.NDArray[Any], size: int) -> npt.NDArray[np.bool_]:
    """The bits of a row of a bitmask."""
    return np.unpackbits(row.view(np.uint8), bitorder="little")[:size].astype(bool)
