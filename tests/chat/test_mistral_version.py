"""Which version of Mistral's prompts a file, a vocabulary or a name has."""

from pathlib import Path

import pytest
from mistralvocabularies import NAMES, file, mistral, tokenizer

import ffwd.tokenizer
from ffwd.chat import (
    FormatError,
    MistralFormat,
    MistralVersion,
    detect_version,
    version_of_file,
    version_of_name,
)


@pytest.mark.parametrize("name", NAMES)
def test_the_version_of_a_file(name: str) -> None:
    found = detect_version(tokenizer(name))
    assert found.version is mistral(name).version
    assert (found.found_by, found.guessed) == ("file", False)
    assert MistralFormat.for_tokenizer(tokenizer(name)) == mistral(name)


def test_the_version_of_files_for_images() -> None:
    """Their vocabularies are those of texts, with the tokens of images used."""
    folder = file("v7").parent
    for name, version in (
        ("mistral_instruct_tokenizer_241114.model.v7m1", MistralVersion.V7),
        ("tekken_240911.json", MistralVersion.V3),
    ):
        found = version_of_file(folder / name)
        assert found is not None
        assert (found.version, found.guessed) == (version, False)


@pytest.mark.parametrize("name", ["v1", "v2", "v3", "v7"])
def test_the_version_of_a_sentencepiece_vocabulary(name: str, tmp_path: Path) -> None:
    """Its control tokens tell, where its name does not."""
    path = tmp_path / "tokenizer.model"
    path.write_bytes(file(name).read_bytes())
    found = detect_version(ffwd.tokenizer.load(path))
    assert (found.version, found.found_by, found.guessed) == (
        mistral(name).version,
        "tokens",
        False,
    )


class Names:
    """Only names of tokens."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def token_to_id(self, content: str) -> int | None:
        return self.names.index(content) if content in self.names else None


def test_the_version_by_tokens_may_be_a_guess() -> None:
    tekken = Names("[INST]", "[SYSTEM_PROMPT]", "[PREFIX]", "<SPECIAL_20>")
    found = detect_version(tekken)
    assert (found.version, found.guessed) == (MistralVersion.V3, True)
    named = detect_version(tekken, model="Mistral-Large-Instruct-2411")
    assert (named.version, named.found_by, named.guessed) == (MistralVersion.V7, "name", True)
    assert detect_version(Names("[INST]", "[ARGS]")).version is MistralVersion.V11
    assert detect_version(Names("[INST]", "[ARGS]", "[THINK]")).version is MistralVersion.V13
    assert detect_version(Names("[INST]", "[MODEL_SETTINGS]")).version is MistralVersion.V15


@pytest.mark.parametrize(
    ("model", "version"),
    [
        ("mistralai/Mistral-7B-Instruct-v0.1", "v1"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "v1"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "v3"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "v1"),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", "v3"),
        ("open-mixtral-8x22b-2404", "v3"),
        ("mistral-small-2402", "v2"),
        ("mistral-large-2402", "v2"),
        ("mistral-large-2407", "v3"),
        ("mistralai/Mistral-Large-Instruct-2407", "v3"),
        ("mistralai/Mistral-Small-Instruct-2409", "v3"),
        ("mistralai/Codestral-22B-v0.1", "v3"),
        ("mistralai/Mathstral-7B-v0.1", "v3"),
        ("mistralai/Mamba-Codestral-7B-v0.1", "v3"),
        ("mistralai/Mistral-Nemo-Instruct-2407", "v3"),
        ("mistralai/Pixtral-12B-2409", "v3"),
        ("mistralai/Ministral-8B-Instruct-2410", "v3"),
        ("mistralai/Mistral-Large-Instruct-2411", "v7"),
        ("mistralai/Pixtral-Large-Instruct-2411", "v7"),
        ("mistralai/Mistral-Small-24B-Instruct-2501", "v7"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "v11"),
        ("mistralai/Devstral-Small-2507", "v13"),
        ("something else", None),
    ],
)
def test_the_version_of_a_name(model: str, version: str | None) -> None:
    found = version_of_name(model)
    assert (found and found.version.value) == version
    assert found is None or found.guessed


def test_a_file_of_no_known_version(tmp_path: Path) -> None:
    path = tmp_path / "tekken.json"
    path.write_text('{"config": {"version": "v99"}}')
    with pytest.raises(FormatError, match="v99"):
        version_of_file(path)
    path.write_text("{")
    with pytest.raises(FormatError, match=r"no tekken\.json"):
        version_of_file(path)
    path.write_text("[]")
    assert version_of_file(path) is None
    with pytest.raises(FileNotFoundError):
        version_of_file(tmp_path / "missing.json")
