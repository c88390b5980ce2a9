"""Composed grammars and structural tags, compiled, beside the slow recogniser and XGrammar."""

import random
from typing import Any

import composed
import numpy as np
import pytest
import xgrammar
from compiled import END, NAMES, accepts, byte_vocabulary, mask, unpacked
from recognise import accepts as recognised
from structuraltags import ANY, CASES, const, schema, tag, triggered
from tagpeers import Peer, variants

import ffwd


def compiled(grammar: ffwd.Grammar, *, named: bool = False) -> ffwd.CompiledGrammar:
    return ffwd.compile(grammar, byte_vocabulary(named=named))


@pytest.mark.parametrize(("grammar", "yes", "no"), composed.CASES, ids=repr)
def test_composed_grammars(grammar: ffwd.Grammar, yes: list[str], no: list[str]) -> None:
    """Texts, those that are none, and variants of both."""
    engine = compiled(grammar)
    assert [text for text in yes if not accepts(engine, text)] == []
    assert [text for text in no if accepts(engine, text)] == []
    for text in variants([*yes, *no], 3, 60):
        assert accepts(engine, text) == recognised(grammar, text), text


@pytest.mark.parametrize("name", CASES)
def test_structural_tags(name: str) -> None:
    """The same texts as the slow recogniser's, which has those of XGrammar."""
    form, texts = CASES[name]
    grammar = ffwd.structural_tag({"type": "structural_tag", "format": form})
    engine = compiled(grammar)
    for text in variants(texts, 5, 60):
        assert accepts(engine, text) == recognised(grammar, text), text


def peer_mask(matcher: Any, size: int) -> Any:
    bitmask = xgrammar.allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(bitmask)
    return unpacked(bitmask.numpy()[0], size)


# JSON strings have one spelling here and several there, and whitespace has a bound.
WITH_JSON = {name for name, (form, _) in CASES.items() if "json_schema" in repr(form)}
OVERLAPPING = {"dispatch, inside"}


@pytest.mark.parametrize("name", sorted(CASES.keys() - WITH_JSON - OVERLAPPING))
def test_masks_beside_xgrammar(name: str) -> None:
    """Equal after every prefix of texts and variants, for the bytes of ASCII and the end."""
    form, texts = CASES[name]
    engine = compiled(ffwd.structural_tag({"type": "structural_tag", "format": form}))
    peer = Peer(form).matcher
    compared = 0
    for text in dict.fromkeys(variants(texts, 9, 25)):
        matcher = engine.matcher()
        peer.reset()
        for byte in text.encode():
            ours, theirs = mask(matcher, END + 1), peer_mask(peer, END + 1)
            ascii_and_end = [*range(128), END]
            assert (ours[ascii_and_end] == theirs[ascii_and_end]).all(), (text, matcher.tokens)
            compared += 1
            if not (matcher.accept_token(byte) and peer.accept_token(byte)):
                break
    assert compared > len(texts)


def random_walk(engine: ffwd.CompiledGrammar, source: random.Random, steps: int) -> list[int]:
    """Tokens that masks allow, at random."""
    matcher, size = engine.matcher(), engine.vocabulary.vocab_size
    for _ in range(steps):
        allowed = np.flatnonzero(mask(matcher, size))
        assert len(allowed)
        matcher.accept_token(int(source.choice(list(allowed))))
        if matcher.is_terminated():
            break
    return list(matcher.tokens)


@pytest.mark.parametrize("name", ["triggered with schemas", "qwen_xml", "kimi_k3_xml", "json"])
def test_xgrammar_takes_random_walks(name: str) -> None:
    """What masks allow belongs to the tag, also for the peer."""
    form, _ = CASES[name]
    engine = compiled(ffwd.structural_tag({"type": "structural_tag", "format": form}))
    peer = Peer(form).matcher
    for seed in range(10):
        tokens = random_walk(engine, random.Random(seed), 60)
        peer.reset()
        for index, token in enumerate(tokens):
            # Characters beyond ASCII are one thing to both, but their halves are not compared.
            assert peer.accept_token(token), bytes(t for t in tokens[:index] if t < END)


def ids(*pieces: str | int) -> list[int]:
    return [i for p in pieces for i in ([p] if isinstance(p, int) else p.encode())]


TOOL, CLOSE_TOOL = NAMES["<tool>"], NAMES["</tool>"]
THINK, CLOSE_THINK = NAMES["<think>"], NAMES["</think>"]


@pytest.mark.parametrize(
    ("grammar", "yes", "no"),
    [
        (
            ffwd.lit("<tool>x</tool>", controls=True),
            [ids(TOOL, "x", CLOSE_TOOL)],
            [ids("<tool>x</tool>"), ids(TOOL, "x</tool>")],
        ),
        (ffwd.lit("<tool>"), [ids("<tool>")], [ids(TOOL)]),
        (ffwd.lit("x<end>", controls=True), [ids("x")], [ids("x<end>")]),
        (ffwd.any_text(), [ids("<tool>")], [ids(TOOL)]),
        (
            ffwd.text_until("</think>", controls=True),
            [ids("a", CLOSE_THINK), ids(CLOSE_THINK)],
            [ids("a</think>"), ids("a</think>", CLOSE_THINK), ids("a", TOOL, CLOSE_THINK)],
        ),
        (
            ffwd.text_until(["\n</think>", "!"], controls=True),
            [ids("a\n", CLOSE_THINK), ids("a!")],
            [ids("a", CLOSE_THINK), ids("!", CLOSE_THINK), ids("a\n</think>")],
        ),
        (
            ffwd.dispatch({"<tool>": "x", "go": "y"}, controls=True),
            [ids("a", TOOL, "xb", TOOL, "x"), ids("goyz"), ids("")],
            [ids("a", TOOL, "y"), ids("<tool>x"), ids("gox"), ids(TOOL)],
        ),
        (
            ffwd.reasoning("x"),
            [ids(THINK, "so", CLOSE_THINK, "\n\nx")],
            [ids("<think>so</think>x"), ids("x"), ids(THINK, "</think>", CLOSE_THINK, "x")],
        ),
        (
            ffwd.reasoning("x", opened=True, close=ffwd.token(CLOSE_THINK)),
            [ids("</think>", CLOSE_THINK, "x"), ids(CLOSE_THINK, "x")],
            [ids("x"), ids("a", TOOL, CLOSE_THINK, "x")],
        ),
        (ffwd.token("<tool>") + "x", [ids(TOOL, "x")], [ids("<tool>x")]),
        (
            ffwd.tokens([(THINK, CLOSE_THINK), "<tool>"]),
            [ids(TOOL), ids(THINK)],
            [ids(CLOSE_TOOL), ids("a")],
        ),
        (
            ffwd.repeat(ffwd.tokens(["<tool>"], exclude=True), 1),
            [ids("a"), ids(THINK, "b")],
            [ids(TOOL), ids("a", TOOL)],
        ),
    ],
    ids=repr,
)
def test_control_tokens(grammar: ffwd.Grammar, yes: list[list[int]], no: list[list[int]]) -> None:
    """Are tokens, where they are meant, and their names text."""
    engine = compiled(grammar, named=True)
    assert [tokens for tokens in yes if not accepts(engine, tokens)] == []
    assert [tokens for tokens in no if accepts(engine, tokens)] == []


def test_tags_of_control_tokens() -> None:
    """Where the vocabulary has the tokens that a structural tag names, they are meant."""
    form = tag("<tool>", schema({"type": "object"}, max_whitespace_cnt=0), "</tool>")
    engine = compiled(ffwd.structural_tag({"format": form}), named=True)
    assert accepts(engine, ids(TOOL, '{"a":"</tool>"}', CLOSE_TOOL))
    assert not accepts(engine, ids('<tool>{"a":1}</tool>'))
    free = {**triggered(), "triggers": ["<tool>"], "tags": [tag("<tool>", ANY, "</tool>")]}
    engine = compiled(ffwd.structural_tag({"format": free}), named=True)
    assert accepts(engine, ids("a", TOOL, "b", CLOSE_TOOL, "c"))
    assert not accepts(engine, ids("a<tool>b</tool>"))
    assert not accepts(engine, ids("a", THINK))


def test_token_formats() -> None:
    """By id and by name, beside XGrammar."""
    token: dict[str, Any] = {"type": "token", "token": 65}
    form = {
        "type": "token_triggered_tags",
        "trigger_tokens": [65],
        "tags": [tag(token, const("x"), {"type": "token", "token": 66})],
        "exclude_tokens": [67],
    }
    for options in (
        {},
        {"at_least_one": True},
        {"stop_after_first": True},
        {"at_least_one": True, "stop_after_first": True},
    ):
        engine = compiled(ffwd.structural_tag({"format": {**form, **options}}))
        peer = Peer({**form, **options})
        for text in variants(["", "abAxBc", "AxBAxB", "zz", "AxB"], 2, 120):
            # Bytes are tokens here, and XGrammar's strings are not read token by token.
            peer.matcher.reset()
            theirs = all(peer.matcher.accept_token(byte) for byte in text.encode())
            theirs = theirs and peer.matcher.accept_token(END)
            assert accepts(engine, text) == theirs, (text, options)


@pytest.mark.parametrize(
    ("grammar", "error", "message"),
    [
        (ffwd.rule("a"), ffwd.GrammarError, "the rule 'a'"),
        (ffwd.rule("a", "x" + ffwd.rule("b")), ffwd.GrammarError, "the rule 'b'"),
        (ffwd.rule("a", "x" + ffwd.rule("a")), ffwd.GrammarError, "no text"),
        (ffwd.seq(ffwd.token("<no>")), ffwd.GrammarError, "<no>"),
        (ffwd.seq(ffwd.token(999)), ffwd.GrammarError, "999"),
        ("x" + ffwd.regex("("), ffwd.GrammarError, "regular expression"),
        ("x" + ffwd.lark('start: "a'), ffwd.GrammarError, "line 1"),
        ("x" + ffwd.gbnf("root ::= ("), ffwd.GrammarError, "line 1"),
        ("x" + ffwd.gbnf('root ::= "a"', "top"), ffwd.GrammarError, "top"),
        ("x" + ffwd.ebnf("root ::= q"), ffwd.GrammarError, "q"),
        ("x" + ffwd.json_schema({"type": "q"}), ffwd.InvalidSchemaError, "type"),
        ("x" + ffwd.json_schema("{"), ffwd.InvalidSchemaError, "JSON"),
        (
            ffwd.json_schema({}) + ffwd.json_schema({}, property_order="any"),
            ffwd.GrammarError,
            "same property_order",
        ),
        (
            ffwd.json_schema({}, registry={"urn:a": {}})
            + ffwd.json_schema({}, registry={"urn:a": True}),
            ffwd.GrammarError,
            "different documents",
        ),
    ],
    ids=repr,
)
def test_what_cannot_be_compiled(grammar: Any, error: type[Exception], message: str) -> None:
    """Typed, and saying what is wrong."""
    with pytest.raises(error, match=message):
        compiled(grammar)


def test_the_place_of_an_error() -> None:
    """Is shown with a caret, within the part that it is in."""
    with pytest.raises(ffwd.GrammarError) as caught:
        compiled("x" + ffwd.regex("ab\n(c"))
    assert (caught.value.line, caught.value.column) == (2, 1)
    assert str(caught.value).endswith("  (c\n  ^")


def test_every_grammar_in_every_other() -> None:
    """Front ends and Python's grammars alternate."""
    one = ffwd.lark('start: "a" /b+/')
    two = ffwd.gbnf('root ::= "c" ("d" | root)')
    three = ffwd.ebnf('root ::= "e" | "f" root')
    json = ffwd.json_schema({"type": "integer"})
    grammar = ffwd.repeat(ffwd.seq(one, two, three, json), 1, 2, separator=ffwd.regex("[;,]"))
    engine = compiled(grammar)
    for text in ("abbccdffe12", "abcde0;abcde-1", "abcde0,abcdfe7"):
        assert accepts(engine, text)
    for text in ("", "abcde", "abcde0;", "abcde0.5"):
        assert not accepts(engine, text)


def test_shared_parts_compile_once() -> None:
    """A value with exponentially many places."""
    grammar: ffwd.Grammar = ffwd.regex("a")
    for _ in range(12):
        grammar = ffwd.grammar.Seq((grammar, grammar))
    engine = compiled(ffwd.rule("r", grammar | "b" + ffwd.rule("r")))
    assert accepts(engine, "bb" + "a" * 4096)
    assert not accepts(engine, "a" * 4095)
