"""The arguments of the native `Bpe`, as the readers of the formats provide them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from ffwd._native import BpeModel

if TYPE_CHECKING:
    from ffwd.tokenizer.kinds import AddedToken

Stage = Mapping[str, Any]
"""One step of a pre-tokenizer, as a tokenizer.json writes it."""

DummySpace = Literal["never", "first", "text", "always"]
"""Where a space is put: nowhere, before a text unless it begins with a token that is found in it,
before every text, before each stretch of a text that lies between such tokens."""

FoundToken = tuple[int, str, dict[str, bool]]
"""A token that is looked for in a text before the rest of it is encoded: id, content and flags."""


class BpeParts(TypedDict, total=False):
    """The arguments of the native class; missing ones have its defaults."""

    model: BpeModel
    stages: Sequence[Stage]
    added_tokens: Sequence[FoundToken]
    dummy_space: DummySpace
    dummy_space_before_space: bool
    compose: bool
    replaced: Sequence[tuple[str, str]]
    limits: Sequence[str]
    vocab_size: int | None


def found_token(token_id: int, added: "AddedToken", *, text: bool) -> FoundToken:
    """Return an added token; `text`: it is found in every text, whatever the policy is."""
    flags = {
        "text": text,
        "lstrip": added.lstrip,
        "rstrip": added.rstrip,
        "single_word": added.single_word,
        "normalized": added.normalized,
    }
    return token_id, added.content, flags
