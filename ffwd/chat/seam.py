"""The seam between the end of a prompt and the start of a grammar's text.

Four mistakes at the seam would damage the output of a model:

1. A tokenizer like SentencePiece adds a space before every text. To a model trained on it, the
   answer `{"a"` after a control token is `▁{"`, so exactly one space comes first, and does not
   belong to the answer.
2. An answer that the prompt begins (a prefill) ends in tokens that its continuation may change:
   `{"name": ` ends in a space, and the whole text has `▁"` there. The last tokens are removed,
   never past a control token, and the next ones must encode their bytes.
3. The grammar's text starts with the prefill as the template has *rendered* it.
4. A prompt may end within the model's reasoning. The grammar then starts after it.

The rest of the prompt is never encoded again: the answer's ids are appended to its ids. Some
prompts end in text and not in a control token, as `Assistant:` does. A tokenizer with a token for
`:{` would tokenize the whole differently there.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ffwd._limits import Limits
from ffwd._native import CompiledGrammar, Matcher, TextError, Vocabulary, VocabularyError
from ffwd.chat.errors import ChatError

if TYPE_CHECKING:
    from ffwd.chat.prompt import Prompt

_RECENT_TOKENS = 64
"""Of how many tokens before it the first token's canonical cut may depend; pieces are shorter."""

MAX_ROLLBACK = 8
"""How many ids are taken back at most. Where they are cut, texts that go on need two; inside words
and in runs of punctuation up to four."""


class PrefillError(ChatError):
    """The grammar refuses the prefill, at `byte`."""

    def __init__(self, message: str, *, byte: int) -> None:
        super().__init__(message)
        self.byte = byte


class EndTokenError(ChatError):
    """The grammar's vocabulary lacks end tokens of the prompt's answer."""

    def __init__(self, message: str, *, token_ids: tuple[int, ...]) -> None:
        super().__init__(message)
        self.token_ids = token_ids


@dataclass(frozen=True)
class Answer:
    """The output of a model, in its parts."""

    text: str
    """The text of the grammar, from its beginning: with what was prefilled."""
    reasoning: str = ""
    """What came before its close, where the prompt ended within the reasoning."""
    complete: bool = False
    """Whether an end token has come."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """The start of an answer: the ids for the model, and the state of a matcher after them.

    Give the model `prompt_ids`, and let a `matcher()` follow what it generates.
    """

    grammar: CompiledGrammar
    prompt_ids: tuple[int, ...]
    """The prompt's ids without those that were taken back."""
    prefix: bytes = b""
    """What the first tokens have to spell before the grammar's text goes on: what was taken back,
    or the space that the tokenizer puts before a text."""
    prefill: bytes = b""
    """The beginning of the grammar's text, which the prompt has."""
    free_until: tuple[int, ...] | bytes | None = None
    """The tokens or the text that close the reasoning, in which the prompt ends."""
    free_controls: tuple[int, ...] = ()
    """Control tokens that the reasoning may have."""
    taken_back: tuple[int, ...] = ()
    """The prompt's last ids, instead of which others may come."""
    canonical: bool = False
    """What `matcher` does by default."""
    _recent: tuple[int, ...] = field(default=(), repr=False)

    @property
    def vocabulary(self) -> Vocabulary:
        """The grammar's."""
        return self.grammar.vocabulary

    def matcher(
        self,
        *,
        canonical: bool | None = None,
        max_tokens: int | None = None,
        limits: Limits | None = None,
    ) -> Matcher:
        """Return a matcher for one answer.

        `canonical`: allow only tokens that keep the text from the prompt on a tokenization of the
        tokenizer itself; see `CompiledGrammar.matcher`. `max_tokens`: the most tokens of the
        answer, reasoning and the end token included. `limits`: those of its calls, instead of the
        grammar's.

        Raises:
            BudgetError: No answer ends within `max_tokens`.
        """
        return self.grammar.matcher(
            canonical=self.canonical if canonical is None else canonical,
            recent_tokens=self._recent,
            prefix=self.prefix or None,
            prefill=self.prefill or None,
            free_until=self.free_until,
            free_controls=self.free_controls,
            max_tokens=max_tokens,
            limits=limits,
        )

    def answer(self, token_ids: Sequence[int]) -> Answer:
        """Return the parts of generated ids: the grammar's text, and the text before it.

        `token_ids` are those after `prompt_ids`, an end token and what follows it included.
        """
        spelled = self.grammar.vocabulary.token_bytes
        ends = frozenset(self.grammar.vocabulary.eos_token_ids)
        reasoning, text, own = self._split(token_ids)
        closed = own is not None
        complete = False
        for token_id in own or ():
            if token_id in ends:
                complete = True
                break
            text += spelled(token_id) or b""
        skipped = min(len(self.prefix), len(text))
        written = self.prefill + bytes(text[skipped:]) if closed else b""
        if self.taken_back and len(text) < len(self.prefix):
            written = written[: len(written) - (len(self.prefix) - len(text))]
        return Answer(
            text=written.decode(errors="replace"),
            reasoning=reasoning.decode(errors="replace"),
            complete=complete,
        )

    def _split(self, token_ids: Sequence[int]) -> tuple[bytes, bytes, Sequence[int] | None]:
        """Return the reasoning, the answer's part of its last token, and the tokens after it."""
        spelled = self.grammar.vocabulary.token_bytes
        close = self.free_until
        if close is None:
            return b"", b"", token_ids
        before = bytearray()
        for place, token_id in enumerate(token_ids):
            if isinstance(close, bytes):
                # Only the added tokens can have closed it.
                since = max(0, len(before) + 1 - len(close))
                before += spelled(token_id) or b""
                found = before.find(close, since)
                if found >= 0:
                    rest = bytes(before[found + len(close) :])
                    return bytes(before[:found]), rest, token_ids[place + 1 :]
            elif tuple(token_ids[max(0, place + 1 - len(close)) : place + 1]) == close:
                own = token_ids[: place + 1 - len(close)]
                text = b"".join(spelled(i) or b"" for i in own)
                return text, b"", token_ids[place + 1 :]
            else:
                before += spelled(token_id) or b""
        return bytes(before), b"", None


def start(
    prompt: "Prompt",
    grammar: CompiledGrammar,
    *,
    canonical: bool = False,
    max_rollback: int = MAX_ROLLBACK,
    leading_space: bool | None = None,
    reasoning_in_grammar: bool = False,
) -> Start:
    """Return the start of a grammar's text after a prompt.

    `max_rollback`: the most ids to remove from the end of a prompt with a prefill; as few are
    removed as its text allows. `leading_space`: whether a space comes before the text; by default
    if the tokenizer itself adds one. `reasoning_in_grammar`: the grammar itself describes the rest
    of the reasoning that the prompt has begun.

    Raises `PrefillError` if the grammar rejects the prefill, and `EndTokenError` if its vocabulary
    lacks an end token of the prompt.
    """
    vocabulary = grammar.vocabulary
    missing = tuple(sorted(set(prompt.end_token_ids) - set(vocabulary.eos_token_ids)))
    if missing:
        raise EndTokenError(
            f"an answer to this prompt may end with token ids {list(missing)}, which the grammar's "
            f"vocabulary does not end with (but with {vocabulary.eos_token_ids}): make it with "
            "tokenizer.vocabulary(eos_token_ids=…) and the prompt's end_token_ids",
            token_ids=missing,
        )
    ids = prompt.ids
    thinking = None if reasoning_in_grammar else prompt.thinking
    prefill = b"" if prompt.thinking is not None else prompt.prefill.encode()
    taken: list[int] = []
    prefix = b""
    free_until: tuple[int, ...] | bytes | None = None
    free_controls: tuple[int, ...] = ()
    if thinking is not None:
        free_until = thinking.close_token_ids or thinking.closed_by.encode()
        free_controls = thinking.control_token_ids
        prefix = thinking.answer_prefix.encode()
    if prefill:
        tail = _text_tail(ids, grammar)
        kept = len(ids) - len(tail) + _kept(tail, grammar, max_rollback)
        taken = ids[kept:]
        prefix = b"".join(vocabulary.token_bytes(token_id) or b"" for token_id in taken)
        ids = ids[:kept]
    elif leading_space or (leading_space is None and _puts_space(prompt, free_until)):
        prefix = b" " + prefix
    found = Start(
        grammar=grammar,
        prompt_ids=tuple(ids),
        prefix=prefix,
        prefill=prefill,
        free_until=free_until,
        free_controls=free_controls,
        taken_back=tuple(taken),
        canonical=canonical,
        # An answer that begins here starts a new tokenization. If the prompt ends in text such as
        # `Assistant:`, the model did not choose its last token, which is no context.
        _recent=tuple(ids[-_RECENT_TOKENS:]) if prefill else (),
    )
    try:
        found.matcher()
    except TextError as error:
        raise _prefill_error(prefill, error) from error
    return found


def _prefill_error(prefill: bytes, error: TextError) -> PrefillError:
    byte = error.byte or 0
    before = prefill[max(0, byte - 24) : byte].decode(errors="replace")
    after = prefill[byte : byte + 24].decode(errors="replace")
    return PrefillError(
        f"the grammar refuses the beginning of the answer at byte {byte}: after {before!r} it "
        f"cannot go on with {after!r}",
        byte=byte,
    )


def _text_tail(ids: list[int], grammar: CompiledGrammar) -> list[int]:
    """Return the prompt's last ids, after its last control token."""
    token_bytes = grammar.vocabulary.token_bytes
    start = len(ids)
    while start > 0 and token_bytes(ids[start - 1]) is not None:
        start -= 1
    return ids[start:]


def _kept(tail: list[int], grammar: CompiledGrammar, max_rollback: int) -> int:
    """Return how many ids of the tail no continuation changes."""
    bpe = grammar.vocabulary.bpe
    if bpe is not None:
        try:
            return len(bpe.heal(tail, max_rollback=max_rollback)[0])
        except VocabularyError:
            # The pieces of a growing text cannot be determined.
            pass
    # Nothing is known of the split, and the bytes are encoded again in any case.
    return max(0, len(tail) - max_rollback)


def _puts_space(prompt: "Prompt", free_until: tuple[int, ...] | bytes | None) -> bool:
    """Return whether the tokenizer puts a space before a text where the answer begins."""
    probe = "{"
    if isinstance(free_until, tuple):
        before = [free_until[-1]]
    elif free_until is not None:
        return False
    elif prompt.part_ids is not None:
        # Each message is a separate text.
        before = []
    else:
        last = prompt.parts[-1] if prompt.parts else None
        control = getattr(last, "token_id", None)
        if control is None:
            return False
        before = [control]
    ids = prompt.tokenizer.encode_parts([*before, probe])[len(before) :]
    written = b"".join(prompt.tokenizer.token_bytes(token_id) or b"" for token_id in ids)
    return written == f" {probe}".encode()
