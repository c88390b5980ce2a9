"""The vocabularies that mistral-common carries, and what it makes of requests with them.

`NAMES` are the versions; `v3-tekken` and `v7-tekken` share one vocabulary. No tekken.json of V11
and later comes with it, so theirs is the real one with the control tokens of the version; it is
cut to the first 40,000 tokens, which is a vocabulary as well.
"""

import json
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import mistral_common
from mistral_common.protocol.fim.request import FIMRequest
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.protocol.instruct.tool_calls import Tool
from mistral_common.protocol.instruct.validator import ValidationMode
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from ffwd.chat import MistralFormat, MistralVersion
from ffwd.tokenizer import Tokenizer, load

_DATA = Path(mistral_common.__file__).parent / "data"

_FILES = {
    "v1": "tokenizer.model.v1",
    "v2": "mistral_instruct_tokenizer_240216.model.v2",
    "v3": "mistral_instruct_tokenizer_240323.model.v3",
    "v3-tekken": "tekken_240718.json",
    "v7": "mistral_instruct_tokenizer_241114.model.v7",
}
_LATER = ("v7-tekken", "v11", "v13", "v15")
NAMES = (*_FILES, *_LATER)

_ADDED = ("[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]", "[MODEL_SETTINGS]", "[/MODEL_SETTINGS]")
_SETTINGS = {
    "reasoning_effort": {
        "type": "enum",
        "values": ["none", "high"],
        "accepts_none": True,
        "default": "none",
    }
}


@cache
def folder() -> tempfile.TemporaryDirectory[str]:
    """Where the vocabularies of later versions are written, until the tests end."""
    return tempfile.TemporaryDirectory(prefix="tekken")


@cache
def file(name: str) -> Path:
    """The tekken.json or SentencePiece model of a version."""
    if name in _FILES:
        return _DATA / _FILES[name]
    version = name.removesuffix("-tekken")
    content = json.loads((_DATA / _FILES["v3-tekken"]).read_text(encoding="utf-8"))
    number = 40_000 if version != "v7" else content["config"]["default_vocab_size"] - 1000
    content["vocab"] = content["vocab"][:number]
    content["config"] |= {
        "version": version,
        "num_vocab_tokens": number,
        "default_vocab_size": number + 1000,
    }
    named = [dict(token) for token in Tekkenizer.DEPRECATED_SPECIAL_TOKENS]
    if version != "v7":
        named += [
            {"rank": len(named) + i, "token_str": token, "is_control": True}
            for i, token in enumerate(_ADDED)
        ]
    content["special_tokens"] = named
    if version == "v15":
        content["model_settings_builder"] = _SETTINGS
    path = Path(folder().name) / f"tekken-{version}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@dataclass(frozen=True)
class Reference:
    """mistral-common itself."""

    tokenizer: MistralTokenizer

    def ids(self, messages: list[dict[str, Any]], **options: Any) -> list[int]:
        """Of a conversation given as dicts; `tools` as in OpenAI's interface."""
        tools = options.pop("tools", None)
        request: Any = ChatCompletionRequest(
            messages=messages,
            tools=None if tools is None else [Tool.from_openai(tool) for tool in tools],
            **options,
        )
        return self.tokenizer.encode_chat_completion(request).tokens

    def infill(self, prefix: str, suffix: str | None) -> list[int]:
        """Of fill in the middle."""
        return self.tokenizer.encode_fim(FIMRequest(prompt=prefix, suffix=suffix)).tokens


@cache
def reference(name: str, mode: str = "test") -> Reference:
    """mistral-common with the vocabulary of a version."""
    return Reference(MistralTokenizer.from_file(file(name), mode=ValidationMode(mode)))


@cache
def tokenizer(name: str) -> Tokenizer:
    """The same vocabulary as ffwd reads it."""
    return load(file(name))


def mistral(name: str, **options: Any) -> MistralFormat:
    """The format of a version."""
    return MistralFormat(version=MistralVersion(name.removesuffix("-tekken")), **options)
