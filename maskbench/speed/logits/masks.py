"""Bitmasks to apply: random ones of some density, and those that grammars make."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import ffwd
import ffwd.grammar
import ffwd.tokenizer
from maskbench.data import DataError, choose, parse_case, read_sources
from maskbench.documents import UnwritableSchemaError, Whitespace, prepare
from maskbench.tokenizer import HuggingFaceEncoder, TokenizerSpec

Bitmasks = npt.NDArray[np.int32]
"""[rows, words]; bits past the vocabulary are 0."""


def random_masks(rows: int, width: int, density: float, seed: int = 0) -> Bitmasks:
    """Return masks whose bits are set independently, with a probability of `density`."""
    generator = np.random.default_rng(seed)
    words = -(-width // 32)
    masks = np.empty((rows, words), dtype=np.int32)
    for row in range(rows):
        chosen = np.zeros(words * 32, dtype=np.bool_)
        chosen[:width] = generator.random(width) < density
        masks[row] = np.packbits(chosen, bitorder="little").view("<i4")
    return masks


def grammar_masks(
    spec: TokenizerSpec, data: Path, *, schemas: int, count: int, seed: int = 0
) -> Bitmasks:
    """Return masks at random positions of documents, as in a busy server.

    Args:
        spec: The tokenizer.
        data: Schemas with documents, as for `python -m maskbench run`.
        schemas: Draw so many of them; those that do not compile are left out.
        count: How many masks.
        seed: For both draws.

    """
    vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
    encoder = HuggingFaceEncoder(spec)
    generator = random.Random(seed)
    places: list[tuple[Any, list[int], int]] = []
    for index, source in enumerate(
        choose(read_sources(data), sample=schemas, seed=seed, part=None)
    ):
        try:
            job = prepare(parse_case(source), index, encoder, Whitespace.FLEXIBLE).job
            grammar = ffwd.compile(
                ffwd.grammar.json_schema(job.schema, whitespace="flexible"), vocabulary
            )
        except (DataError, UnwritableSchemaError, ffwd.FfwdError):
            continue
        for document in job.documents:
            tokens = document.tokens.tolist()
            valid = grammar.matcher().validate_tokens(tokens)
            places += [(grammar, tokens, place) for place in range(valid + 1)]
    if not places:
        raise DataError(f"{data} has no document that ffwd accepts a token of")
    masks = ffwd.allocate_bitmask(count, spec.vocab_size)
    for row in range(count):
        grammar, tokens, place = generator.choice(places)
        matcher = grammar.matcher()
        matcher.accept_tokens(tokens[:place])
        if matcher.is_terminated():
            matcher.rollback(1)
        matcher.fill_bitmask(masks, row)
    return masks


def share(masks: Bitmasks, width: int) -> float:
    """Return the share of tokens that are allowed."""
    allowed: int = int.from_bytes(masks.tobytes(), "little").bit_count()
    return allowed / (len(masks) * width)
