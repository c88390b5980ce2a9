"""Figures have one source: pages show what is recorded, of the versions that are installed."""

import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from maskbench_runs import ABOUT, many, run_of

from maskbench.__main__ import main
from maskbench.figures import pages
from maskbench.figures.pages import ROOT, expand, fill, outside, read_templates, stale_pages
from maskbench.figures.records import FiguresError, read_records, record_of, write_record

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PEERS = ("llguidance", "xgrammar")
# Their tables state current results; other pages have tables of options and the like.
PAGES = [ROOT / "README.md", ROOT / "docs/index.md", ROOT / "docs/performance.md"]
MARKED = [*PAGES, ROOT / "docs/guarantees.md", ROOT / "docs/maskbench.md"]


def pins() -> dict[str, str]:
    """The versions of the peers that the extra `bench` asks for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bench = project["optional-dependencies"]["bench"]
    return dict(each.split("==") for each in bench if each.startswith(PEERS))


def test_pages_show_what_is_recorded() -> None:
    stale = [str(page.relative_to(ROOT)) for page, _ in stale_pages()]
    assert not stale, "python -m maskbench report --pages writes them again"
    assert pages.marked_pages() == sorted(MARKED, key=lambda page: (page.parent != ROOT, page))


def test_records_and_pages_name_the_pinned_peers() -> None:
    found = pins()
    assert set(found) == set(PEERS)
    for name, record in read_records().items():
        for peer in PEERS:
            assert record["versions"].get(peer, found[peer]) == found[peer], (name, peer)
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        if page.parent.name == "notes":
            continue  # history
        named = re.findall(
            r"\b(llguidance|xgrammar) (\d+\.\d+\.\d+)", page.read_text(encoding="utf-8"), re.I
        )
        for peer, version in named:
            assert version == found[peer.lower()], (page.name, peer)


def test_the_headline_is_over_all_schemas() -> None:
    """The pages call them all schemas of the development part."""
    record = read_records()["maskbench"]
    assert record["data"]["chosen"] == record["data"]["schemas"]
    for engine in record["engines"].values():
        assert engine["schemas"] == record["data"]["schemas"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_table_has_a_figure_of_its_own(page: Path) -> None:
    rows = [line for line in outside(page.read_text(encoding="utf-8")).splitlines()
            if line.startswith("|")]  # fmt: skip
    # A version is no figure: adapters say which engines they support.
    cells = [cell.strip() for row in rows for cell in row.strip("|").split("|")]
    assert not [cell for cell in cells if re.fullmatch(r"[*~≈]*\d[\d.,]*( ?\S{1,3})?[*]*", cell)]


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.name)
def test_a_figure_that_is_edited_is_seen(page: Path) -> None:
    """Whichever digit it is."""
    text = page.read_text(encoding="utf-8")
    records, templates = read_records(), read_templates()
    marked = [match for match in pages._BLOCK.finditer(text) if re.search(r"\d", match["text"])]
    assert marked
    for match in marked:
        digit = re.search(r"\d", match["text"])
        assert digit is not None
        place = match.start("text") + digit.start()
        other = text[:place] + str(9 - int(text[place])) + text[place + 1 :]
        assert fill(other, records, templates) == text


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.name)
def test_no_line_of_prose_begins_with_a_marker(page: Path) -> None:
    """Markdown reads the rest of such a line as HTML."""
    lines = page.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if re.match(r"\s*([-*] )?<!-- figures: .* -->.", line)]


def test_every_template_is_used() -> None:
    used = {m["what"] for page in MARKED for m in pages._BLOCK.finditer(page.read_text("utf-8"))}
    assert set(read_templates()) == {what for what in used if "{" not in what}


def test_expressions() -> None:
    records = {"a": {"us": 4.534, "slow": 2_164_000, "n": 8481, "three": [1, 22.25, 333.3]}}
    for template, text in {
        "{a/us:n} and {a/us:t}": "4.53 and 4.53 µs",
        "{a/slow:t}": "2.16 s",
        "{a/n:,} {a/n}": "8,481 8481",
        "{a/n over a/us:x}": "1,871x",
        "{a/three:list}": "1.00, 22.2, 333",
        "{a/three/2:us}": "333",
    }.items():
        assert expand(template, records) == text


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("<!-- figures: {a/b} --><!-- end -->", "'b' is missing"),
        ("<!-- figures: {a/us:furlongs} --><!-- end -->", "no form 'furlongs'"),
        ("<!-- figures: {a/none:n} --><!-- end -->", "was not measured"),
        ("<!-- figures: stranger --><!-- end -->", "no template 'stranger'"),
        ("<!-- figures: {a/us} --> no end", "without its other half"),
        ("1 <!-- end -->", "without its other half"),
        ("<!-- figures: {a/us} --> <!-- figures: {a/us} --> <!-- end -->", "have no end"),
    ],
)
def test_what_cannot_be_filled_says_why(page: str, message: str) -> None:
    with pytest.raises(FiguresError, match=message):
        fill(page, {"a": {"us": 1.0, "none": None}}, {})


def test_a_run_becomes_a_record(tmp_path: Path) -> None:
    """By the command, with what the reports say of it, and no folder of the machine."""
    run = run_of(many(40))
    run.document |= ABOUT | {
        "command": "python -m maskbench run --data /data/private/some.jsonl --out ../x.json"
    }
    out = tmp_path / "run.json"
    run.write(out)
    record = record_of(out)
    assert record["command"] == "python -m maskbench run --data some.jsonl --out x.json"
    assert record["versions"] == {"ffwd": "0", "peer": "1"}
    assert record["measured"] == "2026-01-01"
    (pair,) = run.pairs
    beside = record["beside"]["peer"]
    assert beside["schemas"] == pair.schemas
    assert beside["ffwd"]["mask_us"]["avg"] == pytest.approx(
        pair.time("ffwd", "mask_us", "avg"), abs=1e-3
    )
    assert record["engines"]["peer"]["refused"] == len(run.logs["peer"].records) - pair.schemas
    folder = tmp_path / "recorded"
    folder.mkdir()
    write_record("some", record, folder)
    assert read_records(folder) == {"some": record}


def test_an_interrupted_run_is_not_recorded(tmp_path: Path) -> None:
    run = run_of(many(4))
    run.document |= ABOUT | {"complete": False}
    out = tmp_path / "run.json"
    run.write(out)
    with pytest.raises(FiguresError, match="finish it with --resume"):
        record_of(out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--check"], "--check goes with --pages"),
        ([], "Missing argument"),
        (["--pages", "--format", "csv"], "no other option"),
        (["x.json", "--pages"], "alone with none"),
        (["--record", "x"], "one file of results"),
        (["nonesuch.json", "--record", "x"], "nonesuch.json"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["report", *arguments])
    assert result.exit_code != 0
    assert message in result.output


def test_the_command_checks_pages() -> None:
    result = CliRunner().invoke(main, ["report", "--pages", "--check"])
    assert result.exit_code == 0, result.output
