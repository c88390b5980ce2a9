"""The special tokens of a tokenizer, by role."""

from dataclasses import dataclass


@dataclass(frozen=True)
class SpecialToken:
    """A token with a role."""

    id: int
    content: str
    """Its name, as the source writes it."""


@dataclass(frozen=True, kw_only=True)
class SpecialTokens:
    """The tokens to which a source gives a role; None for a role without one."""

    bos: SpecialToken | None = None
    eos: SpecialToken | None = None
    unk: SpecialToken | None = None
    sep: SpecialToken | None = None
    pad: SpecialToken | None = None
    cls: SpecialToken | None = None
    mask: SpecialToken | None = None
    additional: tuple[SpecialToken, ...] = ()
    """All other special and control tokens, by id."""


ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
"""The fields of `SpecialTokens` that hold one token."""

END_NAMES = frozenset(
    {
        "</s>",
        "<eos>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|eot|>",
        "<|eom|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<end_of_turn>",
        "<|END_OF_TURN_TOKEN|>",
        "<\uff5cend▁of▁sentence\uff5c>",
    }
)
"""Names under which published models end their output, where nothing else says so."""
