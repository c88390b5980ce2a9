"""Rules that the texts of a grammar do not need."""

import pytest

import ffwd
from ffwd import UnusedRule, rule, rules, unused_rules

LARK = """\
start: used "x" list{"y"}
used: NAME -> it
list{item}: item ("," item)*
pair{item}: item item
NAME: LETTER+
LETTER: "a".."z"
OTHER: LETTER SECOND
SECOND: "0"
  lonely: friend
friend: lonely | nowhere
%import common.INT
%ignore SPACE
SPACE: " "
"""


def test_of_lark() -> None:
    found = unused_rules(ffwd.lark(LARK))
    assert [(rule.name, rule.line, rule.column) for rule in found] == [
        ("pair", 4, 1),
        ("OTHER", 7, 1),
        ("SECOND", 8, 1),
        ("lonely", 9, 3),
        ("friend", 10, 1),
    ]
    assert {rule.notation for rule in found} == {"Lark"}


@pytest.mark.parametrize(("read", "notation"), [(ffwd.gbnf, "GBNF"), (ffwd.ebnf, "EBNF")])
def test_of_gbnf_and_ebnf(read: type, notation: str) -> None:
    text = 'root ::= a\na ::= "x" | a "y"\nb ::= a c\nc ::= "é" c | "z"\n'
    found = [UnusedRule("b", notation, 3, 1), UnusedRule("c", notation, 4, 1)]
    assert unused_rules(read(text)) == found
    found = [UnusedRule("root", notation, 1, 1), UnusedRule("b", notation, 3, 1)]
    assert unused_rules(read(text, "c")) == [found[0], UnusedRule("a", notation, 2, 1), found[1]]


def test_of_python_and_of_nested_grammars() -> None:
    inner = ffwd.gbnf('root ::= "x"\nb ::= "y"')
    grammar = rules({"a": "x" + rule("c") + inner, "b": rule("b"), "c": "y"})
    assert unused_rules(grammar) == [
        UnusedRule("b", "GBNF", 2, 1),
        UnusedRule("b", "Python", None, None),
    ]
    nested = 'start: "x" inner\ninner: %lark {\n  start: "y"\n  spare: "z"\n}\n'
    assert unused_rules(ffwd.lark(nested)) == [UnusedRule("spare", "Lark", 4, 3)]


@pytest.mark.parametrize(
    "grammar",
    [
        ffwd.lit("x"),
        ffwd.regex("x"),
        ffwd.json_schema({"$defs": {"unused": {}}}),
        ffwd.lark('start: "x" start | "y"'),
        ffwd.gbnf('root ::= "x"'),
        rule("a", "x"),
    ],
    ids=str,
)
def test_none(grammar: ffwd.Grammar) -> None:
    assert unused_rules(grammar) == []


def test_what_cannot_be_read() -> None:
    with pytest.raises(ffwd.GrammarError) as caught:
        unused_rules(ffwd.lark('start: "x"\nb: ('))
    assert caught.value.line == 2
    with pytest.raises(TypeError, match="grammar must be a grammar, not str"):
        unused_rules("x")  # type: ignore[arg-type]


def test_many_rules() -> None:
    """A hundred thousand of them, in a chain."""
    text = "\n".join(f"r{number} ::= r{number + 1}" for number in range(100_000))
    found = unused_rules(ffwd.gbnf(f'root ::= "x"\n{text}\nr100000 ::= "y"'))
    assert len(found) == 100_001
    assert found[-1] == UnusedRule("r100000", "GBNF", 100_002, 1)
