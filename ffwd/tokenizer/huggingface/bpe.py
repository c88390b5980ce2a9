"""The parts of a `Bpe` from a Hugging Face tokenizer."""

import re
from collections.abc import Iterator

from ffwd._native import BpeModel, VocabularyError
from ffwd.tokenizer.parts import BpeParts, found_token
from ffwd.tokenizer.source import Source, component_state
from ffwd.tokenizer.stages import read_stages
from ffwd.tokenizer.table import NEVER_IN_UTF8, TokenKind
from ffwd.tokenizer.tokens import TokenList

_CONTROL_CHARACTER = re.compile(r"[\x00-\x20\x7f]")


def huggingface_parts(read: Source, tokens: TokenList) -> BpeParts:
    """Return the parts of a tokenizer and its tokens.

    Raises `VocabularyError` for a normalizer or pre-tokenizer that is not supported.
    """
    tokenizer, writing = read.tokenizer, tokens.writing
    parts = read_stages(
        component_state(tokenizer.normalizer, "normalizer"),
        component_state(tokenizer.pre_tokenizer, "pre-tokenizer"),
        writing,
    )
    found = [found_token(i, added, text=True) for i, added in tokens.added_text.items()]
    found += [found_token(i, added, text=False) for i, added in tokens.added_other.items()]
    parts["model"] = BpeModel.from_json(
        # It has the texts of the parts of hundreds of thousands of merges.
        read.model_json(),
        byte_level=writing.byte_level,
        replacements=writing.replacements,
        exclude=[*_not_text(tokens), *_never_written(tokens)],
        missing_from=len(tokens.tokens) if _spells_all_text(tokens) else None,
    )
    parts["added_tokens"] = found
    parts["vocab_size"] = len(tokens.tokens)
    return parts


def _spells_all_text(tokens: TokenList) -> bool:
    """Return whether the only bytes without a token are those that no text has.

    Many vocabularies lack them; for others, a library has an unknown token, or drops the byte.
    """
    single = {data for data in tokens.tokens if data is not None and len(data) == 1}
    missing = {byte for byte in range(256) if bytes((byte,)) not in single}
    return tokens.writing.byte_level and missing <= NEVER_IN_UTF8


def _not_text(tokens: TokenList) -> Iterator[int]:
    """Return the model's special and control pieces, which no merge of text may produce."""
    text = TokenKind.TEXT
    return (i for i in tokens.pieces.values() if tokens.kinds[i] is not text)


def _never_written(tokens: TokenList) -> Iterator[int]:
    """Return the model's pieces that no text produces, such as ` the` beside `▁the`."""
    if tokens.writing.byte_level:
        # The notation has one character per byte, so a piece of another length is not in it.
        for piece, token_id in tokens.pieces.items():
            data = tokens.tokens[token_id]
            if data is not None and (len(data) != len(piece) or _CONTROL_CHARACTER.search(piece)):
                yield token_id
        return
    for written, meant in tokens.writing.replacements:
        if len(written) != 1 or len(meant) != 1:
            raise VocabularyError(
                f"the tokenizer writes {meant!r} as {written!r}: supported is one character for one"
            )
        yield from (token_id for piece, token_id in tokens.pieces.items() if meant in piece)
