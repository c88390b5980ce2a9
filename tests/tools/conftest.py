"""One process with vLLM's parsers, for all tests of this folder: they take long to import."""

from collections.abc import Iterator

import pytest
from parsers import Vllm


@pytest.fixture(scope="session")
def vllm() -> Iterator[Vllm]:
    parsers = Vllm()
    yield parsers
    parsers.close()
