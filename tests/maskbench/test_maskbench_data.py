"""Reading, choosing and writing cases."""

import json
import lzma
import random
import sys

import pytest
import zstandard

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


@pytest.fixture(
    params=["x.jsonl", "x.jsonl.xz", "x.jsonl.zst", "folder of lines", "folder of files"]
)
def place(request, tmp_path):
    path = tmp_path / request.param
    if request.param == "x.jsonl":
        path.write_text(text_of(LINES) + "\n", encoding="utf-8")
    elif request.param == "x.jsonl.xz":
        path.write_bytes(lzma.compress(text_of(LINES).encode()))
    elif request.param == "x.jsonl.zst":
        # Two frames, as `cat a.zst b.zst` makes them, cut inside of a line.
        whole = text_of(LINES).encode()
        path.write_bytes(b"".join(map(zstandard.compress, (whole[:9], whole[9:]))))
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
    assert cases[1].id in ("x.jsonl:2", "x.jsonl.xz:2", "x.jsonl.zst:2", "2.jsonl:1", "q")


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
    (tmp_path / "bad.jsonl.zst").write_bytes(b"not zst")
    (tmp_path / "bad.json").write_bytes(b'"\xff"')
    names = (
        "empty",
        "bad.jsonl.xz",
        "bad.jsonl.zst",
        "bad.jsonl",
        "bad.json",
        "x.csv",
        "none.jsonl",
    )
    for name in names:
        with pytest.raises(DataError, match=name):
            read_sources(tmp_path / name)


@pytest.mark.parametrize("suffix", ["xz", "zst"])
def test_what_breaks_off_costs_the_rest_of_its_file(tmp_path, suffix):
    """The run goes on with the lines before, and with other files; the place is named."""
    pack = {"xz": lzma.compress, "zst": zstandard.compress}[suffix]
    # Numbers at random, so that half of the packed bytes are about half of the lines.
    lines = [{"schema": {"const": random.Random(i).random()}, "tests": []} for i in range(50_000)]
    packed = pack(text_of(lines).encode())
    (tmp_path / f"cut.jsonl.{suffix}").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "whole.json").write_text(json.dumps(LINES[0]), encoding="utf-8")
    *read, broken, whole = read_sources(tmp_path)
    assert [parse_case(source).schema for source in read] == [
        line["schema"] for line in lines[: len(read)]
    ]
    assert 1000 < len(read) < len(lines)
    assert parse_case(whole).id == "a"
    with pytest.raises(
        DataError, match=f"cut.jsonl.{suffix}:{len(read) + 1}: .*breaks off|Compressed"
    ):
        parse_case(broken)


def test_a_line_that_is_no_text_costs_itself(tmp_path):
    first, second = text_of(LINES).encode().splitlines(keepends=True)
    (tmp_path / "x.jsonl").write_bytes(first + b'{"schema": "\xff"}\n' + second)
    sources = read_sources(tmp_path / "x.jsonl")
    assert [source.place.rpartition(":")[2] for source in sources] == ["1", "2", "3"]
    assert [parse_case(sources[i]).schema for i in (0, 2)] == [{"type": "string"}, True]
    with pytest.raises(DataError, match=r"x\.jsonl:2: .*utf-8"):
        parse_case(sources[1])


def test_zst_without_its_package_names_the_install_command(tmp_path, monkeypatch):
    (tmp_path / "x.jsonl.zst").write_bytes(zstandard.compress(text_of(LINES).encode()))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(DataError, match="pip install zstandard"):
        read_sources(tmp_path / "x.jsonl.zst")


def test_maskbench_as_it_is_published(tmp_path):
    """One file a schema, with members that are not looked at; some have no tests."""
    published = {
        "description": "Github_easy---o1.json",
        "meta": {"full_size": 30, "stripped_size": 30, "features": [], "raw_features": ["type"]},
        "schema": {"type": "integer"},
        "tests": [{"description": "by a model", "valid": True, "data": 3}],
    }
    (tmp_path / "Github_easy---o1.json").write_text(json.dumps(published), encoding="utf-8")
    (tmp_path / "Github_easy---o2.json").write_text(
        json.dumps(published | {"tests": []}), encoding="utf-8"
    )
    first, second = map(parse_case, read_sources(tmp_path))
    assert first == Case("Github_easy---o1", {"type": "integer"}, (Test(True, 3),))
    assert second.tests == ()


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
        (Whitespace.CONSISTENT, '{"é":[1,2.0,"\\n"],"x":null}'),
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
