"""Tokenizers of GGUF files, llama.cpp's format of models."""

import logging
import os
from pathlib import Path

from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.definition import TokenizerParts
from ffwd.tokenizer.gguf_bpe import merged_parts, scored_parts, token_bytes, writing_of
from ffwd.tokenizer.gguf_header import Source, read_header
from ffwd.tokenizer.gguf_pretokenizers import PreTokenizer, pre_tokenizer
from ffwd.tokenizer.gguf_vocabulary import GgufVocabulary, read_vocabulary

_LOGGER = logging.getLogger(__name__)


def read_gguf(source: Source, *, pre: str | None = None) -> TokenizerParts:
    """The tokenizer in a GGUF file, given by its path, or by the bytes that the file begins with.

    Of the file, only the header is read. `pre`: the name of the pre-tokenizer, instead of the one
    that the file has (tokenizer.ggml.pre).

    Raises `TokenizerNotFoundError`, `UnsupportedTokenizerError` for a file without a tokenizer and
    for models and pre-tokenizers that are not known, and `CorruptTokenizerError` for what cannot
    be in such a file.
    """
    name = "the GGUF data" if isinstance(source, bytes) else os.fspath(Path(source))
    header = read_header(source, _concerns_the_tokenizer)
    vocabulary = read_vocabulary(header, name)
    if vocabulary.model == "llama":
        return _parts(vocabulary, None, Bpe(**scored_parts(vocabulary)))
    cutting = _pre_tokenizer(vocabulary, pre)
    return _parts(vocabulary, cutting, Bpe(**merged_parts(vocabulary, cutting)))


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


def _parts(vocabulary: GgufVocabulary, pre: PreTokenizer | None, bpe: Bpe) -> TokenizerParts:
    special = vocabulary.special_tokens
    scored = vocabulary.model == "llama"
    # Gemma 4 needs it, and its files have said otherwise.
    add_bos = vocabulary.model == "gemma4" or vocabulary.flag(
        "add_bos_token", scored if pre is None else pre.add_bos
    )
    add_eos = vocabulary.flag("add_eos_token", False)
    return TokenizerParts(
        kind="gguf",
        model="bpe",
        tokens=token_bytes(vocabulary, writing_of(vocabulary, pre)),
        names=vocabulary.tokens,
        kinds=vocabulary.kinds,
        special_ids=vocabulary.special_ids,
        bpe=bpe,
        special_tokens=special,
        eos_token_ids=vocabulary.eos_token_ids,
        prefix_ids=[special.bos.id] if add_bos and special.bos is not None else [],
        suffix_ids=[special.eos.id] if add_eos and special.eos is not None else [],
        chat_templates=vocabulary.chat_templates,
        strip_first_space=scored and vocabulary.flag("add_space_prefix", True),
        width=vocabulary.width,
        limits=bpe.limits,
        source=vocabulary.source,
    )
