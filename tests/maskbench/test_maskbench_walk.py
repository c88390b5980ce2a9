"""Random mask walks of any engine: how each way to go wrong is told, and that walks repeat."""

import json
import random

import numpy as np
import pytest
from click.testing import CliRunner

from maskbench.__main__ import main
from maskbench.conformance.gates.walks import Ending, Tokens, Walker
from maskbench.data import BUILTIN_CORPUS, parse_case, read_sources
from maskbench.engines.base import Session

WANTED = ("builtin_tree", "builtin_person", "builtin_logger", "builtin_expression")
FAKE = "maskbench_fake_engine:FakeEngine"

CASES = {
    "valid": {"language": ['{"a":1}', "[]"]},
    "both": {"language": ["[1]"], "type": "string"},
    "no json": {"language": ["[1"]},
    "twice": {"language": ['{"a":1,"a":2}']},
    "control": {"language": ['"\n"']},
    "empty mask": {"language": ["12"], "behave": "no way on"},
    "refused token": {"language": ["12"], "behave": "accept nothing"},
    "raises": {"language": ["12"], "behave": "fail at the second byte"},
    "reports": {"language": ["12"], "behave": "error state at the end"},
    "not taken": {"language": ["12"], "behave": "refuse"},
    "no compile": {"language": ["12"], "behave": "raise while compiling"},
    "dies": {"language": ["12"], "behave": "abort at the second byte"},
    "dies early": {"language": ["12"], "behave": "abort"},
}


def walk(*arguments):
    return CliRunner().invoke(main, ["conformance", "walk", *map(str, arguments)])


def write_cases(folder, cases):
    data = folder / "cases.jsonl"
    lines = [json.dumps({"id": name, "schema": s, "tests": []}) for name, s in cases.items()]
    data.write_text("\n".join([*lines, "{broken"]), encoding="utf-8")
    return data


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walks")
    out = folder / "walks.json"
    data = write_cases(folder, CASES)
    result = walk(
        "--engine", FAKE, "--tokenizer", "bytes", "--data", data, "--out", out,
        "--per-schema", 2, "--show", 50,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return result.output, json.loads(out.read_text(encoding="utf-8"))


def test_each_way_to_end_is_told(finished):
    output, document = finished
    engine = document["engines"][FAKE]
    endings = {}
    for failure in engine["failures"]:
        endings.setdefault(failure["id"], []).append(failure["ending"])
    assert endings == {
        "both": ["invalid by both validators"] * 2,
        "no json": ["not JSON"] * 2,
        "twice": ["a key twice"] * 2,
        "control": ["not JSON"] * 2,
        "empty mask": ["empty mask"] * 2,
        "refused token": ["accept refused"] * 2,
        "raises": ["failed"] * 2,
        "reports": ["failed"] * 2,
        # Given up after the first, for the second would hardly do better.
        "dies": ["process lost"],
        "dies early": ["process lost"],
        "no compile": ["not compiled"],
    }
    assert engine["versions"] == {"fake": "1"}
    assert engine["refused_reasons"] == {"unsupported: fake": 1}
    assert engine["counts"]["valid"] == 2
    assert engine["counts"]["dead ends"] == 4
    assert engine["counts"]["schemas refused"] == 1
    assert engine["counts"]["schemas not compiled"] == 1
    assert engine["counts"]["timed out"] == 0
    for text in ("empty mask walk 0: empty mask: no token is allowed", "Seed 0.", "--only ID"):
        assert text in output
    assert "cases.jsonl:14: not JSON" in output
    assert len(document["broken"]) == 1


def test_a_failure_has_its_tokens_and_text(finished):
    _, document = finished
    failures = {f["id"]: f for f in document["engines"][FAKE]["failures"]}
    assert failures["twice"]["tokens"] == list(b'{"a":1,"a":2}')
    assert failures["twice"]["text"] == '{"a":1,"a":2}'
    assert "a key twice" in failures["twice"]["detail"]
    assert failures["both"]["detail"].startswith("jsonschema-rs: ")
    assert "; jsonschema: " in failures["both"]["detail"]
    assert "status -6" in failures["dies"]["detail"]


def test_a_process_that_hangs_is_killed_and_its_schema_given_up(tmp_path):
    data = write_cases(
        tmp_path, {"hang": {"language": ["1"], "behave": "hang"}, "x": CASES["valid"]}
    )
    out = tmp_path / "out.json"
    result = walk(
        "--engine", FAKE, "--tokenizer", "bytes", "--data", data, "--out", out, "--time-limit", 0.5
    )
    assert result.exit_code == 0, result.output
    counts = json.loads(out.read_text(encoding="utf-8"))["engines"][FAKE]["counts"]
    assert (counts["timed out"], counts["valid"], counts["walks"]) == (1, 4, 5)


@pytest.mark.parametrize(
    ("names", "status"), [(["valid", "not taken"], 0), (["valid", "twice"], 1)]
)
def test_strict_fails_where_a_walk_did(tmp_path, names, status):
    data = write_cases(tmp_path, {name: CASES[name] for name in names})
    result = walk("--engine", FAKE, "--tokenizer", "bytes", "--data", data, "--strict")
    assert result.exit_code == status, result.output


def test_walks_repeat_whatever_other_schemas_there_are(tmp_path):
    """The same document for the same seed, id and number; others for another seed."""
    seen = []
    for name, options in (
        ("all", ["--sample", 8]),
        ("again", ["--only", "builtin_tree", "--only", "builtin_person"]),
        ("other", ["--only", "builtin_tree", "--only", "builtin_person", "--seed", 1]),
    ):
        out = tmp_path / f"{name}.json"
        data = tmp_path / "some.jsonl"
        chosen = (
            source.text
            for source in read_sources(BUILTIN_CORPUS)
            if parse_case(source).id in WANTED
        )
        data.write_text("\n".join(chosen), encoding="utf-8")
        # Too short for any of them, so that all are in the file.
        result = walk(
            "--engine", "ffwd", "--data", data, "--out", out, "--max-tokens", 20,
            "--per-schema", 3, *options,
        )  # fmt: skip
        assert result.exit_code == 0, result.output
        failures = json.loads(out.read_text(encoding="utf-8"))["engines"]["ffwd"]["failures"]
        seen.append({(f["id"], f["walk"]): f["tokens"] for f in failures})
    everything, again, other = seen
    assert len(again) >= 4
    assert again.items() <= everything.items()
    shared = set(other) & set(again)
    # Not all, since only the schema's own text may be long enough for a walk.
    assert sum(other[place] != again[place] for place in shared) >= 3


@pytest.mark.parametrize("engine", ["ffwd", "ffwd-any"])
@pytest.mark.parametrize("tokenizer", ["bytes", "builtin"])
def test_ffwd_has_no_dead_ends(tmp_path, engine, tokenizer):
    result = walk(
        "--engine", engine, "--tokenizer", tokenizer, "--sample", 12, "--per-schema", 2,
        "--whitespace", "compact", "--strict",
    )  # fmt: skip
    assert result.exit_code == 0, result.output


def test_generated_schemas_are_walked_on(tmp_path):
    out = tmp_path / "out.json"
    result = walk(
        "--engine", "ffwd-any", "--tokenizer", "bytes", "--generated", "--sample", 30,
        "--whitespace", "compact", "--strict", "--out", out,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    counts = json.loads(out.read_text(encoding="utf-8"))["engines"]["ffwd-any"]["counts"]
    assert counts["valid"] > 40


def test_what_another_engine_lets_through_is_found(tmp_path):
    """llguidance does not look whether a key comes twice."""
    pytest.importorskip("llguidance")
    schema = {
        "type": "object",
        "patternProperties": {"^[ab]$": {"type": "null"}},
        "additionalProperties": False,
        "minProperties": 3,
    }
    data = write_cases(tmp_path, {"keys": schema})
    out = tmp_path / "out.json"
    result = walk("--engine", "llguidance", "--data", data, "--out", out, "--show", 1)
    assert result.exit_code == 0, result.output
    counts = json.loads(out.read_text(encoding="utf-8"))["engines"]["llguidance"]["counts"]
    assert counts["a key twice"] == counts["walks"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "nonesuch"], "known: ffwd"),
        (["--engine", ","], "names no engine"),
        (["--tokenizer", "nonesuch"], "neither a folder nor one of builtin, builtin-128k, bytes"),
        (["--data", "nonesuch.jsonl"], "no such file"),
        (["--only", "nonesuch"], "no schema nonesuch"),
        (["--slice", "3/2"], "expected 1 <= i <= n"),
        (["--engine", "maskbench_fake_engine:NotInstalledEngine"], "pip install nothing"),
    ],
)
def test_bad_options_are_explained(arguments, message):
    result = walk(*arguments)
    assert result.exit_code != 0
    assert isinstance(result.exception, SystemExit)
    assert message in result.output


def test_a_special_token_in_a_mask_is_a_dead_end():
    """One that has no text can neither be written nor ends anything."""
    bitmask = np.zeros(1, dtype=np.int32)
    tokens = Tokens([b"1", None, None], [2], bitmask)

    def fill():
        bitmask[0] = 0b010

    walker = Walker({}, lambda: Session(fill, lambda token: True, lambda: None), tokens)
    ended = walker.walk(random.Random(0))
    assert (ended.ending, ended.detail) == (Ending.NO_TEXT, "the mask allows token 1")


def test_a_walk_without_an_end_is_too_long():
    bitmask = np.zeros(1, dtype=np.int32)
    tokens = Tokens([b"1", None], [1], bitmask)

    def fill():
        bitmask[0] = 0b01

    walker = Walker({}, lambda: Session(fill, lambda token: True, lambda: None), tokens, 30)
    ended = walker.walk(random.Random(0))
    assert (ended.ending, ended.text, ended.tokens) == (Ending.ENDLESS, b"1" * 30, (0,) * 30)
