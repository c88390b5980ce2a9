"""How many forward passes forced tokens save, by how they are chosen and how many at a time.

    python tests/integrations/bench_draft_choices.py [--tokenizer llama3 qwen] [--schemas 150]

In ffwd's own environment. The documents of maskbench's built-in corpus, compact and cut by the
tokenizer, are walked: a token that is not forced costs a pass, forced ones do not. `wrong` counts
drafts that the document does not have.

- `masks`: runs of masks that leave one token, the end included, as the masks are.
- `narrow`: the same with narrow masks, which is what the engines' adapters draft.
- `canonical`: the same with masks that leave canonical tokens only (`matcher(canonical=True)`).
- `table`: narrow masks, and runs looked up by the sampled token in a table made before it is
  known, as vLLM's model runner V2 needs it.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import realtokenizers
from slow_request import SlowRequest

import ffwd
from ffwd.engine import EngineRequest, forced_table
from ffwd.tokenizer import from_huggingface

ROOT = Path(__file__).resolve().parent.parent.parent
SEED = 20261122
MAX_RUN = 32
CHOICES: dict[str, dict[str, bool]] = {
    "masks": {},
    "canonical": {"canonical": True},
    "narrow": {"narrow": True},
    "table": {"table": True},
}


class TableMatcher:
    """Forced tokens from the table that is made before the last token is known."""

    def __init__(self, compiled: ffwd.CompiledGrammar) -> None:
        self._request = EngineRequest(compiled, narrow=True)
        self._run: list[int] = []

    def accept(self, token: int) -> bool:
        entries = forced_table([self._request], MAX_RUN).tolist()
        runs = [run for _, _, sample, *run in entries if sample == token]
        self._run = [token for token in runs[0] if token >= 0] if runs else []
        return self._request.accept(token)

    def accept_tokens(self, _: str, tokens: list[int]) -> bool:
        return all(self.accept(token) for token in tokens)

    def forced(self, max_tokens: int) -> list[int]:
        return self._run[:max_tokens]


def documents(
    real: Any, vocabulary: ffwd.Vocabulary, whitespace: Any, schemas: int
) -> Iterator[tuple[ffwd.CompiledGrammar, list[int]]]:
    """Compiled schemas and the tokens of two documents of each, with an end token."""
    lines = (ROOT / "maskbench/corpus/builtin.jsonl").read_text(encoding="utf-8").splitlines()
    cases = [json.loads(line) for line in lines]
    random.Random(SEED).shuffle(cases)
    for case in cases[:schemas]:
        try:
            grammar = ffwd.json_schema(case["schema"], whitespace=whitespace)
            compiled = ffwd.compile(grammar, vocabulary)
        except ffwd.FfwdError:
            continue
        for test in [test for test in case["tests"] if test["valid"]][:2]:
            text = json.dumps(test["data"], ensure_ascii=False, separators=(",", ":"))
            tokens = real.tokenizer.encode(text, add_special_tokens=False).ids
            tokens = [*tokens, real.eos_token_ids[0]]
            if compiled.matcher().validate_tokens(tokens) == len(tokens):
                yield compiled, tokens


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--tokenizer", nargs="+", default=["llama3", "qwen"])
    parser.add_argument("--schemas", type=int, default=150)
    parser.add_argument("--choices", nargs="+", default=list(CHOICES), choices=list(CHOICES))
    parser.add_argument("--drafts", type=int, nargs="+", default=[4, 8, 16])
    options = parser.parse_args()
    print(f"seed {SEED}")
    for name in options.tokenizer:
        real = realtokenizers.load(name)
        ends = list(real.eos_token_ids)
        vocabulary = from_huggingface(real.tokenizer, vocab_size=real.width, eos_token_ids=ends)
        for whitespace in ("flexible", "consistent", "compact"):
            walked = list(documents(real, vocabulary, whitespace, options.schemas))
            total = sum(len(tokens) for _, tokens in walked)
            for choice in options.choices:
                how = CHOICES[choice]
                for count in options.drafts:
                    passes = wrong = 0
                    for compiled, tokens in walked:
                        is_table = how.get("table", False)
                        make = TableMatcher if is_table else partial(SlowRequest, **how)
                        matcher, done = make(compiled), 0
                        while done < len(tokens):
                            matcher.accept(tokens[done])
                            done, passes = done + 1, passes + 1
                            run = matcher.forced(count)
                            right = tokens[done : done + len(run)] == run
                            wrong += not right
                            if right and matcher.accept_tokens("", run):
                                done += len(run)
                    print(
                        f"{name} {whitespace:8s} {choice:9s} at most {count:2d}: {total} tokens,"
                        f" {passes} passes, saved {100 * (total - passes) / total:5.2f}%,"
                        f" wrong {wrong}"
                    )


if __name__ == "__main__":
    main()
