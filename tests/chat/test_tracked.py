"""Tracked strings do what strings do, and every character keeps its origin.

The oracle for origins: each origin writes in an alphabet of its own, so that an operation that only
moves characters shows by the characters where they come from.
"""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ffwd.chat.jinja import tracked
from ffwd.chat.jinja.environment import environment
from ffwd.chat.jinja.formatting import to_json, to_string
from ffwd.chat.jinja.run import Run, running

ALPHABETS = {tracked.TEMPLATE: "ab -\n,<", 4: "AB\t.&'\"", 6: "XY\\é\U0001f600ß"}
ORIGIN = {letter: origin for origin, letters in ALPHABETS.items() for letter in letters}

pieces = st.lists(
    st.sampled_from(sorted(ALPHABETS)).flatmap(
        lambda origin: st.text(ALPHABETS[origin], max_size=4).map(
            lambda text: tracked.uniform(text, origin)
        )
    ),
    max_size=5,
)
texts = pieces.map(tracked.concat)
separators = st.sampled_from(["a", "A", ",", "\n", " ", ".", "X", "ab", "\t"])


def check(found: Any, expected: Any) -> None:
    """Same type and characters, and origins by alphabet."""
    if isinstance(expected, (list, tuple)):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check(one, other)
        return
    assert tracked.raw(found) == tracked.raw(expected)
    assert tracked.is_markup(found) == tracked.is_markup(expected)
    for letter, origin in zip(tracked.raw(found), tracked.origins_of(found), strict=True):
        assert origin == ORIGIN[letter]


@given(texts, texts, separators, st.integers(-3, 6), st.integers(-3, 6))
def test_operations(text: str, other: str, separator: str, start: int, stop: int) -> None:
    """Methods that move characters: the same as on plain text."""
    plain, plain_other = "ab -", tracked.raw(other)
    left = text if isinstance(text, tracked.Tracked) else tracked.uniform("A", 4)
    bare = tracked.raw(left)
    check(left[start:stop], bare[start:stop])
    check(left[start:stop:2], bare[start:stop:2])
    check(left[::-1], bare[::-1])
    check(list(left), list(bare))
    check(left + other, bare + plain_other)
    check(plain + left, plain + bare)
    check(left * 2, bare * 2)
    for name in ("strip", "lstrip", "rstrip"):
        check(getattr(left, name)(), getattr(bare, name)())
        check(getattr(left, name)(separator), getattr(bare, name)(separator))
    for name in ("split", "rsplit"):
        check(getattr(left, name)(), getattr(bare, name)())
        check(getattr(left, name)(None, 1), getattr(bare, name)(None, 1))
        check(getattr(left, name)(separator), getattr(bare, name)(separator))
        check(getattr(left, name)(separator, 1), getattr(bare, name)(separator, 1))
    for name in ("partition", "rpartition", "removeprefix", "removesuffix"):
        check(getattr(left, name)(separator), getattr(bare, name)(separator))
    check(left.splitlines(), bare.splitlines())
    check(left.splitlines(True), bare.splitlines(True))
    check(left.replace(separator, other), bare.replace(separator, plain_other))
    check(left.replace(separator, other, 1), bare.replace(separator, plain_other, 1))
    check(left.join([other, plain, left]), bare.join([plain_other, plain, bare]))
    check(left % (), bare % ())


@given(texts)
def test_other_characters(text: str) -> None:
    """Methods that change characters: the same text; none is the template's that was not."""
    for name in ("upper", "lower", "title", "capitalize", "swapcase", "casefold"):
        found = getattr(text, name)()
        assert tracked.raw(found) == getattr(tracked.raw(text), name)()
        if isinstance(text, tracked.Tracked) and len(found) == len(text):
            assert tracked.origins_of(found) == tracked.origins_of(text)
    for name, argument in (("center", 9), ("ljust", 9), ("rjust", 9), ("zfill", 9)):
        found = getattr(text, name)(argument)
        assert tracked.raw(found) == getattr(tracked.raw(text), name)(argument)
        if isinstance(text, tracked.Tracked):
            assert set(tracked.origins_of(found)) == {tracked.FUZZY}


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "center": (9,),
    "ljust": (9,),
    "rjust": (9,),
    "zfill": (9,),
    "join": (["a", "b"],),
    "partition": ("a",),
    "rpartition": ("a",),
    "removeprefix": ("A",),
    "removesuffix": ("A",),
    "replace": ("A", "b"),
    "translate": ({65: 66},),
}
# Methods whose results are no text, or that the environment takes over.
OTHERS = {"encode", "count", "find", "rfind", "index", "rindex", "startswith", "endswith"}
OTHERS |= {"format", "format_map", "maketrans"} | {n for n in dir(str) if n.startswith("is")}


def test_every_method_of_strings_is_met() -> None:
    """None gives back text that has forgotten where it comes from, in no version of Python."""
    text = tracked.uniform("A b\tA", 4)
    for name in dir(str):
        if name.startswith("_") or name in OTHERS:
            continue
        made = getattr(text, name)(*ARGUMENTS.get(name, ()))
        pieces = [made] if isinstance(made, str) else made
        assert all(isinstance(p, tracked.Tracked) or not p for p in pieces), name


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda below: (
        st.lists(below, max_size=3)
        | st.tuples(below, below)
        | st.tuples(below)
        | st.dictionaries(texts | st.integers(), below, max_size=3)
    ),
    max_leaves=8,
)


@given(
    values,
    st.booleans(),
    st.sampled_from([None, 0, 2, "\t"]),
    st.sampled_from([None, (",", ":"), (", ", ": ")]),
)
def test_json(value: Any, ascii_only: bool, indent: Any, separators: Any) -> None:
    """As json.dumps, and every character of a text has its origin."""
    options = {"ensure_ascii": ascii_only, "indent": indent, "separators": separators}
    found = to_json(value, **options)
    assert tracked.raw(found) == json.dumps(tracked.plain(value), **options)
    assert tracked.FUZZY not in tracked.origins_of(found)
    assert {o for o in tracked.origins_of(found) if o} == origins_in(value)


@given(values)
def test_string_of_anything(value: Any) -> None:
    """As str()."""
    found = to_string(value)
    assert tracked.raw(found) == str(tracked.plain(value))
    assert tracked.FUZZY not in tracked.origins_of(found)
    assert {o for o in tracked.origins_of(found) if o} == origins_in(value)


def origins_in(value: Any) -> set[int]:
    if isinstance(value, str):
        return {origin for origin in tracked.origins_of(value) if origin}
    if isinstance(value, dict):
        return set().union(*map(origins_in, [*value, *value.values()]))
    if isinstance(value, (list, tuple)):
        return set().union(*map(origins_in, value))
    return set()


EXPRESSIONS = [
    "{{ u }}",
    "{{ 'a' + u + 'b' }}",
    "{{ 'a' ~ u ~ v ~ 1 }}",
    "{{ u|trim }}|{{ u|upper }}|{{ u|string|lower }}|{{ u|capitalize }}",
    "{{ [u, v, 'a']|join(', ') }}{{ [{'k': u}]|join('-', attribute='k') }}",
    "{{ [u, v]|map('trim')|join(v) }}",
    "{{ (u ~ '\n' ~ v)|indent(2) }}{{ (u ~ '\n' ~ v)|indent('> ', true, true) }}",
    "{{ 'a-b-a'|replace('-', u) }}{{ u|replace('A', v) }}{{ u|replace('A', v, 1) }}",
    "{{ 'a-b'.replace('-', u) }}{{ u.replace('B', 'b') }}{{ ','.join([u, v]) }}",
    "{{ '{} {x} {0}'.format(u, x=v) if false else '{} {x}'.format(u, x=v) }}",
    "{{ '%s|%d|%s' % (u, 3, v) }}{{ '%(k)s' % {'k': u} }}{{ '%s'|format(u) }}",
    "{{ {'k': u, v: [1, none, true]} }}{{ [u] }}{{ (u,) }}",
    "{{ {'k': u}|tojson }}{{ [u, v]|tojson(indent=2) }}{{ u|tojson }}",
    "{% for c in u %}{{ c }}{% if loop.last %}b{% endif %}{% endfor %}",
    "{% set x %}a{{ u }}b{% endset %}{{ x }}{{ x|length }}",
    "{% macro m(x) %}<{{ x }}a{{ caller() if caller }}{% endmacro %}{{ m(u) }}"
    "{% call m(v) %}b{{ u }}{% endcall %}",
    "{% filter upper %}a{{ u }}{% endfilter %}",
    "{% set ns = namespace(x='') %}{% for w in u.split('A') %}{% set ns.x = ns.x + w + 'a' %}"
    "{% endfor %}{{ ns.x }}",
    "{{ u[1:] }}{{ u[:-1] }}{{ u[0] if u }}{{ u|first }}{{ u|list }}{{ u|reverse|list }}",
    "{{ 'a'|safe + u + '<' }}{{ u|e }}{{ (u|safe) ~ v }}{{ u|string|safe|trim }}",
    "{{ u|default('a') }}{{ nothing|default(u) }}{{ u or v }}{{ u if u == v else v }}",
    "{{ {'x': u}.items()|list }}{{ dict(x=u)|dictsort }}{{ [v, u]|sort|join }}",
    "{{ (u * 2) }}{{ 2 * v }}{{ u|length }}{{ u in v }}{{ u is string }}",
    "{{ u|truncate(5, true, 'a') }}{{ u|wordcount }}{{ u|center(9) }}{{ u|title }}",
    "{{ {'k': u}.items() }}{{ {u: 1}.keys()|string }}{{ namespace(x=u) }}"
    "{{ '%s' % {'k': u}.values() }}{{ 'ab'.translate(''.maketrans('ab', (u ~ 'xx')[:2])) }}"
    "{{ '{}'.format({'k': u}.values()) }}{{ [{'k': u}.values()] }}{{ 'a' ~ {'k': u}.values() }}",
    "{{ u|wordwrap(3) }}{{ u|urlencode }}{{ u|striptags }}{{ u|pprint }}{{ u|xmlattr if 0 }}",
]


@pytest.mark.parametrize("source", EXPRESSIONS)
@settings(max_examples=25)
@given(u=texts, v=texts)
def test_templates(source: str, u: str, v: str) -> None:
    """A template gives the same text; no letter of a caller's is taken for the template's."""
    template = environment().compiled(source)
    with running(Run()):
        expected = template.render(u=tracked.raw(u), v=tracked.raw(v))
        found = template.render(u=u, v=v)
    assert isinstance(expected, str)
    assert tracked.raw(found) == tracked.raw(expected)
    for letter, origin in zip(tracked.raw(found), tracked.origins_of(found), strict=True):
        known = ORIGIN.get(letter, ORIGIN.get(letter.swapcase()))
        if letter in "XYé\U0001f600ß" or (letter in ".\t" and "safe" not in source):
            assert origin in (known, tracked.FUZZY)
