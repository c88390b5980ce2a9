"""Constrained generation in front of your eyes: `python -m ffwd.adapters.demo`.

A chat prompt, a JSON Schema and a tiny model that is made on the spot go through transformers'
`generate()` twice: under masks, and with fast-forward.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

import ffwd
from ffwd.adapters._demo_model import TICKET_SCHEMA, chat, train_model, train_tokenizer
from ffwd.adapters.transformers import (
    GenerationReport,
    GrammarLogitsProcessor,
    TokenTrace,
    fast_forward_generate,
)
from ffwd.grammar import json_schema
from ffwd.tokenizer import from_huggingface

MESSAGE = (
    "Hello, this is Grace. The kettle that I bought 12 days ago stopped working."
    " I want my money back."
)


@dataclass(frozen=True)
class Answer:
    """One generated answer."""

    text: str
    tokens: int
    seconds: float


def main(arguments: list[str] | None = None) -> int:
    """Run the demonstration; the exit status is 0 if the answers are whole and valid."""
    options = _parse(arguments)
    schema = json.dumps(TICKET_SCHEMA)
    if options.schema is not None:
        try:
            schema = options.schema.read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            print(f"the schema cannot be read: {error}", file=sys.stderr)
            return 2

    # A model this small is faster on one thread, many times so on a busy machine.
    torch.set_num_threads(1)
    started = time.perf_counter()
    tokenizer = train_tokenizer(seed=options.seed)
    model, loss = train_model(tokenizer, seed=options.seed, steps=options.steps)
    print(
        f"A Llama with {model.num_parameters():,} parameters and a tokenizer of {len(tokenizer):,}"
        f" tokens,\ntrained for {time.perf_counter() - started:.1f} s (loss {loss:.2f})."
        " It knows JSON better than it knows the answer."
    )

    started = time.perf_counter()
    vocabulary = from_huggingface(
        tokenizer,
        vocab_size=model.config.vocab_size,
        eos_token_ids=[tokenizer.eos_token_id],
    )
    ready = time.perf_counter()
    try:
        grammar = ffwd.compile(json_schema(schema, whitespace=options.whitespace), vocabulary)
    except ffwd.FfwdError as error:
        print(f"the schema cannot be used: {error}", file=sys.stderr)
        return 2
    compiled = time.perf_counter()
    print(
        f"Vocabulary in {1e3 * (ready - started):.1f} ms,"
        f" schema compiled in {1e3 * (compiled - ready):.2f} ms."
    )

    prompt = tokenizer.apply_chat_template(
        chat(options.message), add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    print(f"\nPrompt\n  {tokenizer.decode(prompt['input_ids'][0])}")

    def generate(**extra: Any) -> Answer:
        begun = time.perf_counter()
        torch.manual_seed(options.seed)
        output = model.generate(
            **prompt, do_sample=options.sample, max_new_tokens=options.max_new_tokens, **extra
        )
        seconds = time.perf_counter() - begun
        new = output[0, prompt["input_ids"].shape[1] :]
        text = tokenizer.decode(new, skip_special_tokens=True)
        return Answer(text, len(new), seconds)

    processor = GrammarLogitsProcessor(grammar)
    masked = generate(logits_processor=[processor])
    report = GenerationReport(trace=True)
    forwarded = generate(custom_generate=fast_forward_generate, grammar=grammar, report=report)

    _print_tokens(report.tokens, lambda token: repr(tokenizer.decode([token])))
    print("\nAnswer under masks\n  " + masked.text)
    print("Answer with fast-forward\n  " + forwarded.text)
    stats = report.stats
    passes = processor.stats.forward_passes
    print(f"\n{'':24}{'tokens':>8}{'forced':>8}{'forward passes':>16}{'time':>10}")
    for name, row in {
        "masks": (masked.tokens, 0, passes, masked.seconds),
        "masks and fast-forward": (
            stats.tokens,
            stats.forced_tokens,
            stats.forward_passes,
            forwarded.seconds,
        ),
    }.items():
        print(f"{name:24}{row[0]:>8}{row[1]:>8}{row[2]:>16}{1e3 * row[3]:>7.0f} ms")
    saved = 1 - stats.forward_passes / passes
    per_mask = processor.stats.mask_nanoseconds / processor.stats.masks / 1e3
    print(f"{saved:.0%} of the forward passes saved; {per_mask:.0f} µs per token for the grammar.")

    problems = [
        f"{name}: {problem}"
        for name, answer in (("masks", masked), ("fast-forward", forwarded))
        for problem in _problems(answer.text, own_schema=options.schema is None)
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        print("Both answers are valid.")
    return 1 if problems else 0


def _print_tokens(tokens: list[TokenTrace], show: Callable[[int], str]) -> None:
    print(f"\n{'token':28}{'allowed by the mask':>20}")
    for entry in tokens:
        allowed = "" if entry.allowed is None else f"{entry.allowed:,}"
        kind = "forced" if entry.forced else "chosen by the model"
        print(f"{show(entry.token):28}{allowed:>20}   {kind}")


def _problems(text: str, *, own_schema: bool) -> list[str]:
    """Return what is wrong with an answer, by Python's own means."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return [f"not (whole) JSON: {error}"]
    if not own_schema:
        return []
    if not isinstance(value, dict):
        return ["not an object"]
    properties = TICKET_SCHEMA["properties"]
    wrong = [f"{name} is missing" for name in TICKET_SCHEMA["required"] if name not in value]
    for name, item in value.items():
        if name not in properties:
            wrong.append(f"{name} is not in the schema")
        elif "enum" in properties[name] and item not in properties[name]["enum"]:
            wrong.append(f"{name} is {item!r}")
    if wrong:
        return wrong
    days, steps = value["days_since_the_purchase"], value["suggested_next_steps"]
    name = value["customer_first_name"]
    allowed_steps = properties["suggested_next_steps"]["items"]["enum"]
    checks = {
        "customer_first_name": isinstance(name, str) and name.istitle() and 3 <= len(name) <= 12,
        # JSON Schema counts 12.0 among the integers.
        "days_since_the_purchase": type(days) in (int, float)
        and 0 <= days <= 365
        and days == int(days),
        "customer_wants_a_refund": isinstance(value["customer_wants_a_refund"], bool),
        "suggested_next_steps": isinstance(steps, list)
        and 1 <= len(steps) <= 2
        and all(step in allowed_steps for step in steps),
    }
    return [f"{key} is {value[key]!r}" for key, good in checks.items() if not good]


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m ffwd.adapters.demo",
        description="A constrained answer from a tiny model that is made on the spot.",
    )
    parser.add_argument("--message", default=MESSAGE, help="what the user says")
    parser.add_argument(
        "--schema", type=Path, metavar="FILE", help="a JSON Schema; default: a support ticket"
    )
    parser.add_argument(
        "--whitespace",
        default="compact",
        choices=["flexible", "compact", "single-space"],
        help="whitespace in the JSON (default: %(default)s, as the model has learned it)",
    )
    parser.add_argument("--sample", action="store_true", help="sample, instead of greedy decoding")
    parser.add_argument("--max-new-tokens", type=int, default=400, metavar="N")
    parser.add_argument("--steps", type=int, default=100, metavar="N", help="training steps")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
