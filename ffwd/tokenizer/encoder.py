"""The tokenizer's own encoding of a text in the middle of an output.

It differs from the tokenizer's encoding of a whole prompt in three ways only:

1. No beginning-of-text token and no dummy space before the text.
2. Text is text. It contains no special or control tokens: `<|eot_id|>` inside a JSON string becomes
   `<|`, `e`, `ot`… (The tokenizers library has a switch for this, which ignores added tokens
   without the special flag, such as `<tool_call>`.)
3. Encoding is lossless. A tokenizer that composes characters (NFC, as Qwen's does) or writes spaces
   as `▁` maps some different texts to the same tokens. This module skips NFC and writes a `▁` of
   the text in byte tokens, so the tokens always have the given bytes.
"""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ffwd._native import VocabularyError
from ffwd.tokenizer.kinds import AddedToken
from ffwd.tokenizer.pieces import PieceWriting
from ffwd.tokenizer.source import component_state, summary

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class TextEncoder:
    """Encodes bytes to token ids: `encoder(b'{"a": 1}')`; threads may share it.

    It works on a copy: the original tokenizer is never changed, and shares only its model's
    (constant) vocabulary and merges.

    Making it raises `VocabularyError` for a tokenizer that changes text before it encodes it.
    Calling it raises the error for bytes that are not UTF-8, and for text without tokens. The
    result has exactly the given bytes.
    """

    def __init__(
        self,
        tokenizer: "Tokenizer",
        *,
        tokens: Sequence[bytes | None],
        text_tokens: dict[int, AddedToken],
        writing: PieceWriting,
    ) -> None:
        """Prepare the copy.

        `tokens`: bytes by id, None for ids without text; `text_tokens`: the added tokens with text,
        by id; `writing`: the pieces' notation of bytes.
        """
        self._tokens = tokens
        self._tokenizer, self._renumbered = _text_only_copy(tokenizer, text_tokens, writing)
        # Text that the decoder changes cannot be written in pieces verbatim.
        lossy = [written for written, _ in writing.replacements]
        self._lossy = re.compile("(" + "|".join(map(re.escape, lossy)) + ")") if lossy else None
        self._byte_ids = _byte_ids(tokenizer) if writing.byte_fallback else {}

    def __repr__(self) -> str:
        return f"TextEncoder(num_tokens={len(self._tokens)})"

    def __call__(self, data: bytes) -> list[int]:
        """Return the token ids of `data`, which must be UTF-8."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise VocabularyError(
                f"cannot encode: byte {error.start} of {len(data)} is not UTF-8 ({error.reason})"
            ) from error
        if self._lossy is not None and self._lossy.search(text):
            ids = self._encode_lossless(text)
        else:
            ids = self._encode(text)

        tokens = self._tokens
        try:
            exact = b"".join([tokens[i] for i in ids]) == data  # type: ignore[misc]
        except (TypeError, IndexError):
            exact = False
        if not exact:
            raise VocabularyError(
                f"the tokenizer cannot express {_excerpt(text)}: it encodes it as {ids[:16]}, "
                f"which stands for {[tokens[i] for i in ids[:16] if i < len(tokens)]}"
            )
        return ids

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        if self._renumbered:
            return [self._renumbered.get(i, i) for i in ids]
        return ids

    def _encode_lossless(self, text: str) -> list[int]:
        assert self._lossy is not None
        ids: list[int] = []
        for n, part in enumerate(self._lossy.split(text)):
            if n % 2 == 0:
                ids += self._encode(part)
            elif all(byte in self._byte_ids for byte in part.encode()):
                ids += (self._byte_ids[byte] for byte in part.encode())
            else:
                raise VocabularyError(
                    f"the tokenizer cannot express {part!r}, which it writes for something else, "
                    "and has no byte tokens for it"
                )
        return ids


def _text_only_copy(
    tokenizer: "Tokenizer", text_tokens: dict[int, AddedToken], writing: PieceWriting
) -> tuple["Tokenizer", dict[int, int]]:
    """Return a tokenizer that finds only text, and the map from its ids to the original ones."""
    from tokenizers import AddedToken as LibraryToken
    from tokenizers import Tokenizer

    shell: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": _normalizer(component_state(tokenizer.normalizer, "normalizer"), writing),
        "pre_tokenizer": _pre_tokenizer(
            component_state(tokenizer.pre_tokenizer, "pre-tokenizer"), writing
        ),
        "post_processor": None,
        "decoder": None,
        "model": {"type": "BPE", "vocab": {}, "merges": []},
    }
    parts = Tokenizer.from_str(json.dumps(shell))
    # The model is shared, not copied: writing out and reading back its merges takes a second.
    copy = Tokenizer(tokenizer.model)
    if parts.normalizer is not None:
        copy.normalizer = parts.normalizer
    if parts.pre_tokenizer is not None:
        copy.pre_tokenizer = parts.pre_tokenizer

    renumbered: dict[int, int] = {}
    for token_id, token in sorted(text_tokens.items()):
        copy.add_tokens(
            [
                LibraryToken(
                    token.content, normalized=token.normalized, single_word=token.single_word
                )
            ]
        )
        new_id = copy.token_to_id(token.content)
        if new_id is not None and new_id != token_id:
            renumbered[new_id] = token_id
    # The library counts on from the vocabulary's size: with gaps, these ids belong to other tokens.
    taken = [i for i in renumbered if tokenizer.model.id_to_token(i) is not None]
    if taken:
        raise VocabularyError(
            f"the tokenizer's vocabulary has gaps, which added tokens collide with at ids {taken}"
        )
    return copy, renumbered


def _normalizer(state: dict[str, Any] | None, writing: PieceWriting) -> dict[str, Any] | None:
    """Return the normalizer's part that writes text as pieces; reject one that changes text."""
    if state is None:
        return None
    kind = state.get("type")
    if kind == "Sequence":
        steps = [_normalizer(step, writing) for step in state["normalizers"]]
        return {"type": "Sequence", "normalizers": [step for step in steps if step is not None]}
    if kind == "NFC":
        return None
    written = [written for written, _ in writing.replacements]
    if kind == "Prepend" and state.get("prepend") in written:
        return None  # the dummy space
    if kind == "Replace":
        pair = (state["content"], state["pattern"].get("String"))
        if pair in writing.replacements:
            return state
    if kind == "ByteLevel" and writing.byte_level:
        return state
    raise VocabularyError(
        f"the tokenizer's normalizer changes text ({summary(state)}), so that its tokens cannot "
        "express every text; supported are NFC and those that write spaces in another way"
    )


def _pre_tokenizer(state: dict[str, Any] | None, writing: PieceWriting) -> dict[str, Any] | None:
    """Return the pre-tokenizer without its dummy space; reject one that drops text."""
    if state is None:
        return None
    kind = state.get("type")
    if kind == "Sequence":
        steps = [_pre_tokenizer(step, writing) for step in state["pretokenizers"]]
        return {"type": "Sequence", "pretokenizers": [step for step in steps if step is not None]}
    if kind == "ByteLevel":
        return state | {"add_prefix_space": False}
    if kind == "Metaspace":
        state = {key: value for key, value in state.items() if key != "add_prefix_space"}
        return state | {"prepend_scheme": "never"}
    # A Split that removes what does *not* match is how patterns that match everything are written.
    drops = state.get("behavior") == "Removed" and not state.get("invert")
    if kind in ("Split", "Punctuation", "Digits", "UnicodeScripts") and not drops:
        return state
    raise VocabularyError(
        f"the tokenizer's pre-tokenizer drops text or is not known ({summary(state)}): supported "
        "are ByteLevel, Metaspace, Split, Punctuation, Digits and UnicodeScripts"
    )


def _byte_ids(tokenizer: "Tokenizer") -> dict[int, int]:
    """Return the ids of byte tokens such as `<0x0A>`, by byte."""
    ids = {byte: tokenizer.token_to_id(f"<0x{byte:02X}>") for byte in range(256)}
    return {byte: token_id for byte, token_id in ids.items() if token_id is not None}


def _excerpt(text: str, most: int = 60) -> str:
    return repr(text) if len(text) <= most else f"{text[:most]!r}… ({len(text)} characters)"
