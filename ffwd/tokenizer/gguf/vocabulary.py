"""The checked settings and tokens of a GGUF file's tokenizer."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ffwd.tokenizer.errors import CorruptTokenizerError, UnsupportedTokenizerError
from ffwd.tokenizer.gguf.header import GgufHeader, Value
from ffwd.tokenizer.kinds import AddedToken, is_placeholder, kind_of_added, looks_like_control
from ffwd.tokenizer.roles import SpecialToken, SpecialTokens
from ffwd.tokenizer.table import MAX_WIDTH, TokenKind, shown

_LOGGER = logging.getLogger(__name__)

MODELS = {
    "gpt2": "byte-level BPE",
    "llama": "SentencePiece BPE",
    "gemma4": "BPE with ▁ for spaces and byte fallback",
    "bert": "WordPiece",
    "t5": "SentencePiece Unigram",
}
"""The values of tokenizer.ggml.model that are read."""

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
"""The values of tokenizer.ggml.token_type."""

_ROLES = {
    "bos": "bos_token_id",
    "eos": "eos_token_id",
    "unk": "unknown_token_id",
    "sep": "seperator_token_id",  # as the format writes it
    "pad": "padding_token_id",
    "cls": "cls_token_id",
    "mask": "mask_token_id",
}
_DEFAULT_ROLES: dict[str, dict[str, int]] = {
    "llama": {"bos": 1, "eos": 2, "unk": 0},
    "bert": {"cls": 101, "unk": 100, "sep": 102, "pad": 0, "mask": 103},
    "t5": {"eos": 1, "unk": 2, "pad": 0},
}
"""What files mean that do not say it."""
_END_KEYS = ("eos", "eot_token_id", "eom_token_id")

_END_NAMES = frozenset(
    {
        "<|eot_id|>",
        "<|eom_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<|calls|>",
        "<|flush|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<|END_OF_TURN_TOKEN|>",
        "<end_of_turn>",
        "<end_of_utterance>",
        "<turn|>",
        "<eos>",
        "</s>",
        "<EOT>",
        "[EOT]",
        "[EOS]",
        "<\uff5cend▁of▁sentence\uff5c>",
    }
)
"""Control tokens that end an output although no key of the file says so: the format has keys for
three of them, and readers of it go by the names of the others."""

_PAD = re.compile(r"\[PAD\d+\]")
"""What fills the ids up to the model's number of logits."""


@dataclass(frozen=True, kw_only=True)
class GgufVocabulary:
    """The keys of a file that concern its tokenizer.

    `types` is NORMAL for all tokens where the file has no types, and `merges` and `scores` are
    None where it has none. `kinds[i]` is what token i is, `found[i]` how it is found in a text
    before the rest is encoded; most tokens are not.
    """

    source: str
    model: str
    pre: str | None
    tokens: list[str]
    types: Sequence[int]
    scores: "np.ndarray | None"
    merges: list[str] | None
    values: Mapping[str, Value]
    kinds: Sequence[TokenKind]
    found: Mapping[int, AddedToken]
    special_tokens: SpecialTokens
    eos_token_ids: tuple[int, ...]

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean key of tokenizer.ggml."""
        value = self.values.get(f"tokenizer.ggml.{name}", default)
        if not isinstance(value, bool):
            raise CorruptTokenizerError(f"{self.source}: tokenizer.ggml.{name} is {value!r}")
        return value

    @property
    def special_ids(self) -> list[int]:
        """The ids that decoding skips: control and unknown tokens and padding."""
        types, kinds = (UNKNOWN, CONTROL, UNUSED), (TokenKind.SPECIAL, TokenKind.UNUSED)
        pairs = zip(self.types, self.kinds, strict=True)
        return [i for i, (type_, kind) in enumerate(pairs) if type_ in types or kind in kinds]

    @property
    def width(self) -> int:
        """The number of the model's logits; the ids of the tokens where nothing says more."""
        architecture = self.values.get("general.architecture")
        stated = self.values.get(f"{architecture}.vocab_size")
        size = len(self.tokens)
        return stated if isinstance(stated, int) and size <= stated <= MAX_WIDTH else size

    @property
    def chat_templates(self) -> dict[str, str]:
        """By name; the one without a name is "default"."""
        prefix = "tokenizer.chat_template"
        found: dict[str, str] = {}
        for key, value in self.values.items():
            if isinstance(value, str) and (key == prefix or key.startswith(prefix + ".")):
                found[key[len(prefix) + 1 :] or "default"] = value
        return found


def read_vocabulary(header: GgufHeader, source: str) -> GgufVocabulary:
    """Return the tokenizer in a header.

    Raises `UnsupportedTokenizerError` for a file without a tokenizer or with a model that is not
    read, and `CorruptTokenizerError` for keys that contradict each other.
    """
    values = header.values
    model = check_model(values, source)
    tokens = _get(values, "tokens", list, source)
    if not 0 < len(tokens) <= MAX_WIDTH:
        raise CorruptTokenizerError(f"{source} has {len(tokens)} tokens: 1 to {MAX_WIDTH} can be")
    tokens = [token or f"[EMPTY_{i}]" for i, token in enumerate(tokens)]
    if len(set(tokens)) != len(tokens):
        raise CorruptTokenizerError(f"{source} has several ids for {_repeated(tokens)}")

    types: list[int] = [NORMAL] * len(tokens)
    stated = _array(values, "token_type", len(tokens), source)
    if stated is not None:
        if stated.dtype.kind not in "iu":
            raise CorruptTokenizerError(f"{source}: tokenizer.ggml.token_type has no whole numbers")
        types = stated.tolist()
    scores = _array(values, "scores", len(tokens), source)
    if scores is not None and not np.isfinite(scores).all():
        raise CorruptTokenizerError(f"{source}: a score is not a finite number")
    roles = _roles(values, model, tokens, source)
    kinds, found = _kinds(tokens, types, set(roles.values()), strips=_strips(values))
    named = {role: SpecialToken(i, tokens[i]) for role, i in roles.items() if role in _ROLES}
    others = found.keys() - {token.id for token in named.values()}
    additional = [i for i in sorted(others) if kinds[i] is not TokenKind.TEXT]
    return GgufVocabulary(
        source=source,
        model=model,
        pre=_get(values, "pre", str, source) if "tokenizer.ggml.pre" in values else None,
        tokens=tokens,
        types=types,
        scores=scores,
        merges=_get(values, "merges", list, source) if "tokenizer.ggml.merges" in values else None,
        values=values,
        kinds=kinds,
        found=found,
        special_tokens=SpecialTokens(
            **named, additional=tuple(SpecialToken(i, tokens[i]) for i in additional)
        ),
        eos_token_ids=_ends(roles, tokens, types),
    )


def check_model(values: Mapping[str, Value], source: str) -> str:
    """Return the value of tokenizer.ggml.model, or raise an error for an unsupported one."""
    model = values.get("tokenizer.ggml.model")
    if model is None:
        part = values.get("split.no")
        if isinstance(part, int) and part > 0:
            raise UnsupportedTokenizerError(
                f"{source} is part {part + 1} of a model in several files: the tokenizer is in "
                "the first"
            )
        raise UnsupportedTokenizerError(f"{source} has no tokenizer (tokenizer.ggml.model)")
    if not isinstance(model, str) or model not in MODELS:
        known = ", ".join(f"{name} ({what})" for name, what in MODELS.items())
        raise UnsupportedTokenizerError(
            f"{source}: the tokenizer's model is {model!r} (tokenizer.ggml.model): supported are "
            f"{known}"
        )
    return model


def _get(values: Mapping[str, Value], name: str, kind: type[Any], source: str) -> Any:
    value = values.get(f"tokenizer.ggml.{name}")
    if not isinstance(value, kind):
        what = "missing" if value is None else f"of another type ({type(value).__name__})"
        raise CorruptTokenizerError(f"{source}: tokenizer.ggml.{name} is {what}")
    return value


def _array(values: Mapping[str, Value], name: str, least: int, source: str) -> "np.ndarray | None":
    """Return an array of numbers with one for each token, or None."""
    if f"tokenizer.ggml.{name}" not in values:
        return None
    array: np.ndarray = _get(values, name, np.ndarray, source)
    if len(array) < least:
        raise CorruptTokenizerError(
            f"{source}: tokenizer.ggml.{name} has {len(array)} numbers for {least} tokens"
        )
    return array[:least]


def _repeated(tokens: Sequence[str]) -> str:
    ids: dict[str, list[int]] = {}
    for token_id, token in enumerate(tokens):
        ids.setdefault(token, []).append(token_id)
    several = {token: same for token, same in ids.items() if len(same) > 1}
    token, same = next(iter(several.items()))
    return f"the same token: {token!r} is {shown(same)} ({len(several)} such tokens)"


def _roles(
    values: Mapping[str, Value], model: str, tokens: Sequence[str], source: str
) -> dict[str, int]:
    """Return the ids with a role, by name; roles outside `SpecialTokens` by their key."""
    defaults = _DEFAULT_ROLES.get(model, {})
    roles = {role: i for role, i in defaults.items() if i < len(tokens)}
    names = {key: role for role, key in _ROLES.items()}
    for key, value in values.items():
        name = key.removeprefix("tokenizer.ggml.")
        if name == key or not name.endswith("_token_id") or not isinstance(value, int):
            continue
        if 0 <= value < len(tokens):
            roles[names.get(name, name)] = value
        else:
            # Written so for "there is none" by some converters.
            _LOGGER.warning("%s: %s is %d, which is no token; it is left out", source, key, value)
            roles.pop(names.get(name, name), None)
    return roles


def _ends(roles: Mapping[str, int], tokens: Sequence[str], types: Sequence[int]) -> tuple[int, ...]:
    ends = {roles[key] for key in _END_KEYS if key in roles}
    named = {
        tokens[i]: i
        for i, type_ in enumerate(types)
        if type_ in (CONTROL, USER_DEFINED) and tokens[i] in _END_NAMES
    }
    # In OpenAI's and Upstage's formats this ends a message of several, not the output.
    if named.keys() >= {"<|return|>", "<|call|>"} or named.keys() >= {"<|calls|>", "<|flush|>"}:
        named.pop("<|end|>", None)
    return tuple(sorted(ends | set(named.values())))


def _strips(values: Mapping[str, Value]) -> str:
    """Return whose special tokens consume spaces, which no key shows: `phi-3`, or a token."""
    name = str(values.get("general.name", "")).lower()
    if "phi-3" in name or "phi3" in name:
        return "phi-3"
    architecture = str(values.get("general.architecture", ""))
    pre = str(values.get("tokenizer.ggml.pre", ""))
    if pre in ("jina-v2-de", "jina-v2-es", "jina-v2-code") or architecture in (
        "nomic-bert-moe",
        "jina-bert-v3",
    ):
        return "<mask>"
    return "[MASK]" if "modern-bert" in name else ""


def _kinds(
    tokens: Sequence[str], types: Sequence[int], roles: set[int], *, strips: str
) -> tuple[list[TokenKind], dict[int, AddedToken]]:
    kinds: list[TokenKind] = [TokenKind.TEXT] * len(tokens)
    found: dict[int, AddedToken] = {}
    for token_id, type_ in enumerate(types):
        token = tokens[token_id]
        if type_ == NORMAL:
            if token[0] in "<[" and is_placeholder(token):
                kinds[token_id] = TokenKind.UNUSED
            elif token_id in roles and looks_like_control(token):
                kinds[token_id] = TokenKind.SPECIAL
                found[token_id] = AddedToken(content=token, special=True)
        elif type_ in (UNKNOWN, CONTROL, USER_DEFINED) and not _PAD.fullmatch(token):
            added = AddedToken(
                content=token,
                special=type_ != USER_DEFINED,
                lstrip=token == strips,
                rstrip=strips == "phi-3" and token not in ("<unk>", "<s>", "<|endoftext|>"),
            )
            found[token_id] = added
            kind = kind_of_added(added, token.encode(), in_model=False) or TokenKind.CONTROL
            unknown = type_ == UNKNOWN and kind is TokenKind.SPECIAL
            kinds[token_id] = TokenKind.UNKNOWN if unknown else kind
        elif type_ != BYTE:
            kinds[token_id] = TokenKind.UNUSED
    return kinds, found
