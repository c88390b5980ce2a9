"""Decoding loops: documents are written by a model, unconstrained and by every engine.

The sampler is scripted: before masks are applied, the document's next token gets the greatest
logit. So random weights write the documents, and a mask that refuses a token is found at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import ffwd
from ffwd.adapters.logits import StagedBitmask, to_device
from maskbench.speed.gpu.models import PROMPT, Passes, pass_width
from maskbench.speed.processors.measure import Processor, TokenizedDocument, processors
from maskbench.speed.processors.rows import Peers, Rows, accepts

_GREATEST = 1e4


class WrongTokenError(Exception):
    """A mask refused a document's token; the message says whose and where."""


class Unconstrained:
    """No masks; the base of the others."""

    name = "none"

    def __init__(self, texts: Sequence[TokenizedDocument], device: torch.device) -> None:
        self.texts = list(texts)
        self.device = device

    def begin(self) -> list[list[int]]:
        """Return the first tokens of each row, before one was sampled."""
        return [[] for _ in self.texts]

    def advance(self, tokens: Sequence[int | None]) -> list[list[int]]:
        """Take the sampled token of each row, and return what the next pass is given of each.

        None for a row whose document has ended.
        """
        return [[] if token is None else [token] for token in tokens]

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        """Return masked logits."""
        return logits


class Processed(Unconstrained):
    """Masks by a logits processor, which `generate` calls after the pass."""

    def __init__(
        self,
        name: str,
        processor: Processor,
        texts: Sequence[TokenizedDocument],
        device: torch.device,
    ) -> None:
        super().__init__(texts, device)
        self.name = name
        self._processor = processor
        self._ids = torch.ones((len(texts), PROMPT), dtype=torch.long, device=device)

    def advance(self, tokens: Sequence[int | None]) -> list[list[int]]:
        """Take the sampled tokens."""
        new = to_device(torch.tensor([[token or 0] for token in tokens]), self.device)
        self._ids = torch.cat([self._ids, new], dim=1)
        return super().advance(tokens)

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        """Return masked logits."""
        return self._processor(self._ids, logits)


class Overlapped(Unconstrained):
    """Masks that the host fills while the pass runs."""

    def __init__(
        self,
        name: str,
        rows: Rows,
        texts: Sequence[TokenizedDocument],
        vocab_size: int,
        device: torch.device,
    ) -> None:
        super().__init__(texts, device)
        self.name = name
        self.rows = rows
        self._staged = StagedBitmask(len(texts), vocab_size, device)
        self._joining: tuple[int, Any, TokenizedDocument] | None = None

    def join(self, row: int, matcher: Any, text: TokenizedDocument) -> None:
        """Let a row write another document from the next step on."""
        self._joining = row, matcher, text

    def begin(self) -> list[list[int]]:
        """Begin to fill the first masks."""
        self._staged.start(self.rows.fill)
        return super().begin()

    def advance(self, tokens: Sequence[int | None]) -> list[list[int]]:
        """Accept the sampled tokens, and begin to fill the next masks."""
        joining, self._joining = self._joining, None
        if joining is not None:
            row, self.rows.matchers[row], self.texts[row] = joining
            tokens = [*tokens[:row], None, *tokens[row + 1 :]]
        self.rows.accept(tokens)
        self._staged.start(self.rows.fill)
        return super().advance(tokens)

    def mask(self, logits: torch.Tensor) -> torch.Tensor:
        """Mask in place."""
        self._staged.apply(logits)
        return logits


class Forced(Overlapped):
    """The same, and forced tokens are part of the next pass."""

    def __init__(
        self,
        name: str,
        rows: Rows,
        texts: Sequence[TokenizedDocument],
        vocab_size: int,
        device: torch.device,
    ) -> None:
        super().__init__(name, rows, texts, vocab_size, device)
        self._at = [0] * len(texts)

    def begin(self) -> list[list[int]]:
        """Force the first tokens."""
        return self._go_on([[] for _ in self.texts], [True] * len(self.texts))

    def advance(self, tokens: Sequence[int | None]) -> list[list[int]]:
        """Accept the sampled tokens and all that they force."""
        self.rows.accept(tokens)
        chunks = [[] if token is None else [token] for token in tokens]
        return self._go_on(chunks, [token is not None for token in tokens])

    def _go_on(self, chunks: list[list[int]], going: Sequence[bool]) -> list[list[int]]:
        for row, chunk in enumerate(chunks):
            if going[row]:
                at = self._at[row] + len(chunk)
                chunk += self.rows.force(row, self.texts[row].tokens[at:])
                self._at[row] += len(chunk)
        self._staged.start(self.rows.fill)
        return chunks


@dataclass
class Written:
    """The time of one way to write the documents of a batch."""

    steps: list[float] = field(default_factory=list)
    """Microseconds of each step, from one wait for sampled ids to the next."""

    tokens: int = 0
    """Of a row, on average."""

    rounds: int = 1
    """How often the documents were written; steps and tokens are those of all rounds."""

    @property
    def per_token(self) -> float:
        """Microseconds for an output token of each row."""
        return sum(self.steps) / self.tokens


def ways(
    peers: Peers,
    texts: Sequence[TokenizedDocument],
    device: torch.device,
    *,
    forcing: Sequence[str] = ("ffwd",),
    only: Sequence[str] = (),
) -> list[Unconstrained]:
    """Return every way to write the documents, each with new matchers.

    Args:
        peers: The engines.
        texts: A document for each row.
        device: Of the logits.
        forcing: The engines whose forced tokens are those of the documents (`widths`).
        only: Names of ways; by default all.

    """
    schemas = [text.schema for text in texts]
    found: list[Unconstrained] = [Unconstrained(texts, device)]
    if not only:
        by_name = processors(peers, texts)
        found += [Processed(n, by_name[n], texts, device) for n in peers.names]
    for engine in peers.names:
        name = f"{engine}, overlapped"
        if not only or name in only:
            rows = peers.rows(engine, schemas)
            found.append(Overlapped(name, rows, texts, peers.vocab_size, device))
    for engine in forcing:
        name = f"{engine}, forced"
        if not only or name in only:
            rows = peers.rows(engine, schemas)
            found.append(Forced(name, rows, texts, peers.vocab_size, device))
    return [way for way in found if not only or way.name in only]


@torch.inference_mode()
def write(
    passes: Passes, way: Unconstrained, *, before: Callable[[int], None] | None = None
) -> Written:
    """Write the documents once.

    Args:
        passes: Of the model, which begin anew.
        way: How masks are made.
        before: Called before each step, with its number; the time of the step contains it.

    Raises:
        WrongTokenError: A mask refuses a document's token.

    """
    passes.begin()
    texts = list(way.texts)
    at = [0] * len(texts)
    chunks = way.begin()
    written = Written(tokens=round(sum(len(text.tokens) for text in texts) / len(texts)))
    started = time.perf_counter_ns()
    step = 0
    while True:
        if before is not None:
            before(step)
        for row, chunk in enumerate(chunks):
            if texts[row] is not way.texts[row]:
                texts[row], at[row] = way.texts[row], 0
            at[row] += len(chunk)
        wanted = [
            text.tokens[place] if place < len(text.tokens) else None
            for place, text in zip(at, texts, strict=True)
        ]
        if not any(want is not None for want in wanted):
            break
        # Filler for a row that has ended; before the first token it is the prompt's last one.
        logits = passes.logits([chunk or [1] for chunk in chunks])
        script = torch.tensor([[0 if token is None else token] for token in wanted])
        logits.scatter_(1, to_device(script, logits.device), _GREATEST)
        sampled: list[int] = way.mask(logits).argmax(dim=-1).tolist()
        for row, (token, want) in enumerate(zip(sampled, wanted, strict=True)):
            if want is not None and token != want:
                raise WrongTokenError(
                    f"{way.name}: row {row} refuses token {want} at {at[row]}, takes {token}"
                )
        chunks = way.advance(
            [None if want is None else token for token, want in zip(sampled, wanted, strict=True)]
        )
        now = time.perf_counter_ns()
        written.steps.append((now - started) / 1e3)
        started = now
        step += 1
    return written


def widths(peers: Peers, texts: Sequence[TokenizedDocument], engine: str = "ffwd") -> list[int]:
    """Return the widths of the passes that forcing makes, by the grammar alone.

    Raises:
        WrongTokenError: Forced tokens are not the document's.

    """
    found: list[int] = []
    for text in texts:
        rows = peers.rows(engine, [text.schema])
        for step, chunk in enumerate(chunks_of(rows, text.tokens)):
            found += [1] * (step + 1 - len(found))
            found[step] = max(found[step], len(chunk))
    return [pass_width(columns) for columns in found]


def chunks_of(rows: Rows, tokens: Sequence[int]) -> list[list[int]]:
    """Return a document as passes are given it: a sampled token and what it forces, each time.

    Args:
        rows: One row, at the beginning.
        tokens: Of the document.

    Raises:
        WrongTokenError: Forced tokens are not the document's.

    """
    found: list[list[int]] = []
    at = 0
    while True:
        chunk = list(tokens[at - 1 : at]) if found else []
        forced = rows.force(0, tokens[at:])
        if list(tokens[at : at + len(forced)]) != forced[: len(tokens) - at]:
            raise WrongTokenError(f"forced tokens at {at} are not the document's")
        chunk += forced[: len(tokens) - at]
        found.append(chunk)
        at += len(forced)
        if at >= len(tokens):
            return found
        if not accepts(rows.matchers[0], tokens[at]):
            raise WrongTokenError(f"the token at {at} is refused")
        at += 1


def percentile(steps: Sequence[float], share: float) -> float:
    """Return a percentile of microseconds."""
    return float(np.percentile(steps, share))


def forced_share(peers: Peers, text: TokenizedDocument) -> float | None:
    """Return the share of forced tokens; None where the engine refuses or forces others."""
    try:
        chunks = chunks_of(peers.rows("ffwd", [text.schema]), text.tokens)
    except (WrongTokenError, ffwd.FfwdError):
        return None
    sampled = len(chunks) - 1
    return 1 - sampled / len(text.tokens)
