"""Formats that are found in chat templates of real models."""

import re

import llamacpp
import pytest
from transformers import AutoTokenizer

import ffwd.model
from ffwd.chat import ChatTemplate, MistralFormat, MistralVersion
from ffwd.tools import FORMATS, ToolFormat, ToolFormatError, derive_format, detect_format
from ffwd.tools.derive import PROBES, rendered_call
from ffwd.tools.format import (
    ARGUMENTS,
    NAME,
    TEXT,
    JsonArguments,
    Pattern,
    PythonArguments,
    TaggedArguments,
)

SPECIAL = {"bos_token": "<s>", "eos_token": "</s>"}
NAMED = {
    "Bielik-11B-v3.0-Instruct": "hermes",
    "GLM-4.6": "glm-4.5",
    "GLM-4.7-Flash": "glm-4.7",
    "Kimi-K2-Instruct": "kimi-k2",
    "MiniMax-M2": "minimax-m2",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral-v11",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3-coder",
    "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes",
    "Qwen-Qwen2.5-7B-Instruct": "hermes",
    "Qwen-Qwen3-0.6B": "hermes",
    "Qwen3-Coder": "qwen3-coder",
    "Qwen3.5-4B": "qwen3-coder",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek-v3",
    "deepseek-ai-DeepSeek-V3.1": "deepseek-v3.1",
    "deepseek-ai-DeepSeek-V3.2": "deepseek-v3.2",
    "llama-cpp-deepseek-r1": "deepseek-v3",
    "meta-llama-Llama-3.1-8B-Instruct": "llama3-json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3-json",
    "meta-llama-Llama-3.3-70B-Instruct": "llama3-json",
    "mistralai-Ministral-3-14B-Reasoning-2512": "mistral-v11",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral-v3",
    "moonshotai-Kimi-K2": "kimi-k2",
    "openai-gpt-oss-120b": "harmony",
    "unsloth-mistral-Devstral-Small-2507": "mistral-v11",
}
NONE = ("google-gemma-2-2b-it", "microsoft-Phi-3.5-mini-instruct", "llama-cpp-rwkv-world")


def template(name: str) -> ChatTemplate:
    path = llamacpp.models_folder() / "templates" / f"{name}.jinja"
    return ChatTemplate.from_file(path, special_tokens=SPECIAL)


@pytest.mark.parametrize("name", NAMED)
def test_formats_with_a_name(name: str) -> None:
    assert detect_format(template(name)).name == NAMED[name]


@pytest.mark.parametrize("name", NONE)
def test_templates_without_tools(name: str) -> None:
    with pytest.raises(ToolFormatError, match="writes no calls"):
        detect_format(template(name))


def test_most_formats_can_be_read_from_what_a_template_writes() -> None:
    """A format that is read writes the very text that it was read from."""
    read = 0
    for path in llamacpp.templates():
        found = template(path.stem)
        try:
            style = derive_format(found)
        except ToolFormatError:
            continue
        read += 1
        assert re.fullmatch(rf"\s*{written(style)}\s*", rendered_call(found)), path.stem
    assert read >= 45


def written(style: ToolFormat) -> str:
    """An expression for the first probe's call in a format."""
    probe = PROBES[0]
    text = ""
    for piece in (*style.begin, *style.call, *style.end):
        if piece is NAME:
            text += probe.name
        elif piece is ARGUMENTS:
            text += re.escape(arguments(style))
        elif isinstance(piece, str):
            text += re.escape(piece)
        else:  # an id or a number
            assert isinstance(piece, Pattern)
            text += f"(?:{piece.pattern})"
    return text


def arguments(style: ToolFormat) -> str:
    given = PROBES[0].arguments
    match style.arguments:
        case JsonArguments():
            return '{"first_key": "first value", "second_key": 4711}'
        case PythonArguments():
            return ", ".join(f"{key}={value!r}" for key, value in given.items())
        case TaggedArguments() as tags:
            return "".join(
                tags.before_name
                + key
                + (tags.before_string if isinstance(item, str) else tags.before_value)
                + str(item)
                + tags.after_value
                for key, item in given.items()
            )
    raise AssertionError


def test_a_format_of_several_parts() -> None:
    """Numbered calls in a list between tags, and text between tags of its own."""
    style = detect_format(template("CohereForAI-c4ai-command-r7b-12-2024-tool_use"))
    assert style.begin == ("<|START_ACTION|>[",)
    assert style.end == ("\n]<|END_ACTION|>",)
    assert style.separator == (",",)
    assert style.text == ("<|START_RESPONSE|>", TEXT, "<|END_RESPONSE|>")
    assert style.excluding == ("<|START_ACTION|>",)


def test_versions_of_mistral() -> None:
    found = {
        version.value: detect_format(MistralFormat(version=version)).name
        for version in MistralVersion
        if version is not MistralVersion.V1
    }
    assert found == {
        "v2": "mistral-v2",
        "v3": "mistral-v3",
        "v7": "mistral-v3",
        "v11": "mistral-v11",
        "v13": "mistral-v11",
        "v15": "mistral-v11",
    }
    with pytest.raises(ToolFormatError):
        detect_format(MistralFormat(version=MistralVersion.V1))


def test_a_format_is_itself() -> None:
    for name, style in FORMATS.items():
        assert detect_format(name) is style
        assert detect_format(style) is style
        assert style.source


def test_a_tokenizer_of_transformers_has_a_format() -> None:
    """The object that `ffwd.generate` takes, too."""
    tokenizer = AutoTokenizer.from_pretrained(ffwd.model.path())
    assert detect_format(tokenizer) is FORMATS["hermes"]
    tokenizer.chat_template = None
    with pytest.raises(ToolFormatError, match="give one of"):
        detect_format(tokenizer)
    with pytest.raises(TypeError, match="a tokenizer, a chat template or a prompt, not int"):
        detect_format(3)  # type: ignore[arg-type]
