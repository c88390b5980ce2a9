"""GGUF vocabularies as objects of the tokenizers library, if no native encoder can follow them.

That is WordPiece, and BPE whose pre-tokenizer has a pattern that is not supported.
"""

import json
from typing import TYPE_CHECKING, Any

from ffwd.tokenizer.errors import CorruptTokenizerError, UnsupportedTokenizerError, as_error
from ffwd.tokenizer.gguf.bpe import model_json
from ffwd.tokenizer.gguf.pretokenizers import PreTokenizer
from ffwd.tokenizer.gguf.vocabulary import NORMAL, GgufVocabulary
from ffwd.tokenizer.library import TokenizersLibrary
from ffwd.tokenizer.table import TokenKind

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_SPACE = "▁"


def tokenizers_library(vocabulary: GgufVocabulary, pre: PreTokenizer | None) -> TokenizersLibrary:
    """Return the tokenizer, followed by the library; `pre`: the pre-tokenizer of a BPE.

    Raises `CorruptTokenizerError` for a vocabulary that the library does not take.
    """
    unknown = vocabulary.special_tokens.unk
    return TokenizersLibrary(
        _tokenizer(vocabulary, pre),
        added=vocabulary.found,
        text_ids=[i for i in vocabulary.found if vocabulary.kinds[i] is TokenKind.TEXT],
        unknown_id=None if unknown is None else unknown.id,
    )


def _tokenizer(vocabulary: GgufVocabulary, pre: PreTokenizer | None) -> "Tokenizer":
    """Return the tokenizer without its added tokens."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise UnsupportedTokenizerError(
            f"{vocabulary.source}: only the tokenizers library can follow this tokenizer: install "
            "tokenizers"
        ) from error
    if vocabulary.model == "bert":
        state = _wordpiece(vocabulary)
    else:
        assert pre is not None
        state = _bpe(vocabulary, pre)
    state |= {"version": "1.0", "truncation": None, "padding": None}
    state |= {"added_tokens": [], "post_processor": None}
    with as_error(lambda what: CorruptTokenizerError(f"{vocabulary.source}: {what}")):
        return Tokenizer.from_str(json.dumps(state, ensure_ascii=False))


def _wordpiece(vocabulary: GgufVocabulary) -> dict[str, Any]:
    """Return BERT's model. The file writes `▁the` and `ing` for `the` and `##ing`."""
    pieces: dict[str, int] = {}
    for token_id, (token, type_) in enumerate(
        zip(vocabulary.tokens, vocabulary.types, strict=True)
    ):
        if token.startswith(_SPACE):
            piece = token[1:]
        elif type_ != NORMAL or (token.startswith("[") and token.endswith("]")):
            piece = token
        else:
            piece = f"##{token}"
        if pieces.setdefault(piece, token_id) != token_id:
            raise CorruptTokenizerError(
                f"{vocabulary.source}: tokens {pieces[piece]} and {token_id} are both {piece!r}"
            )
    unknown = vocabulary.special_tokens.unk
    if unknown is None:
        raise CorruptTokenizerError(
            f"{vocabulary.source} has no unknown token (tokenizer.ggml.unknown_token_id)"
        )
    lowercase = vocabulary.flag("normalizer.lowercase", True)
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": vocabulary.flag("normalizer.strip_accents", lowercase),
            "lowercase": lowercase,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": False},
        "model": {
            "type": "WordPiece",
            "unk_token": unknown.content,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": pieces,
        },
    }


def _bpe(vocabulary: GgufVocabulary, pre: PreTokenizer) -> dict[str, Any]:
    flags = {"add_prefix_space": False, "trim_offsets": False}
    cut: list[Any] = [
        step if step["type"] != "ByteLevel" else {**step, **flags, "use_regex": True}
        for step in pre.stages
    ]
    cut.append({"type": "ByteLevel", **flags, "use_regex": False})
    return {
        "normalizer": {"type": "NFC"} if pre.compose else None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cut},
        "decoder": {"type": "ByteLevel", **flags},
        "model": model_json(vocabulary, pre),
    }
