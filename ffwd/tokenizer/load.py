"""`load`: a tokenizer from wherever it is, in whatever format it is."""

import json
import os
from pathlib import Path
from typing import Any

from ffwd.tokenizer.definition import Kind, TokenizerParts
from ffwd.tokenizer.errors import FORMATS, UnsupportedTokenizerError
from ffwd.tokenizer.huggingface_tokenizer import NAMES, huggingface_tokenizer
from ffwd.tokenizer.rank_tokenizer import TEKKEN_ROLES, rank_tokenizer
from ffwd.tokenizer.ranks import Ranks, parse_ranks, parse_tekken, read_file, tiktoken_ranks
from ffwd.tokenizer.sentencepiece_model import parse_sentencepiece, read_sentencepiece
from ffwd.tokenizer.sentencepiece_tokenizer import sentencepiece_tokenizer
from ffwd.tokenizer.source import parse_source, read_source
from ffwd.tokenizer.tokenizer import Tokenizer


def load(source: Any, *, kind: Kind | None = None, pattern=None, special_tokens=None) -> Tokenizer:
    return Tokenizer(_parts(source, pattern, special_tokens))


def _parts(source, pattern, special_tokens) -> TokenizerParts:
    if isinstance(source, (str, os.PathLike)):
        path = Path(source)
        if path.is_dir():
            for name in ("tokenizer.json",):
                if (path / name).is_file():
                    return huggingface_tokenizer(read_source(path, models=NAMES))
            for name in ("tekken.json", "tokenizer.model"):
                if (path / name).is_file():
                    return _parts(path / name, pattern, special_tokens)
            raise UnsupportedTokenizerError(f"{path}: no tokenizer; formats: {FORMATS}")
        data = read_file(path)
        if data.startswith(b"GGUF"):
            from ffwd.tokenizer.gguf import read_gguf

            return read_gguf(path)
        if data.lstrip().startswith(b"{"):
            value = json.loads(data)
            if "config" in value:
                return rank_tokenizer(
                    parse_tekken(value, str(path)),
                    kind="tekken",
                    source=str(path),
                    roles=TEKKEN_ROLES,
                )
            return huggingface_tokenizer(parse_source(data, str(path), models=NAMES))
        try:
            model = parse_sentencepiece(data, str(path))
        except ValueError:
            return rank_tokenizer(
                Ranks(
                    ranks=parse_ranks(data, str(path)),
                    pattern=pattern,
                    special_tokens=special_tokens or {},
                ),
                kind="tiktoken",
                source=str(path),
            )
        return sentencepiece_tokenizer(model, source=str(path))
    if hasattr(source, "_mergeable_ranks"):
        return rank_tokenizer(tiktoken_ranks(source), kind="tiktoken", source=source.name)
    if isinstance(source, bytes) or hasattr(source, "serialized_model_proto"):
        return sentencepiece_tokenizer(read_sentencepiece(source), source=type(source).__name__)
    return huggingface_tokenizer(read_source(source, models=NAMES))
