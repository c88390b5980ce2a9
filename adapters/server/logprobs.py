"""Log probabilities of the tokens in an answer's text.

They are of the raw distribution: before biases, penalties, the grammar's mask, temperature and
cuts. The logits from which a token is chosen score it. The pass that reads the token before a
forced one scores that one, so its text waits for one more pass.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ffwd import Vocabulary
from ffwd.adapters.logits import apply_token_bitmask_inplace, to_device
from ffwd.adapters.server.deltas import Delta, Piece
from ffwd.adapters.server.protocol import Request
from ffwd.chat import Start
from ffwd.tokenizer import Tokenizer

LEAST = -9999.0
"""Stands for minus infinity, as in OpenAI's answers: JSON has no infinity."""
_BLOCK = 64
"""Rows whose distributions are computed at a time; those of a vocabulary may take much memory."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A token with its log probability.

    Attributes:
        token: Its id.
        logprob: Its log probability.
        top: The likeliest ids in its place, with theirs.
        offset: Where it begins in the answer's text, in characters.

    """

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()
    offset: int = 0


@torch.inference_mode()
def distributions(logits: torch.Tensor) -> torch.Tensor:
    """Return the log probabilities of each row of logits, which stay as they are."""
    return torch.log_softmax(logits.float(), dim=-1)


@torch.inference_mode()
def scored(logs: torch.Tensor, tokens: Sequence[int], tops: Sequence[int]) -> list[Scored]:
    """Return the score of a token in each row of `distributions`, and the likeliest ones."""
    place = to_device(torch.tensor(tokens, dtype=torch.long), logs.device)
    own = logs.gather(1, place.unsqueeze(1)).squeeze(1).tolist()
    best = logs.topk(min(max(tops), logs.shape[-1]), dim=-1)
    ids, values = best.indices.tolist(), best.values.tolist()
    return [
        Scored(
            token,
            _finite(own[row]),
            tuple(zip(ids[row][:top], map(_finite, values[row][:top]), strict=True)),
        )
        for row, (token, top) in enumerate(zip(tokens, tops, strict=True))
    ]


@torch.inference_mode()
def allowed(
    logs: torch.Tensor, masks: Sequence[np.ndarray[Any, np.dtype[np.int32]]], *, vocab_size: int
) -> list[float]:
    """Return the log probability of all tokens that the mask of each row allows.

    `logs` are `distributions`, which are changed.
    """
    bits = to_device(torch.from_numpy(np.stack(masks)), logs.device)
    apply_token_bitmask_inplace(logs, bits, vocab_size=vocab_size)
    return [_finite(value) for value in logs.logsumexp(dim=-1).clamp(max=0.0).tolist()]


def _finite(value: float) -> float:
    return max(value, LEAST) if math.isfinite(value) else LEAST


@dataclass(slots=True)
class _Held:
    """Deltas that wait for the scores of their tokens."""

    tokens: int
    deltas: list[Delta]
    pieces: list[Piece]


class Scores:
    """The scores of one answer's tokens, and the deltas that wait for them.

    The model's thread adds scores, and the thread that reads the answer takes them.

    Args:
        start: Where the answer begins.
        top: How many of the likeliest tokens are listed; None to list no tokens.
        weighed: Whether `log_masses` are asked for.

    Attributes:
        log_masses: Of each scored token the log probability of all tokens that were allowed; of a
            forced one its own.

    """

    def __init__(self, start: Start, top: int | None, *, weighed: bool = False) -> None:
        self.top = top or 0
        self.listed = top is not None
        self.weighed = weighed
        self.log_masses: list[float] = []
        self._vocabulary: Vocabulary = start.vocabulary
        self._scored: list[Scored] = []
        self._held: deque[_Held] = deque()
        self._next = 0
        """The first token that no piece has reached."""
        self._offset = len(start.prefill) - len(start.prefix)
        """Where it begins, in bytes."""
        self._characters = 0
        """How many the pieces have had."""

    def __len__(self) -> int:
        return len(self._scored)

    def add(self, scores: Sequence[Scored]) -> None:
        """Append the scores of the next tokens."""
        self._scored.extend(scores)

    def add_forced(self, logits: torch.Tensor, tokens: Sequence[int]) -> None:
        """Score tokens that are known, each with the row of logits before it."""
        for begin in range(0, len(tokens), _BLOCK):
            part = tokens[begin : begin + _BLOCK]
            logs = distributions(logits[begin : begin + len(part)])
            found = scored(logs, part, [self.top] * len(part))
            self.log_masses += [score.logprob for score in found]
            self.add(found)

    def hold(self, tokens: int, deltas: list[Delta], pieces: list[Piece]) -> None:
        """Keep deltas until this number of tokens is scored."""
        self._held.append(_Held(tokens, deltas, pieces))

    def release(self) -> tuple[list[Delta], list[Scored]]:
        """Return the deltas whose tokens are scored, and the tokens of their content."""
        number = len(self._scored)
        deltas: list[Delta] = []
        tokens: list[Scored] = []
        while self._held and self._held[0].tokens <= number:
            held = self._held.popleft()
            deltas += held.deltas
            for piece in held.pieces:
                self._list(piece, tokens)
        return deltas, tokens

    def _list(self, piece: Piece, tokens: list[Scored]) -> None:
        """List the tokens that have a byte in a piece, each once."""
        data = piece.text.encode()
        end = piece.start + len(data)
        while self._next < len(self._scored) and self._offset < end:
            score = self._scored[self._next]
            begin = self._offset
            self._offset += len(self._vocabulary.token_bytes(score.token) or b"")
            self._next += 1
            if self._offset > max(begin, piece.start):
                offset = self._characters + _characters(data, begin - piece.start)
                tokens.append(Scored(score.token, score.logprob, score.top, offset))
        self._characters += len(piece.text)


def scores_of(request: Request, start: Start) -> Scores | None:
    """Return what collects the scores of an answer; None if the request asks for none."""
    weighed = bool(request.masses)
    if request.num_top is None and not weighed:
        return None
    return Scores(start, request.num_top, weighed=weighed)


def _characters(data: bytes, place: int) -> int:
    """Return the index of the character that has a byte."""
    if place <= 0:
        return 0
    begun = sum((byte & 0xC0) != 0x80 for byte in data[: place + 1])
    return begun - 1


@dataclass(frozen=True)
class Listing:
    """How an answer lists its tokens.

    Args:
        tokenizer: Names the tokens.
        chat: Whether as in chats, or as in completions.

    """

    tokenizer: Tokenizer
    chat: bool

    def of(self, tokens: Sequence[Scored]) -> dict[str, Any]:
        """Return the member `logprobs` of a choice or a chunk."""
        return self._chat(tokens) if self.chat else self._completion(tokens)

    def _chat(self, tokens: Sequence[Scored]) -> dict[str, Any]:
        return {"content": self.entries(tokens), "refusal": None}

    def entries(
        self, tokens: Sequence[Scored], *, no_bytes: list[int] | None = None
    ) -> list[dict[str, Any]]:
        """Return the entry of each token; `no_bytes` are those of an id without a text."""

        def entry(token: int, logprob: float) -> dict[str, Any]:
            data = self.tokenizer.token_bytes(token)
            return {
                "token": "" if data is None else data.decode(errors="replace"),
                "logprob": logprob,
                "bytes": no_bytes if data is None else list(data),
            }

        return [
            entry(score.token, score.logprob)
            | {"top_logprobs": [entry(*other) for other in score.top]}
            for score in tokens
        ]

    def _completion(self, tokens: Sequence[Scored]) -> dict[str, Any]:
        return {
            "tokens": [self._name(score.token) for score in tokens],
            "token_logprobs": [score.logprob for score in tokens],
            "top_logprobs": [self._top(score) for score in tokens],
            "text_offset": [score.offset for score in tokens],
        }

    def _top(self, score: Scored) -> dict[str, float]:
        listed: dict[str, float] = {}
        for token, logprob in (*score.top, (score.token, score.logprob)):
            # Of two tokens with one text, the likelier.
            listed.setdefault(self._name(token), logprob)
        return listed

    def _name(self, token: int) -> str:
        """Return the text of a token; parts of characters, and ids without a text, by number."""
        data = self.tokenizer.token_bytes(token)
        if data is None:
            return f"token_id:{token}"
        try:
            return data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)
