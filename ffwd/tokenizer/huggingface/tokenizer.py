"""The parts of a `Tokenizer` from one of Hugging Face."""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ffwd._native import VocabularyError
from ffwd.tokenizer.bpe import Bpe
from ffwd.tokenizer.definition import Model, TokenizerParts
from ffwd.tokenizer.errors import CorruptTokenizerError, as_error
from ffwd.tokenizer.huggingface.bpe import huggingface_parts
from ffwd.tokenizer.library import TokenizersLibrary
from ffwd.tokenizer.parts import BpeParts
from ffwd.tokenizer.roles import ROLES, SpecialToken, SpecialTokens
from ffwd.tokenizer.source import Source, component_state
from ffwd.tokenizer.stages import steps
from ffwd.tokenizer.table import TokenKind
from ffwd.tokenizer.tokens import TokenList, read_tokens

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
    """Return everything about a tokenizer that was read with one of `NAMES` as its model.

    Raises `VocabularyError` for a decoder under which tokens have no bytes.
    """
    tokens = read_tokens(read)
    size = len(tokens.tokens)
    names = tokens.pieces.names(size)
    texts = list(tokens.tokens)
    control = [(i, name) for i, name in enumerate(names) if name is not None and texts[i] is None]
    decoded = tokens.writing.to_bytes([name for _, name in control])
    for (token_id, _), data in zip(control, decoded, strict=True):
        texts[token_id] = data
    contents = [added.content for added in read.added.values()]
    for token_id, content, data in zip(
        read.added, contents, tokens.writing.to_bytes(contents), strict=True
    ):
        names[token_id], texts[token_id] = content, data

    made, library, limits = _encoder(read, tokens)
    bpe, bpe_parts = made or (None, None)
    strips = _strips_first_space(read.parts)
    prefix, suffix = _around(read.parts)
    return TokenizerParts(
        kind="huggingface",
        model=_MODELS[type(read.parts.model).__name__],
        tokens=texts,
        names=names,
        kinds=tokens.kinds,
        special_ids=sorted(i for i, added in read.added.items() if added.special),
        bpe=bpe,
        bpe_parts=bpe_parts,
        library=library,
        special_tokens=special_tokens(read, tokens),
        eos_token_ids=read.eos_token_ids or read.end_ids_by_name(),
        prefix_ids=prefix,
        suffix_ids=suffix,
        chat_templates=read.chat_templates,
        strip_first_space=strips,
        first_tokens=_first_tokens(read.parts, names, texts, strips=strips),
        width=read.width,
        limits=limits,
        source=read.name,
    )


def _encoder(
    read: Source, tokens: TokenList
) -> tuple[tuple[Bpe, BpeParts] | None, TokenizersLibrary | None, list[str]]:
    """Return the native encoder if possible, otherwise the tokenizers library, and why."""
    kind = type(read.parts.model).__name__
    reason = f"the tokenizer's model is {kind}, which only the tokenizers library encodes with"
    if kind == "BPE":
        try:
            bpe_parts = huggingface_parts(read, tokens)
            return (Bpe(**bpe_parts), bpe_parts), None, []
        except VocabularyError as error:
            reason = str(error)
            _LOGGER.warning("texts are encoded by the tokenizers library: %s", reason)
    library = TokenizersLibrary(
        read.tokenizer,
        added=read.added,
        text_ids=tokens.added_text,
        unknown_id=tokens.unknown_id,
    )
    return None, library, [reason, *losses(read.parts, tokens.unknown_id)]


def losses(tokenizer: "LibraryTokenizer", unknown_id: int | None) -> Iterator[str]:
    """Return descriptions of the text that a tokenizer loses."""
    state = component_state(tokenizer.normalizer, "normalizer")
    for step in steps(state, "normalizers"):
        name = step.get("type")
        if name == "BertNormalizer":
            done = {
                "lowercase": "writes everything in lower case",
                "clean_text": "leaves out control characters",
            }
            for key, what in done.items():
                if step.get(key):
                    yield f"the normalizer {what}"
            accents = step.get("strip_accents")
            if accents or (accents is None and step.get("lowercase")):
                yield "the normalizer leaves out accents"
        elif name not in ("Prepend", "ByteLevel", "NFC") and not _writes_spaces(step):
            yield f"the normalizer {name} changes text"
    for step in steps(component_state(tokenizer.pre_tokenizer, "pre-tokenizer"), "pretokenizers"):
        if step.get("type") in ("BertPreTokenizer", "Whitespace", "WhitespaceSplit"):
            yield f"the pre-tokenizer {step['type']} leaves out white space"
    decoder = component_state(tokenizer.decoder, "decoder") or {}
    if decoder.get("type") == "WordPiece" and decoder.get("cleanup"):
        yield "the decoder leaves out spaces before punctuation and contractions"
    if unknown_id is not None and not getattr(tokenizer.model, "byte_fallback", False):
        yield "what has no token is encoded as the unknown token"


def _writes_spaces(step: dict[str, Any]) -> bool:
    return step.get("type") == "Replace" and step["pattern"].get("String") == " "


def _first_tokens(
    tokenizer: "LibraryTokenizer",
    names: Sequence[str | None],
    texts: Sequence[bytes | None],
    *,
    strips: bool,
) -> dict[int, bytes]:
    """Return the decoding of tokens at the start of a text, where it differs."""
    decoder = tokenizer.decoder
    state = component_state(decoder, "decoder") or {}
    if decoder is None or state.get("type") not in ("WordPiece", "Metaspace"):
        return {}
    mark = state.get("replacement")
    first: dict[int, bytes] = {}
    for token_id, (name, text) in enumerate(zip(names, texts, strict=True)):
        # With Metaspace, only pieces with a space after their first character are decoded.
        if name is None or text is None or (mark is not None and mark not in name[1:]):
            continue
        data = decoder.decode([name]).encode()
        if data != (text.removeprefix(b" ") if strips else text):
            first[token_id] = data
    return first


def special_tokens(read: Source, tokens: TokenList) -> SpecialTokens:
    """Return the tokens with a role, and all other tokens without text."""
    roles = dict(read.roles)
    unknown_id = tokens.unknown_id
    unknown = None if unknown_id is None else read.id_to_token(unknown_id)
    if unknown is not None:
        roles.setdefault("unk", unknown)
    by_content = {added.content: i for i, added in reversed(read.added.items())}
    pieces = tokens.pieces.find(roles.values())
    found: dict[str, SpecialToken] = {}
    for role in ROLES:
        content = roles.get(role)
        if content is None:
            continue
        token_id = by_content.get(content, pieces.get(content))
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
    """Return the ids that the tokenizer's post-processor adds before and after a text."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    if tokenizer.post_processor is None:
        return [], []
    # Its result for a text of one token shows them, for any kind of post-processor.
    probe = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    probe.post_processor = tokenizer.post_processor
    with as_error(_corrupt_post_processor):
        encoding = probe.encode("a")
        at = encoding.special_tokens_mask.index(0)
    return encoding.ids[:at], encoding.ids[at + 1 :]


def _corrupt_post_processor(message: str) -> CorruptTokenizerError:
    return CorruptTokenizerError(f"the tokenizer's post-processor cannot be used: {message}")


def _strips_first_space(tokenizer: "LibraryTokenizer") -> bool:
    """Return whether the decoder leaves out a space at the beginning of a text."""
    state = component_state(tokenizer.decoder, "decoder")
    if state is None:
        return False
    if state.get("type") == "WordPiece":
        return True
    return any(
        (step.get("type") == "Strip" and step.get("content") == " " and step.get("start", 0) > 0)
        or (step.get("type") == "Metaspace" and step.get("prepend_scheme", "always") != "never")
        for step in steps(state, "decoders")
    )
