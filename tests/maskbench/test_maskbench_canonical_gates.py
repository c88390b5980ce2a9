"""The gates for forced tokens and canonical masks: that they pass, and that they can fail."""

import json
from collections import Counter
from math import ceil
from pathlib import Path
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner

import ffwd
from maskbench.__main__ import main
from maskbench.conformance.canonical.walks import quantile
from maskbench.conformance.canonical.wander import Wanderer, _drawn
from maskbench.conformance.gates.walks import VocabularyTokens

ROOT = Path(__file__).resolve().parents[2]


def invoke(*arguments):
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize("mode", ["A", "C", "D"])
def test_exact_forcing_holds_however_the_text_goes_on(mode):
    result = invoke(
        "conformance", "continuations", "--sample", "25", "--compared", "150", "--mode", mode
    )
    assert result.exit_code == 0, result.output
    assert "failures: 0" in result.output
    assert int(result.output.split("seed 0: ")[1].split()[0]) > 100


def test_continuations_show_that_naive_forcing_is_wrong(tmp_path):
    out = tmp_path / "wrong.json"
    result = invoke(
        "conformance", "continuations", "--variant", "k=0", "--sample", "10", "--compared", "60",
        "--mode", "C", "--out", str(out),
    )  # fmt: skip
    assert result.exit_code == 1
    document = json.loads(out.read_text(encoding="utf-8"))
    failure = document["failures"][0]
    assert failure["forced"] != failure["encoded"]
    json.loads(failure["text"])


def test_walks_under_canonical_masks_are_their_own_encoding(tmp_path):
    out = tmp_path / "walks.json"
    result = invoke("conformance", "canonical-walks", "--sample", "12", "--out", str(out))
    assert result.exit_code == 0, result.output
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["schemas"] == 12
    times = document["mask_us"]
    assert 0 < times["p50"] <= times["p99"] <= times["p99.9"] <= times["slowest"]
    assert times["average"] <= times["slowest"]
    for walked in document["ways"].values():
        assert walked["walks"] == 36
        parts = ("equal", "unequal_after_fallback", "unfinished", "unreadable")
        assert sum(walked[part] for part in parts) == 36
        assert walked["equal"] > 0
        assert sum(walked["fallbacks"].values()) >= walked["fell_back"]


def test_quantiles_are_those_of_the_sorted_values():
    values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    counts = Counter(values)
    for share in (0.01, 0.1, 0.5, 0.55, 0.9, 0.91, 1.0):
        assert quantile(counts, share) == sorted(values)[ceil(share * len(values)) - 1]
    assert quantile(Counter(), 0.5) == 0


@pytest.mark.parametrize("allowed", [[], [7], [0, 99], list(range(100))])
def test_tokens_are_drawn_from_those_allowed(allowed):
    bits = np.zeros(100, dtype=np.bool_)
    bits[allowed] = True
    drawn = {_drawn(bits, Random(seed)) for seed in range(2000)}
    assert drawn == (set(allowed) or {None})


def test_directed_steps_close_what_is_open():
    longer = [b'"}', b'"},"', b"}}", b'":', b"ab"]
    texts = [*(bytes([byte]) for byte in range(256)), *longer, None]
    wanderer = Wanderer(VocabularyTokens(ffwd.Vocabulary(texts, eos_token_ids=[len(texts) - 1])))
    outside = [texts[i] for i in wanderer._outside]
    assert outside[0] == b"}}"
    assert outside.index(b"}") < outside.index(b":") < outside.index(b"{")
    inside = [texts[i] for i in wanderer._inside]
    assert inside == [b'"}', b'"},"', b'":', b'"']
    assert wanderer.by_text[b"ab"] == [texts.index(b"ab")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "nonesuch.jsonl"], "no such file"),
        (["--tokenizer", "nonesuch"], "neither a folder nor one of"),
        (["--slice", "0/2"], "expected 1 <= i <= n"),
        (["--mode", "B"], "--mode"),
    ],
)
@pytest.mark.parametrize("command", ["continuations", "canonical-walks"])
def test_bad_options_are_explained(command, arguments, message):
    result = invoke("conformance", command, *arguments)
    assert result.exit_code != 0
    assert message in result.output
