"""The families of growing schemas, the long outputs, and how they are measured."""

import json
from pathlib import Path

import jsonschema_rs
import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup
from maskbench.engines.ffwd import FfwdEngine
from maskbench.figures.records import record_of
from maskbench.speed.growth.measure import SchemaGrowth, SizeCost, output_growth, schema_growth
from maskbench.speed.growth.outputs import OUTPUTS
from maskbench.speed.growth.schemas import FAMILIES, Family, name_of
from maskbench.tokenizer import HuggingFaceEncoder, resolve


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return resolve("builtin", tmp_path_factory.mktemp("tokenizer"))


def engine_of(spec):
    return FfwdEngine(EngineSetup(spec, Whitespace.FLEXIBLE, cold_store=True))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_documents_are_valid_and_sizes_grow_tenfold(family):
    assert all(b == 10 * a for a, b in zip(family.sizes, family.sizes[1:], strict=False))
    for size in family.sizes[:2]:
        schema, document = family.make(size)
        assert jsonschema_rs.validator_for(schema).is_valid(document)


def test_names_differ():
    assert len({name_of(number) for number in range(20_000)}) == 20_000


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda output: output.name)
def test_long_outputs_are_valid_and_always_the_same(spec, output):
    encoder = HuggingFaceEncoder(spec)
    tokens = output.tokens(encoder, 3_000)
    assert 3_000 <= len(tokens) < 6_000
    assert tokens == output.tokens(encoder, 3_000)
    text = encoder._tokenizer.decode(tokens.tolist(), skip_special_tokens=False)
    assert jsonschema_rs.validator_for(output.schema).is_valid(json.loads(text))


def test_growth_is_measured(spec):
    encoder = HuggingFaceEncoder(spec)
    engine = engine_of(spec)
    (growth,) = output_growth(engine, encoder, OUTPUTS[:1], 1_000)
    assert growth.tokens >= 1_000
    assert len(growth.cold) == len(growth.known) == 10
    assert growth.ratio(growth.known) > 0
    refused = Family("refused", (10, 100), lambda size: ({"pattern": r"(a)\1"}, "aa"))
    first, second = schema_growth(engine, encoder, [FAMILIES[0], refused], largest=100)
    assert [cost.size for cost in first.costs] == [10, 100]
    assert all(cost.first_mask > 0 and cost.mask_slowest > 0 for cost in first.costs)
    assert len(first.per_tenfold()) == 1
    assert all(cost.problem for cost in second.costs)
    assert second.per_tenfold() == ()


def test_ratios_are_those_of_neighbours():
    costs = (SizeCost(10, 1, 2.0), SizeCost(100, 1, 6.0), SizeCost(1000, 1, 30.0))
    assert SchemaGrowth("x", costs).per_tenfold() == (3.0, 5.0)


def test_the_command_writes_what_it_shows(tmp_path):
    out = Path(tmp_path, "growth.json")
    result = CliRunner().invoke(
        main,
        ["speed", "growth", "--tokens", "1000", "--history", "200", "--largest", "10",
         "--family", "numbers", "--out", str(out)],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    document = json.loads(out.read_text(encoding="utf-8"))
    assert [growth["name"] for growth in document["outputs"]] == ["an array of numbers"]
    assert [growth["name"] for growth in document["schemas"]] == ["enum of numbers"]
    assert document["memory"][0]["tokens"] == 200
    record = record_of(out)
    assert record["outputs"]["an array of numbers"]["first"] > 0
    assert set(record["versions"]) == {"ffwd"}
    assert "last / first" in result.output
    assert "enum of numbers" in result.output
