"""The parts of a `Bpe` from ranks: tiktoken's encodings and files, and Mistral's tekken.json."""

import base64
import binascii
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ffwd._native import BpeModel, VocabularyError
from ffwd.tokenizer.kinds import AddedToken
from ffwd.tokenizer.parts import BpeParts, found_token
from ffwd.tokenizer.table import MAX_WIDTH, shown

if TYPE_CHECKING:
    from tiktoken import Encoding


def rank_parts(
    ranks: Mapping[bytes, int],
    pattern: str,
    special_tokens: Mapping[str, int],
    *,
    first_id: int = 0,
) -> BpeParts:
    """The parts of byte-level BPE in which the text of rank r is token `first_id` + r."""
    if not isinstance(pattern, str):
        raise VocabularyError(f"the pattern must be a string, not {type(pattern).__name__}")
    for text, rank in ranks.items():
        if not isinstance(text, bytes) or not text:
            raise VocabularyError(f"ranks must be of bytes that are not empty: {text!r}")
        _check_id(rank, f"the rank of {text!r}")
    for name, token_id in special_tokens.items():
        if not isinstance(name, str) or not name:
            raise VocabularyError(f"special tokens must be strings that are not empty: {name!r}")
        _check_id(token_id, f"the id of {name!r}")

    by_id = {rank + first_id: text for text, rank in ranks.items()}
    size = 1 + max(max(by_id, default=-1), max(special_tokens.values(), default=-1))
    if not 0 < size <= MAX_WIDTH:
        raise VocabularyError(f"there are ids up to {size - 1}: 0 to {MAX_WIDTH - 1} can be")
    if len(by_id) != len(ranks):
        raise VocabularyError(f"{len(ranks)} texts have {len(by_id)} ranks: each needs its own")
    taken = sorted(by_id.keys() & special_tokens.values())
    if taken:
        raise VocabularyError(f"special tokens have the ids of text: {shown(taken)}")
    return BpeParts(
        model=BpeModel.ranked(ranks, id_offset=first_id),
        stages=[
            {
                "type": "Split",
                "pattern": pattern,
                "dialect": "fancy-regex",
                "behavior": "Isolated",
                "invert": False,
            }
        ],
        added_tokens=[
            found_token(token_id, AddedToken(content=name, special=True), text=False)
            for name, token_id in special_tokens.items()
        ],
        vocab_size=size,
    )


def read_ranks(path: str | os.PathLike[str]) -> dict[bytes, int]:
    """A file of ranks as tiktoken writes it: on each line a text in base64 and its rank."""
    ranks: dict[bytes, int] = {}
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise VocabularyError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            text, rank = line.split()
            ranks[base64.b64decode(text, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise VocabularyError(
                f"{path}, line {number}: not a text in base64 and its rank ({error})"
            ) from error
    if not ranks:
        raise VocabularyError(f"{path} has no ranks")
    return ranks


def tiktoken_parts(encoding: "Encoding") -> BpeParts:
    """The parts of an encoding of tiktoken, which has them in private attributes only."""
    try:
        ranks: Mapping[bytes, int] = encoding._mergeable_ranks
        pattern = encoding._pat_str
        special_tokens: Mapping[str, int] = encoding._special_tokens
    except AttributeError as error:
        raise VocabularyError(
            f"{type(encoding).__name__} is not an encoding of tiktoken ({error})"
        ) from error
    return rank_parts(ranks, pattern, special_tokens)


def tekken_parts(path: str | os.PathLike[str]) -> BpeParts:
    """The parts of a tekken.json: the special tokens have the first ids, the texts follow."""
    try:
        file = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise VocabularyError(f"{path} is not JSON that can be read: {error}") from error
    try:
        config = file["config"]
        pattern, first_id = config["pattern"], config["default_num_special_tokens"]
        size = config["default_vocab_size"]
        _check_id(first_id, "default_num_special_tokens")
        _check_id(size, "default_vocab_size")
        entries = file["vocab"][: max(0, size - first_id)]
        ranks = {
            base64.b64decode(entry["token_bytes"], validate=True): entry["rank"]
            for entry in entries
        }
        named = {
            token["rank"]: token["token_str"]
            for token in file.get("special_tokens") or _named_by_mistral_common(path)
        }
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise VocabularyError(f"{path} is not a tekken.json: {error!r}") from error
    if len(ranks) != len(entries):
        raise VocabularyError(f"{path} has the same text several times")
    special = {named.get(i, f"<SPECIAL_{i}>"): i for i in range(first_id)}
    return rank_parts(ranks, pattern, special, first_id=first_id)


def _named_by_mistral_common(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """The special tokens of a file that does not list them, which only that library knows."""
    try:
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    except ImportError as error:
        raise VocabularyError(
            f"{path} does not list its special tokens: install mistral-common, which knows them"
        ) from error
    return [dict(token) for token in Tekkenizer.DEPRECATED_SPECIAL_TOKENS]


def _check_id(value: Any, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_WIDTH:
        raise VocabularyError(f"{what} must be 0 to {MAX_WIDTH}, not {value!r}")
