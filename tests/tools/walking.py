"""Random walks under the masks of a grammar, over the vocabulary of a real tokenizer."""

import random
from dataclasses import dataclass
from functools import cache

import numpy as np
import realtokenizers

import ffwd

# Which real vocabulary an answer in a format is written in.
VOCABULARIES = {
    "llama3-json": "llama3",
    "llama3-pythonic": "llama3",
    "llama4-pythonic": "llama3",
    "hermes": "qwen",
    "qwen3-coder": "qwen",
    "mistral-v3": "mistral-v3",
    "mistral-v11": "tekken",
    "deepseek-v3": "deepseek",
    "deepseek-v3.1": "deepseek",
    "kimi-k2": "llama3",
    "harmony": "llama3",
    "glm-4.5": "llama3",
    "minimax-m2": "tekken",
}
# Control tokens of models whose vocabularies no package carries, beside those of the real one.
ADDED = {
    "llama3": (
        *("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>"),
        *("<|tool_call_end|>", "<|tool_call_argument_begin|>", "<|python_start|>"),
        *("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>"),
        *("<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"),
    ),
    "tekken": ("[TOOL_CALLS]", "[ARGS]", "<minimax:tool_call>", "</minimax:tool_call>"),
}


MARKS = (b'"', b"}", b"]", b",", b" ", b"<", b">", b"/", b"\n")


@dataclass(frozen=True)
class Model:
    """A vocabulary, and a seeded choice among the tokens that may come."""

    vocabulary: ffwd.Vocabulary
    controls: dict[int, str]
    """The names of the tokens that are no text."""
    plain: frozenset[int]
    """Tokens of a few ASCII letters and digits, and marks, which are chosen more often."""
    space: frozenset[int]
    """Tokens of whitespace, which are chosen less often."""

    def write(self, grammar: ffwd.CompiledGrammar, rng: random.Random) -> str:
        """A whole text. Control tokens are spelled."""
        return self._text(self.ids(grammar, rng))

    def ids(self, grammar: ffwd.CompiledGrammar, rng: random.Random, most: int = 600) -> list[int]:
        """The tokens of a whole text, without what ends it."""
        # Numbers would go on for long, whose ends are few of many tokens.
        matcher = grammar.matcher(max_tokens=most)
        bitmask = ffwd.allocate_bitmask(1, self.vocabulary.vocab_size)
        ends = set(self.vocabulary.eos_token_ids)
        ids: list[int] = []
        while len(ids) <= most:
            matcher.fill_bitmask(bitmask, 0)
            bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
            allowed = np.flatnonzero(bits[: self.vocabulary.vocab_size])
            assert len(allowed), "a state without tokens"
            enough = len(ids) > 150 or len(allowed) <= len(ends) or rng.random() < 0.3
            if enough and ends.intersection(allowed.tolist()):
                return ids
            token = self._choose([int(each) for each in allowed if each not in ends], rng)
            matcher.accept_token(token)
            ids.append(token)
        raise AssertionError(f"no end: {self._text(ids)!r}")

    def _choose(self, allowed: list[int], rng: random.Random) -> int:
        controls = [each for each in allowed if each in self.controls]
        if controls and rng.random() < 0.5:
            return rng.choice(controls)
        if rng.random() < 0.9:
            allowed = [each for each in allowed if each not in self.space] or allowed
        if len(allowed) > 64 and rng.random() < 0.8:
            allowed = [each for each in allowed if each in self.plain] or allowed
        return rng.choice(allowed)

    def _text(self, ids: list[int]) -> str:
        written = b""
        for token in ids:
            data = self.vocabulary.token_bytes(token)
            written += self.controls[token].encode() if data is None else data
        return written.decode()


@cache
def model(name: str) -> Model:
    """Built once for each vocabulary."""
    real = realtokenizers.load(name)
    names = {i: real.tokenizer.id_to_token(i) or "" for i in range(real.width)}
    if real.reference is None:
        vocabulary = ffwd.tokenizer.from_huggingface(
            real.tokenizer, eos_token_ids=real.eos_token_ids
        )
    else:
        tokens = [*real.reference, *[None] * (real.width - len(real.reference))]
        for each in ADDED.get(name, ()):
            names[len(tokens)] = each
            tokens.append(None)
        special = {names[i]: i for i, data in enumerate(tokens) if data is None and names[i]}
        vocabulary = ffwd.Vocabulary(tokens, eos_token_ids=real.eos_token_ids, token_names=special)
    return of_vocabulary(vocabulary, names)


def of_vocabulary(vocabulary: ffwd.Vocabulary, names: dict[int, str]) -> Model:
    """The model of a vocabulary; `names` are those of its tokens."""
    texts = {i: vocabulary.token_bytes(i) for i in range(vocabulary.vocab_size)}
    return Model(
        vocabulary,
        {i: names.get(i, "") for i, data in texts.items() if data is None},
        frozenset(i for i, data in texts.items() if data and _is_plain(data)),
        frozenset(i for i, data in texts.items() if data is not None and not data.strip()),
    )


def _is_plain(data: bytes) -> bool:
    return data in MARKS or (len(data) < 4 and data.isascii() and data.isalnum())
