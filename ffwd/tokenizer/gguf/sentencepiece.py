"""GGUF vocabularies as SentencePiece's own files, for SentencePiece to follow.

That is Unigram, and BPE with scores by which the order of merges depends on the text.
"""

import struct
from typing import Any

import numpy as np

from ffwd.tokenizer.errors import CorruptTokenizerError
from ffwd.tokenizer.gguf.vocabulary import BYTE, UNKNOWN, UNUSED, GgufVocabulary
from ffwd.tokenizer.sentencepiece.library import SentencePieceLibrary
from ffwd.tokenizer.table import TokenKind

_USER_DEFINED = 4
_UNIGRAM, _BPE = 1, 2


def sentencepiece_library(vocabulary: GgufVocabulary) -> SentencePieceLibrary:
    """Return the tokenizer, followed by SentencePiece.

    Raises `CorruptTokenizerError` for a vocabulary that it does not take.
    """
    control = {
        added.content: i
        for i, added in vocabulary.found.items()
        if vocabulary.kinds[i] is not TokenKind.TEXT and vocabulary.types[i] != UNKNOWN
    }
    return SentencePieceLibrary(_model_file(vocabulary), control=control, name=vocabulary.source)


def _model_file(vocabulary: GgufVocabulary) -> bytes:
    """Return the contents of a model's file, a protocol buffer."""
    scores = vocabulary.scores
    if scores is None:
        raise CorruptTokenizerError(f"{vocabulary.source} has no scores (tokenizer.ggml.scores)")
    unknown = vocabulary.special_tokens.unk
    if unknown is None:
        raise CorruptTokenizerError(
            f"{vocabulary.source} has no unknown token (tokenizer.ggml.unknown_token_id)"
        )
    out = bytearray()
    rows = zip(vocabulary.tokens, scores.tolist(), vocabulary.types, strict=True)
    for token_id, (token, score, type_) in enumerate(rows):
        if token_id == unknown.id:
            kind = UNKNOWN
        elif token_id in vocabulary.found:
            # If it is not allowed, the library makes a control piece of it.
            kind = _USER_DEFINED
        elif vocabulary.kinds[token_id] is not TokenKind.TEXT:
            kind = UNUSED
        else:
            kind = type_
        piece = _text(1, token.encode()) + struct.pack("<Bf", 2 << 3 | 5, score)
        out += _text(1, piece + _number(3, kind))
    algorithm = _UNIGRAM if vocabulary.model == "t5" else _BPE
    byte_fallback = int(BYTE in vocabulary.types)
    out += _text(2, _number(3, algorithm) + _number(35, byte_fallback) + _number(40, unknown.id))
    charsmap = vocabulary.values.get("tokenizer.ggml.precompiled_charsmap")
    normalizer = b"" if charsmap is None else _text(2, _charsmap(charsmap, vocabulary.source))
    normalizer += _number(3, int(vocabulary.flag("add_space_prefix", True)))
    normalizer += _number(4, int(vocabulary.flag("remove_extra_whitespaces", False)))
    return bytes(out + _text(3, normalizer + _number(5, 1)))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _text(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _charsmap(charsmap: Any, source: str) -> bytes:
    """Return SentencePiece's table of replacements, if it is consistent.

    It is the length of a double array, the array, and the texts that its leaves point to, each
    with a zero byte behind it. SentencePiece does not look where the array leads.
    """
    data = np.asarray(charsmap).astype(np.uint8).tobytes() if np.ndim(charsmap) == 1 else b""
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 or size % 4 or not 4 <= size < len(data) - 4:
        raise _refused(source, "its array is longer than all of it")
    units = np.frombuffer(data[4 : 4 + size], dtype="<u4").astype(np.int64)
    texts = data[4 + size :]
    inner = units >> 31 == 0
    offset = (units >> 10) << ((units & 1 << 9) >> 6)
    base = np.arange(len(units)) ^ offset
    if (base[inner] | 0xFF >= len(units)).any():
        raise _refused(source, "its array leads out of itself")
    leaves = units[base[inner & (units >> 8 & 1 == 1)]] & 0x7FFFFFFF
    try:
        texts.decode()
    except UnicodeDecodeError as error:
        raise _refused(source, "its texts are not UTF-8") from error
    if texts[-1] != 0 or (len(leaves) and int(leaves.max()) >= len(texts)):
        raise _refused(source, "a leaf points to no text")
    return data


def _refused(source: str, what: str) -> CorruptTokenizerError:
    return CorruptTokenizerError(f"{source}: tokenizer.ggml.precompiled_charsmap: {what}")
