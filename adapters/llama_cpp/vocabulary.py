"""The vocabulary of a model that llama-cpp-python has loaded."""

import ctypes
import logging
from typing import Any

import llama_cpp

from ffwd import Vocabulary, VocabularyError
from ffwd.tokenizer import Tokenizer, load

_LOGGER = logging.getLogger(__name__)

_NO_TEXT = (
    llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN
    | llama_cpp.LLAMA_TOKEN_ATTR_UNUSED
    | llama_cpp.LLAMA_TOKEN_ATTR_CONTROL
)
_SHOWN = 5


def tokenizer_of(llama: Any, *, pre: str | None = None) -> Tokenizer:
    """Return the tokenizer in the GGUF file of a `Llama`, with the model's end tokens.

    For chat templates and prompts (`ffwd.chat`) as well. Every token is compared with what the
    loaded model has for it.

    Args:
        llama: A `llama_cpp.Llama`.
        pre: The name of the pre-tokenizer, where the file has none or a wrong one; see
            `ffwd.tokenizer.load`.

    Raises:
        VocabularyError: The file is not there any more, ffwd cannot read its tokenizer, or it is
            not the one that was loaded.

    """
    ends = _end_tokens(llama)
    tokenizer = load(llama.model_path, kind="gguf", eos_token_ids=ends or None, pre=pre)
    _compare(llama, tokenizer.vocabulary(vocab_size=llama.n_vocab()))
    return tokenizer


def vocabulary_of(llama: Any, *, pre: str | None = None) -> Vocabulary:
    """Return the vocabulary for the grammars of a `Llama`.

    It is read from the model's file, as `tokenizer_of` does. If ffwd does not know the tokenizer,
    or llama.cpp writes some token differently, the tokens are those of the loaded model, and a
    warning is logged. Masks are then right for llama.cpp's output, but forced text is tokenized by
    backoff (or, for SentencePiece's models, not at all), and `canonical` is unavailable.

    Raises:
        VocabularyError: The model has no end token, or some text cannot be written.

    """
    try:
        return tokenizer_of(llama, pre=pre).vocabulary(vocab_size=llama.n_vocab())
    except VocabularyError as error:
        _LOGGER.warning("the tokens of the loaded model are used: %s", error)
        return _loaded_vocabulary(llama)


def _loaded_vocabulary(llama: Any) -> Vocabulary:
    """Return a vocabulary from the loaded model alone."""
    vocab = llama_cpp.llama_model_get_vocab(llama.model)
    tokens: list[bytes | None] = []
    names: dict[str, int] = {}
    for token in range(llama.n_vocab()):
        attributes = llama_cpp.llama_vocab_get_attr(vocab, token)
        if attributes & _NO_TEXT:
            tokens.append(None)
            if attributes & llama_cpp.LLAMA_TOKEN_ATTR_CONTROL:
                name = llama_cpp.llama_vocab_get_text(vocab, token)
                names.setdefault(name.decode(errors="replace"), token)
        else:
            tokens.append(_piece(vocab, token) or None)
    ends = _end_tokens(llama)
    if not ends:
        raise VocabularyError("the loaded model has no token that ends an output")
    # A token that ends the output is no text, whatever its type.
    for end in ends:
        tokens[end] = None
    bpe = llama_cpp.llama_vocab_type(vocab) == llama_cpp.LLAMA_VOCAB_TYPE_BPE

    def encode(data: bytes) -> list[int]:
        ids: list[int] = llama.tokenize(data, add_bos=False, special=False)
        return ids

    # Others add a space before every text, even in the middle of one.
    return Vocabulary(tokens, eos_token_ids=ends, encode=encode if bpe else None, token_names=names)


def _compare(llama: Any, vocabulary: Vocabulary) -> None:
    """Refuse a vocabulary whose tokens are not those of the loaded model."""
    vocab = llama_cpp.llama_model_get_vocab(llama.model)
    if vocabulary.vocab_size != llama.n_vocab():
        raise VocabularyError(
            f"{llama.model_path} has {vocabulary.vocab_size} tokens, the loaded model"
            f" {llama.n_vocab()}: the file is not the one that was loaded"
        )
    others = []
    for token in range(vocabulary.vocab_size):
        text = vocabulary.token_bytes(token)
        if text is not None and text != _piece(vocab, token):
            others.append(token)
    if others:
        shown = ", ".join(
            f"{token} ({vocabulary.token_bytes(token)!r}, loaded {_piece(vocab, token)!r})"
            for token in others[:_SHOWN]
        )
        raise VocabularyError(
            f"{len(others)} tokens of {llama.model_path} are not those of the loaded model: {shown}"
        )


def _end_tokens(llama: Any) -> list[int]:
    """Return all tokens at which llama.cpp ends a completion."""
    vocab = llama_cpp.llama_model_get_vocab(llama.model)
    return [token for token in range(llama.n_vocab()) if llama_cpp.llama_vocab_is_eog(vocab, token)]


def _piece(vocab: Any, token: int) -> bytes:
    """Return the text of a token; empty for control tokens."""
    size = 64
    while True:
        buffer = ctypes.create_string_buffer(size)
        length = llama_cpp.llama_token_to_piece(vocab, token, buffer, size, 0, False)
        if length >= 0:
            return buffer.raw[:length]
        size = -length
