"""Writing a record under masks, with one way of forcing, and scoring a record that is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

import ffwd
from maskbench.canonical_demo.model import Reader, Transformer


@dataclass(frozen=True)
class Way:
    """One way of forcing: the options of `fast_forward_tokens`, None for never."""

    name: str
    about: str
    options: dict[str, Any] | None


@dataclass(frozen=True)
class Written:
    """What was written, whether it came to its end, and how many tokens the model chose."""

    text: str
    finished: bool
    tokens: int
    chosen: int


@dataclass(frozen=True)
class Score:
    """Log-likelihoods of a known text in nats.

    `choices`: of the tokens that the model had to choose, each among those that its mask allows.
    `tokens`: of every token, forced or not, among all tokens.
    """

    choices: float
    tokens: float


@dataclass
class Decoder:
    """A model, the grammar of its records and the tokenizer's encoding."""

    model: Transformer
    grammar: ffwd.CompiledGrammar
    encode: Callable[[str], list[int]]
    max_tokens: int = 60
    _bitmask: Any = field(init=False)

    def __post_init__(self) -> None:
        vocabulary = self.grammar.vocabulary
        self._bitmask = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
        self._width = vocabulary.vocab_size

    def write(self, sentence: Sequence[int], way: Way, *, sampled: bool = False) -> Written:
        """Writes a record after the sentence, greedily or sampled from the model."""
        matcher = self.grammar.matcher()
        reader = Reader(self.model)
        logits = reader.read(sentence)[-1]
        tokens: list[int] = []
        chosen = 0
        while len(tokens) < self.max_tokens:
            forced = _forced(matcher, way)
            if not forced:
                choices = self._choices(matcher, logits)
                token = int(torch.multinomial(choices.exp(), 1) if sampled else choices.argmax())
                chosen += 1
                if token in self.grammar.vocabulary.eos_token_ids:
                    return Written(self._text(tokens), True, len(tokens), chosen)
                forced = [token]
            for token in forced:
                matcher.accept_token(token)
            tokens += forced
            logits = reader.read(forced)[-1]
        return Written(self._text(tokens), False, len(tokens), chosen)

    def score(self, sentence: Sequence[int], text: str, way: Way) -> Score:
        """The likelihood of a text: forced where the way forces, its own tokens elsewhere.

        After forced tokens that are not those of the text, what is left is encoded by itself.
        """
        matcher = self.grammar.matcher()
        reader = Reader(self.model)
        logits = reader.read(sentence)[-1]
        rest = text.encode()
        in_choices = in_tokens = 0.0
        while True:
            forced = _forced(matcher, way)
            chose = not forced
            if chose:
                own = self.encode(rest.decode())[:1]
                forced = own or [self.grammar.vocabulary.eos_token_ids[0]]
                in_choices += float(self._choices(matcher, logits)[forced[0]])
            after = torch.cat([logits[None], reader.read(forced)])
            likelihoods = after[:-1].log_softmax(-1)
            in_tokens += float(likelihoods[range(len(forced)), forced].sum())
            if chose and not rest:
                return Score(in_choices, in_tokens)
            logits = after[-1]
            for token in forced:
                matcher.accept_token(token)
            written = self._bytes(forced)
            assert rest.startswith(written), "what is forced is what must come"
            rest = rest[len(written) :]

    def _choices(self, matcher: ffwd.Matcher, logits: torch.Tensor) -> torch.Tensor:
        """The log-likelihood of each token among those that the mask allows."""
        matcher.fill_bitmask(self._bitmask)
        bits = np.unpackbits(self._bitmask[0].view(np.uint8), bitorder="little")[: self._width]
        allowed = torch.from_numpy(bits.astype(bool))
        return logits.masked_fill(~allowed, float("-inf")).log_softmax(-1)

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        text_of = self.grammar.vocabulary.token_bytes
        return b"".join(text_of(token) or b"" for token in tokens)

    def _text(self, tokens: Sequence[int]) -> str:
        return self._bytes(tokens).decode(errors="replace")


def _forced(matcher: ffwd.Matcher, way: Way) -> list[int]:
    return [] if way.options is None else matcher.fast_forward_tokens(**way.options)
