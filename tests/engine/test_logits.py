"""Masks onto logits, against `torch.where` on the bitmask expanded to booleans."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from cases import CASES, real_vocabulary, text_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ffwd

TORCH_TYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """NaN is not equal to itself, its bits are."""
    return tensor.contiguous().view(INTEGERS[tensor.element_size()])


def allowed(bitmask: np.ndarray[Any, Any], width: int, vocab_size: int | None) -> torch.Tensor:
    """`[rows, width]`; past the mask and past the vocabulary nothing is."""
    octets = np.ascontiguousarray(bitmask).astype("<u4").view(np.uint8)
    found = np.unpackbits(octets, axis=1, bitorder="little")[:, :width]
    found = np.pad(found, ((0, 0), (0, width - found.shape[1])))
    if vocab_size is not None:
        found[:, vocab_size:] = 0
    return torch.from_numpy(found.astype(np.bool_))


def expected(
    logits: torch.Tensor, bitmask: np.ndarray[Any, Any], vocab_size: int | None = None
) -> torch.Tensor:
    mask = allowed(np.atleast_2d(bitmask), logits.shape[-1], vocab_size)
    return torch.where(mask.view(logits.shape), logits, -torch.inf)


def random_logits(rows: int, width: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    """Numbers, with both infinities and NaN among them."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, width, generator=generator).to(dtype)
    chosen = torch.rand(rows, width, generator=generator)
    logits[chosen < 0.02] = -torch.inf
    logits[chosen > 0.98] = torch.inf
    logits[(chosen > 0.5) & (chosen < 0.52)] = torch.nan
    return logits


def random_bitmask(rows: int, words: int, density: float, seed: int = 0) -> Any:
    generator = np.random.default_rng(seed)
    chosen = generator.random((rows, words * 32)) < density
    return np.packbits(chosen, axis=1, bitorder="little").view("<i4").astype(np.int32)


@pytest.mark.parametrize("dtype", TORCH_TYPES, ids=str)
@pytest.mark.parametrize("density", [0.0, 0.001, 0.03, 0.5, 0.97, 0.999, 1.0])
@pytest.mark.parametrize(
    ("rows", "width", "words"),
    [(1, 1, 1), (3, 31, 1), (2, 32, 1), (2, 33, 2), (5, 1000, 32), (4, 2050, 60), (2, 300, 40)],
)
def test_torch(dtype: torch.dtype, density: float, rows: int, width: int, words: int) -> None:
    logits = random_logits(rows, width, dtype)
    bitmask = random_bitmask(rows, words, density)
    before = bitmask.copy()
    for given_as in (bitmask, bitmask.view(np.uint32), torch.from_numpy(bitmask)):
        masked = logits.clone()
        ffwd.apply_token_bitmask_inplace(masked, given_as)
        assert torch.equal(bits(masked), bits(expected(logits, bitmask)))
    assert (bitmask == before).all()


@pytest.mark.parametrize("dtype", TORCH_TYPES, ids=str)
@pytest.mark.parametrize("density", [0.0, 0.001, 0.5, 1.0])
@pytest.mark.parametrize(("width", "words"), [(1, 1), (33, 2), (5000, 157), (2050, 60)])
def test_masked_copies(dtype: torch.dtype, density: float, width: int, words: int) -> None:
    """Of some rows; the others are not written."""
    logits, bitmask = random_logits(5, width, dtype), random_bitmask(5, words, density)
    logits[3] = -torch.inf
    copy = random_logits(5, width, dtype, seed=1)
    by_hand = copy.clone()
    by_hand[[0, 3, 4]] = expected(logits, bitmask)[[0, 3, 4]]
    before = logits.clone()
    starved = ffwd.apply_token_bitmask_inplace(copy, bitmask, [4, 0, 3], source=logits)
    assert torch.equal(bits(copy), bits(by_hand))
    assert torch.equal(bits(logits), bits(before))
    assert starved == [row for row in (0, 3, 4) if (copy[row] == -torch.inf).all()]
    with pytest.raises(ffwd.BitmaskError, match="shape of the logits"):
        ffwd.apply_token_bitmask_inplace(copy, bitmask, source=logits[:4])
    with pytest.raises(ffwd.BitmaskError, match="as the logits are"):
        ffwd.apply_token_bitmask_inplace(copy.double(), bitmask, source=logits.int())


def test_numpy() -> None:
    """Halves come as float16, or as integers whose meaning is said."""
    bitmask = random_bitmask(3, 9, 0.5)
    for dtype in (torch.float32, torch.float16, torch.float64):
        logits = random_logits(3, 280, dtype)
        masked = logits.numpy().copy()
        ffwd.apply_token_bitmask_inplace(masked, bitmask)
        assert torch.equal(bits(torch.from_numpy(masked)), bits(expected(logits, bitmask)))
    for dtype, name in ((torch.float16, "float16"), (torch.bfloat16, "bfloat16")):
        logits = random_logits(3, 280, dtype)
        for integer in (np.int16, np.uint16):
            halves = logits.view(torch.int16).numpy().view(integer).copy()
            ffwd.apply_token_bitmask_inplace(halves, bitmask, dtype=name)
            masked = torch.from_numpy(halves.view(np.int16))
            assert torch.equal(masked, bits(expected(logits, bitmask)))
        masked = logits.clone()
        ffwd.apply_token_bitmask_inplace(masked.view(torch.int16), bitmask, dtype=name)
        assert torch.equal(bits(masked), bits(expected(logits, bitmask)))


@pytest.mark.parametrize("dtype", TORCH_TYPES, ids=str)
def test_one_dimension(dtype: torch.dtype) -> None:
    logits, bitmask = random_logits(1, 90, dtype), random_bitmask(1, 3, 0.4)
    for row, mask in ((logits[0], bitmask[0]), (logits[0], bitmask), (logits, bitmask[0])):
        masked = row.clone()
        ffwd.apply_token_bitmask_inplace(masked, mask)
        assert torch.equal(bits(masked), bits(expected(row, bitmask)))


@pytest.mark.parametrize("dtype", TORCH_TYPES, ids=str)
def test_rows_apart(dtype: torch.dtype) -> None:
    """The last positions of `[rows, length, width]`, columns of a wider array, rows upside down."""
    bitmask = random_bitmask(4, 20, 0.3)
    whole = random_logits(12, 640, dtype).view(4, 3, 640)
    views: list[Callable[[torch.Tensor], torch.Tensor]] = [
        lambda whole: whole[:, -1],
        lambda whole: whole[:, 1, 10:587],
        lambda whole: whole.view(12, 640)[3:7],
        lambda whole: whole.view(12, 640)[::3, 1:],
    ]
    for view in views:
        masked = whole.clone()
        ffwd.apply_token_bitmask_inplace(view(masked), bitmask)
        by_hand = whole.clone()
        view(by_hand).copy_(expected(view(whole), bitmask))
        assert torch.equal(bits(masked), bits(by_hand))
    upside_down = whole[:, 0].double().numpy().copy()
    ffwd.apply_token_bitmask_inplace(upside_down[::-1], bitmask)
    by_hand = expected(whole[:, 0].double().flip(0), bitmask).flip(0)
    assert torch.equal(bits(torch.from_numpy(upside_down)), bits(by_hand))
    # A bitmask may be a part of a wider one too.
    masked = whole[:, 0].clone()
    ffwd.apply_token_bitmask_inplace(masked, np.pad(bitmask, ((0, 0), (2, 3)))[:, 2:-3])
    assert torch.equal(bits(masked), bits(expected(whole[:, 0], bitmask)))


@pytest.mark.parametrize("vocab_size", [1, 31, 32, 63, 64, 65, 100, 256, 1000, 1024])
def test_columns_past_the_vocabulary_are_no_tokens(vocab_size: int) -> None:
    """Whatever the bits there say."""
    logits = random_logits(2, 1024, torch.float32)
    bitmask = ffwd.allocate_bitmask(2, vocab_size)
    masked = logits.clone()
    ffwd.apply_token_bitmask_inplace(masked, bitmask, vocab_size=vocab_size)
    assert torch.equal(bits(masked[:, :vocab_size]), bits(logits[:, :vocab_size]))
    assert (masked[:, vocab_size:] == -torch.inf).all()


def test_rows_that_are_named() -> None:
    """As XGrammar has it: the same row of both; or another row of the mask, where that is said."""
    logits, bitmask = random_logits(6, 70, torch.float32), random_bitmask(6, 3, 0.5)
    plain = expected(logits, bitmask)
    for indices in ([4, 1], (0,), np.array([5, 2, 3]), torch.tensor([3]), [], range(6)):
        masked = logits.clone()
        ffwd.apply_token_bitmask_inplace(masked, bitmask, indices)
        rows = [int(row) for row in indices]
        by_hand = logits.clone()
        by_hand[rows] = plain[rows]
        assert torch.equal(bits(masked), bits(by_hand))
    # A mask for each row that has one, one after the other.
    masked = logits.clone()
    ffwd.apply_token_bitmask_inplace(masked, bitmask[:3], [5, 0, 2], mask_rows=range(3))
    by_hand = logits.clone()
    by_hand[[5, 0, 2]] = expected(logits[[5, 0, 2]], bitmask[:3])
    assert torch.equal(bits(masked), bits(by_hand))
    # One mask for all.
    masked = logits.clone()
    ffwd.apply_token_bitmask_inplace(masked, bitmask, mask_rows=[2] * 6)
    assert torch.equal(bits(masked), bits(expected(logits, bitmask[[2] * 6])))


@st.composite
def problems(draw: st.DrawFn) -> tuple[Any, ...]:
    rows, words = draw(st.integers(1, 4)), draw(st.integers(1, 40))
    covered = words * 32
    width = draw(st.integers(max(1, covered - 70), covered + 70))
    word = st.one_of(
        st.just(0), st.just(0xFFFFFFFF), st.integers(0, 0xFFFFFFFF), st.just(1), st.just(~1)
    )
    # Runs of equal words, as masks have them.
    cells: list[int] = []
    while len(cells) < rows * words:
        cells += [draw(word) & 0xFFFFFFFF] * draw(st.integers(1, 20))
    bitmask = np.array(cells[: rows * words], dtype=np.uint32).reshape(rows, words).view(np.int32)
    vocab_size = draw(st.one_of(st.none(), st.integers(1, min(width, covered))))
    indices = draw(
        st.one_of(st.none(), st.lists(st.integers(0, rows - 1), unique=True, max_size=rows))
    )
    dtype = draw(st.sampled_from(TORCH_TYPES))
    threads = draw(st.sampled_from([None, 1, 2, 5]))
    return rows, width, bitmask, vocab_size, indices, dtype, threads, draw(st.integers(0, 9))


@settings(max_examples=300)
@given(problems())
@example((1, 1, np.zeros((1, 1), np.int32), 1, None, torch.float16, None, 0))
def test_any_shape(problem: tuple[Any, ...]) -> None:
    rows, width, bitmask, vocab_size, indices, dtype, threads, seed = problem
    logits = random_logits(rows, width, dtype, seed)
    by_hand = expected(logits, bitmask, vocab_size)
    if indices is not None:
        untouched = [row for row in range(rows) if row not in indices]
        by_hand[untouched] = logits[untouched]
    masked = logits.clone()
    ffwd.apply_token_bitmask_inplace(
        masked, bitmask, indices, vocab_size=vocab_size, threads=threads
    )
    assert torch.equal(bits(masked), bits(by_hand))


def test_masks_of_a_grammar() -> None:
    """The logits that stay finite are those of `allowed_token_ids`."""
    vocabulary = real_vocabulary("gpt2")
    case = CASES["shared-prefixes"]
    matcher = ffwd.compile(ffwd.json_schema(case.schema), vocabulary).matcher()
    bitmask = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    for token in vocabulary.encode(text_of(case.valid[0]).encode()):
        matcher.fill_bitmask(bitmask)
        logits = torch.zeros(vocabulary.vocab_size + 47)
        ffwd.apply_token_bitmask_inplace(logits, bitmask[0])
        finite = torch.isfinite(logits).nonzero().flatten()
        assert finite.tolist() == matcher.allowed_token_ids()
        assert matcher.accept_token(token)


def test_threads_that_write_different_rows() -> None:
    """Views of one tensor, one mask that all read."""
    logits, bitmask = random_logits(8, 20_000, torch.bfloat16), random_bitmask(1, 625, 0.5)
    masked = logits.clone()
    failures: list[BaseException] = []

    def work(row: int) -> None:
        try:
            for _ in range(20):
                ffwd.apply_token_bitmask_inplace(masked[row], bitmask)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)
    assert not failures
    assert torch.equal(bits(masked), bits(expected(logits, np.repeat(bitmask, 8, axis=0))))


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


def test_a_read_only_bitmask_is_fine() -> None:
    logits = np.zeros(32, dtype=np.float32)
    ffwd.apply_token_bitmask_inplace(logits, read_only(np.array([1], dtype=np.int32)))
    assert np.isfinite(logits).nonzero()[0].tolist() == [0]


WIDTH, WORDS = 96, 3


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.zeros(shape, dtype=dtype)


def structured() -> np.ndarray[Any, Any]:
    """Rows of a packed record: no row begins at a multiple of four bytes but the first."""
    packed = np.zeros(2, dtype=np.dtype([("row", np.float32, (WIDTH,)), ("end", np.uint8)]))
    return packed["row"]


BAD_LOGITS: dict[str, Callable[[], Any]] = {
    "integers": lambda: zeros(2, WIDTH, dtype=np.int32),
    "halves of no kind": lambda: zeros(2, WIDTH, dtype=np.uint16),
    "complex": lambda: zeros(2, WIDTH, dtype=np.complex64),
    "objects": lambda: zeros(2, WIDTH, dtype=object),
    "nothing in each place": lambda: np.zeros((2, WIDTH), dtype="V0"),
    "other byte order": lambda: zeros(2, WIDTH, dtype=">f4"),
    "halves in other byte order": lambda: zeros(2, WIDTH, dtype=">f2"),
    "no dimension": lambda: np.float32(1.0).reshape(()),
    "three dimensions": lambda: zeros(1, 2, WIDTH),
    "more rows": lambda: zeros(3, WIDTH),
    "fewer rows": lambda: zeros(1, WIDTH),
    "transposed": lambda: zeros(WIDTH, 2).T,
    "every second column": lambda: zeros(2, 2 * WIDTH)[:, ::2],
    "backwards": lambda: zeros(2, WIDTH)[:, ::-1],
    "one row twice": lambda: np.lib.stride_tricks.as_strided(
        zeros(2, WIDTH), (2, WIDTH), (0, 4), writeable=True
    ),
    "rows that overlap": lambda: np.lib.stride_tricks.as_strided(
        zeros(2, WIDTH), (2, WIDTH), (4 * WIDTH - 4, 4), writeable=True
    ),
    "unaligned": lambda: np.zeros(8 * WIDTH + 1, np.uint8)[1:].view(np.float32).reshape(2, WIDTH),
    "unaligned rows": structured,
    "read-only": lambda: read_only(zeros(2, WIDTH)),
    "list": lambda: [[0.0] * WIDTH] * 2,
    "bytes": lambda: bytearray(8 * WIDTH),
    "nothing": lambda: None,
    "torch integers": lambda: torch.zeros(2, WIDTH, dtype=torch.int64),
    "torch with a gradient": lambda: torch.zeros(2, WIDTH, requires_grad=True),
    "torch halves with a gradient": lambda: torch.zeros(
        2, WIDTH, dtype=torch.bfloat16, requires_grad=True
    ),
    "torch elsewhere": lambda: torch.zeros(2, WIDTH, device="meta"),
    "torch expanded": lambda: torch.zeros(1, WIDTH).expand(2, WIDTH),
    "torch transposed": lambda: torch.zeros(WIDTH, 2).T,
    "torch sparse": lambda: torch.zeros(2, WIDTH).to_sparse(),
    "eight bits": lambda: torch.zeros(2, WIDTH).to(torch.float8_e5m2),
}


@pytest.mark.parametrize("name", BAD_LOGITS)
def test_bad_logits(name: str) -> None:
    logits = BAD_LOGITS[name]()
    with pytest.raises(ffwd.BitmaskError) as caught:
        ffwd.apply_token_bitmask_inplace(logits, zeros(2, WORDS, dtype=np.int32))
    assert str(caught.value)
    if isinstance(logits, np.ndarray) and logits.dtype.kind != "V":
        assert (logits != -np.inf).all()


def test_where_to_mask_logits_elsewhere_is_said() -> None:
    with pytest.raises(ffwd.BitmaskError, match=r"on meta.*ffwd\.adapters\.logits"):
        ffwd.apply_token_bitmask_inplace(
            torch.zeros(1, WIDTH, device="meta"), zeros(1, WORDS, dtype=np.int32)
        )


BAD_BITMASKS: dict[str, Callable[[], Any]] = {
    "int64": lambda: zeros(2, WORDS, dtype=np.int64),
    "float32": lambda: zeros(2, WORDS),
    "bool": lambda: zeros(2, WIDTH, dtype=np.bool_),
    "other byte order": lambda: zeros(2, WORDS, dtype=">i4"),
    "three dimensions": lambda: zeros(1, 2, WORDS, dtype=np.int32),
    "no dimension": lambda: np.int32(1).reshape(()),
    "more rows": lambda: zeros(3, WORDS, dtype=np.int32),
    "fewer rows": lambda: zeros(1, WORDS, dtype=np.int32),
    "transposed": lambda: zeros(WORDS, 2, dtype=np.int32).T,
    "every second word": lambda: zeros(2, 2 * WORDS, dtype=np.int32)[:, ::2],
    "unaligned": lambda: np.zeros(8 * WORDS + 1, np.uint8)[1:].view(np.int32).reshape(2, WORDS),
    "list": lambda: [[0] * WORDS] * 2,
    "nothing": lambda: None,
    "torch int64": lambda: torch.zeros(2, WORDS, dtype=torch.int64),
    "torch elsewhere": lambda: torch.zeros(2, WORDS, dtype=torch.int32, device="meta"),
}


@pytest.mark.parametrize("name", BAD_BITMASKS)
def test_bad_bitmasks(name: str) -> None:
    logits = zeros(2, WIDTH)
    with pytest.raises(ffwd.BitmaskError) as caught:
        ffwd.apply_token_bitmask_inplace(logits, BAD_BITMASKS[name]())
    assert str(caught.value)
    assert (logits == 0).all()


BAD_OPTIONS: dict[str, dict[str, Any]] = {
    "row past the logits": {"indices": [2]},
    "row before the first": {"indices": [-1]},
    "row past the bitmask": {"indices": [0], "mask_rows": [2]},
    "row twice": {"indices": [1, 1]},
    "row twice as an array": {"indices": np.array([0, 0])},
    "fewer mask rows": {"indices": [0, 1], "mask_rows": [0]},
    "more mask rows": {"mask_rows": [0, 1, 1]},
    "truth values": {"indices": np.array([True, False])},
    "one number": {"indices": 1},
    "no tokens": {"vocab_size": 0},
    "negative tokens": {"vocab_size": -1},
    "more tokens than columns": {"vocab_size": WIDTH + 1},
    "no threads": {"threads": 0},
    "negative threads": {"threads": -3},
    "another type": {"dtype": "float16"},
    "no type": {"dtype": "float8"},
}


@pytest.mark.parametrize("name", BAD_OPTIONS)
def test_bad_options(name: str) -> None:
    logits = zeros(2, WIDTH)
    with pytest.raises(ffwd.BitmaskError) as caught:
        ffwd.apply_token_bitmask_inplace(
            logits, zeros(2, WORDS, dtype=np.int32), **BAD_OPTIONS[name]
        )
    assert str(caught.value)
    assert (logits == 0).all()


def test_more_tokens_than_bits() -> None:
    logits = zeros(1, WIDTH)
    with pytest.raises(ffwd.BitmaskError, match="only 64 bits"):
        ffwd.apply_token_bitmask_inplace(logits, zeros(1, 2, dtype=np.int32), vocab_size=65)
    assert (logits == 0).all()


@pytest.mark.parametrize("indices", [["0"], [0.5], [None], [2**64], [[0]]])
def test_rows_that_are_no_numbers(indices: Any) -> None:
    logits = zeros(2, WIDTH)
    with pytest.raises((ffwd.BitmaskError, TypeError, OverflowError)):
        ffwd.apply_token_bitmask_inplace(logits, zeros(2, WORDS, dtype=np.int32), indices)
    assert (logits == 0).all()


@pytest.mark.parametrize(("rows", "width", "words"), [(0, 96, 3), (2, 0, 3), (2, 96, 0), (0, 0, 0)])
def test_nothing_to_do(rows: int, width: int, words: int) -> None:
    """Without words nothing is a token."""
    logits = zeros(rows, width)
    ffwd.apply_token_bitmask_inplace(logits, zeros(rows, words, dtype=np.int32))
    assert (logits == -np.inf).all()
