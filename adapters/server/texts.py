"""The state of sequences: accepting a token, appending forced ones, and computing the mask.

This module runs no model. `advance` runs in a thread of its own, so that a slow grammar does not
delay the sequences of others.
"""

import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import ffwd
from ffwd import CompiledGrammar, Matcher
from ffwd.adapters.server.deltas import AnswerReader
from ffwd.adapters.server.ends import Ends
from ffwd.adapters.server.errors import ApiError, internal, of_ffwd
from ffwd.adapters.server.logprobs import Scored, Scores
from ffwd.adapters.server.penalties import Adjustments
from ffwd.adapters.server.sampling import Sampling
from ffwd.adapters.server.streams import Ending, News, Stream

_WORD_BITS = 32
ON_TIME_AGAIN = 16
"""How many masks in time a text whose mask was late must have until passes wait for it again, and
how many that took little work until they are found beside those of others again."""
_OPEN: "weakref.WeakSet[Text]" = weakref.WeakSet()


def num_open() -> int:
    """Return how many texts the process holds on to."""
    return len(_OPEN)


class Text:
    """One answer that is being written.

    Args:
        prompt_ids: What the model is given.
        matcher: The state of its grammar.
        reader: Reads the answer's deltas off the matcher.
        sampling: How tokens are chosen.
        max_tokens: How many may come.
        free: Whether an end in the last of these is a cut: of free text, which could go on.
        named: Whether the request names the function that is called.
        stream: Where what comes is sent.
        index: Which choice of the request this is.
        deadline: When it is given up, in `time.monotonic`.
        heavy: Whether its grammar took much work already, so that no pass waits for its masks, and
            they are found behind those of others.
        scores: The log probabilities of its tokens, if they are asked for.
        ends: Where it may end, if not only the grammar says so.
        adjustments: Changes to its logits.

    """

    def __init__(
        self,
        *,
        prompt_ids: Sequence[int],
        matcher: Matcher,
        reader: AnswerReader,
        sampling: Sampling,
        max_tokens: int,
        free: bool,
        named: bool,
        stream: Stream,
        index: int,
        deadline: float,
        heavy: bool = False,
        scores: Scores | None = None,
        ends: Ends | None = None,
        adjustments: Adjustments | None = None,
    ) -> None:
        self.ids = list(prompt_ids)
        self.num_prompt = len(self.ids)
        self.matcher = matcher
        self.grammar: CompiledGrammar = matcher.grammar
        self.sampling = sampling
        self.max_tokens = max_tokens
        self.stream = stream
        self.index = index
        self.deadline = deadline
        self.mask: np.ndarray[Any, np.dtype[np.int32]] | None = None
        self.in_cache = 0
        self.settled = False
        """Whether a pass may take its tokens: no more come before the next one is chosen."""
        self.ready = False
        """Whether that can be chosen: the mask is there, and what is certain was sent."""
        self.logits: torch.Tensor | None = None
        """Of a pass that ended before the mask was ready."""
        self.late = self.heavy = ON_TIME_AGAIN if heavy else 0
        self.cancelled = False
        self.finished = False
        self.forced = 0
        self.scores = scores
        self.adjustments = adjustments
        self._ends = ends
        self._cut = False
        """Whether a stop token came where the answer could not end."""
        self._reader = reader
        self._free = free
        self._named = named
        self._reason: str | None = None
        self._reasoning = 0
        self._answering = False
        self._read = False
        """Whether the text was read to its end."""
        _OPEN.add(self)

    @property
    def num_tokens(self) -> int:
        """How many tokens have been written."""
        return len(self.ids) - self.num_prompt

    @property
    def longest(self) -> int:
        """How many tokens the text and its prompt can have."""
        return self.num_prompt + self.max_tokens

    @property
    def pending(self) -> int:
        """How many tokens the cache does not hold."""
        return len(self.ids) - self.in_cache

    @property
    def open(self) -> bool:
        """Whether it continues."""
        return self._reason is None and not self.finished and not self.cancelled

    @property
    def scoring(self) -> bool:
        """Whether it has ended and waits for the scores of its last tokens."""
        return self._reason is not None and not self.finished and not self.cancelled

    @property
    def to_pass(self) -> bool:
        """Whether the model has to read what is pending."""
        return self.settled and self.pending > 0 and (self.open or self.scoring)

    def unscored(self, width: int) -> int:
        """Return how many known tokens a pass over the next `width` ones can score."""
        if self.scores is None:
            return 0
        last = min(self.in_cache + width, len(self.ids) - 1)
        return max(last - self.num_prompt - len(self.scores) + 1, 0)

    def append(self, token: int, *, forced: bool) -> None:
        """Take a token."""
        stops = self._ends is not None and self._ends.stop_at(token, self.num_tokens)
        if not stops and not self.matcher.accept_token(token):
            raise RuntimeError(f"the grammar refuses token {token}, which its mask allows")
        self.ids.append(token)
        self.forced += forced
        if self._ends is not None and self.num_tokens == self._ends.min_tokens:
            self._reader.stop_after(self.ids[self.num_prompt :])
        if stops:
            self._reason, self._cut = "stop", not self.matcher.is_accepting()
        elif self.matcher.is_terminated():
            self._reason = "stop"
        elif self.num_tokens >= self.max_tokens:
            self._reason = "length"

    def restrict(self, mask: np.ndarray[Any, np.dtype[np.int32]]) -> None:
        """Change the mask of its next token as the request says where it may end."""
        if self._ends is not None:
            self._ends.restrict(mask, self.matcher, self.num_tokens)

    def force(self) -> None:
        """Accept the forced tokens."""
        room = self.max_tokens - self.num_tokens
        for token in self.matcher.fast_forward_tokens(max_tokens=room):
            self.append(token, forced=True)
            if self._reason is not None:
                break

    def publish(self) -> None:
        """Send the text that became certain."""
        if self.finished or self.cancelled:
            return
        deltas = [] if self._read else self._reader.read(finish=self._reason is not None)
        if self._reader.stopped:
            self._reason = "stop"
        self._read = self._reason is not None
        if not self._answering:
            self._answering = any(delta.kind != "reasoning" for delta in deltas)
            if deltas and not self._answering:
                self._reasoning = self.num_tokens
        tokens: list[Scored] = []
        ended = self._reason is not None
        if self.scores is not None:
            if self.scores.listed:
                self.scores.hold(self.num_tokens, deltas, self._reader.pieces(deltas))
            # Asked first: another thread adds scores.
            ended = ended and len(self.scores) >= self.num_tokens
            if self.scores.listed:
                deltas, tokens = self.scores.release()
        if self._reason is None or not ended:
            if deltas:
                self.stream.push(News(self.index, deltas, tokens=tokens))
            return
        self.finished = True
        ending = Ending(
            reason=self._finish_reason(self._reason),
            tokens=self.num_tokens,
            forced=self.forced,
            reasoning=self._reasoning,
            log_masses=self._log_masses,
        )
        self.stream.push(News(self.index, deltas, ending, tokens))

    def fail(self, error: ApiError) -> None:
        """End it with an error."""
        if not self.finished:
            self.finished = True
            self.stream.push(News(self.index, [], error))

    @property
    def _log_masses(self) -> tuple[float, ...] | None:
        if self.scores is None or not self.scores.weighed:
            return None
        return tuple(self.scores.log_masses[: self.num_tokens])

    def _finish_reason(self, reason: str) -> str:
        if reason == "length" or self._reader.stopped or self._cut:
            return reason
        if self._reader.num_calls and not self._named:
            return "tool_calls"
        if self._free and not self._reader.num_calls and self.num_tokens >= self.max_tokens:
            return "length"
        return reason


def advance(
    texts: Sequence[Text], tokens: Sequence[int | None], settled: Callable[[], None]
) -> float:
    """Append a token and its forced tokens to each sequence, compute masks, and send certain text.

    The sequences share one grammar. An error ends only its own sequence. `settled` is called when
    all tokens are there: a forward pass can begin with them while the masks are computed. Returns
    the seconds that accepting, forcing and masks took.
    """
    began = time.perf_counter()
    for text, token in zip(texts, tokens, strict=True):
        with _Guard(text):
            if token is not None and text.open:
                text.append(token, forced=False)
            _force(text)
    settled()
    _fill([text for text in texts if text.open])
    took = time.perf_counter() - began
    for text in texts:
        with _Guard(text):
            text.publish()
    return took


def _force(text: Text) -> None:
    """Append forced tokens, and the end token where nothing else can come."""
    while text.open:
        text.force()
        if not (text.open and text.matcher.is_accepting()):
            return
        bits = ffwd.allocate_bitmask(1, text.grammar.vocabulary.vocab_size)
        text.matcher.fill_bitmask(bits, 0)
        only = _only_token(bits[0])
        if only is None:
            return
        text.append(only, forced=True)


def _fill(texts: list[Text]) -> None:
    """Compute masks."""
    if not texts:
        return
    bits = ffwd.allocate_bitmask(len(texts), texts[0].grammar.vocabulary.vocab_size)
    try:
        ffwd.fill_bitmasks([text.matcher for text in texts], bits)
    except ffwd.FfwdError:
        # One of them failed: find out which.
        for row, text in enumerate(texts):
            with _Guard(text):
                text.matcher.fill_bitmask(bits, row)
    for row, text in enumerate(texts):
        with _Guard(text):
            text.restrict(bits[row])
        text.mask = bits[row]


def _only_token(bits: np.ndarray[Any, np.dtype[np.int32]]) -> int | None:
    """Return the token, if a mask allows exactly one."""
    words = np.flatnonzero(bits)
    if len(words) != 1:
        return None
    word = int(bits[words[0]]) & 0xFFFFFFFF
    if word & (word - 1):
        return None
    return int(words[0]) * _WORD_BITS + word.bit_length() - 1


class _Guard:
    """A context whose failure ends its own sequence, and no other."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        if not isinstance(error, Exception):
            return False
        if isinstance(error, ffwd.FfwdError):
            self._text.fail(of_ffwd(error, None))
        else:
            self._text.fail(internal(error))
        return True
