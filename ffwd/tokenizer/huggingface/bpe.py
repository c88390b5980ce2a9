"""The parts of a `Bpe` from a Hugging Face tokenizer."""

from collections.abc import Iterator

from ffwd._native import VocabularyError
from ffwd.tokenizer.parts import BpeParts, found_token
from ffwd.tokenizer.source import Source, component_state
from ffwd.tokenizer.stages import read_stages
from ffwd.tokenizer.table import NEVER_IN_UTF8, TokenKind
from ffwd.tokenizer.tokens import TokenList


def huggingface_parts(read: Source, tokens: TokenList) -> BpeParts:
    """Return the parts of a tokenizer and its tokens.

    Raises `VocabularyError` for a normalizer or pre-tokenizer that is not supported.
    """
    components, writing = read.parts, tokens.writing
    parts = read_stages(
        component_state(components.normalizer, "normalizer"),
        component_state(components.pre_tokenizer, "pre-tokenizer"),
        writing,
    )
    found = [found_token(i, added, text=True) for i, added in tokens.added_text.items()]
    found += [found_token(i, added, text=False) for i, added in tokens.added_other.items()]
    parts["model"] = read.compile_model(
        writing,
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
    """Return the special and control tokens, which no merge of text may produce."""
    text = TokenKind.TEXT
    return (i for i, kind in enumerate(tokens.kinds) if kind is not text)


def _never_written(tokens: TokenList) -> Iterator[int]:
    """Return the model's pieces that no text produces, such as ` the` beside `▁the`."""
    if tokens.writing.byte_level:
        return  # The native model leaves out pieces that are not in the alphabet of bytes.
    for written, meant in tokens.writing.replacements:
        if len(written) != 1 or len(meant) != 1:
            raise VocabularyError(
                f"the tokenizer writes {meant!r} as {written!r}: supported is one character for one"
            )
        yield from tokens.pieces.containing(meant)
