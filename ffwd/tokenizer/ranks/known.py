"""Files of ranks that are recognized by their contents.

Such a file has neither the pattern nor the special tokens. Those listed here come from the code of
its publisher: tiktoken's `openai_public`, `tokenizer.py` of llama-models, `tokenization_qwen.py` of
Qwen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_DIGITS = "{DIGITS}"
_CL100K = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{DIGITS}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_R50K = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@dataclass(frozen=True, kw_only=True)
class KnownRanks:
    """The pattern and special tokens of a file of ranks."""

    name: str
    pattern: str
    special_tokens: Mapping[str, int]
    roles: Mapping[str, str] = field(default_factory=dict)
    """The content of the token with each of `ffwd.tokenizer.roles.ROLES` that has one."""
    compose: bool = False
    """Whether texts are normalized to NFC first."""
    width: int | None = None
    """The number of logits of the models that have it."""


def known_ranks(sha256: str) -> KnownRanks | None:
    """Return the entry of the file with this hash, in hexadecimal; None for an unknown one."""
    make = _KNOWN.get(sha256)
    return None if make is None else make()


def known_names() -> list[str]:
    """Return the names of the known files, for messages."""
    return [make().name for make in _KNOWN.values()]


def _llama3() -> KnownRanks:
    first = 128_000
    named = {
        0: "<|begin_of_text|>",
        1: "<|end_of_text|>",
        4: "<|finetune_right_pad_id|>",
        5: "<|step_id|>",
        6: "<|start_header_id|>",
        7: "<|end_header_id|>",
        8: "<|eom_id|>",
        9: "<|eot_id|>",
        10: "<|python_tag|>",
        11: "<|image|>",
    }
    free = iter(range(256))
    names = [named.get(i) or f"<|reserved_special_token_{next(free)}|>" for i in range(256)]
    return KnownRanks(
        name="Llama 3",
        pattern=_CL100K.replace(_DIGITS, "{1,3}"),
        special_tokens={name: first + i for i, name in enumerate(names)},
        roles={
            "bos": "<|begin_of_text|>",
            "eos": "<|end_of_text|>",
            "pad": "<|finetune_right_pad_id|>",
        },
        width=128_256,
    )


def _llama4() -> KnownRanks:
    first = 200_000

    def reserved(what: str, start: int, end: int) -> list[str]:
        return [f"<|{what}_reserved_special_token_{i}|>" for i in range(start, end)]

    names = [
        "<|begin_of_text|>", "<|end_of_text|>",
        "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
        "<|header_start|>", "<|header_end|>", "<|eom|>", "<|eot|>", "<|step|>",
        *reserved("text_post_train", 0, 6),
        "<|python_start|>", "<|python_end|>", "<|finetune_right_pad|>",
        *reserved("text_post_train", 8, 69),
        "<|image_start|>", "<|image_end|>",
        *reserved("vision", 0, 2),
        "<|tile_x_separator|>", "<|tile_y_separator|>",
        *reserved("vision", 2, 6),
        "<|image|>", "<|vision_reserved_special_token_6|>", "<|patch|>",
        *reserved("vision", 7, 1048),
        *reserved("reasoning", 0, 8),
        "<|reasoning_thinking_start|>", "<|reasoning_thinking_end|>",
    ]  # fmt: skip
    names += [f"<|reserved_special_token_{i}|>" for i in range(2048 - len(names))]
    return KnownRanks(
        name="Llama 4",
        pattern=_O200K,
        special_tokens={name: first + i for i, name in enumerate(names)},
        roles={
            "bos": "<|begin_of_text|>",
            "eos": "<|end_of_text|>",
            "pad": "<|finetune_right_pad|>",
        },
        width=202_048,
    )


def _qwen() -> KnownRanks:
    # The tokens after these three have other names in each generation of Qwen.
    names = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    return KnownRanks(
        name="Qwen",
        pattern=_CL100K.replace(_DIGITS, ""),
        special_tokens={name: 151_643 + i for i, name in enumerate(names)},
        roles={"eos": "<|im_end|>", "pad": "<|endoftext|>"},
        compose=True,
        width=151_936,
    )


def _r50k() -> KnownRanks:
    return KnownRanks(
        name="r50k_base",
        pattern=_R50K,
        special_tokens={"<|endoftext|>": 50_256},
        roles={"eos": "<|endoftext|>"},
    )


def _p50k() -> KnownRanks:
    return KnownRanks(
        name="p50k_base",
        pattern=_R50K,
        special_tokens={"<|endoftext|>": 50_256},
        roles={"eos": "<|endoftext|>"},
    )


def _cl100k() -> KnownRanks:
    return KnownRanks(
        name="cl100k_base",
        pattern=(
            r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
        special_tokens={
            "<|endoftext|>": 100_257,
            "<|fim_prefix|>": 100_258,
            "<|fim_middle|>": 100_259,
            "<|fim_suffix|>": 100_260,
            "<|endofprompt|>": 100_276,
        },
        roles={"eos": "<|endoftext|>"},
    )


def _o200k() -> KnownRanks:
    return KnownRanks(
        name="o200k_base",
        pattern=_O200K,
        special_tokens={"<|endoftext|>": 199_999, "<|endofprompt|>": 200_018},
        roles={"eos": "<|endoftext|>"},
    )


_KNOWN = {
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": _llama3,
    "d0bdbaf59b0762c8c807617e2d8ea51420eb1b1de266df2495be755c8e0ed6ed": _llama4,
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": _qwen,
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": _r50k,
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": _p50k,
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": _cl100k,
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": _o200k,
}
"""By SHA-256 of the file."""
