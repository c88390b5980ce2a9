"""The versions of Mistral's prompts, and their detection from a tokenizer or a model's name."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal, Protocol

from ffwd.chat.errors import FormatError


class MistralVersion(Enum):
    """A version of Mistral's prompts, by the name that tekken.json and mistral-common have."""

    V1 = "v1"
    """`[INST]` is text; no tools."""
    V2 = "v2"
    """Control tokens, tools, the system prompt in the last turn of the user."""
    V3 = "v3"
    """Tool calls have ids; fill in the middle."""
    V7 = "v7"
    """System prompts have control tokens of their own; the result of a tool is text."""
    V11 = "v11"
    """Tool calls have control tokens of their own."""
    V13 = "v13"
    """The tools stand in the first turn of the user; ids of calls are not written; reasoning."""
    V15 = "v15"
    """Settings of the model, such as its effort in reasoning, stand behind the tools."""

    @property
    def number(self) -> int:
        """1, 2, 3, 7, 11, 13 or 15."""
        return int(self.value[1:])

    @property
    def control_tokens(self) -> tuple[str, ...]:
        """The tokens that a vocabulary must have for conversations of this version."""
        names = ["<s>", "</s>"]
        for since, added in _CONTROL_TOKENS.items():
            if self.number >= since:
                names += added
        return tuple(names)


_CONTROL_TOKENS: Mapping[int, tuple[str, ...]] = {
    2: (
        *("[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
        *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]"),
    ),
    7: ("[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"),
    11: ("[ARGS]", "[CALL_ID]"),
    15: ("[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"),
}

# A model's name -> its version. The first match in the name counts, so specific names stand first.
# Some names stood for models of different versions over time (`mistral-small-latest`), so no name
# is certain.
_MODELS: tuple[tuple[str, MistralVersion], ...] = (
    (r"mixtral-8x22b", MistralVersion.V3),
    (r"mixtral", MistralVersion.V1),
    (r"mistral-7b(-instruct)?-v0\.3", MistralVersion.V3),
    (r"mistral-7b", MistralVersion.V1),
    (r"mistral-tiny-2407", MistralVersion.V3),
    (r"mistral-medium-2312", MistralVersion.V1),
    (r"mistral-(tiny|small)-2312|mistral-(small|large)-2402", MistralVersion.V2),
    (r"codestral-22b|codestral-2405|mamba-codestral|codestral-mamba|mathstral", MistralVersion.V3),
    (r"mistral-(small-(instruct-)?2409|large-(instruct-)?2407)", MistralVersion.V3),
    (r"ministral-8b|mistral-nemo|pixtral-12b", MistralVersion.V3),
    (r"(mistral|pixtral)-large-(instruct-)?2411", MistralVersion.V7),
    (r"mistral-small-(3\.2|24b-instruct-2506|2506)", MistralVersion.V11),
    (r"mistral-small-24b|mistral-small-2501", MistralVersion.V7),
    (r"devstral-small-2507|ministral-3-", MistralVersion.V13),
)


@dataclass(frozen=True)
class DetectedVersion:
    """A version, and its evidence.

    `guessed`: from a model's name, or because the tokens fit several versions.
    """

    version: MistralVersion
    guessed: bool
    found_by: Literal["file", "tokens", "name"]


class NamedTokens(Protocol):
    """The members of a tokenizer that reveal its version."""

    def token_to_id(self, content: str, /) -> int | None:
        """Return the id of a token by its name, or None."""
        ...


def version_of_tokenizer(tokenizer: NamedTokens) -> DetectedVersion:
    """Return the version of a vocabulary's control tokens.

    SentencePiece models name the tokens of their version, so this is certain up to V7. A
    tekken.json may also name those of later versions, so this is a guess: use `version_of_file`
    instead.
    """

    def has(name: str) -> bool:
        return tokenizer.token_to_id(name) is not None

    tekken = getattr(tokenizer, "kind", None) == "tekken" or has("<SPECIAL_20>")
    if has("[MODEL_SETTINGS]"):
        return DetectedVersion(MistralVersion.V15, guessed=False, found_by="tokens")
    if has("[ARGS]"):
        # V13 no longer writes the ids of calls, but its vocabularies keep the token for it.
        later = MistralVersion.V13 if has("[THINK]") else MistralVersion.V11
        return DetectedVersion(later, guessed=True, found_by="tokens")
    if has("[SYSTEM_PROMPT]"):
        version = MistralVersion.V3 if tekken else MistralVersion.V7
        return DetectedVersion(version, guessed=tekken, found_by="tokens")
    if has("[INST]"):
        version = MistralVersion.V3 if has("[PREFIX]") else MistralVersion.V2
        return DetectedVersion(version, guessed=False, found_by="tokens")
    return DetectedVersion(MistralVersion.V1, guessed=False, found_by="tokens")


def version_of_file(path: str | os.PathLike[str]) -> DetectedVersion | None:
    """Return the version in a tekken.json, or at the end of a SentencePiece model's name.

    `tokenizer.model.v3` is V3, and `….v7m1` is V7. None if neither says anything:
    `version_of_tokenizer` examines the tokens. Raises `FileNotFoundError`, and `FormatError` for a
    version that is not known.
    """
    path = Path(path)
    if path.suffix == ".json":
        with path.open(encoding="utf-8") as file:
            try:
                content = json.load(file)
            except ValueError as error:
                raise FormatError(f"{path} is no tekken.json: {error}") from error
        config = content.get("config") if isinstance(content, dict) else None
        name = config.get("version") if isinstance(config, dict) else None
        if name is None:
            return None
    else:
        found = re.search(r"\.model\.(v\d+)(m\d+)?$", path.name)
        if found is None:
            return None
        name = found[1]
    known = {version.value: version for version in MistralVersion}
    if name not in known:
        raise FormatError(f"{path} is of version {name!r}, and known are {', '.join(known)}")
    return DetectedVersion(known[name], guessed=False, found_by="file")


def version_of_name(model: str) -> DetectedVersion | None:
    """Guess the version of models with this name; None for an unknown name.

    >>> version_of_name("mistralai/Mistral-7B-Instruct-v0.3").version
    <MistralVersion.V3: 'v3'>
    """
    for pattern, version in _MODELS:
        if re.search(pattern, model.lower()):
            return DetectedVersion(version, guessed=True, found_by="name")
    return None


def detect_version(
    tokenizer: NamedTokens,
    *,
    file: str | os.PathLike[str] | None = None,
    model: str | None = None,
) -> DetectedVersion:
    """Return the version of a tokenizer's prompts.

    `file`, the tekken.json or SentencePiece model, determines it; by default the tokenizer's own
    file. Without one the control tokens do. If they fit several versions, as a tekken.json's do,
    the name of the model decides, if it is known. A version from a file or from unambiguous tokens
    is not `guessed`.
    """
    if file is None and getattr(tokenizer, "kind", None) in ("tekken", "sentencepiece"):
        source = Path(getattr(tokenizer, "source", ""))
        file = source if source.is_file() else None
    if file is not None and (stated := version_of_file(file)) is not None:
        return stated
    found = version_of_tokenizer(tokenizer)
    if found.guessed and model is not None and (named := version_of_name(model)) is not None:
        return named
    return found
