"""A recording of a generation, token by token."""

from __future__ import annotations

import dataclasses
import html
import math
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Kind = Literal["sampled", "forced", "healed"]


@dataclass(frozen=True, slots=True)
class Allowed:
    """The tokens that a mask allowed.

    Attributes:
        count: How many tokens.
        tokens: All of them, ascending, where they are few; of more a sample from all over.
        first_bytes: The bytes with which they begin, sorted.

    """

    count: int
    tokens: tuple[int, ...]
    first_bytes: bytes

    @property
    def complete(self) -> bool:
        """Whether `tokens` has all of them."""
        return self.count == len(self.tokens)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that the model could have chosen, and how probable it was."""

    token: int
    probability: float


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of a token's steps, in nanoseconds of the wall clock.

    Attributes:
        model: The model, and all between two steps of the grammar: other processors, sampling.
        mask: Filling the bitmask.
        accept: Accepting the token; of forced tokens also finding them, with the first of a run.

    """

    model: int = 0
    mask: int = 0
    accept: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One token.

    Attributes:
        token: Its id.
        text: Its bytes; None where it is a control token.
        name: What a control token is called, if that is known.
        kind: `"sampled"`: the model chose it, or the writer of a text. `"forced"`: nothing else
            could come, so nobody was asked. `"healed"`: it spells bytes of the prompt's end, which
            were taken back, since the prompt was cut elsewhere than its text goes on.
        asked: Whether the model was asked for it, also where it is healed.
        allowed: What the mask let through; None where none was filled.
        candidates: The likeliest of the allowed tokens, with the probabilities that the token was
            chosen by; empty where the model's scores were not recorded.
        allowed_probability: How probable the allowed tokens were to the model before the mask. Of a
            forced token, which no mask stands for, how probable the token was; None where the model
            was not asked.
        preferred: What the model would have chosen without the mask, where that is not allowed.
        time: Where the time went.

    """

    token: int
    text: bytes | None
    name: str | None
    kind: Kind
    asked: bool
    allowed: Allowed | None = None
    candidates: tuple[Candidate, ...] = ()
    allowed_probability: float | None = None
    preferred: Candidate | None = None
    time: StepTime = StepTime()


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A generation, or a text that was read, token by token. Made by a `Recorder` or `replay`.

    Attributes:
        title: What it is about.
        steps: The tokens.
        vocab_size: How many tokens there are.
        prompt: What the model was given, as pairs of a token id and its bytes; None for a control
            token. The last ones only, of a long prompt.
        taken_back: The prompt's last tokens that were taken back, so that others may come.
        prompt_tokens: How many tokens the prompt has.
        pieces: The bytes of the tokens that are named anywhere in the recording.
        names: What control tokens are called.
        replayed: Whether the tokens are those of a text and no model was asked.
        refused: Of a text that the grammar refuses, what was left when it did.
        refusal: Why it did.

    """

    title: str
    steps: tuple[Step, ...]
    vocab_size: int
    prompt: tuple[tuple[int, bytes | None], ...] = ()
    taken_back: tuple[int, ...] = ()
    prompt_tokens: int = 0
    pieces: dict[int, bytes | None] = dataclasses.field(default_factory=dict)
    names: dict[int, str] = dataclasses.field(default_factory=dict)
    replayed: bool = False
    refused: bytes = b""
    refusal: str | None = None

    @property
    def text(self) -> bytes:
        """Return the text of the tokens, including healed bytes."""
        return b"".join(step.text or b"" for step in self.steps)

    @property
    def log_weight(self) -> float | None:
        """The log importance weight of the tokens, in nats: the sum of the logs of their masses.

        None where the mass of a token (`Step.allowed_probability`) is unknown.
        """
        total = 0.0
        for step in self.steps:
            if step.allowed_probability is None:
                return None
            known = step.allowed_probability
            total += math.log(known) if known > 0 else -math.inf
        return total

    @property
    def counts(self) -> dict[str, int]:
        """How many tokens of each kind there are."""
        return dict(Counter(step.kind for step in self.steps))

    @property
    def time(self) -> StepTime:
        """The times of all tokens together."""
        times = [step.time for step in self.steps]
        return StepTime(
            model=sum(time.model for time in times),
            mask=sum(time.mask for time in times),
            accept=sum(time.accept for time in times),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the recording as plain dictionaries, tuples, text, numbers and bytes."""
        return dataclasses.asdict(self)

    def html(self) -> str:
        """Return the picture: one HTML document that needs no other file and no network."""
        from ffwd.view.page import page

        return page(self)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture to a file, and return its path.

        Raises:
            OSError: The file cannot be written.

        """
        target = Path(path)
        target.write_text(self.html(), encoding="utf-8")
        return target

    def _repr_html_(self) -> str:
        # A frame of its own: nothing of the notebook's style or scripts meets the picture's.
        return (
            '<iframe title="ffwd" sandbox="allow-scripts" loading="lazy"'
            ' style="width:100%;height:720px;border:0"'
            f' srcdoc="{html.escape(self.html(), quote=True)}"></iframe>'
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{number} {kind}" for kind, number in self.counts.items())
        return f"Recording({self.title!r}: {counts or 'no tokens'})"
