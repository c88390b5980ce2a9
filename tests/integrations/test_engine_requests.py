"""What the adapters of engines share: grammars, their cache, vocabularies, one request."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

import ffwd
from ffwd.adapters.shared.cache import GrammarCache
from ffwd.adapters.shared.requests import EngineRequestError, GrammarRequest, grammar_of
from ffwd.adapters.shared.vocabulary import engine_vocabulary
from ffwd.engine import EngineRequest

END = 256
# Every byte by itself, one longer token, and an end.
VOCABULARY = ffwd.Vocabulary(
    [bytes([byte]) for byte in range(256)] + [None, b'{"'], eos_token_ids=[END]
)

GRAMMARS = [
    (GrammarRequest("json", '{"type": "integer"}'), b"17", b"x"),
    (GrammarRequest("json_object"), b'{"a": [1]}', b"[1]"),
    (GrammarRequest("regex", r"(?P<day>\d\d)\.(?:1|2)"), b"01.2", b"01,2"),
    (GrammarRequest("choice", '["yes", "no"]'), b"no", b"nay"),
    (GrammarRequest("grammar", 'start: "a" B\nB: /[0-9]/'), b"a7", b"ax"),
    (GrammarRequest("grammar", 'start: "::=" # ::='), b"::=", b"a"),
    (GrammarRequest("grammar", 'root ::= "a" b\nb ::= [0-9]'), b"a7", b"ax"),
    # A lookahead assertion is EBNF only, a dot is GBNF only.
    (GrammarRequest("grammar", 'root ::= a "b"\na ::= "a" (="b")'), b"ab", b"aa"),
    (GrammarRequest("grammar", 'root ::= "a" .'), b"a.", b"b"),
    (
        GrammarRequest(
            "structural_tag",
            json.dumps(
                {
                    "type": "structural_tag",
                    "structures": [
                        {"begin": "<f>", "schema": {"type": "boolean"}, "end": "</f>"},
                    ],
                    "triggers": ["<f"],
                }
            ),
        ),
        b"so: <f>true</f>",
        b"so: <f>1",
    ),
]


@pytest.mark.parametrize(("request_", "good", "bad"), GRAMMARS, ids=range(len(GRAMMARS)))
def test_each_kind_of_request(request_: GrammarRequest, good: bytes, bad: bytes) -> None:
    compiled = ffwd.compile(grammar_of(request_), VOCABULARY)
    matcher = EngineRequest(compiled)
    assert matcher.validate_tokens([*good]) == [*good]
    assert matcher.accept_tokens("", [*good, END])
    assert matcher.is_terminated()
    assert not EngineRequest(compiled).accept_tokens("", [*bad])


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (GrammarRequest("yaml", ""), EngineRequestError, "'yaml', only json"),
        (GrammarRequest("json", "{"), ffwd.InvalidSchemaError, "line 1"),
        (GrammarRequest("json", '{"type": "strin"}'), ffwd.InvalidSchemaError, "/type"),
        (GrammarRequest("json", None), EngineRequestError, "must be text"),  # type: ignore[arg-type]
        (GrammarRequest("regex", "(a"), ffwd.GrammarError, "group"),
        (GrammarRequest("choice", "yes"), EngineRequestError, "not JSON"),
        (GrammarRequest("choice", "[" * 100_000), EngineRequestError, "not JSON"),
        (GrammarRequest("choice", '["a", 1]'), EngineRequestError, "array of strings"),
        (GrammarRequest("choice", "[]"), ffwd.GrammarError, "option"),
        (GrammarRequest("grammar", "start: ("), ffwd.GrammarError, "line 1"),
        (GrammarRequest("grammar", 'root ::= "a" (\n'), ffwd.GrammarError, "EBNF, line"),
        (GrammarRequest("structural_tag", "{}"), ffwd.GrammarError, "format"),
    ],
    ids=str,
)
def test_requests_that_are_none(request_, error, words) -> None:
    cache = GrammarCache(VOCABULARY)
    with pytest.raises(error, match=words):
        cache.get(request_)
    with pytest.raises(error, match=words):
        cache.submit(request_).result(timeout=600)
    assert (cache.stats().failures, cache.stats().grammars) == (2, 0)
    # What failed leaves nothing behind.
    assert cache.get(GrammarRequest("choice", '["a"]')) is not None


def test_a_grammar_is_compiled_once_for_threads_that_ask_at_once() -> None:
    cache = GrammarCache(VOCABULARY)
    asked = GrammarRequest("json", json.dumps({"enum": [f"word {i}" for i in range(3000)]}))
    barrier = Barrier(8)

    def ask(index: int) -> ffwd.CompiledGrammar:
        barrier.wait()
        return cache.get(asked) if index % 2 else cache.submit(asked).result(timeout=600)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(ask, range(8)))
    assert all(answer is answers[0] for answer in answers)
    assert (cache.stats().misses, cache.stats().hits) == (1, 7)


def test_the_bound_lets_the_oldest_go() -> None:
    requests = [GrammarRequest("regex", f"a{{{i},{i + 50}}}b*") for i in range(1, 9)]
    probe = GrammarCache(VOCABULARY)
    sizes = []
    for asked in requests:
        EngineRequest(probe.get(asked)).accept_tokens("", [*b"aaaa"])
        sizes.append(probe.get(asked).stats()["memory_bytes"])
    cache = GrammarCache(VOCABULARY, max_bytes=sum(sizes[:3]))
    matchers = []
    for asked in requests:
        matchers.append(EngineRequest(cache.get(asked)))
        matchers[-1].accept_tokens("", [*b"aaaa"])
    stats = cache.stats()
    assert stats.evictions == len(requests) - stats.grammars
    assert 1 <= stats.grammars < len(requests)
    # Matchers of a grammar that was let go live on, and asking again compiles it again.
    assert all(matcher.accept(ord("a")) for matcher in matchers)
    misses = cache.stats().misses
    cache.get(requests[0])
    assert cache.stats().misses == misses + 1
    cache.close()
    with pytest.raises(RuntimeError):
        cache.submit(GrammarRequest("regex", "new")).result(timeout=600)


def test_limits_of_one_compilation() -> None:
    """They fail that one only, and the grammar of another has no trace of them."""
    cache = GrammarCache(VOCABULARY)
    asked = GrammarRequest("json", json.dumps({"pattern": "^(?=.*a.{5}b)(?=.*b.{7}c).{1,90}$"}))
    tight = ffwd.Limits(compile_steps=100)
    for _ in range(2):
        with pytest.raises(ffwd.LimitExceededError, match="compile_steps"):
            cache.get(asked, limits=tight)
    compiled = cache.get(asked)
    assert cache.get(asked, limits=tight) is compiled
    stats = cache.stats()
    assert (stats.misses, stats.failures, stats.hits, stats.grammars) == (3, 2, 1, 1)


def test_adding_a_grammar_measures_few_of_the_others(monkeypatch) -> None:
    """Each of them in its turn, so that those that have grown are found."""
    import ffwd.adapters.shared.cache as module

    measured = []
    held = dict[ffwd.CompiledGrammar, int]()
    monkeypatch.setattr(module, "_held", lambda one: measured.append(one) or held.get(one, 1))
    cache = GrammarCache(VOCABULARY, max_bytes=1000)
    first = [cache.get(GrammarRequest("regex", f"a{{{i}}}")) for i in range(100)]
    most = 1 + module._MEASURED_AGAIN
    assert len(measured) <= 100 * most
    held[first[7]] = 2000
    for i in range(100, 120):
        before = len(measured)
        cache.get(GrammarRequest("regex", f"a{{{i}}}"))
        assert len(measured) - before <= most
    # All up to the one that has grown were evicted.
    assert cache.kept(GrammarRequest("regex", "a{7}")) is None
    assert cache.kept(GrammarRequest("regex", "a{8}")) is first[8]
    assert cache.stats().evictions == 8
    cache.close()


def test_a_request_refuses_and_changes_nothing() -> None:
    request = EngineRequest(ffwd.compile(ffwd.regex("ab?"), VOCABULARY))
    for token in (-1, 10**6, END, ord("b")):
        assert not request.accept(token)
        assert request.validate_tokens([token]) == []
    assert request.validate_tokens([ord("a"), 10**6]) == [ord("a")]
    assert request.accept_tokens("", [ord("a"), END, ord("b"), END])
    assert request.is_terminated()
    # Those after the end count, until they are rolled back.
    assert request.num_tokens == 4
    assert request.validate_tokens([END]) == []
    bitmask = np.zeros((2, (VOCABULARY.vocab_size + 31) // 32), dtype=np.int32)
    request.fill_bitmask(bitmask, 1)
    bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little").reshape(2, -1)
    assert not bits[0].any()
    assert bits[1].nonzero()[0].tolist() == [END]
    request.rollback(2)
    assert request.is_terminated()
    request.rollback(2)
    assert not request.is_terminated()
    assert request.num_tokens == 0
    other = EngineRequest(request)
    other.accept(ord("a"))
    assert (request.num_tokens, other.num_tokens) == (0, 1)
    with pytest.raises(TypeError, match="options"):
        EngineRequest(request, narrow=True)
    with pytest.raises(IndexError):
        request.rollback(1)


def test_forced_tokens_are_the_only_ones() -> None:
    request = EngineRequest(
        ffwd.compile(ffwd.seq(ffwd.lit("abc"), ffwd.regex("[xy]z")), VOCABULARY)
    )
    assert request.forced(16) == list(b"abc")
    assert request.forced(2) == list(b"ab")
    request.accept_tokens("", [*b"abcx"])
    assert request.forced(16) == [ord("z"), END]
    assert request.forced(0) == []
    assert request.num_tokens == 4


def test_a_tokenizer_that_is_none_is_named() -> None:
    class Strange:
        _tokenizer = None

    with pytest.raises(ffwd.VocabularyError, match=r"Strange"):
        engine_vocabulary(Strange())
