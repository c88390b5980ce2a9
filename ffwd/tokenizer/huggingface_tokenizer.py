"""The parts of a `Tokenizer` from one of Hugging Face."""

import logging
from typing import TYPE_CHECKING

from ffwd._native import VocabularyError
from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.definition import Model, TokenizerParts
from ffwd.tokenizer.huggingface_bpe import huggingface_parts
from ffwd.tokenizer.roles import ROLES, SpecialToken, SpecialTokens
from ffwd.tokenizer.source import Source, component_state
from ffwd.tokenizer.table import TokenKind
from ffwd.tokenizer.tokens import Tokens, read_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer as LibraryTokenizer

_LOGGER = logging.getLogger(__name__)

_MODELS: dict[str, Model] = {
    "BPE": "bpe",
    "Unigram": "unigram",
    "WordPiece": "wordpiece",
    "WordLevel": "wordlevel",
}

NAMES = frozenset(_MODELS)
"""The models that `huggingface_tokenizer` takes."""


def huggingface_tokenizer(read: Source) -> TokenizerParts:
    """Everything about a tokenizer that was read with one of `NAMES` as its model.

    Raises `VocabularyError` for a decoder under which tokens have no bytes.
    """
    tokens = read_tokens(read)
    size = len(tokens.tokens)
    texts: list[bytes | None] = [None] * size
    names: list[str | None] = [None] * size
    pieces = tokens.pieces
    for (piece, token_id), data in zip(
        pieces.items(), tokens.writing.to_bytes(pieces), strict=True
    ):
        names[token_id], texts[token_id] = piece, data
    contents = [added.content for added in read.added.values()]
    for token_id, content, data in zip(
        read.added, contents, tokens.writing.to_bytes(contents), strict=True
    ):
        names[token_id], texts[token_id] = content, data

    limits: list[str] = []
    bpe: Bpe | None
    try:
        bpe = Bpe(**huggingface_parts(read, tokens))
    except VocabularyError as error:
        _LOGGER.warning("texts are encoded by the tokenizer's library: %s", error)
        bpe = None
    prefix, suffix = _around(read.tokenizer)
    return TokenizerParts(
        kind="huggingface",
        model=_MODELS[type(read.tokenizer.model).__name__],
        tokens=texts,
        names=names,
        kinds=tokens.kinds,
        special_ids=sorted(i for i, added in read.added.items() if added.special),
        bpe=bpe,
        special_tokens=special_tokens(read, tokens),
        eos_token_ids=read.eos_token_ids or read.end_ids_by_name(),
        prefix_ids=prefix,
        suffix_ids=suffix,
        chat_templates=read.chat_templates,
        strip_first_space=_strips_first_space(read.tokenizer),
        width=read.width,
        limits=limits,
        source=read.name,
    )


def special_tokens(read: Source, tokens: Tokens) -> SpecialTokens:
    """The tokens with a role, and all others that are no text."""
    roles = dict(read.roles)
    unknown = getattr(read.tokenizer.model, "unk_token", None)
    if unknown is not None:
        roles.setdefault("unk", unknown)
    by_content = {added.content: i for i, added in reversed(read.added.items())}
    found: dict[str, SpecialToken] = {}
    for role in ROLES:
        content = roles.get(role)
        if content is None:
            continue
        token_id = by_content.get(content, tokens.pieces.get(content))
        if token_id is not None:
            found[role] = SpecialToken(token_id, content)
    others = (TokenKind.SPECIAL, TokenKind.CONTROL)
    named = {token.id for token in found.values()}
    additional = tuple(
        SpecialToken(i, added.content)
        for i, added in sorted(read.added.items())
        if i not in named and tokens.kinds[i] in others
    )
    return SpecialTokens(**found, additional=additional)


def _around(tokenizer: "LibraryTokenizer") -> tuple[list[int], list[int]]:
    """The ids that the tokenizer's post-processor puts before and after a text."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    if tokenizer.post_processor is None:
        return [], []
    # What it does with a text of one token shows it, whatever kind of post-processor it is.
    probe = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    probe.post_processor = tokenizer.post_processor
    encoding = probe.encode("a")
    at = encoding.special_tokens_mask.index(0)
    return encoding.ids[:at], encoding.ids[at + 1 :]


def _strips_first_space(tokenizer: "LibraryTokenizer") -> bool:
    """Whether the decoder leaves out a space at the beginning of a text."""
    state = component_state(tokenizer.decoder, "decoder")
    if state is None:
        return False
    steps = state["decoders"] if state.get("type") == "Sequence" else [state]
    return any(
        (step.get("type") == "Strip" and step.get("content") == " " and step.get("start", 0) > 0)
        or (step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never")
        for step in steps
    )
