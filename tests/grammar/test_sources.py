"""Positions of many pointers in one pass are those of each pointer."""

import json
import random

import pytest

from ffwd.sources import locate, locate_all

KEYS = ["a", "b", "", "/", "~", "0", "é😀", "a b", '"', "\n"]


def text_of(source, depth, pointer, pointers):
    """A JSON text with odd white space and names that occur twice; its pointers are noted."""
    pointers.append(pointer)
    space = source.choice(["", " ", "\n", " \t\r\n "])
    if depth == 0 or source.random() < 0.2:
        return space + source.choice(["1", "-2.5e3", '"x"', "null", "true", '"\\u0041]}"'])
    if source.random() < 0.4:
        items = [
            text_of(source, depth - 1, f"{pointer}/{index}", pointers)
            for index in range(source.randrange(4))
        ]
        return f"{space}[{','.join(items)}{space}]"
    members = []
    for _ in range(source.randrange(5)):
        key = source.choice(KEYS)
        step = key.replace("~", "~0").replace("/", "~1")
        value = text_of(source, depth - 1, f"{pointer}/{step}", pointers)
        members.append(
            f"{space}{json.dumps(key, ensure_ascii=source.random() < 0.5)}{space}:{value}"
        )
    return f"{space}{{{','.join(members)}{space}}}"


@pytest.mark.parametrize("seed", range(200))
def test_one_pass_finds_what_each_search_finds(seed):
    source = random.Random(seed)
    pointers = []
    text = text_of(source, 4, "", pointers)
    json.loads(text)
    asked = [*pointers, "/none", "/a/none", "/0/0/0/0/0", "https://x/#/a"]
    source.shuffle(asked)
    found = locate_all(text, asked)
    expected = {pointer: locate(text, pointer) for pointer in asked}
    assert found == {pointer: place for pointer, place in expected.items() if place is not None}


@pytest.mark.parametrize(
    "text", ["", "{", "[", '{"a"', '{"a":', '{"a":1', '{"a" 1}', '{"a":1,,}', "[1"]
)
def test_broken_texts_have_what_is_before(text):
    assert locate_all(text, ["/a/b", "/0/0"]) == {}
    # Deeper than Python recurses, and than grammars may be.
    assert locate_all("[" * 5000, ["/0" * 3000]) == {}


def test_a_value_before_the_fault_is_found():
    assert locate_all('{"a": 1, "b" 2}', ["/a", "/b"]) == {"/a": (1, 7)}
