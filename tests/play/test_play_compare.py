"""The same text under other engines: rows, differences of masks, and a process that is ended."""

import numpy as np
import pytest
from playing import SCHEMA, state

import ffwd
from ffwd.play import compare
from ffwd.play.compare import Comparison, compared
from ffwd.play.errors import PlayError
from ffwd.play.peers import PEERS
from ffwd.play.session import Session
from ffwd.play.state import State
from ffwd.sources import NamedTokens


@pytest.fixture(scope="module")
def tokens():
    return NamedTokens(str(ffwd.model.path()))


def rows(tokens, *arguments, **more):
    found = compared(State.read(state(*arguments, **more)), tokens)
    return {row["name"]: row for row in found["rows"]}


def mask(tokens, grammar, text):
    matcher = ffwd.compile(grammar, tokens.vocabulary).matcher()
    assert matcher.accept_tokens(tokens.vocabulary.encode(text.encode()))
    return set(matcher.allowed_token_ids())


def test_all_engines_have_a_row_with_their_verdict(tokens):
    text = '{"name": "Ada", "status": "paid"}'
    found = rows(tokens, text)
    assert list(found) == ["ffwd", *PEERS]
    for row in found.values():
        assert row["accepts"]
        assert row["can_end"]
        assert row["accepted_bytes"] == len(text)
        assert row["compile_us"] > 0
    refused = rows(tokens, '{"name": 3, "status": "paid"}', cursor=3)
    for row in refused.values():
        assert not row["accepts"]
        assert row["accepted_bytes"] <= len('{"name": ')
        assert row["mask"] > 0


def test_differences_are_those_of_the_masks(tokens):
    """ffwd keeps to one layout, which the others cannot."""
    text = '{"name": "Ada", '
    schema = ffwd.json_schema(SCHEMA)
    found = rows(tokens, text)
    own = mask(tokens, schema, text)
    assert found["ffwd"]["mask"] == len(own)
    flexible = mask(tokens, ffwd.json_schema(SCHEMA, whitespace="flexible"), text)
    row = found["llguidance"]
    assert row["only_ffwd"]["count"] == 0
    assert row["mask"] == len(own) + row["only_it"]["count"]
    some = {token for token, *_ in row["only_it"]["tokens"]}
    assert some <= flexible - own
    assert 0 < len(some) <= compare.MOST_EXAMPLES


def test_a_grammar_that_an_engine_lacks_is_refused_by_it(tokens):
    found = rows(tokens, "a1", grammar='start: "a" /[0-9]/', language="lark")
    assert found["ffwd"]["accepts"]
    assert found["llguidance"]["accepts"]
    assert found["xgrammar"]["refused"] == "XGrammar reads no lark"
    broken = rows(tokens, "a", grammar="a(", language="regex")
    assert all(row["refused"] for row in broken.values())


def test_without_a_definition_others_are_absent():
    found = rows(NamedTokens(None), "a", grammar="a+", language="regex", tokenizer="bytes")
    assert found["ffwd"]["accepts"]
    for name in PEERS:
        assert "it needs a tokenizer.json" in found[name]["absent"]


def test_a_package_that_is_missing_is_named(tokens, monkeypatch):
    def missing(*arguments):
        raise ModuleNotFoundError("No module named 'xgrammar'", name="xgrammar")

    monkeypatch.setitem(PEERS, "xgrammar", missing)
    found = rows(tokens, "")
    assert found["xgrammar"]["absent"] == "xgrammar is not installed: pip install xgrammar"
    assert found["llguidance"]["accepts"]


def test_the_process_is_ended_where_it_takes_too_long(tokens, monkeypatch):
    """And another one starts for the next comparison."""
    comparison = Comparison()
    given = State.read(state("{"))
    with monkeypatch.context() as patch:
        patch.setattr(compare, "SECONDS", 0.0)
        with pytest.raises(PlayError, match="need more than 0 seconds"):
            comparison.run(given, tokens, ffwd.Cancellation())
    assert comparison._process is None
    cancelled = ffwd.Cancellation()
    cancelled.cancel()
    with pytest.raises(ffwd.LimitExceededError, match="was cancelled"):
        comparison.run(given, tokens, cancelled)
    found = comparison.run(given, tokens, ffwd.Cancellation())
    assert [row["name"] for row in found["rows"]] == ["ffwd", *PEERS]
    comparison._process.kill()
    comparison._process.join()
    assert comparison.run(given, tokens, ffwd.Cancellation())["rows"]
    comparison.close()
    assert comparison._process is None


def test_a_cancelled_generation_says_so():
    session = Session()
    cancelled = ffwd.Cancellation()
    cancelled.cancel()
    answer = session._generate({"state": state(prompt="Ada paid.")}, cancelled)
    assert answer["finish_reason"] == "cancelled"
    assert answer["new_tokens"] < 12


def test_first_tokens_of_masks_are_bits():
    from ffwd.play.looking import _count, _first

    source = np.random.default_rng(0)
    for _ in range(50):
        bits = source.random(320) < source.choice([0.01, 0.3, 1.0])
        row = np.packbits(bits, bitorder="little").view(np.int32)
        assert _count(row) == bits.sum()
        assert _first(row, 60) == np.flatnonzero(bits)[:60].tolist()
