"""Reports: one definition of the tables, drawn for terminals, documents, programs and browsers."""

import csv
import io
import json
import sys
from array import array
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner
from maskbench_runs import logs, many, record, run_of, wrong
from rich.console import Console

from maskbench import results
from maskbench.__main__ import main
from maskbench.report import renderers
from maskbench.report.command import render
from maskbench.report.contents import tables_of
from maskbench.report.figures import curves, scatters
from maskbench.report.html import page
from maskbench.report.run import Run
from maskbench.report.table import Column, Table, Unit, show
from maskbench.verdicts import SchemaRecord, Verdict
from maskbench.walk import Outcome

NASTY = "</script><img src=x onerror=alert(1)>'\"&\x1b[31m|*\n\ud800=1+1"


def by_key(run):
    return {table.key: table for table in tables_of(run)}


def column(table, name):
    index = [c.name for c in table.columns].index(name)
    return [row[index] for row in table.rows]


def test_times_are_over_the_masks_that_all_made():
    tables = by_key(run_of(logs()))
    own, common = tables["mask_own"], tables["mask_common"]
    assert column(own, "engine") == ["one", "two", "three"]
    assert column(own, "schemas") == [3, 3, 1]
    assert column(own, "masks") == [7, 6, 3]
    # All three pass the first schema, and one of them made but one mask of its second document.
    assert column(common, "masks") == [3, 3, 3]
    assert column(common, "max") == [3, 30, 29]
    assert column(common, "tokens/s") == pytest.approx([3e6 / 6, 3e6 / 60, 3e6 / 57])
    assert column(common, "with compile") == pytest.approx([3e6 / 16, 3e6 / 160, 3e6 / 147])
    assert column(tables["first_mask_common"], "p50") == [10, 100, 90]
    assert column(tables["forced_own"], "forced share") == [0.5, None, None]


def test_times_of_several_rounds_have_tables_of_minima(tmp_path):
    found = logs()
    for log in found.values():
        log.records = [SchemaRecord.of_rounds([each, _faster(each)]) for each in log.records]
    one = run_of(found)
    path = tmp_path / "run.json"
    one.write(path)
    for run in (one, Run.read(path)):
        tables = by_key(run)
        assert column(tables["mask_common"], "max") == [3, 30, 29]
        assert column(tables["min_mask_common"], "max") == [1.5, 15, 14.5]
        assert column(tables["min_first_mask_common"], "p50") == [5, 50, 45]
        assert column(tables["min_slowest_masks"], "µs")[:2] == [450, 25]
        assert "min_memory" not in tables
        assert "minimum of 1 rounds" in tables["min_mask_own"].title
        assert "Each round does the same work" in page([run])
    assert not any(key.startswith("min_") for key in by_key(run_of(logs())))


def _faster(record):
    first = None if record.first_mask_us is None else record.first_mask_us / 2
    halves = array("f", [us / 2 for us in record.mask_us])
    return replace(record, first_mask_us=first, mask_us=halves)


def test_verdicts_are_counted_and_differences_named():
    found = logs()
    found["one"].records += [wrong(4, Outcome.REJECTED), wrong(5, Outcome.ACCEPTED)]
    found["two"].records += [record(4, Verdict.CRASHED), record(5, Verdict.TIMED_OUT)]
    tables = by_key(run_of(found))
    verdicts = tables["verdicts"]
    assert column(verdicts, "wrong reject") == [1, 0, 0]
    assert column(verdicts, "wrong accept") == [1, 0, 0]
    assert column(verdicts, "crash") == [0, 1, 0]
    assert column(verdicts, "timeout") == [0, 1, 0]
    assert tables["refusals"].rows == (("two", "unsupported: x", 1),)
    assert ("id5", "wrong accept", "timed out", "not given") in tables["differences"].rows
    assert ("id4", "wrong reject", "crashed", "not given") in tables["differences"].rows
    assert sum(column(tables["difference_patterns"], "schemas")) == 4


def test_memory_is_shown_where_it_was_recorded():
    run = run_of(logs())
    about = run.engine("one")
    for name in ("start_memory_bytes", "peak_memory_bytes"):
        about.pop(name, None)
    run.engine("two").update(start_memory_bytes=2**20, peak_memory_bytes=5 * 2**30)
    for schema, peak in zip(run.engine("two")["schemas"], (3, 1, None, 2), strict=True):
        schema["peak_memory_bytes"] = peak
    memory = by_key(run)["memory"]
    assert memory.rows[0][2:] == (None, None, None, None)
    assert memory.rows[1][2:] == (2**20, 5 * 2**30, 2, 3)
    assert [show(v, Unit.BYTES) for v in memory.rows[1][2:4]] == ["1 MiB", "5.00 GiB"]


def test_times_have_three_digits_or_more_above_and_below_nothing():
    times = [show(us, Unit.MICROSECONDS) for us in (0.5, -12.34, 1234.5, -28806.95)]
    assert times == ["0.50", "-12.3", "1,234", "-28,807"]


def test_an_engine_alone_has_nothing_in_common():
    tables = by_key(run_of({"one": logs()["one"]}))
    assert "mask_own" in tables
    assert not {"mask_common", "differences"} & tables.keys()
    assert "Differences" not in page([run_of({"one": logs()["one"]})])


def test_an_engine_that_measured_nothing_is_shown():
    found = logs() | {"dead": many(0)["peer"]}
    for index in range(4):
        found["dead"].records.append(record(index, Verdict.CRASHED))
    run = run_of(found)
    assert by_key(run)["mask_own"].rows[3][3:] == (None,) * 11
    assert "dead" in page([run])
    assert "n/a" in render("markdown", [run])


def test_all_forms_have_the_same_values():
    run = run_of(logs())
    tables = tables_of(run)
    read = list(csv.DictReader(io.StringIO(render("csv", [run]))))
    document = json.loads(render("json", [run]))["runs"][0]["tables"]
    assert document.keys() == {table.key for table in tables}
    cells = iter(read)
    for table in tables:
        assert [tuple(row) for row in document[table.key]["rows"]] == list(table.rows)
        for number, row in enumerate(table.rows, 1):
            for head, value in zip(table.columns[1:], row[1:], strict=True):
                cell = next(cells)
                assert (cell["table"], cell["row"]) == (table.key, str(number))
                assert (cell["column"], cell["unit"]) == (head.name, head.unit.value)
                assert cell["value"] == ("" if value is None else str(value))
    assert next(cells, None) is None
    text = render("markdown", [run])
    assert "| one | 3 | 7 | 10.1 |" in text
    assert "| --- | ---: | ---: |" in text


def test_a_wide_table_is_turned_for_a_narrow_terminal():
    table = by_key(run_of(logs()))["mask_own"]
    shown = {}
    for width in (60, 200):
        out = io.StringIO()
        renderers.terminal(Console(file=out, width=width), [table])
        shown[width] = out.getvalue()
        assert max(map(len, shown[width].splitlines()[2:])) <= width
        assert "…" not in shown[width]
        assert "98,592" in shown[width]
    assert " p99.9 " in shown[60]
    assert len(shown[60].splitlines()) > len(shown[200].splitlines())


def test_strange_ids_steer_nothing():
    rows = (("x", NASTY, 1),)
    table = Table("t", "T", (Column("engine"), Column("id"), Column("n", Unit.COUNT)), rows)
    out = io.StringIO()
    renderers.terminal(Console(file=out, width=100, force_terminal=True), [table])
    assert "\x1b[31m|" not in out.getvalue()
    assert "\\x1b[31m|" in out.getvalue()
    text = renderers.markdown([("a_b <b>", [table])])
    assert "\\|\\*\\\\n\\\\ud800" in text
    assert "<img" not in text.replace("\\<img", "")
    assert json.loads(renderers.as_json([("t", [table])]))["runs"][0]["tables"]["t"]["rows"] == [
        list(rows[0])
    ]


class Elements(HTMLParser):
    """What a browser would make elements of."""

    def __init__(self):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_is_one_file_and_strange_text_is_text(tmp_path):
    found = many(30, prefix=NASTY)
    found["peer"].versions = {NASTY: NASTY}
    found["peer"].records[1] = record(1, Verdict.REFUSED, id=f"{NASTY}1", reason=NASTY)
    found[NASTY] = found.pop("peer")
    elements = Elements()
    elements.feed(page([run_of(found, NASTY)], run_of(many(30, prefix=NASTY, seed=1))))
    assert elements.tags.count("script") == 2
    ids = [value for name, value in elements.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    anchors = {v[1:] for k, v in elements.attributes if k == "href" and v.startswith("#")}
    assert anchors <= set(ids)
    assert not {"img", "iframe", "object", "base", "form", "a-b"} & set(elements.tags)
    assert not [name for name, _ in elements.attributes if name.startswith("on")]
    loaded = [v for k, v in elements.attributes if k in ("src", "href") and not v.startswith("#")]
    assert loaded == ["data:,"]
    assert any("</script><img src=x onerror=alert(1)>" in text for text in elements.text)
    # A lone surrogate has no UTF-8.
    page([run_of(found, NASTY)]).encode("utf-8")


def test_curves_keep_the_ends_and_the_tail():
    run = run_of(many(300))
    figure = {f.key: f for f in curves(run, "own")}["mask_own"]
    ours = figure.lines[0]
    samples = sorted(us for r in run.logs["ffwd"].records for us in r.mask_us)
    assert len(ours.points) < 300 < len(samples)
    assert ours.points[0][1] == pytest.approx(samples[0], rel=1e-3)
    assert ours.points[-1][1] == pytest.approx(samples[-1], rel=1e-3)
    nines, us = min(ours.points, key=lambda point: abs(point[0] - 2))
    rank = len(samples) * (1 - 10**-nines) + 0.5
    assert us == pytest.approx(samples[round(rank) - 1], rel=1e-3)
    assert [nines for nines, _ in ours.points] == sorted({nines for nines, _ in ours.points})
    assert "99.9" in [tick.label for tick in figure.x_ticks]


def test_ticks_are_where_the_times_are():
    ticks = curves(run_of(many(40)), "own")[0].y_ticks
    places = [tick.at for tick in ticks]
    assert places == sorted(places, reverse=True)
    labels = [tick.label for tick in ticks]
    assert labels[labels.index("100 ns") :][:5] == ["100 ns", "1 µs", "10 µs", "100 µs", "1 ms"]
    close = {"one": many(0)["ffwd"]}
    close["one"].records.append(record(0, documents=[[4.0, 5.0]], first=1.2e6))
    masks, first = curves(run_of(close), "own")
    assert [tick.label for tick in masks.y_ticks] == ["3 µs", "10 µs"]
    assert [tick.label for tick in first.y_ticks] == ["1 s", "3 s"]


def test_scatters_have_a_point_for_each_schema_that_both_pass():
    masks, first = scatters(run_of(many(70)))
    assert len(masks.ids) == len(first.ids) == 60
    assert sum(path.count("M") for path in masks.paths) == 60
    assert masks.faster == sum(x > y for x, y in zip(masks.xs, masks.ys, strict=True))
    assert masks.median > 1
    # A pair has its own masks in common, not those of a third engine.
    pair = next(f for f in scatters(run_of(logs())) if f.peer == "two")
    assert dict(zip(pair.ids, pair.ys, strict=True)) == {"id0": 2.5, "id3": 6}


@pytest.fixture
def written(tmp_path):
    out = tmp_path / "run.json"
    run_of(logs()).write(out)
    return out


def test_what_was_written_is_read_again(written):
    run = Run.read(written, "one")
    expected = run_of(logs())
    assert run.logs["one"].records == expected.logs["one"].records
    assert run.logs["two"].records == expected.logs["two"].records
    assert tables_of(run) == tables_of(expected)


def test_older_results_have_gaps_where_they_know_nothing(written):
    document = json.loads(written.read_text(encoding="utf-8"))
    del document["command"], document["machine"]
    for engine in document["engines"].values():
        engine["counts"].pop("out_of_memory", None)
        for schema in engine["schemas"]:
            schema.pop("peak_memory_bytes", None)
    written.write_text(json.dumps(document), encoding="utf-8")
    run = Run.read(written)
    assert column(by_key(run)["verdicts"], "out of memory") == [None] * 3
    assert "n/a" in page([run])


def test_the_page_says_how_the_run_was_made():
    elements = Elements()
    elements.feed(page([run_of(logs())]))
    text = " ".join(elements.text)
    for words in ("python -m maskbench run --engine one,two", "processor a fast one", "fake 1",
                  "vocab size 257", "memory limit 4.00 GiB"):  # fmt: skip
        assert words in text


def test_a_folder_that_cannot_be_written_is_named(written):
    result = CliRunner().invoke(main, ["report", str(written), "--out", f"{written}/report.md"])
    assert result.exit_code == 1
    assert "report.md: " in result.output


def test_a_page_without_its_template_engine_says_what_to_install(written, monkeypatch):
    monkeypatch.delitem(sys.modules, "maskbench.report.html", raising=False)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = CliRunner().invoke(main, ["report", str(written), "--format", "html"])
    assert result.exit_code == 1
    assert "pip install jinja2" in result.output
    assert CliRunner().invoke(main, ["report", str(written), "--format", "csv"]).exit_code == 0


@pytest.mark.parametrize("ending", ["csv", "json", "md", "html"])
def test_a_report_is_written_in_the_form_of_its_name(written, ending):
    out = written.parent / f"deep/report.{ending}"
    result = CliRunner().invoke(main, ["report", str(written), "--out", str(out)])
    assert result.exit_code == 0, result.output
    run = Run.read(written)
    form = {"md": "markdown"}.get(ending, ending)
    assert out.read_text(encoding="utf-8") == render(form, [run])
    printed = CliRunner().invoke(main, ["report", str(written), "--format", form]).output
    assert printed == render(form, [run])


def test_changes_against_an_earlier_run(tmp_path):
    now, then = logs(), logs()
    now["one"].records[1] = record(1, Verdict.REFUSED)
    now["one"].records[3] = record(3, documents=[[12]], first=60)
    # The same schemas in another order, of another sample.
    then["one"].records = [
        record(9 - r.index, r.verdict, id=r.id, documents=[list(r.mask_us)], first=r.first_mask_us)
        for r in reversed(then["one"].records)
        if r.index
    ]
    files = []
    for name, found in (("now.json", now), ("then.json", then)):
        files.append(tmp_path / name)
        run_of(found).write(files[-1])
    result = CliRunner().invoke(
        main, ["report", str(files[0]), "--against", str(files[1]), "--format", "json"]
    )
    tables = json.loads(result.output)["runs"][0]["tables"]
    assert tables["verdict_changes"]["rows"] == [
        ["one", "id1", "passed", "refused", "no longer passes"]
    ]
    rows = {(row[0], row[1]): row[2:] for row in tables["speed_changes"]["rows"]}
    assert rows["one", "mask max"] == [1, 6, 12, 2]
    assert rows["one", "compile + first mask p50"] == [1, 30, 60, 2]
    assert "Changes" in page([Run.read(files[0])], Run.read(files[1]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "report.txt"], "ends in none of .csv"),
        (["--out", "report.md", "--format", "terminal"], "other than terminal"),
        (["--subject", "four"], "no engine 'four'; it has one, two, three"),
        (["--against", "nonesuch.json"], "nonesuch.json"),
        (["--against", "run.json", "run.json"], "one file"),
    ],
)
def test_bad_options_of_a_report_are_explained(written, arguments, message, monkeypatch):
    monkeypatch.chdir(written.parent)
    result = CliRunner().invoke(main, ["report", "run.json", *arguments])
    assert result.exit_code != 0
    assert isinstance(result.exception, SystemExit)
    assert message in result.output


def test_samples_that_are_not_there_are_named(written):
    samples = written.with_name(json.loads(written.read_text(encoding="utf-8"))["samples"])
    samples.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(results.ResultsError, match=r"run\.json"):
        Run.read(written)
    samples.unlink()
    with pytest.raises(results.ResultsError, match=r"run\.json"):
        Run.read(written)
