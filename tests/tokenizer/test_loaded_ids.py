"""Ids and texts are the reference library's, from every format that a tokenizer can be had in."""

from pathlib import Path

import loadedfamilies
import pytest
from loadedfamilies import family, texts

from ffwd.tokenizer import Tokenizer, load

CASES = [(name, source) for name in loadedfamilies.NAMES for source in loadedfamilies.SOURCES[name]]


@pytest.fixture(scope="module", params=CASES, ids="-".join)
def loaded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[loadedfamilies.Family, Tokenizer]:
    name, source = request.param
    own = family(name)
    folder: Path = tmp_path_factory.mktemp(name)
    return own, load(own.sources[source](folder))


def test_ids(loaded: tuple[loadedfamilies.Family, Tokenizer]) -> None:
    own, tokenizer = loaded
    expected = [own.encode(text) for text in texts()]
    assert tokenizer.encode_batch(texts()) == expected
    for text, ids in zip(texts(), expected, strict=True):
        assert tokenizer.encode(text) == ids, text
        assert tokenizer.count(text) == len(ids)


def test_texts(loaded: tuple[loadedfamilies.Family, Tokenizer]) -> None:
    own, tokenizer = loaded
    ids = [own.encode(text) for text in texts()]
    assert tokenizer.decode_batch(ids) == [own.decode(i) for i in ids]
