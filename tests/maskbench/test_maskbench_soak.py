"""`python -m maskbench conformance soak`: that it sees memory grow, and that it says so."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from click.testing import CliRunner

from ffwd.adapters.shared.requests import grammar_of
from maskbench.__main__ import main
from maskbench.conformance.soak import grammars
from maskbench.conformance.soak.memory import TOLERANCE_BYTES, Curve, Sample, allowed
from maskbench.conformance.soak.plot import svg

MIB = 1 << 20


def curve(*mebibytes: float) -> Curve:
    """Samples at equal distances."""
    total = 100 * (len(mebibytes) - 1)
    samples = [Sample(100 * at, int(size * MIB)) for at, size in enumerate(mebibytes)]
    return Curve("tests", total, samples)


@pytest.mark.parametrize(
    ("sizes", "grew"),
    [
        # Caches fill, then nothing more.
        ((50, 90, 100, 100, 100, 100, 100, 100, 100), False),
        ((50, 90, 100, 100, 100, 100, 100, 107, 107), False),
        ((50, 90, 100, 100, 100, 100, 100, 109, 100), True),
        # 2% of much is more than 8 MiB.
        ((500, 900, 1000, 1000, 1000, 1000, 1000, 1019, 1019), False),
        ((500, 900, 1000, 1000, 1000, 1000, 1000, 1021, 1021), True),
        # Less is never growth.
        ((200, 200, 200, 200, 100, 100, 100, 100, 100), False),
    ],
)
def test_the_rule(sizes: tuple[float, ...], grew: bool) -> None:
    assert curve(*sizes).verdict().grew is grew


LEAKING = """
from maskbench.conformance.soak.memory import record

kept = []

def leak(_):
    kept.append(bytes(range(256)) * 4096)
    return 1

leaking = record("leaks", 64, 64, leak)
assert leaking.verdict().grew
assert leaking.samples[-1].resident_bytes - leaking.samples[0].resident_bytes > 32 << 20
assert not record("nothing", 64, 64, lambda _: 1).verdict().grew
"""


def test_what_is_kept_is_seen() -> None:
    """In a process of its own: in a large one 64 MiB are less than what the rule allows."""
    subprocess.run([sys.executable, "-c", LEAKING], check=True, timeout=600)


def test_grammars_are_different_and_of_all_kinds() -> None:
    requests = [grammars.different(number) for number in range(400)]
    assert len(set(requests)) == 400
    assert {request.kind for request in requests} == {"json", "regex", "choice", "grammar"}
    for request in requests[:40]:
        grammar_of(request)


def test_the_picture_has_every_sample() -> None:
    picture = ElementTree.fromstring(svg([curve(50, 90, 100, 100, 100), curve(1, 2, 3, 2, 2)]))
    lines = picture.findall("{*}polyline")
    assert [len(line.attrib["points"].split()) for line in lines] == [5, 5]


def test_a_short_run(tmp_path: Path) -> None:
    out, plot = tmp_path / "soak.json", tmp_path / "soak.svg"
    done = CliRunner().invoke(
        main,
        ["conformance", "soak", "--accepts", "2000", "--matchers", "200", "--grammars", "100",
         "--looks", "20", "--out", str(out), "--plot", str(plot)],
    )  # fmt: skip
    document = json.loads(out.read_text(encoding="utf-8"))
    assert document["format"] == "maskbench-soak-1"
    parts = {part["name"]: part for part in document["parts"]}
    assert [parts[name]["total"] for name in ("accepts", "matchers", "grammars")] == [
        2000,
        200,
        100,
    ]
    for part in parts.values():
        assert len(part["samples"]) >= 20
        assert part["verdict"]["allowed"] >= part["verdict"]["second_quarter"] + TOLERANCE_BYTES
    left = document["let_go"]
    assert left["after"] <= allowed(left["before"]), left
    # So short a run may well fill caches to its end.
    assert done.exit_code == any(part["verdict"]["grew"] for part in parts.values())
    assert len(ElementTree.parse(plot).getroot().findall("{*}polyline")) == 3
