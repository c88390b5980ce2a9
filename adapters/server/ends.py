"""The ends of answers: `min_tokens`, `ignore_eos` and `stop_token_ids`, with a grammar.

The grammar has the last word. End tokens are taken out of a mask only if it allows other tokens: an
answer that can only end does. A stop token is accepted where the grammar allows it as text, and
where the answer may end; it ends the answer and is not part of its text.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ffwd import Matcher
from ffwd.adapters.server.errors import bad
from ffwd.adapters.server.protocol import Request

Mask = np.ndarray[Any, np.dtype[np.int32]]
_BITS = 32


class Ends:
    """The tokens that end one answer.

    Args:
        eos: The end tokens of the vocabulary.
        stops: Further ones.
        min_tokens: The number of tokens before which none of them may come.
        ignore_eos: Whether an end token that is not in `stops` comes only if nothing else can.

    """

    def __init__(
        self,
        *,
        eos: Sequence[int],
        stops: Sequence[int] = (),
        min_tokens: int = 0,
        ignore_eos: bool = False,
    ) -> None:
        self.min_tokens = min_tokens
        self._eos = frozenset(eos)
        self._stops = frozenset(stops)
        self._ignored = ignore_eos

    def stop_at(self, token: int, num_tokens: int) -> bool:
        """Return whether a token behind `num_tokens` others is a stop token that counts."""
        return token in self._stops and num_tokens >= self.min_tokens

    def restrict(self, mask: Mask, matcher: Matcher, num_tokens: int) -> None:
        """Change the mask of the token behind `num_tokens` others."""
        words = mask.view(np.uint32)
        early = num_tokens < self.min_tokens
        hidden: frozenset[int] = frozenset()
        if early:
            hidden = self._eos | self._stops
        elif self._ignored:
            hidden = self._eos - self._stops
        if self._stops and not early and matcher.is_accepting():
            for token in self._stops:
                words[token // _BITS] |= np.uint32(1 << token % _BITS)
        if hidden:
            rest = words.copy()
            for token in hidden:
                rest[token // _BITS] &= ~np.uint32(1 << token % _BITS)
            if rest.any():
                words[:] = rest


def ends_of(
    request: Request,
    *,
    eos: Sequence[int],
    vocab_size: int,
    max_tokens: int,
    limit_param: str,
    max_stops: int,
) -> Ends | None:
    """Return where the answer of a request may end; None if that is only up to the grammar.

    Raises:
        ApiError: `min_tokens` is more than the answer may have, or a stop token is none of the
            model's.

    """
    stops = request.stop_token_ids or []
    if len(stops) > max_stops:
        raise bad(
            f"`stop_token_ids` has {len(stops)} tokens; this server takes {max_stops}",
            param="stop_token_ids",
        )
    for place, token in enumerate(stops):
        if not 0 <= token < vocab_size:
            raise bad(
                f"token {token} is not one of the {vocab_size} of the model",
                param=f"stop_token_ids[{place}]",
            )
    least = request.min_tokens or 0
    if least > max_tokens:
        raise bad(
            f"`min_tokens` is {least}, and the answer may have {max_tokens} tokens: raise "
            f"`{limit_param}` or lower `min_tokens`",
            param="min_tokens",
        )
    if not (stops or least or request.ignore_eos):
        return None
    return Ends(eos=eos, stops=stops, min_tokens=least, ignore_eos=bool(request.ignore_eos))
