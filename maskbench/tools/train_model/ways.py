"""How often the model is right in the ways in which `ffwd.generate` lets it answer."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

import ffwd
from ffwd.model.texts import TASKS, Example, Words

WAYS: Mapping[str, Mapping[str, Any]] = {
    "masks": {},
    "fast_forward=False": {"fast_forward": False},
    "canonical=True": {"fast_forward": False, "canonical": True},
    "reasoning=True": {"reasoning": True},
    "reasoning_tokens=48": {"reasoning_tokens": 48},
    "draft_tokens=64": {"draft_tokens": 64},
    "sampled": {"do_sample": True},
    "sampled, fast_forward=False": {"do_sample": True, "fast_forward": False},
    "sampled, canonical=True": {"do_sample": True, "fast_forward": False, "canonical": True},
    'sampled, sampling="smc"': {"sampling": "smc", "particles": 8},
}
"""Each way's options; greedy where they do not say that tokens are sampled."""

ASKED = ("extraction", "question", "reasoning")
"""The tasks whose answers are JSON."""

MAX_TOKENS = 160


@dataclass(frozen=True)
class Way:
    """The answers of one task in one way.

    Attributes:
        task: What was asked for.
        way: A key of `WAYS`.
        answers: How many.
        right: How many of them have the right value.
        passes: Forward passes of all of them.

    """

    task: str
    way: str
    answers: int
    right: int
    passes: int


def evaluate_ways(model: Any, tokenizer: Any, count: int, *, seed: int) -> list[Way]:
    """Answer `count` conversations of each task in each way.

    All ways get the same conversations. Each conversation has a seed of its own for sampling.
    """
    found = []
    for task in ASKED:
        words = Words(random.Random(f"ways {task} {seed}"))
        examples = [TASKS[task][1](words) for _ in range(count)]
        for way, options in WAYS.items():
            right = passes = 0
            for place, example in enumerate(examples):
                torch.manual_seed(1000 * seed + place)
                made = ffwd.generate(
                    model,
                    tokenizer,
                    example.messages,
                    example.schema,
                    whitespace="compact",
                    max_new_tokens=MAX_TOKENS,
                    **{"do_sample": False, **options} if "sampling" not in options else options,
                )
                right += made.value == _wanted(example)
                passes += made.stats.forward_passes
            found.append(Way(task, way, count, right, passes))
    return found


def _wanted(example: Example) -> Any:
    """Return the right value; reasoning may stand before it."""
    return json.loads(example.answer.rpartition("</think>")[2])
