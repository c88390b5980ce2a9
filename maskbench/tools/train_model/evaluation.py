"""How often the model is right, on conversations that it was not trained on."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import torch

import ffwd
from ffwd.adapters.transformers import GrammarLogitsProcessor
from ffwd.model.texts import Example, Words, conversation, simple_extraction
from ffwd.tokenizer import from_huggingface

MAX_TOKENS = 96
_ROWS = 16


@dataclass(frozen=True)
class Score:
    """One task: how many answers there were, and how many are wholly right.

    `masked` is None for tasks whose answers follow no schema.
    """

    task: str
    answers: int
    free: int
    masked: int | None


def evaluate(
    model: Any, tokenizer: Any, count: int, *, seed: int, simple: bool = False
) -> list[Score]:
    """Answer conversations greedily, without a grammar and under the masks of their schemas.

    `simple`: only the extractions of early training.
    """
    words = Words(random.Random(f"held out {seed}"))
    by_task: dict[str, list[Example]] = defaultdict(list)
    for _ in range(count):
        example = simple_extraction(words) if simple else conversation(words)
        by_task[example.task].append(example)
    vocabulary = from_huggingface(
        tokenizer,
        vocab_size=model.config.vocab_size,
        eos_token_ids=[tokenizer.eos_token_id],
    )
    scores = []
    for task, examples in sorted(by_task.items()):
        free = masked = 0
        has_schema = all(each.schema is not None for each in examples) and task != "reasoning"
        for start in range(0, len(examples), _ROWS):
            batch = examples[start : start + _ROWS]
            free += _right(batch, _answers(model, tokenizer, batch, []))
            if has_schema:
                grammars = [
                    ffwd.compile(
                        ffwd.json_schema(json.dumps(each.schema), whitespace="compact"), vocabulary
                    )
                    for each in batch
                ]
                processor = GrammarLogitsProcessor(grammars)
                masked += _right(batch, _answers(model, tokenizer, batch, [processor]))
        scores.append(Score(task, len(examples), free, masked if has_schema else None))
    return scores


def _answers(
    model: Any, tokenizer: Any, examples: list[Example], processors: list[Any]
) -> list[str]:
    texts = [
        tokenizer.apply_chat_template(
            each.messages, tools=each.tools or None, add_generation_prompt=True, tokenize=False
        )
        for each in examples
    ]
    prompts = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
    with torch.no_grad():
        output = model.generate(
            input_ids=prompts["input_ids"],
            attention_mask=prompts["attention_mask"],
            do_sample=False,
            max_new_tokens=MAX_TOKENS,
            logits_processor=processors,
        )
    new = output[:, prompts["input_ids"].shape[1] :]
    return [tokenizer.decode(row, skip_special_tokens=True) for row in new]


def _right(examples: list[Example], answers: list[str]) -> int:
    return sum(
        _value(example, example.answer) == _value(example, answer)
        for example, answer in zip(examples, answers, strict=True)
    )


def _value(example: Example, text: str) -> Any:
    """Return the value of an answer; a text that should be JSON and is not stays a text."""
    if example.schema is None or example.task == "reasoning":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
