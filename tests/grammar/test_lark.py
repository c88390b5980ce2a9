"""Lark grammars: what texts they have, beside llguidance."""

import random

import pytest
from compiled import accepts, byte_vocabulary
from larkcases import CASES, DIFFERENCES
from larkpeer import Peer

import ffwd


def compiled(text: str) -> ffwd.CompiledGrammar:
    return ffwd.compile(ffwd.lark(text), byte_vocabulary())


def variants(texts: list[str], seed: int, number: int) -> list[str]:
    """The texts, and others with a character more, less, or another one."""
    source = random.Random(seed)
    letters = sorted({*"".join(texts), " ", "x"})
    found = dict.fromkeys(texts)
    for _ in range(number):
        text = source.choice([*found])
        at = source.randrange(len(text) + 1)
        rest = text[at + source.randrange(2) :]
        found[text[:at] + source.choice(["", *letters]) + rest] = None
    return [*found]


@pytest.fixture(scope="module")
def peer() -> Peer:
    return Peer()


@pytest.mark.parametrize(("grammar", "yes", "no"), CASES)
def test_texts(grammar: str, yes: list[str], no: list[str]) -> None:
    """Those that belong to a grammar, and those that do not."""
    engine = compiled(grammar)
    assert [text for text in yes if not accepts(engine, text)] == []
    assert [text for text in no if accepts(engine, text)] == []


@pytest.mark.parametrize(("grammar", "yes", "no"), CASES)
def test_texts_are_those_of_llguidance(
    peer: Peer, grammar: str, yes: list[str], no: list[str]
) -> None:
    """The same texts, and others that differ from them in a few places."""
    # It has no templates.
    plain = grammar.replace("list{item}", "list").replace("list{x}: x", "list: item")
    engine = compiled(grammar)
    matcher = peer.matcher(plain.replace('("," x)*', '("," item)*'))
    for text in variants([*yes, *no], 7, 60):
        assert accepts(engine, text) == peer.accepts(matcher, text), text


@pytest.mark.parametrize(("grammar", "text", "here", "reason"), DIFFERENCES)
def test_differences_are_these(
    peer: Peer, grammar: str, text: str, here: bool, reason: str
) -> None:
    """Each with its reason, as docs/lark.md has them."""
    assert accepts(compiled(grammar), text) == here, reason
    assert peer.accepts(peer.matcher(grammar), text) != here, reason


def test_faults_have_a_line_and_a_column() -> None:
    with pytest.raises(ffwd.GrammarError, match="there is no rule or terminal `b`") as caught:
        compiled('start: a\na: "é" b')
    assert (caught.value.line, caught.value.column) == (2, 8)
    assert str(caught.value).endswith('\n  a: "é" b\n         ^')
