"""Random walks under the masks of a grammar, over the vocabulary of a real tokenizer."""

import random
from dataclasses import dataclass
from functools import cache

import numpy as np
import realtokenizers
from tokenizers import AddedToken, Tokenizer

import ffwd

# Which real vocabulary an answer in a format is written in, and the control tokens that its model
# has beside those.
VOCABULARIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "llama3-json": ("llama3", ()),
    "llama3-pythonic": ("llama3", ()),
    "llama4-pythonic": ("llama4", ()),
    "hermes": ("qwen", ()),
    "qwen3-coder": ("qwen", ()),
    "mistral-v3": ("mistral-v3", ()),
    "mistral-v11": ("tekken", ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]")),
    "deepseek-v3": ("deepseek", ()),
    "deepseek-v3.1": ("deepseek", ()),
    "kimi-k2": (
        "qwen",
        (
            "<|tool_calls_section_begin|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|tool_call_end|>",
            "<|tool_call_argument_begin|>",
        ),
    ),
    "harmony": ("llama4", ("<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>")),
    "glm-4.5": ("qwen", ("<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")),
}


@dataclass(frozen=True)
class Model:
    """A vocabulary, and a seeded choice among the tokens that may come."""

    tokenizer: Tokenizer
    vocabulary: ffwd.Vocabulary
    controls: frozenset[int]
    plain: frozenset[int]
    """Tokens of a few ASCII letters, digits and marks, which are chosen more often."""

    def write(self, grammar: ffwd.CompiledGrammar, rng: random.Random, most: int = 600) -> str:
        """A whole text. Control tokens are spelled."""
        matcher = grammar.matcher()
        bitmask = ffwd.allocate_bitmask(1, self.vocabulary.vocab_size)
        ends = set(self.vocabulary.eos_token_ids)
        ids: list[int] = []
        while len(ids) < most:
            matcher.fill_bitmask(bitmask, 0)
            bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
            allowed = np.flatnonzero(bits[: self.vocabulary.vocab_size])
            assert len(allowed), "a state without tokens"
            if ends.intersection(allowed.tolist()) and (
                len(allowed) <= len(ends) or rng.random() < 0.3
            ):
                return self._text(ids)
            token = self._choose([int(each) for each in allowed if each not in ends], rng)
            matcher.accept_token(token)
            ids.append(token)
        raise AssertionError(f"no end: {self._text(ids)!r}")

    def _choose(self, allowed: list[int], rng: random.Random) -> int:
        controls = [each for each in allowed if each in self.controls]
        if controls and rng.random() < 0.5:
            return rng.choice(controls)
        if len(allowed) > 64 and rng.random() < 0.8:
            allowed = [each for each in allowed if each in self.plain] or allowed
        return rng.choice(allowed)

    def _text(self, ids: list[int]) -> str:
        written = b""
        for token in ids:
            data = self.vocabulary.token_bytes(token)
            written += (self.tokenizer.id_to_token(token) or "").encode() if data is None else data
        return written.decode()


@cache
def model(name: str, added: tuple[str, ...]) -> Model:
    """Built once for each vocabulary."""
    real = realtokenizers.load(name)
    tokenizer = real.tokenizer
    if added:
        tokenizer = Tokenizer.from_str(tokenizer.to_str())
        tokenizer.add_special_tokens(
            [AddedToken(each, special=True, normalized=False) for each in added]
        )
    vocabulary = ffwd.tokenizer.from_huggingface(tokenizer, eos_token_ids=real.eos_token_ids)
    texts = {i: vocabulary.token_bytes(i) for i in range(vocabulary.vocab_size)}
    plain = {
        i
        for i, data in texts.items()
        if data and len(data) < 4 and data.isascii() and data.isalnum()
    }
    marks = {i for i, data in texts.items() if data in (b'"', b"}", b"]", b",", b" ")}
    named = frozenset(i for i, data in texts.items() if data is None)
    return Model(tokenizer, vocabulary, named, frozenset(plain | marks))
