"""Decoding in plain Python by the table of bytes alone, for tests of the native decoder."""

from collections.abc import Sequence

from ffwd._native import TokenError


class TableDecoder:
    """Ids to text by a table of bytes.

    `tokens`: the bytes of every id, None for an id without a token. `special`: the ids that
    `skip_special_tokens` skips. `strip_first_space`: whether one space at the start of a text is
    dropped.
    """

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        *,
        special: Sequence[int] = (),
        strip_first_space: bool = False,
    ) -> None:
        self._tokens = tuple(tokens)
        self._special = frozenset(special)
        self._strip_first_space = strip_first_space

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return len(self._tokens)

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text; malformed UTF-8 becomes U+FFFD, as in the Encoding Standard."""
        return self.decode_bytes(ids, skip_special_tokens=skip_special_tokens).decode(
            errors="replace"
        )

    def decode_bytes(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> bytes:
        """Return the bytes of the text."""
        special = self._special if skip_special_tokens else frozenset()
        data = b"".join(self._bytes(i) for i in ids if i not in special)
        return data.removeprefix(b" ") if self._strip_first_space else data

    def _bytes(self, token_id: int) -> bytes:
        data = self._tokens[token_id] if 0 <= token_id < len(self._tokens) else None
        if data is None:
            error = TokenError(f"token id {token_id} is not one of the {len(self._tokens)} ids")
            error.token = token_id
            raise error
        return data
