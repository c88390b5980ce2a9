"""Vocabularies of Hugging Face fast tokenizers."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ffwd._native import Vocabulary, VocabularyError
from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.configuration import token_ids
from ffwd.tokenizer.encoder import TextEncoder
from ffwd.tokenizer.huggingface.bpe import huggingface_parts
from ffwd.tokenizer.source import Source, read_source
from ffwd.tokenizer.table import (
    TokenTable,
    control_names,
    is_utf8,
    make_table,
    refuse_end_that_is_text,
)
from ffwd.tokenizer.tokens import TokenList, read_tokens

_LOGGER = logging.getLogger(__name__)


def from_huggingface(
    source: Any,
    *,
    vocab_size: int | None = None,
    eos_token_ids: Sequence[int] | None = None,
) -> Vocabulary:
    """Return the vocabulary of a Hugging Face fast tokenizer.

    `source`: a fast tokenizer of transformers, a `tokenizers.Tokenizer`, a directory with a
    tokenizer.json in it, or the path of a tokenizer.json. Supported are byte-level BPE (GPT-2,
    Llama 3, Qwen, DeepSeek) and BPE with `▁` for spaces and byte fallback (Llama 2, Mistral).

    `vocab_size`: the width of the model's logits. By default the `vocab_size` of the config.json
    in a directory, otherwise the tokenizer's own; give it if the model's logits are wider.

    `eos_token_ids`: the tokens that end the output. By default, in a directory: those of
    generation_config.json (or, without it, config.json) and the tokenizer's eos token; of a
    transformers tokenizer: its eos token. If nothing names any: the added tokens with a well-known
    name, such as `</s>` or `<|im_end|>`.

    `ffwd.tokenizer.kinds` decides which tokens are text; `token_table` shows the result.

    Raises `VocabularyError`, with the argument that would help.
    """
    read = read_source(source)
    text = read_tokens(read)
    table = _table(read, text, vocab_size=vocab_size, eos_token_ids=eos_token_ids)
    bpe = _bpe(read, text)
    encode = _encoder(read, text) if bpe is None else _within_a_text(bpe)
    for token_id in table.eos_token_ids:
        data = text.tokens[token_id] if token_id < len(text.tokens) else None
        if data is not None and is_utf8(data):
            refuse_end_that_is_text(token_id, data, encode)
    written = {token_id: added.content for token_id, added in text.added_other.items()}
    names = control_names(written, table.kinds)
    if bpe is not None and bpe.exact:
        return vocabulary(table, bpe=bpe, token_names=names)
    return vocabulary(table, encode, token_names=names)


def token_table(
    source: Any,
    *,
    vocab_size: int | None = None,
    eos_token_ids: Sequence[int] | None = None,
) -> TokenTable:
    """Return bytes and kind of every token; parameters are those of `from_huggingface`."""
    read = read_source(source)
    return _table(read, read_tokens(read), vocab_size=vocab_size, eos_token_ids=eos_token_ids)


def text_encoder(source: Any) -> TextEncoder:
    """Return the tokenizer's own encoder of text; `source` is as for `from_huggingface`."""
    read = read_source(source)
    return _encoder(read, read_tokens(read))


def vocabulary(
    table: TokenTable,
    encode: Callable[[bytes], Sequence[int]] | None = None,
    *,
    bpe: Bpe | None = None,
    token_names: Mapping[str, int] | None = None,
) -> Vocabulary:
    """Return the engine's vocabulary for a table.

    `bpe`: the tokenizer, with the same ids; where it is exact, so are forced tokens. `encode`:
    instead of it, bytes -> token ids, as `text_encoder` gives it. Without either there are no
    fast-forward tokens. `token_names`: ids by the names that grammars may call tokens by.
    """
    return Vocabulary(
        table.tokens,
        eos_token_ids=table.eos_token_ids,
        width=table.width,
        encode=encode,
        bpe=bpe,
        token_names=token_names or {},
    )


def _table(
    read: Source, text: TokenList, *, vocab_size: int | None, eos_token_ids: Sequence[int] | None
) -> TokenTable:
    width = vocab_size if vocab_size is not None else read.width
    return make_table(
        text.tokens,
        text.kinds,
        len(text.tokens) if width is None else width,
        _ends(read, eos_token_ids),
    )


def _ends(read: Source, given: Sequence[int] | None) -> list[int]:
    ends: tuple[int, ...]
    if given is not None:
        ends = token_ids(given, "eos_token_ids")
    else:
        ends = read.eos_token_ids or read.end_ids_by_name()
    if not ends:
        raise VocabularyError(
            "nothing says which tokens end the output: pass eos_token_ids, for instance those of "
            "the model's generation_config"
        )
    return sorted(set(ends))


def _encoder(read: Source, text: TokenList) -> TextEncoder:
    return TextEncoder(
        read.tokenizer, tokens=text.tokens, text_tokens=text.added_text, writing=text.writing
    )


def _bpe(read: Source, text: TokenList) -> Bpe | None:
    """Return the native tokenizer, or None if only its own library can follow it."""
    try:
        bpe = Bpe(**huggingface_parts(read, text))
    except VocabularyError as error:
        _LOGGER.warning("forced tokens rest on the tokenizer's library and backoff: %s", error)
        return None
    if not bpe.exact:
        _LOGGER.warning("forced tokens rest on backoff: %s", "; ".join(bpe.limits))
    return bpe


def _within_a_text(bpe: Bpe) -> Callable[[bytes], list[int]]:
    """Return an encoder for text in the middle of an output, such as a `TextEncoder`."""
    return partial(bpe.encode, normalize=False, prefix_space=False)
