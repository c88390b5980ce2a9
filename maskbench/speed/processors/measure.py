"""Times of logits processors, all in turns on the same ids and scores.

The rows of a batch write documents, each of a schema of its own. At each step every processor gets
the ids so far, and scores that have just been written.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ffwd.adapters.logits import apply_token_bitmask_inplace
from ffwd.adapters.transformers import GrammarLogitsProcessor
from maskbench.documents import Job
from maskbench.speed.processors.rows import Peers, RowsProcessor

Processor = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class TokenizedDocument:
    """A schema, and the tokens of a document."""

    schema: str
    tokens: list[int]


def processors(peers: Peers, texts: Sequence[TokenizedDocument]) -> dict[str, Processor]:
    """Return a new processor of each way, for rows that write these documents.

    `masks` has what no processor can do without: accept, fill, and mask in place. llguidance has no
    processor of its own: its fastest calls stand in for one.
    """
    schemas = [text.schema for text in texts]
    # A grammar keeps its masks, so each way has its own.
    first, second = ([peers.ffwd(schema) for schema in schemas] for _ in range(2))
    found: dict[str, Processor] = {
        "ffwd": GrammarLogitsProcessor(first, in_place=True),
        "ffwd, copies": GrammarLogitsProcessor(second),
        "masks": RowsProcessor(
            peers.rows("ffwd", schemas), peers.vocab_size, apply_token_bitmask_inplace
        ),
    }
    if "xgrammar" in peers.names:
        from xgrammar.contrib.hf import LogitsProcessor

        # Annotated with the classes of an old tensor type.
        theirs: Any = LogitsProcessor([peers.xgrammar(schema) for schema in schemas])
        found["xgrammar"] = theirs
    if "llguidance" in peers.names:
        import llguidance.torch

        found["llguidance"] = RowsProcessor(
            peers.rows("llguidance", schemas),
            peers.vocab_size,
            llguidance.torch.apply_token_bitmask_inplace,
        )
    return found


def texts(jobs: Sequence[Job], peers: Peers, steps: int, count: int) -> list[TokenizedDocument]:
    """Return the first documents of at least `steps` tokens that every engine accepts.

    Their tokens are cut off there. One for each schema.
    """
    found = []
    for job in jobs:
        for document in job.documents:
            text = TokenizedDocument(job.schema, document.tokens[:steps].tolist())
            if (
                document.valid
                and len(text.tokens) == steps
                and peers.take(text.schema, text.tokens)
            ):
                found.append(text)
                break
        if len(found) == count:
            break
    return found


@dataclass(frozen=True)
class StepTimes:
    """Microseconds of a step of one way."""

    p50: float
    p99: float


def measure(
    peers: Peers, rows: Sequence[TokenizedDocument], width: int, dtype: torch.dtype, rounds: int
) -> dict[str, StepTimes]:
    """Write the documents of the rows, `rounds` times, by every way in turns.

    Raises:
        ValueError: Two ways of ffwd leave different scores.

    """
    prompt = torch.zeros((len(rows), 8), dtype=torch.long)
    tokens = torch.tensor([text.tokens for text in rows])
    torch.manual_seed(0)
    source = torch.randn(len(rows), width).to(dtype)
    scores = source.clone()
    times: dict[str, list[float]] = {}
    # The first round compiles kernels and fills caches.
    for turn in range(rounds + 1):
        ways = processors(peers, rows)
        names = list(ways)
        for step in range(tokens.shape[1]):
            ids = torch.cat([prompt, tokens[:, :step]], dim=1)
            results: dict[str, torch.Tensor] = {}
            first = step % len(names)
            for name in names[first:] + names[:first]:
                scores.copy_(source)
                started = time.perf_counter_ns()
                result = ways[name](ids, scores)
                taken = time.perf_counter_ns() - started
                if turn:
                    times.setdefault(name, []).append(taken / 1e3)
                elif name in ("ffwd", "ffwd, copies", "masks"):
                    results[name] = result.clone()
            if results and not all(torch.equal(results["masks"], r) for r in results.values()):
                raise ValueError(f"the ways of ffwd leave different scores at step {step}")
    return {
        name: StepTimes(float(np.percentile(taken, 50)), float(np.percentile(taken, 99)))
        for name, taken in times.items()
    }
