"""A prompt as parts: text, control tokens, and the position of each message.

A string does not show which `<|eot_id|>` ends a turn and which a user typed. Parts do: a control
token occurs in a prompt only as a `ControlPart`, and a `TextPart` is always encoded as text.
"""

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Protocol

from ffwd._native import CompiledGrammar
from ffwd.chat.errors import ChatError
from ffwd.chat.seam import MAX_ROLLBACK, Start, start


class PromptTokenizer(Protocol):
    """The members of a tokenizer that a prompt uses; `ffwd.tokenizer.Tokenizer` has them."""

    def encode_parts(self, parts: Sequence[str | int], /) -> list[int]:
        """Return ids unchanged, and the ids of texts without finding control tokens in them."""
        ...

    def token_bytes(self, token_id: int, /) -> bytes | None:
        """Return the text of a token; None for a control token."""
        ...


@dataclass(frozen=True)
class TextPart:
    """Text, whatever its characters.

    `message` is the index of its message; None for the template's text.
    """

    text: str
    message: int | None = None


@dataclass(frozen=True)
class ControlPart:
    """One control token: its id, and its name in the vocabulary."""

    token_id: int
    content: str


Part = TextPart | ControlPart


@dataclass(frozen=True)
class MessageSpan:
    """The positions of a message's own text in a prompt, each as a half-open range.

    They include what is between two parts of it, such as a control token before its tool calls. A
    token with text of both the message and the template is in the range.
    """

    message: int
    parts: range
    """Of `Prompt.parts`."""
    characters: range
    """Of `Prompt.text`."""
    tokens: range
    """Of `Prompt.ids`."""


@dataclass(frozen=True)
class ThinkingSection:
    """The prompt ends within the model's reasoning, and the answer begins after its close."""

    opened_by: str
    """What begins the section: `<think>`."""
    closed_by: str
    """What ends it: `</think>`."""
    close_token_id: int | None
    """The id of `closed_by`; None where it is more than one token."""
    close_token_ids: tuple[int, ...] = ()
    """The ids of `closed_by`; empty where it is text, whose tokens depend on what is before it."""
    answer_prefix: str = ""
    """What the template writes between the close and the answer, such as two line ends."""
    control_token_ids: tuple[int, ...] = ()
    """Control tokens that may come in the section, such as those of messages within it."""

    def __post_init__(self) -> None:
        if self.close_token_id is not None and not self.close_token_ids:
            object.__setattr__(self, "close_token_ids", (self.close_token_id,))


@dataclass(frozen=True, kw_only=True, eq=False)
class Prompt:
    """The input of a model, and the state at the start of its answer.

    Immutable; `ids` and `spans` are computed once, on demand.

    `part_ids`: the ids of each part, for formats that encode each separately (Mistral's do).
    Without it `tokenizer.encode_parts` encodes them, and adjacent texts are one.
    """

    parts: tuple[Part, ...]
    tokenizer: PromptTokenizer
    part_ids: tuple[tuple[int, ...], ...] | None = None
    end_token_ids: tuple[int, ...] = ()
    """What may end the answer: the tokenizer's end tokens and those of the template or format."""
    stop: tuple[str, ...] = ()
    """Texts that end the answer, for formats whose terminators are no tokens."""
    prefill: str = ""
    """The last message's text that is to be continued, as rendered: the end of `text`, behind
    the last control token."""
    thinking: ThinkingSection | None = None
    """Where the prompt ends within a thinking section."""
    generation_start: bool = False
    """Whether the prompt ends where the model is to write: an answer's beginning, or within it."""
    num_messages: int = 0
    generation_spans: tuple[tuple[int, int], ...] = ()
    """Characters of `text` that the template marks as the assistant's (`{% generation %}`)."""
    missing_control_tokens: tuple[str, ...] = ()
    """Names that look like control tokens of the template, and that the vocabulary has none for."""
    _memo: dict[str, object] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.part_ids is not None and len(self.part_ids) != len(self.parts):
            raise ChatError(
                f"{len(self.part_ids)} lists of ids for {len(self.parts)} parts: there must be one "
                "for each"
            )
        if not self.text.endswith(self.prefill):
            raise ChatError(f"the prompt does not end in its prefill {self.prefill!r}")

    @property
    def text(self) -> str:
        """All parts, joined; control tokens by name."""
        if "text" not in self._memo:
            self._memo["text"] = "".join(map(_content, self.parts))
        text = self._memo["text"]
        assert isinstance(text, str)
        return text

    @property
    def ids(self) -> list[int]:
        """The token ids, as a fresh list that the caller may extend."""
        if "ids" not in self._memo:
            if self.part_ids is not None:
                ids = [token_id for part in self.part_ids for token_id in part]
            else:
                ids = self.tokenizer.encode_parts(
                    [p.token_id if isinstance(p, ControlPart) else p.text for p in self.parts]
                )
            self._memo["ids"] = tuple(ids)
        found = self._memo["ids"]
        assert isinstance(found, tuple)
        return list(found)

    @property
    def spans(self) -> tuple[MessageSpan | None, ...]:
        """The range of each message; None for one without text in the prompt."""
        if "spans" not in self._memo:
            self._memo["spans"] = self._find_spans()
        spans = self._memo["spans"]
        assert isinstance(spans, tuple)
        return spans

    def start(
        self,
        grammar: CompiledGrammar,
        *,
        canonical: bool = False,
        max_rollback: int = MAX_ROLLBACK,
        leading_space: bool | None = None,
        reasoning_in_grammar: bool = False,
    ) -> Start:
        """Return the start of the answer: the ids for the model, and matchers for the continuation.

        `canonical`: whether the matchers allow only tokens that the tokenizer itself would choose.
        `max_rollback`: the most ids to remove from the end of a prompt with a `prefill`, because a
        continuation could change them. `leading_space`: whether a space that does not belong to the
        answer comes before it; by default if the tokenizer would add one. `reasoning_in_grammar`:
        if the prompt ends within the model's reasoning, the grammar starts there, as
        `ffwd.reasoning(…, opened=True)` does. Without it, free text comes first, up to the close,
        and then the grammar.

        Raises `PrefillError` if the grammar refuses the prefill, and `EndTokenError` if its
        vocabulary lacks one of `end_token_ids`.
        """
        return start(
            self,
            grammar,
            canonical=canonical,
            max_rollback=max_rollback,
            leading_space=leading_space,
            reasoning_in_grammar=reasoning_in_grammar,
        )

    def __len__(self) -> int:
        """Return how many token ids the prompt has."""
        return len(self.ids)

    def __str__(self) -> str:
        return self.text

    def _find_spans(self) -> tuple[MessageSpan | None, ...]:
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for index, part in enumerate(self.parts):
            if isinstance(part, TextPart) and part.message is not None and part.text:
                first.setdefault(part.message, index)
                last[part.message] = index
        offsets = [0, *accumulate(len(_content(part)) for part in self.parts)]
        tokens = self._part_tokens()
        count = max([self.num_messages, *(message + 1 for message in first)])
        return tuple(
            MessageSpan(
                message=message,
                parts=range(first[message], last[message] + 1),
                characters=range(offsets[first[message]], offsets[last[message] + 1]),
                tokens=range(tokens[first[message]].start, tokens[last[message]].stop),
            )
            if message in first
            else None
            for message in range(count)
        )

    def _part_tokens(self) -> list[range]:
        """Return for each part the tokens that contain some of it."""
        if self.part_ids is not None:
            ends = list(accumulate(map(len, self.part_ids)))
            return [
                range(end - len(ids), end) for end, ids in zip(ends, self.part_ids, strict=True)
            ]
        ids = self.ids
        found: list[range] = []
        at = 0
        for stretch in _stretches(self.parts):
            if isinstance(stretch[0], ControlPart):
                found.append(range(at, at + 1))
                at += 1
                continue
            # No text becomes a control token, so the prompt's next one ends the stretch.
            after = len(found) + len(stretch)
            following = self.parts[after] if after < len(self.parts) else None
            end = ids.index(following.token_id, at) if isinstance(following, ControlPart) else None
            tokens = range(at, len(ids) if end is None else end)
            found += _tokens_of_texts([_content(part) for part in stretch], tokens, ids, self)
            at = tokens.stop
        return found


def _content(part: Part) -> str:
    return part.text if isinstance(part, TextPart) else part.content


def _stretches(parts: Sequence[Part]) -> list[list[Part]]:
    """Return each control token on its own, and runs of texts."""
    found: list[list[Part]] = []
    for part in parts:
        if found and isinstance(part, TextPart) and isinstance(found[-1][0], TextPart):
            found[-1].append(part)
        else:
            found.append([part])
    return found


def _tokens_of_texts(
    texts: Sequence[str], tokens: range, ids: Sequence[int], prompt: Prompt
) -> list[range]:
    """Return, for each text, the tokens of a stretch that contain some of it.

    The tokens' bytes are aligned with the text. They differ if a tokenizer composes characters, or
    drops white space beside a control token. Then the composed form is tried, and a space that the
    tokenizer adds before it. If that fails, each text has all tokens.
    """
    pieces = [prompt.tokenizer.token_bytes(ids[i]) or b"" for i in tokens]
    written = b"".join(pieces)
    ends = list(accumulate(map(len, pieces)))
    whole = "".join(texts)
    cuts = [0, *accumulate(map(len, texts))]
    for compose in (False, True):
        places = [
            len((unicodedata.normalize("NFC", whole[:c]) if compose else whole[:c]).encode())
            for c in cuts
        ]
        full = (unicodedata.normalize("NFC", whole) if compose else whole).encode()
        for shift, expected in ((0, full), (1, b" " + full)):
            if written == expected:
                return [
                    _overlap(start + shift, stop + shift, ends, tokens)
                    for start, stop in pairwise(places)
                ]
        if written and (dropped := full.find(written)) >= 0:
            return [
                _overlap(start - dropped, stop - dropped, ends, tokens)
                for start, stop in pairwise(places)
            ]
    return [tokens if text else range(tokens.start, tokens.start) for text in texts]


def _overlap(start: int, stop: int, ends: Sequence[int], tokens: range) -> range:
    """Return the tokens with a byte in start..stop; `ends` has the end of each token's bytes."""
    first = bisect_right(ends, max(start, 0))
    last = bisect_left(ends, stop) + 1 if stop > max(start, 0) else first
    last = min(last, len(ends))
    return range(tokens.start + min(first, last), tokens.start + last)
