"""Findings about unusual tokens of a tokenizer, which `load` logs.

Real vocabularies have tokens that no text is encoded as, several ids for the same bytes, bytes that
no token has, and control tokens that are typed as text. Most of this is harmless, and an error may
show far from its cause, so each finding names the ids.

The native audit covers the whole vocabulary. If a library encodes, it covers a fixed sample of one
token in some hundred; `full=True` encodes all of them, and every character besides.
"""

import logging
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ffwd._native import FfwdError, survey_tokens
from ffwd.tokenizer.definition import TokenizerParts
from ffwd.tokenizer.table import NEVER_IN_UTF8, TokenKind

_LOGGER = logging.getLogger(__name__)

Encode = Callable[[str], Sequence[int]]
Decode = Callable[[Sequence[int]], bytes]
IsText = Callable[[int], bool]

SAMPLED = 2_000
"""About how many tokens are encoded where a library does it."""

_SAMPLE = """\
The quick brown fox can't jump over 12,345 lazy dogs; they're asleep. Straße, naïve, œuvre, Łódź.
{"name": "Ada", "n": [1, -2.5e10, true, null], "esc": "a\\\\b\\n\\u00e9"}\t<p class='x'>&amp;</p>
def f(x):\n\treturn x >= 0x1F and [i**2 for i in range(x)]  # ok\r\n\n\n    $ ls -la | grep "~/.x"
Съешь ещё этих булок. γρήγορη λύση. שלום עולם. مرحبا، كيف حالك؟ नमस्ते दुनिया। สวัสดีชาวโลก việc
今天天气很好。東京タワーに、カタカナ。안녕하세요 세계. 👩\u200d👩\u200d👧 🇩🇪 👍🏽 𓀀 ᚠ ½ ² Ⅷ ٣
\u201ca\u201d \u2018b\u2019 c\u2013d\u2014e… €£¥ ∑∞≠
"""

# Compiled where they are used, because the tokenizer of a cache needs no audit.
_CONTROL_NAME = r"""\s*(?:
      <[|\uff5c][^<>]*[|\uff5c]>
    | </?(?i: s | unk | pad | bos | eos | eot | eod | mask | cls | sep | think | tools?
           | tool_calls? | tool_responses? | (?:start|end)_of_(?:turn|text|utterance)
           | unused_?\d+ | extra_id_\d+ | (?:reserved|special|placeholder|dummy)\w*
           | fim[_-]\w+ | image | audio | video | (?:begin|end)of\w+ )>
    | \[/?(?: INST | SYS | BOS | EOS | EOT | PAD | UNK | CLS | SEP | MASK | IMG | PREFIX | SUFFIX
            | MIDDLE | TOOL_CALLS? | TOOL_RESULTS? | AVAILABLE_TOOLS | TOOL_CONTENT
            | SYSTEM_PROMPT | THINK | REF | gMASK )\]
    )\s*"""
_PADDING_NAME = r"\[PAD\d+\]|\[EMPTY_\d+\]"


@dataclass(frozen=True)
class Finding:
    """An unusual property of a tokenizer."""

    kind: str
    """A stable name: one of `KINDS`."""
    message: str
    """What it is and what it means, with the first of the ids."""
    token_ids: tuple[int, ...]
    """All of the ids; none where it is not about tokens."""


KINDS = {
    "no-end": "nothing says what ends an output",
    "several-ends": "more than one token ends an output",
    "padding": "ids that fill up the vocabulary",
    "padding-is-text": "the padding token is a piece of text",
    "padding-is-end": "the padding token also ends an output",
    "control-as-text": "text tokens with the names of control tokens",
    "missing-bytes": "bytes that no token encodes",
    "duplicates": "several ids for the same bytes",
    "unmerged": "tokens that no merge makes",
    "unreachable": "tokens that no text was found to be encoded with",
    "wrong-bytes": "tokens that the encoder has for other bytes",
    "round-trip": "text that does not come back",
}
"""The kinds of findings."""


def audit(
    parts: TokenizerParts, encode: Encode, decode: Decode, *, full: bool = False
) -> tuple[Finding, ...]:
    """Return the unusual properties of a tokenizer.

    `encode`: a text to ids as the tokenizer does, without special tokens; `decode`: ids back to
    bytes. `full`: encode every token and every character instead of a sample.
    """
    ends = frozenset(i for i in parts.eos_token_ids if 0 <= i < len(parts.tokens))
    others, bracketed, same, missing = survey_tokens(
        parts.tokens, parts.kinds, TokenKind.TEXT, ends
    )

    def is_text(i: int) -> bool:
        """Return whether a grammar may allow a token as text."""
        return parts.kinds[i] is TokenKind.TEXT and bool(parts.tokens[i]) and i not in ends

    return (
        *_ends(parts),
        *_padding(parts, others),
        *_control_as_text(parts, bracketed),
        *_missing_bytes([byte for byte in missing if byte not in NEVER_IN_UTF8]),
        *_duplicates(parts, same),
        *_unused(parts, is_text, full=full),
        *_wrong_bytes(parts, is_text),
        *_round_trip(parts, encode, decode, full=full),
    )


def warn(findings: Sequence[Finding], source: str) -> None:
    """Log each finding."""
    for finding in findings:
        _LOGGER.warning("%s: %s", source, finding.message)


def _of(parts: TokenizerParts, kind: str, what: tuple[str, str], ids: Sequence[int]) -> Finding:
    """Return a finding about tokens; `what`: the texts for one, and for several."""
    named = ", ".join(f"{i} {parts.names[i]!r}" for i in ids[:4])
    rest = f" and {len(ids) - 4:,} more" if len(ids) > 4 else ""
    return Finding(kind, f"{len(ids):,} {what[len(ids) > 1]}: {named}{rest}", tuple(ids))


def _ends(parts: TokenizerParts) -> Iterator[Finding]:
    ends = sorted(set(parts.eos_token_ids))
    if not ends:
        yield Finding("no-end", "nothing says what ends an output: pass eos_token_ids", ())
    elif len(ends) > 1:
        what = "tokens end an output, and a model may write any of them"
        yield _of(parts, "several-ends", (what, what), ends)


def _padding(parts: TokenizerParts, others: Sequence[int]) -> Iterator[Finding]:
    is_filling = re.compile(_PADDING_NAME).fullmatch
    named = ((i, parts.names[i]) for i in others)
    filling = [i for i, name in named if name is None or is_filling(name)]
    if filling:
        rest = "the vocabulary and is never offered", "the vocabulary and are never offered"
        yield _of(
            parts,
            "padding",
            (f"id only fills up {rest[0]}", f"ids only fill up {rest[1]}"),
            filling,
        )
    pad = parts.special_tokens.pad
    if pad is None:
        return
    if pad.id in parts.eos_token_ids:
        what = "token is for padding and also ends an output, so that padded rows look finished"
        yield _of(parts, "padding-is-end", (what, what), [pad.id])
    elif parts.kinds[pad.id] is TokenKind.TEXT:
        what = "token is for padding and also a piece of text, so that padding looks like it"
        yield _of(parts, "padding-is-text", (what, what), [pad.id])


def _control_as_text(parts: TokenizerParts, bracketed: Sequence[int]) -> Iterator[Finding]:
    texts = ((i, parts.tokens[i] or b"") for i in bracketed)
    is_control = re.compile(_CONTROL_NAME, re.VERBOSE).fullmatch
    found = [i for i, data in texts if is_control(data.decode(errors="replace"))]
    if found:
        what = (
            "token is text to the tokenizer but has the name of a control token",
            "tokens are text to the tokenizer but have the names of control tokens",
        )
        yield _of(parts, "control-as-text", what, found)


def _missing_bytes(missing: Sequence[int]) -> Iterator[Finding]:
    if missing:
        named = ", ".join(f"0x{byte:02X}" for byte in missing[:8])
        rest = f" and {len(missing) - 8} more" if len(missing) > 8 else ""
        what = "byte has no token" if len(missing) == 1 else "bytes have no tokens"
        yield Finding(
            "missing-bytes",
            f"{len(missing)} {what}, so that some text cannot be written: {named}{rest}",
            (),
        )


def _duplicates(parts: TokenizerParts, groups: Sequence[Sequence[int]]) -> Iterator[Finding]:
    if groups:
        # The encoder writes one of several, and only it knows which, so all are named.
        what = f"tokens share their bytes with others ({len(groups):,} such texts)"
        yield _of(parts, "duplicates", (what, what), sorted(i for same in groups for i in same))


def _unused(parts: TokenizerParts, is_text: IsText, *, full: bool) -> Iterator[Finding]:
    if parts.bpe is not None:
        unmerged, unreachable = parts.bpe.unused_tokens()
    else:
        unmerged, unreachable = [], _unreachable_by_library(parts, is_text, full=full)
    unmerged = list(filter(is_text, unmerged))
    unreachable = list(filter(is_text, unreachable))
    if unmerged:
        what = (
            "token is made by no merge; a text has it only as a whole piece, if at all",
            "tokens are made by no merge; a text has them only as whole pieces, if at all",
        )
        yield _of(parts, "unmerged", what, unmerged)
    if unreachable:
        what = (
            "token is in no text that was tried, so a model may never have seen it",
            "tokens are in no text that was tried, so a model may never have seen them",
        )
        yield _of(parts, "unreachable", what, unreachable)


def _unreachable_by_library(parts: TokenizerParts, is_text: IsText, *, full: bool) -> list[int]:
    if parts.model == "wordpiece":
        # The longest piece wins, and the words that contain a continuing piece are unknown.
        return []
    ids = list(filter(is_text, range(len(parts.tokens))))
    step = 1 if full else max(1, len(ids) // SAMPLED)
    return [i for i in ids[::step] if not _is_written(parts, parts.tokens[i] or b"")]


def _is_written(parts: TokenizerParts, data: bytes) -> bool:
    """Return whether a library encodes the text of a token as a token with that text.

    The text is in the middle of another, or at its start, where the library adds a space.
    """
    assert parts.library is not None
    try:
        text = data.decode()
        ways = [(text, False), (text.removeprefix(" "), True)]
        encoded = (parts.library.encode(way, special="text", first=first) for way, first in ways)
        return any([parts.tokens[i] for i in ids] == [data] for ids in encoded)
    except UnicodeDecodeError:
        return True  # a part of a character: no text ends with it
    except FfwdError:
        return False


def _wrong_bytes(parts: TokenizerParts, is_text: IsText) -> Iterator[Finding]:
    if parts.bpe is None:
        return
    # A token that only the table has occurs in no encoding.
    wrong = list(filter(is_text, parts.bpe.differing(parts.tokens)))
    if wrong:
        what = (
            "token is encoded for other bytes than it decodes to",
            "tokens are encoded for other bytes than they decode to",
        )
        yield _of(parts, "wrong-bytes", what, wrong)


def _round_trip(
    parts: TokenizerParts, encode: Encode, decode: Decode, *, full: bool
) -> Iterator[Finding]:
    texts = _SAMPLE.splitlines(keepends=True)
    if full:
        texts += list(_all_characters())
    lost = [text for text in texts if not _comes_back(text, encode, decode)]
    if lost:
        shown = lost[0] if len(lost[0]) <= 40 else f"{lost[0][:40]}…"
        yield Finding(
            "round-trip",
            f"{len(lost)} of {len(texts)} texts are not decoded as they were encoded, such as "
            f"{shown!r}",
            (),
        )
    wrong = [] if parts.bpe is None else _wrong_single_bytes(parts)
    if wrong:
        what = (
            "token is what a single byte is encoded as, and decodes to others",
            "tokens are what single bytes are encoded as, and decode to others",
        )
        yield _of(parts, "round-trip", what, wrong)


def _comes_back(text: str, encode: Encode, decode: Decode) -> bool:
    try:
        return decode(encode(text)) == text.encode()
    except FfwdError:
        return False


def _wrong_single_bytes(parts: TokenizerParts) -> list[int]:
    """Return the single-byte tokens, characters or not, that decode to other bytes."""
    assert parts.bpe is not None
    wrong: list[int] = []
    for byte in range(256):
        data = bytes((byte,))
        try:
            ids = parts.bpe.encode(data, normalize=False, prefix_space=False)
        except FfwdError:
            continue  # what has no token is a finding of its own
        if b"".join(parts.tokens[i] or b"" for i in ids) != data:
            wrong += ids
    return wrong


def _all_characters(at_once: int = 512) -> Iterator[str]:
    """Return every assigned character, except those that composition changes."""
    characters = [
        c
        for c in map(chr, range(0x110000))
        if unicodedata.category(c) not in ("Cn", "Cs") and unicodedata.is_normalized("NFC", c)
    ]
    for first in range(0, len(characters), at_once):
        yield " ".join(characters[first : first + at_once])
