"""Encoding by a tokenizer's own library, for tokenizers without a native implementation.

These are Unigram and WordPiece, and BPE with an unsupported normalizer or pre-tokenizer. The
library finds special tokens in a text, or the pieces of its vocabulary with their names; plain text
must produce none of them.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ffwd._native import TextError, VocabularyError
from ffwd.tokenizer.definition import Special
from ffwd.tokenizer.errors import CorruptTokenizerError, as_error
from ffwd.tokenizer.kinds import AddedToken

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_FREE = "\U0010fffe "
"""What pieces that no text may be encoded as are called in a copy. It has a space, which each of
the pre-tokenizers takes out or writes in another way."""


@dataclass(frozen=True, kw_only=True)
class _Copy:
    """A tokenizer that finds some of the added tokens, and the ids that it renumbers."""

    tokenizer: "Tokenizer"
    renumbered: Mapping[int, int]


class TokenizersLibrary:
    """Encodes by the tokenizers library. Works on copies; safe to call from several threads."""

    def __init__(
        self,
        tokenizer: "Tokenizer",
        *,
        added: Mapping[int, AddedToken],
        text_ids: Iterable[int],
        unknown_id: int | None,
    ) -> None:
        """Take a tokenizer and its added tokens.

        `text_ids`: the ids of added tokens that are text, and so are found in every text;
        `unknown_id`: the model's id for text without a token.
        """
        self._tokenizer = tokenizer
        self._added = dict(added)
        self._text_ids = frozenset(text_ids)
        self._hidden = frozenset(self._added) - self._text_ids
        self._unknown_id = unknown_id
        self._special = sorted(self._added[i].content for i in self._hidden)

    def encode(self, text: str, *, special: Special, first: bool) -> list[int]:
        """Return the ids of a text; `first` is false for one in the middle of a longer text."""
        copy, guarded = self._copy(text, special, first=first)
        return self._ids(copy, _encoded(copy, text), guarded, text)

    def encode_batch(self, texts: Sequence[str], *, special: Special) -> list[list[int]]:
        """Return the ids of each text, encoded on the library's own threads."""
        if not isinstance(special, str) or special == "forbidden":
            return [self.encode(text, special=special, first=True) for text in texts]
        copy, guarded = self._copy("", special, first=True)
        with as_error(TextError):
            encodings = copy.tokenizer.encode_batch(list(texts), add_special_tokens=False)
        return [
            self._ids(copy, encoding, guarded, text)
            for encoding, text in zip(encodings, texts, strict=True)
        ]

    def encode_with_offsets(
        self, text: str, *, special: Special
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the ids and the range of each in the text, in characters."""
        copy, guarded = self._copy(text, special, first=True)
        encoding = _encoded(copy, text)
        return self._ids(copy, encoding, guarded, text), list(encoding.offsets)

    def encode_exactly(self, data: bytes, *, tokens: Sequence[bytes | None]) -> list[int]:
        """Return ids with exactly these bytes, for a stretch in the middle of a text.

        Raises `VocabularyError` for what the tokenizer cannot express.
        """
        return encode_exactly(data, lambda text: self._encode_bare(text), tokens)

    def _encode_bare(self, text: str) -> list[int]:
        return self._ids(self._bare, _encoded(self._bare, text), True, text)

    # ---------------------------------------------------------------------------------- copies

    def _copy(self, text: str, special: Special, *, first: bool) -> tuple[_Copy, bool]:
        """Return the copy for this treatment of special tokens, and whether it finds none."""
        if special == "allowed":
            return self._all, False
        if special == "forbidden":
            found = self._names.search(text) if self._special else None
            if found is not None:
                error = TextError(
                    f"the special token {found[0]!r} stands at character {found.start()} of the "
                    "text, and special tokens are forbidden: allow it by name, or have it encoded "
                    "as text"
                )
                error.byte = len(text[: found.start()].encode())
                raise error
        elif not isinstance(special, str):
            return self._only(frozenset(special)), False
        elif special != "text":
            raise ValueError(
                f'special must be "text", "forbidden", "allowed" or a set of names, not {special!r}'
            )
        return (self._text if first else self._middle), True

    @cached_property
    def _names(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self._special)))

    @cached_property
    def _all(self) -> _Copy:
        return self._made(self._tokenizer.model, self._added, dummy_space="as it is")

    @cached_property
    def _text(self) -> _Copy:
        return self._made(self._text_model, self._text_added, dummy_space="as it is")

    @cached_property
    def _middle(self) -> _Copy:
        return self._made(self._text_model, self._text_added, dummy_space="not first")

    @cached_property
    def _bare(self) -> _Copy:
        return self._made(self._text_model, self._text_added, dummy_space="never")

    def _only(self, names: frozenset[str]) -> _Copy:
        unknown = sorted(names - {token.content for token in self._added.values()})
        if unknown:
            raise TextError(f"the tokenizer has no special token {unknown[0]!r}")
        wanted = {
            i: token
            for i, token in self._added.items()
            if i in self._text_ids or token.content in names
        }
        # The model contains the others as well, so its encoding of their names must not count.
        return self._made(self._model_without(self._hidden - wanted.keys()), wanted, "as it is")

    @cached_property
    def _text_added(self) -> dict[int, AddedToken]:
        return {i: self._added[i] for i in sorted(self._text_ids)}

    @cached_property
    def _text_model(self) -> Any:
        return self._model_without(self._hidden)

    def _model_without(self, ids: Iterable[int]) -> Any:
        """Return the model with names for these pieces that no text has."""
        from tokenizers import models

        model = self._tokenizer.model
        kind = type(model).__name__
        state = json.loads(model.__getstate__())
        ids = set(ids)
        if kind == "Unigram":
            ids.discard(state["unk_id"])
            scored = [
                (f"{_FREE}{i}" if i in ids else piece, score)
                for i, (piece, score) in enumerate(state["vocab"])
            ]
            return models.Unigram(scored, state["unk_id"], state.get("byte_fallback", False))
        if kind in ("WordPiece", "WordLevel"):
            unknown = state["unk_token"]
            named = {
                (f"{_FREE}{i}" if i in ids and piece != unknown else piece): i
                for piece, i in state["vocab"].items()
            }
            if kind == "WordLevel":
                return models.WordLevel(named, unk_token=unknown)
            return models.WordPiece(
                named,
                unk_token=unknown,
                max_input_chars_per_word=state["max_input_chars_per_word"],
                continuing_subword_prefix=state["continuing_subword_prefix"],
            )
        # Merges name their parts, so pieces cannot be renamed; the result is checked instead.
        return model

    def _made(self, model: Any, added: Mapping[int, AddedToken], dummy_space: str) -> _Copy:
        from tokenizers import AddedToken as LibraryToken
        from tokenizers import Tokenizer

        own = self._tokenizer
        copy = Tokenizer(model)
        if own.normalizer is not None:
            copy.normalizer = own.normalizer
        if own.pre_tokenizer is not None:
            copy.pre_tokenizer = _pre_tokenizer(own, dummy_space)
        renumbered: dict[int, int] = {}
        for token_id, token in sorted(added.items()):
            copy.add_tokens(
                [
                    LibraryToken(
                        token.content,
                        single_word=token.single_word,
                        lstrip=token.lstrip,
                        rstrip=token.rstrip,
                        normalized=token.normalized,
                    )
                ]
            )
            new_id = copy.token_to_id(token.content)
            if new_id is not None and new_id != token_id:
                renumbered[new_id] = token_id
        taken = [i for i in renumbered if own.model.id_to_token(i) is not None]
        if taken:
            raise CorruptTokenizerError(
                f"the tokenizer's vocabulary has gaps, which added tokens collide with at {taken}"
            )
        return _Copy(tokenizer=copy, renumbered=renumbered)

    def _ids(self, copy: _Copy, encoding: Any, guarded: bool, text: str) -> list[int]:
        ids: list[int] = encoding.ids
        if copy.renumbered:
            ids = [copy.renumbered.get(i, i) for i in ids]
        if guarded:
            wrong = [i for i in ids if i in self._hidden and i != self._unknown_id]
            if wrong:
                raise TextError(
                    f"the tokenizer can encode {excerpt(text)} only with the control token "
                    f"{self._added[wrong[0]].content!r} (id {wrong[0]}) in it"
                )
        return ids


def _encoded(copy: _Copy, text: str) -> Any:
    with as_error(TextError):
        return copy.tokenizer.encode(text, add_special_tokens=False)


def encode_exactly(data: bytes, encode: Any, tokens: Sequence[bytes | None]) -> list[int]:
    """Return the result of `encode` if it has exactly these bytes.

    Raises `VocabularyError` for bytes that are not UTF-8 and for what cannot be expressed.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise VocabularyError(
            f"cannot encode: byte {error.start} of {len(data)} is not UTF-8 ({error.reason})"
        ) from error
    ids: list[int] = encode(text)
    if b"".join(tokens[i] or b"" for i in ids) != data:
        raise VocabularyError(
            f"the tokenizer cannot express {excerpt(text)}: it encodes it as {ids[:16]}, "
            f"which stands for {[tokens[i] for i in ids[:16]]}"
        )
    return ids


def excerpt(text: str, most: int = 60) -> str:
    """Return a short form of a text, for a message."""
    return repr(text) if len(text) <= most else f"{text[:most]!r}… ({len(text)} characters)"


def _pre_tokenizer(tokenizer: "Tokenizer", dummy_space: str) -> Any:
    """Return the pre-tokenizer with another dummy space.

    "not first": as for a text after others; "never": none.
    """
    from tokenizers import Tokenizer, models

    if dummy_space == "as it is":
        return tokenizer.pre_tokenizer
    own: Any = tokenizer.pre_tokenizer
    state = json.loads(own.__getstate__())
    for step in [state, *state.get("pretokenizers", [])]:
        if step.get("type") == "Metaspace":
            step.pop("add_prefix_space", None)
            if dummy_space == "never" or step.get("prepend_scheme", "always") == "first":
                step["prepend_scheme"] = "never"
        elif step.get("type") == "ByteLevel" and dummy_space == "never":
            step["add_prefix_space"] = False
    shell = json.loads(Tokenizer(models.BPE()).to_str())
    shell["pre_tokenizer"] = state
    return Tokenizer.from_str(json.dumps(shell)).pre_tokenizer
