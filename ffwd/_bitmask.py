"""Memory for token bitmasks."""

import numpy as np
import numpy.typing as npt

from ffwd._native import BitmaskError

BITS_PER_WORD = 32


def allocate_bitmask(batch_size: int, vocab_size: int) -> npt.NDArray[np.int32]:
    """Return a bitmask that allows every token, for `Matcher.fill_bitmask` to overwrite.

    Token `t` of row `r` is bit `t % 32` of the word `[r, t // 32]`. The bits from `vocab_size` to
    the end of the last word belong to no token.

    Args:
        batch_size: The number of rows.
        vocab_size: The number of tokens, `Vocabulary.vocab_size`.

    Returns:
        int32, `[batch_size, ceil(vocab_size / 32)]`, every word -1 (all bits set), C-contiguous.
        `torch.from_numpy` shares its memory.

    Raises:
        BitmaskError: A negative batch size, or a vocabulary size below 1.

    """
    if batch_size < 0:
        raise BitmaskError(f"batch_size must not be negative, but is {batch_size}")
    if vocab_size < 1:
        raise BitmaskError(f"vocab_size must be at least 1, but is {vocab_size}")
    words = -(-vocab_size // BITS_PER_WORD)
    return np.full((batch_size, words), -1, dtype=np.int32)
