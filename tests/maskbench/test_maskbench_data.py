"""Reading, choosing and writing cases."""

import json
import lzma

import pytest

from maskbench.data import Case, DataError, Slice, Source, Test, choose, parse_case, read_sources
from maskbench.documents import UnwritableSchemaError, Whitespace, prepare, write_instance

LINES = [
    {"id": "a", "schema": {"type": "string"}, "tests": [{"valid": True, "data": "\u2028x"}]},
    {"schema": True, "tests": []},
]


class ByteEncoder:
    def encode(self, text):
        return list(text.encode())


def text_of(values):
    return "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


@pytest.fixture(params=["x.jsonl", "x.jsonl.xz", "folder of lines", "folder of files"])
def place(request, tmp_path):
    path = tmp_path / request.param
    if request.param == "x.jsonl":
        path.write_text(text_of(LINES) + "\n", encoding="utf-8")
    elif request.param == "x.jsonl.xz":
        path.write_bytes(lzma.compress(text_of(LINES).encode()))
    elif request.param == "folder of lines":
        path.mkdir()
        (path / "1.jsonl").write_text(text_of(LINES[:1]), encoding="utf-8")
        (path / "2.jsonl").write_text(text_of(LINES[1:]), encoding="utf-8")
        (path / "README.md").write_text("not data", encoding="utf-8")
    else:
        path.mkdir()
        for name, value in zip("pq", LINES, strict=True):
            (path / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return path


def test_every_layout_gives_the_same_cases(place):
    cases = [parse_case(source) for source in read_sources(place)]
    assert [case.schema for case in cases] == [{"type": "string"}, True]
    assert cases[0] == Case("a", {"type": "string"}, (Test(True, "\u2028x"),))
    assert cases[1].id in ("x.jsonl:2", "x.jsonl.xz:2", "2.jsonl:1", "q")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("3", "expected an object"),
        ('{"tests":[]}', "no member 'schema'"),
        ('{"schema":{}}', "'tests' is not an array"),
        ('{"schema":{},"tests":[{"valid":1,"data":0}]}', r"tests\[0\]"),
        ('{"schema":{},"tests":[{"valid":true}]}', r"tests\[0\]"),
        ('{"schema":{},"tests":[],"id":7}', "'id'"),
    ],
)
def test_broken_case_is_named(text, message):
    with pytest.raises(DataError, match=f"^file:3: .*{message}"):
        parse_case(Source("file:3", text, "file:3"))


def test_unreadable_data_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.jsonl.xz").write_bytes(b"not xz")
    (tmp_path / "bad.jsonl").write_bytes(b"\xff\xfe")
    (tmp_path / "x.csv").write_text("a,b")
    cut = lzma.compress(text_of(LINES * 500).encode())
    (tmp_path / "cut.jsonl.xz").write_bytes(cut[: len(cut) // 2])
    for name in ("empty", "bad.jsonl.xz", "bad.jsonl", "x.csv", "none.jsonl", "cut.jsonl.xz"):
        with pytest.raises(DataError, match=name):
            read_sources(tmp_path / name)


def test_sample_is_repeatable_and_in_order():
    sources = [Source(str(i), "", str(i)) for i in range(100)]
    first = choose(sources, sample=30, seed=1, part=None)
    assert first == choose(sources, sample=30, seed=1, part=None)
    assert first != choose(sources, sample=30, seed=2, part=None)
    assert len(set(first)) == 30
    assert [int(s.place) for s in first] == sorted(int(s.place) for s in first)
    assert choose(sources, sample=1000, seed=1, part=None) == sources


def test_slices_cover_the_sample_once():
    sources = [Source(str(i), "", str(i)) for i in range(50)]
    whole = choose(sources, sample=20, seed=3, part=None)
    parts = [choose(sources, sample=20, seed=3, part=Slice(i, 3)) for i in (1, 2, 3)]
    assert sorted(s.place for part in parts for s in part) == sorted(s.place for s in whole)


@pytest.mark.parametrize("text", ["", "1", "0/3", "4/3", "a/b", "-1/3", "1/2/3"])
def test_bad_slice_is_refused(text):
    with pytest.raises(ValueError, match="expected"):
        Slice.parse(text)
    assert Slice.parse("2/3") == Slice(2, 3)


@pytest.mark.parametrize(
    ("whitespace", "expected"),
    [
        (Whitespace.FLEXIBLE, '{"é":[1,2.0,"\\n"],"x":null}'),
        (Whitespace.COMPACT, '{"é":[1,2.0,"\\n"],"x":null}'),
        (Whitespace.SINGLE_SPACE, '{"é": [1, 2.0, "\\n"], "x": null}'),
    ],
)
def test_instances_are_written_with_the_separators_of_the_mode(whitespace, expected):
    data = {"é": [1, 2.0, "\n"], "x": None}
    assert write_instance(data, whitespace) == expected
    prepared = prepare(Case("c", {}, (Test(True, data),)), 5, ByteEncoder(), whitespace)
    assert prepared.job.documents[0].tokens.tolist() == list(expected.encode())
    assert prepared.job.index == 5


def test_instances_without_text_are_skipped_and_counted():
    nested = []
    for _ in range(100_000):
        nested = [nested]
    tests = (Test(True, "\ud800"), Test(False, {"a": float("inf")}), Test(False, nested),
             Test(True, 1))  # fmt: skip
    prepared = prepare(Case("c", {"x": "\ud800"}, tests), 0, ByteEncoder(), Whitespace.COMPACT)
    assert prepared.skipped_instances == 3
    assert [d.valid for d in prepared.job.documents] == [True]
    assert json.loads(prepared.job.schema) == {"x": "\ud800"}


def test_schema_without_text_is_an_error():
    case = Case("c", {"maximum": float("nan")}, ())
    with pytest.raises(UnwritableSchemaError):
        prepare(case, 0, ByteEncoder(), Whitespace.COMPACT)
