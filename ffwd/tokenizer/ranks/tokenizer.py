"""The parts of a `Tokenizer` from ranks: tiktoken's encodings and files, Mistral's tekken.json."""

import re
from collections.abc import Mapping
from itertools import repeat

from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.definition import Kind, TokenizerParts
from ffwd.tokenizer.kinds import is_placeholder
from ffwd.tokenizer.ranks.read import Ranks, rank_parts
from ffwd.tokenizer.roles import END_NAMES, ROLES, SpecialToken, SpecialTokens
from ffwd.tokenizer.table import TokenKind

_TEKKEN_FREE = re.compile(r"<SPECIAL_[0-9]+>")

TEKKEN_ROLES = {"bos": "<s>", "eos": "</s>", "unk": "<unk>", "pad": "<pad>"}


def rank_tokenizer(
    given: Ranks, *, kind: Kind, source: str, roles: Mapping[str, str] | None = None
) -> TokenizerParts:
    """Return everything about a tokenizer with these ranks.

    `roles`: the content of the token with each of `ROLES` that is known.

    Raises `VocabularyError` for ranks that contradict each other or a pattern that is not
    supported.
    """
    bpe_parts = rank_parts(given)
    bpe = Bpe(**bpe_parts)
    size = bpe.vocab_size
    tokens: list[bytes | None] = [None] * size
    names: list[str | None] = [None] * size
    kinds = [TokenKind.UNUSED] * size
    text = TokenKind.TEXT
    # Bytes that are no character of their own are named as Python escapes them.
    written = list(map(bytes.decode, given.ranks, repeat("utf-8"), repeat("backslashreplace")))
    first, end = given.first_id, given.first_id + len(written)
    if list(given.ranks.values()) == list(range(len(written))):
        tokens[first:end], names[first:end] = given.ranks, written
        kinds[first:end] = [text] * len(written)
    else:
        for (data, rank), name in zip(given.ranks.items(), written, strict=True):
            token_id = rank + first
            tokens[token_id], names[token_id], kinds[token_id] = data, name, text

    special = given.special_tokens
    unknown = (roles or {}).get("unk")
    for name, token_id in special.items():
        tokens[token_id], names[token_id] = name.encode(), name
        if name == unknown:
            kinds[token_id] = TokenKind.UNKNOWN
        elif not (is_placeholder(name) or (kind == "tekken" and _TEKKEN_FREE.fullmatch(name))):
            kinds[token_id] = TokenKind.SPECIAL
    found = {
        role: SpecialToken(special[name], name)
        for role, name in (roles or {}).items()
        if role in ROLES and name in special
    }
    named = {token.id for token in found.values()}
    additional = tuple(
        SpecialToken(token_id, name)
        for name, token_id in sorted(special.items(), key=lambda item: item[1])
        if token_id not in named and kinds[token_id] is TokenKind.SPECIAL
    )
    ends = {special[name] for name in END_NAMES if name in special}
    ends |= {found["eos"].id} if "eos" in found else set()
    return TokenizerParts(
        kind=kind,
        model="bpe",
        tokens=tokens,
        names=names,
        kinds=kinds,
        special_ids=sorted(special.values()),
        bpe=bpe,
        bpe_parts=bpe_parts,
        special_tokens=SpecialTokens(**found, additional=additional),
        eos_token_ids=sorted(ends),
        source=source,
    )
