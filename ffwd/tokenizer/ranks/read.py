"""The parts of a `Bpe` from ranks: tiktoken's encodings and files, and Mistral's tekken.json."""

import base64
import binascii
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ffwd._native import BpeModel, VocabularyError
from ffwd._native import read_ranks as native_ranks
from ffwd.tokenizer.errors import (
    CorruptTokenizerError,
    TokenizerNotFoundError,
    UnsupportedTokenizerError,
)
from ffwd.tokenizer.kinds import AddedToken
from ffwd.tokenizer.parts import BpeParts, found_token
from ffwd.tokenizer.table import MAX_WIDTH, shown

if TYPE_CHECKING:
    from tiktoken import Encoding


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Byte-level BPE in which the text of rank r is token `first_id` + r."""

    ranks: Mapping[bytes, int]
    pattern: str
    """The regular expression that cuts a text into pieces."""
    special_tokens: Mapping[str, int]
    first_id: int = 0
    compose: bool = False
    """Whether texts are normalized to NFC first."""


def rank_parts(given: Ranks) -> BpeParts:
    """Return the parts of a `Bpe` from ranks.

    Raises `VocabularyError` for ids that contradict each other.
    """
    ranks, pattern, first_id = given.ranks, given.pattern, given.first_id
    special_tokens = given.special_tokens
    if not isinstance(pattern, str):
        raise VocabularyError(f"the pattern must be a string, not {type(pattern).__name__}")
    _check_ranks(ranks)
    for name, token_id in special_tokens.items():
        if not isinstance(name, str) or not name:
            raise VocabularyError(f"special tokens must be strings that are not empty: {name!r}")
        _check_id(token_id, f"the id of {name!r}")

    ids = {rank + first_id for rank in ranks.values()} if first_id else set(ranks.values())
    size = 1 + max(max(ids, default=-1), max(special_tokens.values(), default=-1))
    if not 0 < size <= MAX_WIDTH:
        raise VocabularyError(f"there are ids up to {size - 1}: 0 to {MAX_WIDTH - 1} can be")
    if len(ids) != len(ranks):
        raise VocabularyError(f"{len(ranks)} texts have {len(ids)} ranks: each needs its own")
    taken = sorted(ids.intersection(special_tokens.values()))
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
        compose=given.compose,
        vocab_size=size,
    )


def read_ranks(path: str | os.PathLike[str]) -> dict[bytes, int]:
    """Read a file of ranks as tiktoken writes it."""
    return parse_ranks(read_file(path), str(path))


def parse_ranks(data: bytes, name: str) -> dict[bytes, int]:
    """Parse the contents of such a file: on each line a text in base64 and its rank."""
    ranks = native_ranks(data)
    if ranks is None:
        ranks = parse_lines(data, name)
    if not ranks:
        raise CorruptTokenizerError(f"{name} has no ranks")
    return ranks


def parse_lines(data: bytes, name: str) -> dict[bytes, int]:
    """Parse any spelling of such a file, line by line."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line:
            continue
        try:
            text, rank = line.split()
            ranks[base64.b64decode(text, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise CorruptTokenizerError(
                f"{name}, line {number}: not a text in base64 and its rank ({error})"
            ) from error
    return ranks


def is_rank_line(line: bytes) -> bool:
    """Return whether this is how each line of a file of ranks is written."""
    try:
        text, rank = line.split()
        base64.b64decode(text, validate=True)
        return int(rank) >= 0
    except ValueError:
        return False


def tiktoken_ranks(encoding: "Encoding") -> Ranks:
    """Return the ranks of an encoding of tiktoken, which are in private attributes."""
    try:
        return Ranks(
            ranks=encoding._mergeable_ranks,
            pattern=encoding._pat_str,
            special_tokens=encoding._special_tokens,
        )
    except AttributeError as error:
        raise UnsupportedTokenizerError(
            f"{type(encoding).__name__} is not an encoding of tiktoken ({error})"
        ) from error


def read_tekken(path: str | os.PathLike[str]) -> Ranks:
    """Read a tekken.json: the special tokens have the first ids, and the texts follow."""
    try:
        file = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise CorruptTokenizerError(f"{path} is not JSON that can be read: {error}") from error
    return parse_tekken(file, str(path))


def parse_tekken(file: Any, name: str) -> Ranks:
    """Parse the contents of such a file."""
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
        named: dict[int, str] = {}
        for token in file.get("special_tokens") or _named_by_mistral_common(name):
            _check_id(token["rank"], "the rank of a special token")
            if not isinstance(token["token_str"], str):
                raise TypeError(f"the token {token['token_str']!r}")
            named[token["rank"]] = token["token_str"]
    except VocabularyError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise CorruptTokenizerError(f"{name} is not a tekken.json: {error!r}") from error
    if len(ranks) != len(entries):
        raise CorruptTokenizerError(f"{name} has the same text several times")
    special = {named.get(i, f"<SPECIAL_{i}>"): i for i in range(first_id)}
    return Ranks(ranks=ranks, pattern=pattern, special_tokens=special, first_id=first_id)


def _named_by_mistral_common(name: str) -> list[dict[str, Any]]:
    """Return the special tokens that a file does not list and only that library knows."""
    try:
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    except ImportError as error:
        raise VocabularyError(
            f"{name} does not list its special tokens: install mistral-common, which knows them"
        ) from error
    return [dict(token) for token in Tekkenizer.DEPRECATED_SPECIAL_TOKENS]


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return a file's contents.

    Raises `TokenizerNotFoundError` where there is none, `CorruptTokenizerError` where it cannot be
    read.
    """
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise TokenizerNotFoundError(f"{path}: no such file, so it cannot be read") from error
    except OSError as error:
        raise CorruptTokenizerError(f"{path} cannot be read: {error}") from error


def _ends(numbers: Collection[int]) -> tuple[int, ...]:
    """Return the smallest and the largest number, if there are any."""
    return (min(numbers), max(numbers)) if numbers else ()


def _check_ranks(ranks: Mapping[bytes, int]) -> None:
    numbers = ranks.values()
    # Types and bounds of all at once; the loop finds the one that is wrong.
    plain = set(map(type, ranks)) <= {bytes} and set(map(type, numbers)) <= {int}
    if plain and b"" not in ranks and all(0 <= n <= MAX_WIDTH for n in _ends(numbers)):
        return
    for text, rank in ranks.items():
        if not isinstance(text, bytes) or not text:
            raise VocabularyError(f"ranks must be of bytes that are not empty: {text!r}")
        _check_id(rank, f"the rank of {text!r}")


def _check_id(value: Any, what: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_WIDTH:
        raise VocabularyError(f"{what} must be 0 to {MAX_WIDTH}, not {value!r}")
