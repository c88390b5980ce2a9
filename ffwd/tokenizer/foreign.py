"""Tokenizer objects of other libraries, recognized by their attributes.

No library is imported to examine an object: its own is loaded already.
"""

from pathlib import Path
from typing import Any

from ffwd.tokenizer.errors import UnsupportedTokenizerError


def inner_tokenizer(source: Any) -> Any:
    """Return the tokenizer within an object that wraps one, and other objects unchanged.

    Wrappers are processors or slow tokenizers of transformers and tokenizers of mistral-common. The
    result is a path, a processor of SentencePiece or another object that `load` knows.

    Raises `UnsupportedTokenizerError` for a slow tokenizer that changes what it wraps.
    """
    # A processor of transformers, for images and text.
    inner = getattr(source, "tokenizer", None)
    if inner is not None and not _is_tokenizer(source):
        source = inner
    # MistralCommonBackend and MistralTokenizer, of transformers and mistral-common.
    for name in ("tokenizer", "instruct_tokenizer", "tokenizer"):
        if hasattr(source, "instruct_tokenizer") or name == "tokenizer":
            inner = getattr(source, name, None)
            if inner is not None and _is_of(source, "mistral"):
                source = inner
    if _is_of(source, "mistral_common") and hasattr(source, "file_path"):
        return Path(source.file_path)
    processor = getattr(source, "sp_model", None)
    if processor is not None and not hasattr(source, "backend_tokenizer"):
        _check_slow(source, processor)
        return processor
    return source


def _is_tokenizer(source: Any) -> bool:
    return any(
        hasattr(source, name)
        for name in ("backend_tokenizer", "sp_model", "get_vocab", "serialized_model_proto")
    )


def _is_of(source: Any, package: str) -> bool:
    return package in type(source).__module__


def _check_slow(source: Any, processor: Any) -> None:
    size = processor.get_piece_size()
    added = getattr(source, "added_tokens_decoder", {})
    further = [i for i in added if i >= size or processor.id_to_piece(i) != str(added[i])]
    if further or not getattr(source, "legacy", True):
        raise UnsupportedTokenizerError(
            f"{type(source).__name__} changes the SentencePiece model that it wraps (added tokens "
            f"{further[:8]}): save it with save_pretrained as a fast tokenizer, or pass the path "
            "of its .model"
        )
