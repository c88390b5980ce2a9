"""`python -m maskbench speed logits`: that it runs, compares, and makes the masks that it says."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.figures.records import record_of
from maskbench.speed.logits import masks, measure
from maskbench.speed.logits.ways import Way


@pytest.fixture
def keep_threads():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("keep_threads")
def test_every_way_is_timed(tmp_path):
    out = tmp_path / "logits.json"
    shape = ["--batch", "1", "--batch", "3", "--width", "1000", "--density", "0.5"]
    effort = ["--schemas", "5", "--rounds", "2", "--calls", "1", "--out", str(out)]
    result = CliRunner().invoke(
        main, ["speed", "logits", "--tokenizer", "builtin", *shape, *effort]
    )
    assert result.exit_code == 0, result.output
    cells = json.loads(out.read_text())["cells"]
    assert len(cells) == 3 * 2 * 2
    for cell in cells:
        assert set(cell["us"]) >= {"ffwd", "where", "unpackbits + where", "shifts + where"}
        assert cell["us"]["ffwd"]["ratio"] == 1
        assert 0 < cell["allowed"] < 1
        assert all(0 < timing["best"] <= timing["median"] for timing in cell["us"].values())
    assert "bfloat16 on cpu" in result.output
    record = record_of(out)
    assert record["width"] == 1000
    assert set(record["cells"]["float32"]) == {"50.0% of the bits", "grammars, builtin"}
    assert record["cells"]["float32"]["50.0% of the bits"]["3"]["where"] > 0


def test_a_device_that_is_not_there_is_named():
    result = CliRunner().invoke(
        main, ["speed", "logits", "--device", "cuda:99", "--tokenizer", "none"]
    )
    assert result.exit_code == 1
    assert "torch cannot use cuda:99" in result.output


@pytest.mark.parametrize("density", [0.0, 0.25, 1.0])
def test_random_masks_have_their_density(density):
    made = masks.random_masks(3, 10_001, density)
    assert masks.share(made, 10_001) == pytest.approx(density, abs=0.02)
    past_the_end = np.unpackbits(made.view(np.uint8), axis=1, bitorder="little")[:, 10_001:]
    assert not past_the_end.any()


def test_a_wrong_result_is_no_figure():
    logits = torch.zeros(1, 40)
    source = torch.ones(1, 40)
    ways = [
        Way("ffwd", lambda: logits.index_fill_(1, torch.arange(1, 40), -torch.inf)),
        Way("where", lambda: source.clone()),
    ]
    with pytest.raises(measure.WrongResultError, match=r"ffwd differs .* row 0, column 1"):
        measure.compare(ways, logits, source)
