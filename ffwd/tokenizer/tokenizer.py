"""`Tokenizer`: texts to ids and back, from whatever format it was loaded."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, groupby
from types import MappingProxyType
from typing import Any

from ffwd import _native
from ffwd._native import Decoder, TextError, TokenError, Vocabulary, VocabularyError
from ffwd.tokenizer.audit import Finding, audit
from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.definition import Kind, Model, Special, TokenizerParts
from ffwd.tokenizer.errors import check_encodable
from ffwd.tokenizer.roles import SpecialTokens
from ffwd.tokenizer.table import (
    MAX_WIDTH,
    TokenKind,
    TokenTable,
    control_names,
    is_utf8,
    make_table,
    other_than_text,
    refuse_end_that_is_text,
    shown,
)


@dataclass(frozen=True)
class Encoding:
    """The tokens of a text and their positions in it."""

    ids: list[int]
    byte_offsets: list[tuple[int, int]]
    """Start and end of each token in the text's UTF-8."""
    character_offsets: list[tuple[int, int]]
    """The same in characters; one that a token has only a part of counts as all of it."""


class Tokenizer:
    """A tokenizer that `ffwd.tokenizer.load` returns; immutable, and threads may share it.

    Text is text: by default no special token is found in it, and none is added around it.
    """

    def __init__(self, parts: TokenizerParts, *, findings: Sequence[Finding] | None = None) -> None:
        """Make a tokenizer from the definition of a reader.

        `findings`: what `audit` has returned for it before; by default it is called when needed.

        Raises `VocabularyError` for parts that contradict each other.
        """
        size = len(parts.tokens)
        if not 0 < size <= MAX_WIDTH or {len(parts.names), len(parts.kinds)} != {size}:
            raise VocabularyError(
                f"{parts.source}: {size} tokens, {len(parts.names)} names and {len(parts.kinds)} "
                f"kinds: there must be one per id, for 1 to {MAX_WIDTH} ids"
            )
        if (parts.bpe is None) == (parts.library is None):
            raise VocabularyError(f"{parts.source}: exactly one of bpe and library must be given")
        given = [*parts.eos_token_ids, *parts.prefix_ids, *parts.suffix_ids, *parts.special_ids]
        outside = [i for i in given if not 0 <= i < size]
        if outside:
            raise VocabularyError(
                f"{parts.source}: special tokens {shown(outside)} are outside the vocabulary of "
                f"{size} ids"
            )
        self._parts = parts
        self._tokens = tuple(parts.tokens)
        self._names = tuple(parts.names)
        self._ends = tuple(sorted(set(parts.eos_token_ids)))
        kinds = list(parts.kinds)
        for token_id in self._ends:
            kinds[token_id] = TokenKind.EOS
        self._kinds = tuple(kinds)
        self._findings = None if findings is None else tuple(findings)

    # ------------------------------------------------------------------------------ what it is

    @property
    def kind(self) -> Kind:
        """The format of its source."""
        return self._parts.kind

    @property
    def model(self) -> Model:
        """The algorithm that encodes."""
        return self._parts.model

    @property
    def source(self) -> str:
        """The source, for people."""
        return self._parts.source

    @property
    def bpe(self) -> Bpe | None:
        """The native tokenizer; None if only a library can follow this one."""
        return self._parts.bpe

    @property
    def exact(self) -> bool:
        """Whether the native tokenizer follows the whole tokenizer, for partial texts too."""
        return self._parts.bpe is not None and self._parts.bpe.exact

    @cached_property
    def limits(self) -> tuple[str, ...]:
        """The differences from the source, and the losses of text, in words."""
        bpe = self._parts.bpe
        return (*self._parts.limits, *(() if bpe is None else bpe.limits))

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The unusual properties of the tokenizer; `load` has logged a warning for each."""
        return self.audit() if self._findings is None else self._findings

    def audit(self, *, full: bool = False) -> tuple[Finding, ...]:
        """Return the unusual properties of the tokenizer, as `findings` does.

        `full`: also encode every character, and, if a library encodes, every token. That takes
        seconds.
        """
        decode = partial(self.decode_bytes, skip_special_tokens=False)
        return audit(self._parts, self._encode, decode, full=full)

    @property
    def special_tokens(self) -> SpecialTokens:
        """The tokens with a role."""
        return self._parts.special_tokens

    @property
    def special_ids(self) -> tuple[int, ...]:
        """The ids that `skip_special_tokens` skips."""
        return tuple(self._parts.special_ids)

    @cached_property
    def chat_templates(self) -> Mapping[str, str]:
        """The model's own chat templates by name; a single one is "default"."""
        return MappingProxyType(dict(self._parts.chat_templates))

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """Every id that ends an output according to the source, ascending; may be empty."""
        return self._ends

    @property
    def add_bos(self) -> bool:
        """Whether the source adds its beginning token before a text."""
        bos = self.special_tokens.bos
        prefix = self._parts.prefix_ids
        return bool(prefix) and (bos is None or bos.id in prefix)

    @property
    def add_eos(self) -> bool:
        """Whether the source adds an end token after a text."""
        return any(i in self._ends for i in self._parts.suffix_ids)

    @property
    def prefix_ids(self) -> tuple[int, ...]:
        """The ids that `add_special_tokens` adds before a text."""
        return tuple(self._parts.prefix_ids)

    @property
    def suffix_ids(self) -> tuple[int, ...]:
        """The ids that `add_special_tokens` adds after a text."""
        return tuple(self._parts.suffix_ids)

    @property
    def vocab_size(self) -> int:
        """The number of ids; a model's logits may be wider."""
        return len(self._tokens)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over the kind and bytes of every id, in hexadecimal."""
        digest = hashlib.sha256()
        for data, kind in zip(self._tokens, self._kinds, strict=True):
            content = b"" if data is None else data
            digest.update(f"{kind.value}:{'' if data is None else len(data)}:".encode())
            digest.update(content)
        return digest.hexdigest()

    def __repr__(self) -> str:
        return (
            f"Tokenizer(kind={self.kind!r}, model={self.model!r}, vocab_size={self.vocab_size}, "
            f"source={self.source!r})"
        )

    # -------------------------------------------------------------------------------- encoding

    def encode(
        self,
        text: str,
        *,
        add_special_tokens: bool = False,
        special: Special = "text",
        prefix_space: bool = True,
    ) -> list[int]:
        """Return the ids of a text.

        `add_special_tokens`: add the tokens that the source adds around a text. `special`: the
        treatment of the name of a special token in the text: "text", "forbidden" (a `TextError`),
        "allowed" (that token), or the names of those that are allowed. `prefix_space`: add the
        space that some tokenizers add before a text; false for a text that continues another.

        Raises `TextError` for a text that cannot be encoded, such as one with a lone surrogate.
        """
        ids = self._encode(text, special=special, prefix_space=prefix_space)
        return (
            [*self._parts.prefix_ids, *ids, *self._parts.suffix_ids] if add_special_tokens else ids
        )

    def encode_batch(
        self,
        texts: Iterable[str],
        *,
        threads: int | None = None,
        add_special_tokens: bool = False,
        special: Special = "text",
    ) -> list[list[int]]:
        """Return the ids of each text, encoded in parallel without the interpreter lock.

        `threads`: the most to use, by default one per processor; a library that encodes has threads
        of its own. The other parameters and errors are those of `encode`.
        """
        listed = list(texts)
        bpe, library = self._parts.bpe, self._parts.library
        if bpe is not None:
            batch = _native.encode_batch(bpe, listed, special=special, threads=threads)
        else:
            assert library is not None
            for index, text in enumerate(listed):
                _check_in_batch(index, text)
            batch = library.encode_batch(listed, special=special)
        if not add_special_tokens:
            return batch
        prefix, suffix = self._parts.prefix_ids, self._parts.suffix_ids
        return [[*prefix, *ids, *suffix] for ids in batch]

    def encode_with_offsets(self, text: str, *, special: Special = "text") -> Encoding:
        """Return the ids of a text and the position of each in it.

        A token's range excludes what the tokenizer adds before a text. Bytes that are composed or
        replaced have the range of all their originals, and a special token includes the white space
        that it consumes. If a library encodes, the positions are the library's.
        """
        bpe, library = self._parts.bpe, self._parts.library
        if bpe is not None:
            return Encoding(*_native.encode_with_offsets(bpe, text, special=special))
        assert library is not None
        check_encodable(text)
        ids, characters = library.encode_with_offsets(text, special=special)
        return Encoding(ids, _in_bytes(text, characters), characters)

    def encode_parts(self, parts: Sequence[str | int]) -> list[int]:
        """Return the ids of a text with control tokens in it, which are given as ids.

        No control token is found in the texts. Adjacent texts are one. Otherwise the result is the
        tokenizer's for the whole. A control token that consumes adjacent white space does so, and
        the tokenizer's spaces are added before texts. (For SentencePiece every text between control
        tokens is a separate text.)

        Raises `TokenError` for an id outside the vocabulary, and `TextError` for a lone surrogate,
        at `byte` of its part.
        """
        parts = list(parts)
        for part in parts:
            if not isinstance(part, str):
                self._bytes_of(part)
        bpe, library = self._parts.bpe, self._parts.library
        if bpe is not None:
            return _native.encode_parts(bpe, parts)
        assert library is not None
        ids: list[int] = []
        for is_text, group in groupby(parts, lambda part: isinstance(part, str)):
            if not is_text:
                ids.extend(part for part in group if isinstance(part, int))
                continue
            text = "".join(part for part in group if isinstance(part, str))
            check_encodable(text)
            first = not ids or self.kind == "sentencepiece"
            ids.extend(library.encode(text, special="text", first=first))
        return ids

    def count(
        self, text: str, *, add_special_tokens: bool = False, special: Special = "text"
    ) -> int:
        """Return the number of ids of a text: the length of what `encode` returns."""
        added = len(self._parts.prefix_ids) + len(self._parts.suffix_ids)
        bpe = self._parts.bpe
        if bpe is None:
            number = len(self._encode(text, special=special))
        else:
            number = bpe.count(text, special=special)
        return number + added if add_special_tokens else number

    def _encode(
        self, text: str, *, special: Special = "text", prefix_space: bool = True
    ) -> list[int]:
        bpe, library = self._parts.bpe, self._parts.library
        if bpe is not None:
            return bpe.encode(text, special=special, prefix_space=prefix_space)
        assert library is not None
        check_encodable(text)
        return library.encode(text, special=special, first=prefix_space)

    # -------------------------------------------------------------------------------- decoding

    @cached_property
    def decoder(self) -> Decoder:
        """The decoder by the table of bytes, which `ffwd.streaming` uses."""
        return Decoder(
            self._tokens,
            special=self._parts.special_ids,
            strip_first_space=self._parts.strip_first_space,
            strip_every_first_space=self._parts.strip_every_first_space,
            first_tokens=self._parts.first_tokens,
        )

    def decode(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> str:
        """Return the text of ids; malformed UTF-8 becomes U+FFFD, as in the Encoding Standard.

        Raises `TokenError` for an id outside the vocabulary.
        """
        return self.decoder.decode(ids, skip_special_tokens=skip_special_tokens)

    def decode_bytes(self, ids: Sequence[int], *, skip_special_tokens: bool = True) -> bytes:
        """Return the bytes of ids, which need not be UTF-8."""
        return self.decoder.decode_bytes(ids, skip_special_tokens=skip_special_tokens)

    def _bytes_of(self, token_id: int) -> bytes:
        data = self.token_bytes(token_id)
        if data is None:
            raise _unknown(token_id, self.vocab_size)
        return data

    def decode_batch(
        self, batch: Iterable[Sequence[int]], *, skip_special_tokens: bool = True
    ) -> list[str]:
        """Return the text of each sequence of ids."""
        return [self.decode(ids, skip_special_tokens=skip_special_tokens) for ids in batch]

    # ---------------------------------------------------------------------------- single tokens

    @cached_property
    def _ids(self) -> dict[str, int]:
        ids: dict[str, int] = {}
        for token_id, name in enumerate(self._names):
            if name is not None:
                ids.setdefault(name, token_id)
        return ids

    def token_to_id(self, content: str) -> int | None:
        """Return the id of the token with this text in the source (`Ġthe`, `<|eot_id|>`), or None.

        The first of several.
        """
        return self._ids.get(content)

    def id_to_token(self, token_id: int) -> str | None:
        """Return the text of a token in the source; None for an id without a token."""
        return self._names[token_id] if 0 <= token_id < len(self._names) else None

    def token_bytes(self, token_id: int) -> bytes | None:
        """Return the decoding of a token in the middle of a text; None for an unused id."""
        return self._tokens[token_id] if 0 <= token_id < len(self._tokens) else None

    def token_kind(self, token_id: int) -> TokenKind:
        """Return the kind of a token; `PADDING` past the last."""
        if token_id < 0:
            raise _unknown(token_id, self.vocab_size)
        return self._kinds[token_id] if token_id < len(self._kinds) else TokenKind.PADDING

    # ------------------------------------------------------------------------------ the engine

    def table(
        self, *, vocab_size: int | None = None, eos_token_ids: Sequence[int] | None = None
    ) -> TokenTable:
        """Return bytes and kind of every token; parameters and errors are those of `vocabulary`."""
        width: Any = vocab_size if vocab_size is not None else self._parts.width
        if width is None:
            width = self.vocab_size
        return make_table(self._tokens, self._parts.kinds, width, self._end_ids(eos_token_ids))

    def vocabulary(
        self, *, vocab_size: int | None = None, eos_token_ids: Sequence[int] | None = None
    ) -> Vocabulary:
        """Return the vocabulary for `ffwd.compile`.

        `vocab_size`: the number of the model's logits; by default the source's, otherwise the
        tokenizer's own. `eos_token_ids`: the tokens that end an output, by default
        `self.eos_token_ids`.

        Raises `VocabularyError` without any end token, and for an end token that is the encoding of
        some text.
        """
        table = self.table(vocab_size=vocab_size, eos_token_ids=eos_token_ids)
        encode = self._within_a_text()
        for token_id in table.eos_token_ids:
            data = self.token_bytes(token_id)
            if data and self._parts.kinds[token_id] is TokenKind.TEXT and is_utf8(data):
                refuse_end_that_is_text(token_id, data, encode)
        bpe = self._parts.bpe
        exact = bpe is not None and bpe.exact
        names = {i: self._names[i] for i in other_than_text(table.kinds) if i < len(self._names)}
        return Vocabulary(
            table.tokens,
            eos_token_ids=table.eos_token_ids,
            width=table.width,
            encode=None if exact else encode,
            bpe=bpe if exact else None,
            token_names=control_names(names, table.kinds),
        )

    def _end_ids(self, given: Sequence[int] | None) -> tuple[int, ...]:
        ends = self._ends if given is None else tuple(sorted(set(given)))
        if not ends:
            raise VocabularyError(
                "nothing says which tokens end the output: pass eos_token_ids, for instance those "
                "of the model's generation_config"
            )
        return ends

    def _within_a_text(self) -> Callable[[bytes], Sequence[int]]:
        """Return the encoding of a text in the middle of an output."""
        bpe, library = self._parts.bpe, self._parts.library
        if bpe is not None:
            return partial(bpe.encode, normalize=False, prefix_space=False)
        assert library is not None
        return partial(library.encode_exactly, tokens=self._tokens)


def _in_bytes(text: str, characters: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Convert positions in characters to positions in the text's UTF-8."""
    if text.isascii():
        return list(characters)
    starts = [0, *accumulate(len(character.encode()) for character in text)]
    return [(starts[start], starts[end]) for start, end in characters]


def _check_in_batch(index: int, text: str) -> None:
    try:
        check_encodable(text)
    except TextError as error:
        told = TextError(f"text {index} of the batch: {error}")
        told.byte = error.byte
        raise told from error


def _unknown(token_id: int, size: int) -> TokenError:
    error = TokenError(f"token id {token_id} is not one of the vocabulary's {size} ids")
    error.token = token_id
    return error
