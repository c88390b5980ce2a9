"""Grammars of a file that are compiled before requests need them."""

import json
import logging

import pytest

from ffwd import Vocabulary, allocate_bitmask
from ffwd.adapters.shared.cache import GrammarCache
from ffwd.adapters.shared.requests import GrammarRequest
from ffwd.adapters.shared.warming import (
    Warming,
    WarmingError,
    build_masks,
    constraint,
    start_warming,
)
from ffwd.engine import EngineRequest

LOGGER = logging.getLogger("tests.warming")
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"enum": [1, 2]}},
    "required": ["name", "size"],
    "additionalProperties": False,
}


@pytest.fixture
def cache():
    tokens = [*(bytes([byte]) for byte in range(256)), None]
    made = GrammarCache(Vocabulary(tokens, eos_token_ids=[256]))
    yield made
    made.close()


@pytest.fixture
def write(tmp_path):
    def lines(*texts):
        path = tmp_path / "warm.jsonl"
        path.write_text("\n".join(texts), encoding="utf-8")
        return path

    return lines


def request_of(line):
    return GrammarRequest(*constraint(line))


def warmed(path, cache):
    def build(request):
        build_masks(cache.get(request, counts=False), narrow=True)

    warming = Warming(path, read=request_of, build=build, logger=LOGGER).start()
    warming.join(600)
    return warming


def test_grammars_are_compiled_with_their_first_masks(cache, write, caplog):
    """A request finds its grammar, and its first token computes nothing."""
    caplog.set_level(logging.INFO)
    path = write(
        json.dumps({"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}}),
        "",
        json.dumps({"structured_outputs": {"regex": "[a-z]+\u2028"}}, ensure_ascii=False),
    )
    warmed(path, cache)
    asked = [GrammarRequest("json", json.dumps(SCHEMA)), GrammarRequest("regex", "[a-z]+\u2028")]
    for request in asked:
        grammar = cache.kept(request)
        assert grammar is not None
        computed = grammar.stats()["masks_computed"]
        row = allocate_bitmask(1, 257)
        EngineRequest(grammar, None, narrow=True).fill_bitmask(row, 0)
        assert grammar.stats()["masks_computed"] == computed > 0
    assert f"2 grammars of {path} are warm" in caplog.text
    assert "0 were refused" in caplog.text


def test_a_refused_grammar_names_its_line_and_stops_no_other(cache, write, caplog):
    path = write(
        json.dumps({"structured_outputs": {"json": {"type": "string", "minLength": "no"}}}),
        json.dumps({"structured_outputs": {"choice": ["yes", "no"]}}),
    )
    warmed(path, cache)
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert f"{path}, line 1: InvalidSchemaError" in record.getMessage()
    assert cache.kept(GrammarRequest("choice", '["yes", "no"]')) is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting"),
        ("[]", "must be a JSON object"),
        ("{}", "fields none"),
        ('{"type": "object"}', "fields 'type'"),
        ('{"structured_outputs": {}}', "exactly one of"),
        ('{"structured_outputs": {"json": {}, "regex": "a"}}', "exactly one of"),
        ('{"structured_outputs": {"yaml": "a"}}', "exactly one of"),
        ('{"structured_outputs": {"json_object": false}}', "must be true"),
        ('{"structured_outputs": {"json": {}}, "model": "m"}', "'model'"),
        ('{"response_format": {"type": "text"}}', "'text'"),
        ('{"response_format": "json_object"}', "None"),
        ('{"response_format": {"type": "json_schema"}}', "schema is missing"),
        ("[" * 100_000, "recursion"),
    ],
)
def test_a_line_that_names_no_grammar_is_refused_at_the_start(write, text, reason):
    path = write(json.dumps({"structured_outputs": {"json": True}}), "", text)
    with pytest.raises(WarmingError, match="line 3") as caught:
        Warming(path, read=request_of, build=request_of, logger=LOGGER)
    assert reason in str(caught.value)
    assert (caught.value.path, caught.value.line) == (path, 3)


def test_a_file_that_cannot_be_read(tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff")
    for path in (tmp_path / "missing", tmp_path, binary):
        with pytest.raises(WarmingError) as caught:
            Warming(path, read=request_of, build=request_of, logger=LOGGER)
        assert (caught.value.path, caught.value.line) == (path, None)


def test_the_variable_names_the_file(cache, write, monkeypatch):
    monkeypatch.delenv("FFWD_WARM", raising=False)
    assert start_warming(request_of, cache.get, LOGGER) is None
    path = write('{"response_format": {"type": "json_object"}}')
    monkeypatch.setenv("FFWD_WARM", str(path))
    warming = start_warming(request_of, cache.get, LOGGER)
    assert warming is not None
    warming.join(600)
    assert cache.kept(GrammarRequest("json_object")) is not None


def test_a_stopped_thread_compiles_no_more(write):
    path = write(*['{"response_format": {"type": "json_object"}}'] * 9)
    built = []

    def build(request):
        built.append(request)
        if len(built) == 2:
            warming.stop()

    warming = Warming(path, read=request_of, build=build, logger=LOGGER)
    warming.start()
    warming.join(600)
    assert len(built) == 2
