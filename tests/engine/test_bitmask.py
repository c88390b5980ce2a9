"""Bitmasks in memory of the caller: every type and shape that is allowed, and none that is not."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from cases import CASES, SCHEMAS, bits_of, byte_vocabulary, mask_bits, real_vocabulary, text_of

import ffwd

GUARD = 0x5A5A5A5A


@pytest.fixture(scope="module")
def matcher() -> ffwd.Matcher:
    grammar = ffwd.compile(ffwd.json_schema(CASES["shared-prefixes"].schema), byte_vocabulary())
    matcher = grammar.matcher()
    assert matcher.accept_tokens(list(b'{"order'))
    return matcher


WORDS = 9  # of the 257 tokens of the byte vocabulary


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("extra", [0, 3])
def test_numpy(matcher: ffwd.Matcher, dtype: type, rows: int, extra: int) -> None:
    expected = np.flatnonzero(mask_bits(matcher)).tolist()
    assert expected == matcher.allowed_token_ids()
    for row in range(rows):
        bitmask = np.full((rows, WORDS + extra), GUARD, dtype=dtype)
        matcher.fill_bitmask(bitmask, row)
        written = bits_of(np.ascontiguousarray(bitmask[row]), bitmask.shape[1] * 32)
        # Bits past the vocabulary are cleared: no kernel must take them for tokens.
        assert np.flatnonzero(written).tolist() == expected
        others = np.delete(bitmask, row, axis=0)
        assert (others == GUARD).all()


def test_one_dimension(matcher: ffwd.Matcher) -> None:
    bitmask = np.full(WORDS, GUARD, dtype=np.int32)
    matcher.fill_bitmask(bitmask)
    assert (bits_of(bitmask, 257) == mask_bits(matcher)).all()


def test_rows_of_a_larger_array(matcher: ffwd.Matcher) -> None:
    """A contiguous view writes to its own part only."""
    whole = np.full((5, WORDS), GUARD, dtype=np.int32)
    matcher.fill_bitmask(whole[1:4], 1)
    assert (np.delete(whole, 2, axis=0) == GUARD).all()
    assert (bits_of(whole[2], 257) == mask_bits(matcher)).all()


@pytest.mark.parametrize("shape", [(WORDS,), (3, WORDS), (3, WORDS + 1)])
def test_torch(matcher: ffwd.Matcher, shape: tuple[int, ...]) -> None:
    bitmask = torch.full(shape, GUARD, dtype=torch.int32)
    row = len(shape) - 1
    matcher.fill_bitmask(bitmask, row)
    array = bitmask.numpy().reshape(-1, shape[-1])
    assert (bits_of(array[row], 257) == mask_bits(matcher)).all()
    assert (np.delete(array, row, axis=0) == GUARD).all()


def read_only() -> np.ndarray[Any, Any]:
    array = np.full((2, WORDS), GUARD, dtype=np.int32)
    array.flags.writeable = False
    return array


BAD: dict[str, tuple[Callable[[], Any], int]] = {
    "int64": (lambda: np.full((2, WORDS), GUARD, dtype=np.int64), 0),
    "float32": (lambda: np.full((2, WORDS), 1.5, dtype=np.float32), 0),
    "bool": (lambda: np.ones((2, 257), dtype=np.bool_), 0),
    "uint8": (lambda: np.full((2, WORDS * 4), 90, dtype=np.uint8), 0),
    "other byte order": (lambda: np.full((2, WORDS), GUARD, dtype=">i4"), 0),
    "too few words": (lambda: np.full((2, WORDS - 1), GUARD, dtype=np.int32), 0),
    "no words": (lambda: np.zeros((2, 0), dtype=np.int32), 0),
    "no rows": (lambda: np.zeros((0, WORDS), dtype=np.int32), 0),
    "row past the end": (lambda: np.full((2, WORDS), GUARD, dtype=np.int32), 2),
    "second row of one dimension": (lambda: np.full(WORDS, GUARD, dtype=np.int32), 1),
    "no dimension": (lambda: np.array(GUARD, dtype=np.int32), 0),
    "three dimensions": (lambda: np.full((1, 2, WORDS), GUARD, dtype=np.int32), 0),
    "columns of a wider array": (lambda: np.full((2, 2 * WORDS), GUARD, np.int32)[:, :WORDS], 0),
    "every second word": (lambda: np.full((2, 2 * WORDS), GUARD, dtype=np.int32)[:, ::2], 0),
    "Fortran order": (lambda: np.asfortranarray(np.full((2, WORDS), GUARD, dtype=np.int32)), 0),
    "backwards": (lambda: np.full((2, WORDS), GUARD, dtype=np.int32)[:, ::-1], 0),
    "read-only": (read_only, 0),
    "torch int64": (lambda: torch.full((2, WORDS), GUARD, dtype=torch.int64), 0),
    "torch transposed": (lambda: torch.full((WORDS, 2), GUARD, dtype=torch.int32).T, 0),
    "torch elsewhere": (lambda: torch.empty((2, WORDS), dtype=torch.int32, device="meta"), 0),
    "list": (lambda: [GUARD] * WORDS, 0),
    "bytes": (lambda: bytearray(4 * WORDS), 0),
    "nothing": (lambda: None, 0),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_memory(matcher: ffwd.Matcher, name: str) -> None:
    make, row = BAD[name]
    bitmask = make()
    content = None if getattr(bitmask, "is_meta", False) else np.asarray(bitmask).copy()
    for call in (
        lambda: matcher.fill_bitmask(bitmask, row),
        lambda: ffwd.fill_bitmasks([matcher], bitmask, [row]),
    ):
        with pytest.raises(ffwd.BitmaskError) as caught:
            call()
        assert str(caught.value)
    if content is not None:
        assert (np.asarray(bitmask).copy() == content).all()


@pytest.mark.parametrize("row", [-1, 2**64, 1.5, "0"])
def test_bad_row(matcher: ffwd.Matcher, row: Any) -> None:
    bitmask = np.full((2, WORDS), GUARD, dtype=np.int32)
    with pytest.raises((ffwd.BitmaskError, OverflowError, TypeError)):
        matcher.fill_bitmask(bitmask, row)
    assert (bitmask == GUARD).all()


@pytest.mark.parametrize(
    "rows",
    [[0, 1, 1], [0, 1], [0, 1, 2, 3], [0, 1, 4], [2, 2, 2], []],
    ids=["twice", "too few", "too many", "out of range", "thrice", "none"],
)
def test_bad_rows_write_nothing(matcher: ffwd.Matcher, rows: list[int]) -> None:
    bitmask = np.full((4, WORDS), GUARD, dtype=np.int32)
    with pytest.raises(ffwd.BitmaskError):
        ffwd.fill_bitmasks([matcher, matcher.fork(), matcher.fork()], bitmask, rows)
    assert (bitmask == GUARD).all()


def test_one_wide_vocabulary_among_narrow_ones_writes_nothing(matcher: ffwd.Matcher) -> None:
    wide = ffwd.compile(ffwd.json_schema(True), real_vocabulary("gpt2")).matcher()
    bitmask = np.full((2, WORDS), GUARD, dtype=np.int32)
    with pytest.raises(ffwd.BitmaskError):
        ffwd.fill_bitmasks([matcher, wide], bitmask)
    assert (bitmask == GUARD).all()


def test_no_matchers() -> None:
    bitmask = np.full((2, WORDS), GUARD, dtype=np.int32)
    ffwd.fill_bitmasks([], bitmask)
    assert (bitmask == GUARD).all()


def batch(size: int) -> list[ffwd.Matcher]:
    """Matchers of many grammars, at many places, some of them at the end; all states are new."""
    matchers: list[ffwd.Matcher] = []
    vocabulary = real_vocabulary("gpt2")
    for index in range(size):
        case = SCHEMAS[index % len(SCHEMAS)]
        grammar = ffwd.compile(ffwd.json_schema(case.schema), vocabulary)
        matcher = grammar.matcher()
        tokens = vocabulary.encode(text_of(case.valid[0]).encode())
        assert matcher.accept_tokens(tokens[: index % (len(tokens) + 1)])
        if index % 7 == 0 and matcher.is_accepting():
            assert matcher.accept_token(vocabulary.eos_token_ids[0])
        matchers.append(matcher)
    return matchers


@pytest.mark.parametrize("threads", [None, 1, 2, 3, 4, 64])
def test_batches_are_what_single_fills_are(threads: int | None) -> None:
    size = 90
    words = -(-real_vocabulary("gpt2").vocab_size // 32)
    serial = np.full((size, words), GUARD, dtype=np.int32)
    for row, matcher in enumerate(batch(size)):
        matcher.fill_bitmask(serial, row)
    together = np.full((size + 10, words + 1), GUARD, dtype=np.int32)
    # Rows in no order, with gaps.
    rows = [(row * 37 + 5) % 100 for row in range(size)]
    ffwd.fill_bitmasks(batch(size), together, rows, threads=threads)
    assert (together[rows, :words] == serial).all()
    assert (together[rows, words] == 0).all()
    untouched = sorted(set(range(100)) - set(rows))
    assert (together[untouched] == GUARD).all()


def test_the_same_matcher_state_in_many_rows() -> None:
    matcher = batch(2)[1]
    words = -(-real_vocabulary("gpt2").vocab_size // 32)
    bitmask = torch.zeros((16, words), dtype=torch.int32)
    ffwd.fill_bitmasks([matcher.fork() for _ in range(16)], bitmask, threads=4)
    single = ffwd.allocate_bitmask(1, real_vocabulary("gpt2").vocab_size)
    matcher.fill_bitmask(single)
    assert (bitmask.numpy() == single).all()


@pytest.mark.parametrize("threads", [0, -1])
def test_bad_number_of_threads(matcher: ffwd.Matcher, threads: int) -> None:
    bitmask = np.full((1, WORDS), GUARD, dtype=np.int32)
    with pytest.raises(ffwd.BitmaskError):
        ffwd.fill_bitmasks([matcher], bitmask, threads=threads)
    assert (bitmask == GUARD).all()


@pytest.mark.parametrize("name", ["anything", "any-of-objects", "ref-tree", "additional-free"])
def test_threads_that_share_a_grammar(name: str) -> None:
    """Eight threads build one automaton at once, from different ends, and agree with one alone."""
    case = CASES[name]
    vocabulary = real_vocabulary("gpt2")
    documents = [vocabulary.encode(text_of(instance).encode()) for instance in case.valid]

    def masks(grammar: ffwd.CompiledGrammar, order: list[int]) -> dict[tuple[int, int], bytes]:
        found: dict[tuple[int, int], bytes] = {}
        for index in order:
            matcher = grammar.matcher()
            for position, token in enumerate(documents[index]):
                found[index, position] = mask_bits(matcher).tobytes()
                assert matcher.accept_token(token)
        return found

    numbers = list(range(len(documents)))
    expected = masks(ffwd.compile(ffwd.json_schema(case.schema), vocabulary), numbers)
    for _ in range(3):
        shared = ffwd.compile(ffwd.json_schema(case.schema), vocabulary)
        start = threading.Barrier(8)
        results: dict[int, dict[tuple[int, int], bytes]] = {}

        def work(
            thread: int,
            shared: ffwd.CompiledGrammar = shared,
            start: threading.Barrier = start,
            results: dict[int, dict[tuple[int, int], bytes]] = results,
        ) -> None:
            order = numbers[thread % len(numbers) :] + numbers[: thread % len(numbers)]
            start.wait(timeout=600)
            results[thread] = masks(shared, order)

        threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=600)
        assert len(results) == 8
        assert all(result == expected for result in results.values())


@pytest.mark.parametrize(("batch_size", "vocab_size"), [(-1, 10), (1, 0), (1, -5)])
def test_bad_allocation(batch_size: int, vocab_size: int) -> None:
    with pytest.raises(ffwd.BitmaskError):
        ffwd.allocate_bitmask(batch_size, vocab_size)


@pytest.mark.parametrize("vocab_size", [1, 31, 32, 33, 128256])
def test_allocation(vocab_size: int) -> None:
    bitmask = ffwd.allocate_bitmask(3, vocab_size)
    assert bitmask.dtype == np.int32
    assert bitmask.shape == (3, -(-vocab_size // 32))
    assert (bitmask == -1).all()
