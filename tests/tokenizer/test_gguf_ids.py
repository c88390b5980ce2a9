"""The ids of llama.cpp's vocabularies are those of the tokenizers that the files were made from."""

import pytest
from ggufs import SEPARATOR, expected, real
from llamacpp import vocabularies

from ffwd.tokenizer.gguf import read_gguf
from ffwd.tokenizer.tokenizer import Tokenizer

NAMES = [path.name.removeprefix("ggml-vocab-").removesuffix(".gguf") for path in vocabularies()]
WITH_IDS = [name for name in NAMES if real(name).with_suffix(".gguf.out").exists()]


def test_the_vocabularies_are_all_there() -> None:
    assert (len(NAMES), len(WITH_IDS)) == (19, 15)


@pytest.fixture(
    scope="module", params=[n for n in NAMES if n not in ("bert-bge", "nomic-bert-moe")]
)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer(read_gguf(real(request.param)))


def name_of(tokenizer: Tokenizer) -> str:
    return tokenizer.source.rpartition("ggml-vocab-")[2].removesuffix(".gguf")


def test_ids_are_those_that_are_expected(tokenizer: Tokenizer) -> None:
    """As the file beside the vocabulary lists them, which the original tokenizer wrote."""
    name = name_of(tokenizer)
    if name not in WITH_IDS:
        pytest.skip("llama.cpp has no expected ids for it")
    cases = expected(name)
    assert len(cases) >= 46
    assert not any(SEPARATOR.strip() in text for text, _ in cases)
    for text, ids in cases:
        assert tokenizer.encode(text) == ids, repr(text)
        assert tokenizer.count(text) == len(ids)
