"""The states of a text: what is shared, and that the picture is one of them."""

import itertools
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import ffwd
import ffwd.model
import ffwd.tokenizer
from ffwd.cli.commands import group
from ffwd.sources import NamedTokens
from ffwd.view import StateGraph, state_graph

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '</text><script>alert(1)</script>&"\x00\x1b'
ARRAY = ffwd.json_schema({"type": "array", "items": {"type": "integer"}}, whitespace="compact")
NESTED = ffwd.gbnf('root ::= "(" root* ")"')


def compiled(grammar):
    return ffwd.compile(grammar, NamedTokens(None).vocabulary)


CASES = [
    (ARRAY, "[1,23,456]"),
    (NESTED, "(()(()))"),
    (ffwd.regex("[0-9]+(,[0-9]+)*"), "1,23,456"),
    (ffwd.json_schema({"type": "string"}), '"aaaaaa"'),
    (ffwd.json_schema({}), '{"a": [true, {"a": [true]}]}'),
]


@pytest.mark.parametrize(("grammar", "text"), CASES)
def test_equal_states_are_one(grammar, text):
    """The path is that of a matcher, and equal states have equal masks."""
    graph = state_graph(compiled(grammar), text)
    matcher = compiled(grammar).matcher()
    masks, ids, first = {}, [], {}
    for token in [None, *text.encode()]:
        assert token is None or matcher.accept_token(token)
        ids.append(matcher.state_id)
        allowed = matcher.allowed_token_ids()
        assert masks.setdefault(ids[-1], allowed) == allowed
        place = first.setdefault(ids[-1], len(first))
        assert graph.path[len(ids) - 1] == place
        assert graph.states[place].allowed == len(allowed)
        assert graph.states[place].accepting == matcher.is_accepting()
    assert len(graph.states) == len(first)
    assert graph.shared == len(ids) - len(first)
    assert sum(state.visits for state in graph.states) == len(ids)
    assert sum(edge.count for edge in graph.edges) == len(text.encode())
    steps = list(itertools.pairwise(graph.path))
    assert list(dict.fromkeys(steps)) == [(edge.source, edge.target) for edge in graph.edges]
    assert graph.refused == b""


def test_the_first_visit_computes_the_mask_and_later_ones_copy_it():
    grammar = compiled(ARRAY)
    before = grammar.stats()["masks_computed"]
    graph = state_graph(grammar, "[1,23,456]")
    assert all(state.computed for state in graph.states)
    assert grammar.stats()["masks_computed"] - before == len(graph.states)
    assert graph.shared > 0
    again = state_graph(grammar, "[1,23,456]")
    assert not any(state.computed for state in again.states)
    assert grammar.stats()["masks_computed"] - before == len(graph.states)


def test_a_number_is_that_of_the_state():
    grammar = compiled(NESTED)
    one, other = grammar.matcher(), grammar.matcher()
    assert one.state_id == other.state_id
    assert one.accept_tokens(list(b"(()"))
    assert other.accept_tokens(list(b"(()()()"))
    assert one.state_id == other.state_id
    assert other.accept_token(ord("("))
    assert one.state_id != other.state_id
    other.rollback(1)
    assert one.fork().state_id == other.state_id


@pytest.mark.parametrize(("grammar", "text"), [*CASES, (ARRAY, "[1,x"), (ARRAY, "")])
def test_the_picture_has_each_state_and_edge(grammar, text):
    graph = state_graph(compiled(grammar), text, title=text)
    root = ElementTree.fromstring(graph.svg())
    groups = root.findall(f"{SVG}g")
    assert len(groups) == len(graph.states)
    numbers = [one.findall(f"{SVG}text")[0].text for one in groups]
    assert numbers == [str(place) for place in range(len(graph.states))]
    paths = root.findall(f"{SVG}path")
    assert len(paths) == len(graph.edges)
    back = [one for one in paths if one.get("class") == "again"]
    assert len(back) == sum(edge.target <= edge.source for edge in graph.edges)
    labels = root.findall(f"{SVG}text[@class='label']")
    assert len(labels) == len(graph.edges)
    width, height = float(root.get("width")), float(root.get("height"))
    for one in root.iter():
        x, y = one.get("x") or one.get("cx"), one.get("y") or one.get("cy")
        if x is not None:
            assert 0 <= float(x) <= width
            assert 0 <= float(y) <= height


def test_lanes_of_edges_do_not_cross():
    """Two edges in one lane on the same side share no column but an end."""
    text = "(" * 6 + ")" * 5 + "(())" + ")"
    graph = state_graph(compiled(NESTED), text)
    root = ElementTree.fromstring(graph.svg())
    spans = {}
    for path in root.findall(f"{SVG}path"):
        found = re.fullmatch(
            r"M([\d.]+) [\d.]+Q[\d.]+ ([\d.]+) .*H.* ([\d.]+) [\d.]+", path.get("d")
        )
        if found:
            low, high = sorted((float(found[1]), float(found[3])))
            spans.setdefault(found[2], []).append((low, high))
    assert len(spans) > 1
    for lane in spans.values():
        lane.sort()
        assert all(one[1] <= two[0] + 1 for one, two in itertools.pairwise(lane)), lane


def test_hostile_texts_are_text():
    grammar = compiled(ffwd.choice([NASTY]))
    graph = state_graph(grammar, NASTY, title=NASTY)
    root = ElementTree.fromstring(graph.svg())
    assert not root.findall(f".//{SVG}script")
    assert root.find(f"{SVG}text[@class='title']").text.startswith("</text><script>")
    refused = state_graph(grammar, "x" + NASTY)
    assert refused.refused == b"x" + NASTY.encode()
    ElementTree.fromstring(refused.svg())


def test_tokens_of_a_model_and_an_end_token():
    vocabulary = ffwd.tokenizer.load(ffwd.model.path()).vocabulary()
    grammar = ffwd.compile(ARRAY, vocabulary)
    ids = [*vocabulary.encode(b"[1,2,3]"), vocabulary.eos_token_ids[0]]
    graph = state_graph(grammar, ids)
    assert len(graph.path) == len(ids) + 1
    assert graph.path[-1] == graph.path[-2]
    assert isinstance(graph, StateGraph)
    ElementTree.fromstring(graph.svg())


def test_bad_texts_are_refused():
    grammar = compiled(ffwd.regex("a*"))
    with pytest.raises(ValueError, match="2,001 tokens, and a graph at most 2,000"):
        state_graph(grammar, "a" * 2001)
    with pytest.raises(ffwd.TextError):
        state_graph(grammar, "\ud800")
    assert len(state_graph(grammar, "a" * 2000).states) == 1


def test_the_picture_of_the_documents(tmp_path, monkeypatch):
    """`docs/concepts/automaton.svg` is what the command of the page writes."""
    root = Path(__file__).resolve().parents[2]
    page = (root / "docs/concepts/automaton.md").read_text(encoding="utf-8")
    (schema,) = re.findall(r"`integers.json` is `(.*?)`", page)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "integers.json").write_text(schema, encoding="utf-8")
    words = ["explain", "integers.json", "[1,23,456]", "--whitespace", "compact"]
    assert f"ffwd {words[0]} {words[1]} '{words[2]}' {' '.join(words[3:])} --graph" in page
    done = CliRunner().invoke(group, [*words, "--graph", "automaton.svg"])
    assert done.exit_code == 0, done.output
    made = (tmp_path / "automaton.svg").read_text(encoding="utf-8")
    assert made == (root / "docs/concepts/automaton.svg").read_text(encoding="utf-8")


def test_a_text_that_is_too_long_for_the_command(tmp_path):
    (tmp_path / "a.regex").write_text("a*", encoding="utf-8")
    words = ["explain", str(tmp_path / "a.regex"), "a" * 2001, "--graph", str(tmp_path / "a.svg")]
    done = CliRunner().invoke(group, words)
    assert done.exit_code == 1
    assert "2,001 tokens" in done.output
