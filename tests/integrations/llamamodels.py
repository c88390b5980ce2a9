"""What the tests of llama-cpp-python share: tiny models, and how often they are evaluated."""

import json
from pathlib import Path
from typing import Any

import jsonschema
from llama_cpp import Llama
from tinygguf import SCHEMA, write_gguf

import ffwd

PROMPTS = ["Ada bought", "Grace: two cherries,", "x"]


def load(path: Path, **options: Any) -> Llama:
    """Load a model; every option that drafts need is on."""
    options = {"n_ctx": 512, "logits_all": True, "verbose": False, **options}
    # Several threads would wait for each other, turning, where the machine has other work.
    options = {"n_threads": 1, "n_threads_batch": 1, **options}
    return Llama(str(path), **options)


def tiny(folder: Path, kind: str) -> Path:
    """A model's file, made once for each folder."""
    path = folder / f"tiny-{kind}.gguf"
    return path if path.exists() else write_gguf(path, kind)


def order_grammar(vocabulary: ffwd.Vocabulary) -> ffwd.CompiledGrammar:
    return ffwd.compile(ffwd.json_schema(SCHEMA, whitespace="compact"), vocabulary)


def assert_order(text: str) -> None:
    jsonschema.validate(json.loads(text), SCHEMA)


class Evaluations:
    """How many batches of ids a model has been given, and how many ids."""

    def __init__(self, llama: Llama) -> None:
        self._eval = llama.eval
        self.count = self.ids = 0
        llama.eval = self._counted

    def reset(self) -> None:
        self.count = self.ids = 0

    def _counted(self, tokens: Any) -> None:
        self.count += 1
        self.ids += len(tokens)
        self._eval(tokens)
