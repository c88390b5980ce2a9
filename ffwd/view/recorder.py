"""`Recorder`: notes what happens in a generation while it happens."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffwd._native import Vocabulary
from ffwd.view.recording import Allowed, Candidate, Kind, Recording, Step, StepTime

MOST_LISTED = 60
"""So many allowed tokens are listed; of more, this many from all over."""
MOST_CANDIDATES = 10
"""So many of the model's likeliest tokens are kept."""
_MOST_PROMPT = 2000
_NO_BYTE = 256


class Recorder:
    """Notes the tokens of one text, also in loops of one's own.

    For instance::

        recorder = Recorder(vocabulary, prompt_ids=prompt_ids)
        ...
        recorder.masked(bitmask[0], nanoseconds)   # a mask was filled
        recorder.sampled(token, model=nanoseconds) # the model chose by it
        recorder.forced(tokens, nanoseconds)       # these came without being asked for
        recorder.recording().save("generation.html")

    It costs some 20 µs and 100 bytes a token, and a pass over the vocabulary when it is made.

    Args:
        vocabulary: Of the grammar.
        title: What the recording is about.
        prompt_ids: What the model is given.
        taken_back: The prompt's last tokens that were taken back (`ffwd.chat.Start.taken_back`);
            the first tokens of the text spell them again, and are healed.
        names: What control tokens are called; by default what the vocabulary calls them.

    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        title: str = "",
        prompt_ids: Sequence[int] = (),
        taken_back: Sequence[int] = (),
        names: Mapping[int, str] | None = None,
    ) -> None:
        self._vocabulary = vocabulary
        self._title = title
        self._prompt_ids = tuple(map(int, prompt_ids))
        self._taken_back = tuple(map(int, taken_back))
        given = {token: name for name, token in vocabulary.token_names.items()}
        self._names = given if names is None else dict(names)
        self._steps: list[Step] = []
        self._healing = sum(len(vocabulary.token_bytes(i) or b"") for i in self._taken_back)
        self._mask: Allowed | None = None
        self._mask_time = 0
        self._seen: dict[bytes, Allowed] = {}
        self._candidates: tuple[Candidate, ...] = ()
        self._preferred: Candidate | None = None
        self._allowed_probability: float | None = None
        self._pieces: dict[int, bytes | None] = {}

    def __repr__(self) -> str:
        return f"Recorder(title={self._title!r}, num_steps={len(self._steps)})"

    # ------------------------------------------------------------------------------- what happens

    def masked(self, bitmask: NDArray[Any], nanoseconds: int = 0) -> None:
        """Record a filled mask: one row of a bitmask, int32 or uint32, which is read at once."""
        row = np.ascontiguousarray(bitmask).view(np.uint8).reshape(-1)
        key = row.tobytes()
        if key not in self._seen:
            self._seen[key] = self._allowed(row)
        self._mask = self._seen[key]
        self._mask_time += nanoseconds

    def scored(
        self,
        candidates: Sequence[tuple[int, float]],
        *,
        allowed_probability: float | None = None,
        preferred: tuple[int, float] | None = None,
    ) -> None:
        """Record the model's scores for the next token.

        Args:
            candidates: Allowed tokens and their probabilities, the likeliest first.
            allowed_probability: How probable all allowed tokens were before the mask.
            preferred: The likeliest token before the mask, where it is not allowed.

        """
        chosen = candidates[:MOST_CANDIDATES]
        self._candidates = tuple(Candidate(int(i), float(p)) for i, p in chosen)
        self._allowed_probability = allowed_probability
        self._preferred = None if preferred is None else Candidate(int(preferred[0]), preferred[1])

    def sampled(self, token: int, *, model: int = 0, accept: int = 0) -> None:
        """Record the choice of a token. The times are in nanoseconds."""
        self._append(token, "sampled", asked=True, model=model, accept=accept)

    def forced(self, tokens: Sequence[int], nanoseconds: int = 0) -> None:
        """Record forced tokens; the time is that of finding and accepting them."""
        for token in tokens:
            self._append(token, "forced", asked=False, model=0, accept=nanoseconds)
            nanoseconds = 0

    def weighed(self, log_masses: Sequence[float]) -> None:
        """Record how probable the allowed tokens were at each step, of forced tokens too.

        Args:
            log_masses: For each token so far the log of that probability; there may be fewer.

        """
        known = min(len(log_masses), len(self._steps))
        for place, value in enumerate(log_masses[:known]):
            self._steps[place] = replace(self._steps[place], allowed_probability=math.exp(value))

    def recording(
        self, *, replayed: bool = False, refused: bytes = b"", refusal: str | None = None
    ) -> Recording:
        """Return the recording so far; see `Recording` for the arguments."""
        shown = self._prompt_ids[-_MOST_PROMPT:]
        control = {i for i, piece in self._pieces.items() if piece is None}
        control |= {i for i in (*shown, *self._taken_back) if self._piece(i) is None}
        return Recording(
            title=self._title,
            steps=tuple(self._steps),
            vocab_size=self._vocabulary.vocab_size,
            prompt=tuple((i, self._piece(i)) for i in shown),
            taken_back=self._taken_back,
            prompt_tokens=len(self._prompt_ids),
            pieces=dict(self._pieces),
            names={i: self._names[i] for i in sorted(control) if i in self._names},
            replayed=replayed,
            refused=refused,
            refusal=refusal,
        )

    # ------------------------------------------------------------------------------------ the rest

    def _append(self, token: int, kind: Kind, *, asked: bool, model: int, accept: int) -> None:
        text = self._piece(token)
        if self._healing > 0 and text:
            self._healing -= len(text)
            kind = "healed"
        self._steps.append(
            Step(
                token=int(token),
                text=text,
                name=self._names.get(token) if text is None else None,
                kind=kind,
                asked=asked,
                allowed=self._mask,
                candidates=self._candidates if asked else (),
                allowed_probability=self._allowed_probability if asked else None,
                preferred=self._preferred if asked else None,
                time=StepTime(model=model, mask=self._mask_time, accept=accept),
            )
        )
        for candidate in (*self._candidates, *([self._preferred] if self._preferred else [])):
            self._piece(candidate.token)
        self._mask, self._mask_time = None, 0
        self._candidates, self._allowed_probability, self._preferred = (), None, None

    def _piece(self, token: int) -> bytes | None:
        if token not in self._pieces:
            # Columns past the vocabulary are the model's padding, which may be its favourite.
            inside = 0 <= token < self._vocabulary.vocab_size
            self._pieces[token] = self._vocabulary.token_bytes(token) if inside else None
        return self._pieces[token]

    def _allowed(self, row: NDArray[np.uint8]) -> Allowed:
        size = self._vocabulary.vocab_size
        bits = np.unpackbits(row, bitorder="little")[:size]
        tokens = np.flatnonzero(bits)
        if len(tokens) > MOST_LISTED:
            places = np.linspace(0, len(tokens) - 1, MOST_LISTED).round().astype(np.int64)
            listed = tokens[places]
        else:
            listed = tokens
        first = np.unique(self._first_bytes[tokens])
        for token in listed.tolist():
            self._piece(token)
        return Allowed(
            count=len(tokens),
            tokens=tuple(listed.tolist()),
            first_bytes=bytes(first[first < _NO_BYTE].astype(np.uint8)),
        )

    @cached_property
    def _first_bytes(self) -> NDArray[np.int16]:
        """Return the first byte of each token."""
        pieces = map(self._vocabulary.token_bytes, range(self._vocabulary.vocab_size))
        return np.array([piece[0] if piece else _NO_BYTE for piece in pieces], dtype=np.int16)
