"""Ids and texts are the reference library's, from every format that a tokenizer can be had in."""

from pathlib import Path

import loadedfamilies
import pytest
from loadedfamilies import expected, family, texts

from ffwd.tokenizer import Tokenizer, load

CASES = [(name, source) for name in loadedfamilies.NAMES for source in loadedfamilies.SOURCES[name]]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Tokenizer]:
    name, source = request.param
    folder: Path = tmp_path_factory.mktemp(name)
    return name, load(family(name).sources[source](folder))


def test_ids(loaded: tuple[str, Tokenizer]) -> None:
    name, tokenizer = loaded
    assert tokenizer.encode_batch(texts()) == expected(name)
    for text, ids in zip(texts(), expected(name), strict=True):
        assert tokenizer.encode(text) == ids, text
        assert tokenizer.count(text) == len(ids)


def test_texts(loaded: tuple[str, Tokenizer]) -> None:
    name, tokenizer = loaded
    decode = family(name).decode
    assert tokenizer.decode_batch(expected(name)) == [decode(ids) for ids in expected(name)]
