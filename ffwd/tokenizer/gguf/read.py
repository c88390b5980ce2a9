"""Tokenizers of GGUF files, llama.cpp's format of models."""

import logging
import os
from pathlib import Path

from ffwd._native import VocabularyError
from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.definition import Library, Model, TokenizerParts
from ffwd.tokenizer.errors import UnsupportedTokenizerError
from ffwd.tokenizer.gguf.bpe import merged_parts, scored_parts, token_bytes, writing_of
from ffwd.tokenizer.gguf.header import Source, read_header
from ffwd.tokenizer.gguf.library import tokenizers_library
from ffwd.tokenizer.gguf.pretokenizers import PreTokenizer, pre_tokenizer
from ffwd.tokenizer.gguf.sentencepiece import sentencepiece_library
from ffwd.tokenizer.gguf.vocabulary import BYTE, GgufVocabulary, read_vocabulary

_LOGGER = logging.getLogger(__name__)

_MODELS: dict[str, Model] = {"bert": "wordpiece", "t5": "unigram"}


def read_gguf(source: Source, *, pre: str | None = None) -> TokenizerParts:
    """Return the tokenizer in a GGUF file, given by its path, or by the file's first bytes.

    Only the header is read. `pre`: the name of the pre-tokenizer, instead of the file's
    (tokenizer.ggml.pre).

    Raises `TokenizerNotFoundError`, `UnsupportedTokenizerError` for a file without a tokenizer and
    for unknown models and pre-tokenizers, and `CorruptTokenizerError` for invalid contents.
    """
    name = "the GGUF data" if isinstance(source, bytes) else os.fspath(Path(source))
    vocabulary = read_vocabulary(read_header(source, _concerns_the_tokenizer), name)
    cutting = _pre_tokenizer(vocabulary, pre) if vocabulary.model in ("gpt2", "gemma4") else None
    bpe, library, limits = _encoder(vocabulary, cutting)
    special = vocabulary.special_tokens
    prefix, suffix = _around(vocabulary, cutting)
    spaced = vocabulary.model in ("llama", "t5") and vocabulary.flag("add_space_prefix", True)
    tokens = token_bytes(vocabulary, writing_of(vocabulary, cutting))
    # Only a space at the start of a piece is dropped from a text, never one in a byte token.
    bytes_of_spaces = [
        i for i, type_ in enumerate(vocabulary.types) if type_ == BYTE and tokens[i] == b" "
    ]
    return TokenizerParts(
        kind="gguf",
        model=_MODELS.get(vocabulary.model, "bpe"),
        tokens=tokens,
        names=vocabulary.tokens,
        kinds=vocabulary.kinds,
        special_ids=vocabulary.special_ids,
        bpe=bpe,
        library=library,
        special_tokens=special,
        eos_token_ids=vocabulary.eos_token_ids,
        prefix_ids=prefix,
        suffix_ids=suffix,
        chat_templates=vocabulary.chat_templates,
        strip_first_space=spaced or vocabulary.model == "bert",
        first_tokens=dict.fromkeys(bytes_of_spaces, b" ") if spaced else {},
        width=vocabulary.width,
        limits=limits,
        source=vocabulary.source,
    )


def _concerns_the_tokenizer(key: str) -> bool:
    return (
        key.startswith("tokenizer.")
        or key.endswith(".vocab_size")
        or key in ("general.architecture", "general.name", "split.no")
    )


def _pre_tokenizer(vocabulary: GgufVocabulary, given: str | None) -> PreTokenizer:
    if given is not None:
        return pre_tokenizer(given)
    if vocabulary.model == "gemma4":
        return pre_tokenizer("gemma4")
    if not vocabulary.pre:
        _LOGGER.warning(
            "%s does not say how text is cut into pieces (tokenizer.ggml.pre), so that some ids "
            "may not be those that the model was trained on; pass pre= with the name of its "
            "pre-tokenizer",
            vocabulary.source,
        )
    return pre_tokenizer(vocabulary.pre or "default")


def _encoder(
    vocabulary: GgufVocabulary, pre: PreTokenizer | None
) -> tuple[Bpe | None, Library | None, list[str]]:
    """Return the native encoder if it is exact, otherwise a library, and why."""
    if vocabulary.model == "bert":
        limits = ["upper case, accents and spaces are lost, and words without pieces"]
        return None, tokenizers_library(vocabulary, None), limits
    if vocabulary.model == "t5":
        limits = ["characters without a piece are lost: they are encoded as the unknown token"]
        if "tokenizer.ggml.precompiled_charsmap" in vocabulary.values:
            limits.append("the tokenizer's normalizer changes text")
        if vocabulary.flag("remove_extra_whitespaces", False):
            limits.append("spaces at the ends of a text and next to others are lost")
        return None, sentencepiece_library(vocabulary), limits
    if pre is None:
        try:
            return Bpe(**scored_parts(vocabulary)), None, []
        except UnsupportedTokenizerError as error:
            return None, sentencepiece_library(vocabulary), [str(error)]
    parts = merged_parts(vocabulary, pre)
    try:
        return Bpe(**parts), None, []
    except VocabularyError as error:
        if not pre.byte_level:
            raise
        _LOGGER.warning("texts are encoded by the tokenizers library: %s", error)
        return None, tokenizers_library(vocabulary, pre), [str(error)]


def _around(vocabulary: GgufVocabulary, pre: PreTokenizer | None) -> tuple[list[int], list[int]]:
    """Return the ids that the model expects before and after a text."""
    special = vocabulary.special_tokens
    if vocabulary.model == "bert":
        first, last = special.bos or special.cls, special.sep
        return [first.id] if first else [], [last.id] if last else []
    # Gemma 4 needs it, and its files have said otherwise.
    add_bos = vocabulary.model == "gemma4" or vocabulary.flag(
        "add_bos_token", vocabulary.model == "llama" if pre is None else pre.add_bos
    )
    add_eos = vocabulary.flag("add_eos_token", vocabulary.model == "t5")
    return (
        [special.bos.id] if add_bos and special.bos is not None else [],
        [special.eos.id] if add_eos and special.eos is not None else [],
    )
