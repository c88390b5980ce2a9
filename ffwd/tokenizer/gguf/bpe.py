"""The parts of a `Bpe` from a GGUF file's vocabulary."""

import json
from collections.abc import Iterator, Sequence

from ffwd._native import BpeModel, VocabularyError
from ffwd.tokenizer.errors import CorruptTokenizerError
from ffwd.tokenizer.gguf.pretokenizers import PreTokenizer
from ffwd.tokenizer.gguf.vocabulary import BYTE, CONTROL, NORMAL, USER_DEFINED, GgufVocabulary
from ffwd.tokenizer.parts import BpeParts, FoundToken, found_token
from ffwd.tokenizer.pieces import PieceWriting
from ffwd.tokenizer.sentencepiece.model import piece_parts
from ffwd.tokenizer.table import TokenKind

_SPACE = "▁"


def writing_of(vocabulary: GgufVocabulary, pre: PreTokenizer | None) -> PieceWriting:
    """Return how the tokens that are neither control nor user-defined write bytes."""
    if pre is not None and pre.byte_level:
        return PieceWriting(byte_level=True)
    return PieceWriting(
        byte_level=False, replacements=((_SPACE, " "),), byte_fallback=BYTE in vocabulary.types
    )


def token_bytes(vocabulary: GgufVocabulary, writing: PieceWriting) -> list[bytes | None]:
    """Return the decoding of each id."""
    data: list[bytes | None] = list(writing.to_bytes(vocabulary.tokens))
    spaces = not writing.byte_level
    for token_id, type_ in enumerate(vocabulary.types):
        if type_ not in (NORMAL, BYTE) or token_id in vocabulary.found:
            token = vocabulary.tokens[token_id]
            if type_ == USER_DEFINED and spaces:
                token = token.replace(_SPACE, " ")
            data[token_id] = token.encode()
    return data


def merged_parts(vocabulary: GgufVocabulary, pre: PreTokenizer) -> BpeParts:
    """Return BPE by a list of merges.

    Raises `CorruptTokenizerError` for merges of what is no token.
    """
    writing = writing_of(vocabulary, pre)
    state = json.dumps(model_json(vocabulary, pre), ensure_ascii=False)
    exclude = [*_not_pieces(vocabulary), *_never_written(vocabulary, writing)]
    try:
        model = BpeModel.from_json(
            state,
            byte_level=writing.byte_level,
            replacements=writing.replacements,
            exclude=exclude,
            missing_from=len(vocabulary.tokens),
        )
    except VocabularyError as error:
        raise CorruptTokenizerError(f"{vocabulary.source}: {error}") from error
    return BpeParts(
        model=model,
        stages=pre.stages,
        added_tokens=_found(vocabulary),
        compose=pre.compose,
        replaced=writing.replacements,
        vocab_size=len(vocabulary.tokens),
    )


def model_json(vocabulary: GgufVocabulary, pre: PreTokenizer) -> dict[str, object]:
    """Return the model as a tokenizer.json writes it."""
    if vocabulary.merges is None:
        raise CorruptTokenizerError(f"{vocabulary.source} has no merges (tokenizer.ggml.merges)")
    return {
        "type": "BPE",
        "vocab": dict(zip(vocabulary.tokens, range(len(vocabulary.tokens)), strict=True)),
        "merges": _merges(vocabulary.merges),
        "byte_fallback": not pre.byte_level,
        "ignore_merges": pre.whole_pieces,
    }


def _merges(lines: Sequence[str]) -> Sequence[str | Sequence[str]]:
    """Return the merges as lines, or as pairs if a first part starts with the separating space."""
    if not any(line.startswith(" ") for line in lines):
        return lines
    cuts = ((line, line.find(" ", 1)) for line in lines)
    return [(line[:at], line[at + 1 :]) if at > 0 else (line,) for line, at in cuts]


def scored_parts(vocabulary: GgufVocabulary) -> BpeParts:
    """Return BPE by scores, as SentencePiece has it.

    Raises `UnsupportedTokenizerError` where scores leave open which merge comes first, and
    `CorruptTokenizerError` where a byte token or the scores are missing.
    """
    if vocabulary.scores is None:
        raise CorruptTokenizerError(f"{vocabulary.source} has no scores (tokenizer.ggml.scores)")
    rows = zip(
        vocabulary.tokens,
        vocabulary.scores.tolist(),
        vocabulary.types,
        vocabulary.kinds,
        strict=True,
    )
    pieces = [
        (token, score, type_)
        if type_ in (NORMAL, BYTE) and kind is TokenKind.TEXT
        else ("", score, CONTROL)
        for token, score, type_, kind in rows
    ]
    parts = piece_parts(
        pieces, escapes=True, dummy_prefix=vocabulary.flag("add_space_prefix", True)
    )
    parts["added_tokens"] = _found(vocabulary)
    return parts


def _found(vocabulary: GgufVocabulary) -> list[FoundToken]:
    return [
        found_token(i, added, text=vocabulary.kinds[i] is TokenKind.TEXT)
        for i, added in vocabulary.found.items()
    ]


def _not_pieces(vocabulary: GgufVocabulary) -> Iterator[int]:
    """Return the tokens that no merge produces: control tokens, and those found before merges."""
    kinds, found = vocabulary.kinds, vocabulary.found
    text = TokenKind.TEXT
    return (i for i, kind in enumerate(kinds) if kind is not text or i in found)


def _never_written(vocabulary: GgufVocabulary, writing: PieceWriting) -> Iterator[int]:
    """Return tokens with a space that texts write as `▁`."""
    if not writing.byte_level:
        yield from (i for i, token in enumerate(vocabulary.tokens) if " " in token)
