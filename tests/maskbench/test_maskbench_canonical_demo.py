"""The demonstration in small: what naive forcing does to a model that knows one tokenization."""

import json
import random

import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.canonical_demo import command
from maskbench.canonical_demo.experiment import Settings, run, train_tokenizer
from maskbench.canonical_demo.model import ModelSize
from maskbench.canonical_demo.records import NAMES, draw_record, schema

MASKS, NAIVE, CANONICAL = range(3)
SMALL = Settings(
    size=ModelSize(width=64, layers=2),
    steps=250,
    batch=32,
    training_records=4000,
    test_records=16,
    cut_share=0.0,
)


@pytest.fixture(scope="module")
def outcome():
    return run(command.ways(), SMALL)


def test_order_id_is_one_token_and_order_name_two():
    tokenizer = train_tokenizer(random.Random(0))
    assert tokenizer.encode("orderId").tokens == ["orderId"]
    assert tokenizer.encode("orderName").tokens == ["order", "Name"]


def test_records_are_valid_and_begin_alike():
    jsonschema = pytest.importorskip("jsonschema")
    source = random.Random(0)
    records = [draw_record(source) for _ in range(200)]
    for record in records:
        jsonschema.validate(record.value, schema())
        assert record.text.startswith('{"order')
        assert json.loads(record.text) == record.value
    assert {next(iter(record.value)) for record in records} == {"orderId", "orderName"}
    assert {record.value.get("orderName", "Ada") for record in records} == set(NAMES)


def test_naive_forcing_takes_the_key_that_its_tokens_begin(outcome):
    (model,) = outcome.models
    compact = model.results["compact"]
    for way in (MASKS, CANONICAL):
        assert min(compact[way].key_right.values()) > 0.9
    # After the forced `order` the model goes on as it always has.
    assert compact[NAIVE].key_right["orderId"] < 0.5
    assert compact[NAIVE].key_right["orderName"] > 0.9


def test_canonical_forcing_costs_nothing_and_spares_the_model_tokens(outcome):
    (model,) = outcome.models
    for results in model.results.values():
        masks, naive, canonical = results
        assert canonical.record_right == masks.record_right
        assert canonical.state_right == masks.state_right
        assert canonical.tokens == pytest.approx(masks.tokens, abs=1e-3)
        assert canonical.choices >= masks.choices - 1e-3
        assert canonical.chosen_tokens < masks.chosen_tokens - 3
        assert canonical.unfinished == 0
        assert naive.tokens < canonical.tokens - 20
        assert naive.choices < canonical.choices - 2
        assert 0 <= naive.record_right <= canonical.record_right


def test_command_writes_its_figures(tmp_path, monkeypatch):
    """With a model that has learned next to nothing."""
    monkeypatch.setattr(
        "maskbench.canonical_demo.experiment.Settings",
        lambda: Settings(size=ModelSize(width=32, layers=1), training_records=100, batch=8),
    )
    out = tmp_path / "demo.json"
    result = CliRunner().invoke(
        main, ["canonical-demo", "--steps", "3", "--records", "2", "--out", str(out)]
    )
    assert result.exit_code == 0, result.output
    assert "trained with 10% of the records cut at random" in result.output
    document = json.loads(out.read_text(encoding="utf-8"))
    assert [model["cut_share"] for model in document["models"]] == [0.0, 0.1]
    for model in document["models"]:
        for results in model["results"].values():
            assert [row["way"] for row in results] == [way.name for way in command.ways()]
    table = out.with_suffix(".md").read_text(encoding="utf-8")
    assert table.count("| naive forcing |") == 4
