"""The matcher's operations against a model that replays all tokens from the beginning."""

import copy

import hypothesis
import numpy as np
import pytest
from cases import CASES, byte_vocabulary, mask_bits, real_vocabulary, text_of, tokens_of
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from realtokenizers import load

import ffwd

TEXTS = [
    *(bytes([byte]) for byte in range(256)),
    *(b'{"', b'":', b'","', b'"}', b"true", b"null", b"12"),
    *(b"ab", b"ab-", b"-1", b"  ", b"order", b"Id"),
]
ENDS = (len(TEXTS) + 1, len(TEXTS) + 3)

VOCABULARY = ffwd.Vocabulary([*TEXTS, None, None, None, None], eos_token_ids=ENDS, width=300)
GRAMMARS = {
    "object": ffwd.json_schema(CASES["shared-prefixes"].schema, whitespace="compact"),
    "tree": ffwd.json_schema(CASES["ref-tree"].schema),
    "any": ffwd.json_schema(True),
    "regex": ffwd.regex("(?:ab-?[0-9]{0,3})*"),
    "choice": ffwd.choice(["order", "orderId", "ab", ""]),
}
COMPILED = {name: ffwd.compile(grammar, VOCABULARY) for name, grammar in GRAMMARS.items()}


def replay(grammar: ffwd.CompiledGrammar, tokens: list[int]) -> ffwd.Matcher:
    """The model: a new matcher, and one token after the other."""
    matcher = grammar.matcher()
    for token in tokens:
        assert matcher.accept_token(token)
    return matcher


def view(matcher: ffwd.Matcher) -> tuple[object, ...]:
    """All that a caller can see of a matcher."""
    return (
        matcher.tokens,
        matcher.num_tokens,
        matcher.is_accepting(),
        matcher.is_terminated(),
        matcher.allowed_token_ids(),
        mask_bits(matcher).tobytes(),
        matcher.forced_bytes(),
    )


class MatcherMachine(RuleBasedStateMachine):
    """Matchers and, for each, the tokens that it must have."""

    matchers = Bundle("matchers")

    @initialize(target=matchers, name=st.sampled_from(sorted(GRAMMARS)))
    def begin(self, name: str) -> int:
        self.grammar = COMPILED[name]
        self.all: list[tuple[ffwd.Matcher, list[int]]] = [(self.grammar.matcher(), [])]
        return 0

    def pick(self, matcher: ffwd.Matcher, number: int) -> int:
        """Mostly a token that fits, for others are refused and nothing would ever happen."""
        allowed = np.flatnonzero(mask_bits(matcher))
        if number % 4 == 0 or not len(allowed):
            return number % VOCABULARY.vocab_size
        return int(allowed[number % len(allowed)])

    @rule(index=matchers, number=st.integers(0, 10**6))
    def accept(self, index: int, number: int) -> None:
        matcher, tokens = self.all[index]
        token = self.pick(matcher, number)
        if matcher.is_terminated():
            with pytest.raises(ffwd.TokenError):
                matcher.accept_token(token)
            return
        fits = bool(mask_bits(matcher)[token])
        assert matcher.validate_tokens([token]) == fits
        assert matcher.accept_token(token) == fits
        if fits:
            tokens.append(token)

    @rule(index=matchers, numbers=st.lists(st.integers(0, 10**6), max_size=6))
    def accept_several(self, index: int, numbers: list[int]) -> None:
        matcher, tokens = self.all[index]
        scout = matcher.fork()
        draft: list[int] = []
        good = 0
        for number in numbers:
            draft.append(self.pick(scout, number))
            if good == len(draft) - 1 and not scout.is_terminated():
                good += scout.accept_token(draft[-1])
        assert matcher.validate_tokens(draft) == good
        ended = any(token in ENDS for token in draft[:good])
        if matcher.is_terminated() or (ended and good < len(draft)):
            # Something is to follow the end.
            if draft:
                with pytest.raises(ffwd.TokenError):
                    matcher.accept_tokens(draft)
            return
        assert matcher.accept_tokens(draft) == (good == len(draft))
        if good == len(draft):
            tokens += draft

    @rule(index=matchers, share=st.floats(0, 1))
    def rollback(self, index: int, share: float) -> None:
        matcher, tokens = self.all[index]
        count = round(share * len(tokens))
        matcher.rollback(count)
        del tokens[len(tokens) - count :]

    @rule(index=matchers, more=st.integers(1, 2**40))
    def rollback_too_far(self, index: int, more: int) -> None:
        matcher, tokens = self.all[index]
        with pytest.raises(IndexError):
            matcher.rollback(len(tokens) + more)

    @rule(target=matchers, index=matchers, way=st.sampled_from(["fork", "copy", "deepcopy"]))
    def fork(self, index: int, way: str) -> int:
        matcher, tokens = self.all[index]
        if len(self.all) >= 6:
            return index
        ways = {"fork": ffwd.Matcher.fork, "copy": copy.copy, "deepcopy": copy.deepcopy}
        self.all.append((ways[way](matcher), list(tokens)))
        return len(self.all) - 1

    @rule(index=matchers)
    def reset(self, index: int) -> None:
        matcher, tokens = self.all[index]
        matcher.reset()
        tokens.clear()

    @rule(index=matchers, bad=st.sampled_from([300, 301, 2**31, 2**32 - 1]))
    def token_out_of_range(self, index: int, bad: int) -> None:
        matcher, _ = self.all[index]
        if matcher.is_terminated():
            return
        for call in (matcher.accept_token, lambda token: matcher.accept_tokens([token])):
            with pytest.raises(ffwd.TokenError) as caught:
                call(bad)
            assert caught.value.token == bad

    @invariant()
    def as_the_model(self) -> None:
        for matcher, tokens in getattr(self, "all", []):
            assert view(matcher) == view(replay(self.grammar, tokens))


TestMatcherMachine = hypothesis.seed(30)(MatcherMachine).TestCase
TestMatcherMachine.settings = settings(max_examples=60, stateful_step_count=25)


def test_end_tokens() -> None:
    """Every end token ends the text, and only where the text may end."""
    grammar = COMPILED["choice"]
    for end in ENDS:
        matcher = grammar.matcher()
        assert matcher.is_accepting()
        assert matcher.accept_token(TEXTS.index(b"order"))
        assert matcher.accept_token(TEXTS.index(b"I"))
        before = view(matcher)
        assert not matcher.is_accepting()
        assert not matcher.accept_token(end)
        assert view(matcher) == before
        assert matcher.accept_token(TEXTS.index(b"d"))
        assert matcher.accept_token(end)
        assert matcher.is_terminated()
        assert matcher.tokens[-1] == end
        # A finished row of a batch can still be sampled.
        assert set(np.flatnonzero(mask_bits(matcher)).tolist()) == set(ENDS)
        assert matcher.allowed_token_ids() == []
        after = view(matcher)
        for token in (0, end, TEXTS.index(b"ab")):
            with pytest.raises(ffwd.TokenError) as caught:
                matcher.accept_token(token)
            assert caught.value.token == token
            assert matcher.validate_tokens([token]) == 0
        assert matcher.forced_bytes() == b""
        assert view(matcher) == after
        matcher.rollback(1)
        assert not matcher.is_terminated()
        assert matcher.is_accepting()


def test_the_end_inside_a_draft() -> None:
    matcher = COMPILED["choice"].matcher()
    order, end = TEXTS.index(b"order"), ENDS[0]
    assert matcher.validate_tokens([order, end]) == 2
    assert matcher.validate_tokens([order, end, order]) == 2
    assert matcher.validate_tokens([end, end]) == 1
    with pytest.raises(ffwd.TokenError):
        matcher.validate_tokens([order, 300])
    assert matcher.num_tokens == 0
    assert matcher.accept_tokens([order, end])
    assert matcher.tokens == [order, end]


def test_tokens_that_are_no_text_are_refused() -> None:
    """Ids without text, padding up to the width, and a token that could never fit."""
    matcher = COMPILED["any"].matcher()
    for token in (len(TEXTS), len(TEXTS) + 2, 298, 299, 0xFF):
        assert not matcher.accept_token(token)
        assert not mask_bits(matcher)[token]


@pytest.mark.parametrize("bad", [-1, 2**32, 2**70, 1.5, "1", None])
def test_ids_that_are_no_ids(bad: object) -> None:
    matcher = COMPILED["any"].matcher()
    for call in (
        matcher.accept_token,
        lambda token: matcher.accept_tokens([token]),
        lambda token: matcher.validate_tokens([token]),
    ):
        with pytest.raises((TypeError, OverflowError, ffwd.TokenError)):
            call(bad)  # type: ignore[operator]
    with pytest.raises((TypeError, OverflowError)):
        matcher.rollback(-1)
    assert matcher.num_tokens == 0


def common_prefix(texts: list[bytes]) -> bytes:
    first, last = min(texts), max(texts)
    length = next(
        (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first)
    )
    return first[:length]


@hypothesis.seed(31)
@settings(max_examples=150)
@hypothesis.given(
    options=st.lists(st.text("abé€", max_size=6), min_size=1, max_size=4),
    written=st.integers(0, 8),
)
def test_forced_bytes_are_what_all_completions_share(options: list[str], written: int) -> None:
    data = options[0].encode()[:written]
    matcher = ffwd.compile(ffwd.choice(options), byte_vocabulary()).matcher()
    assert matcher.accept_tokens(list(data))
    rests = [o.encode()[len(data) :] for o in options if o.encode().startswith(data)]
    shared = common_prefix(rests)
    forced = matcher.forced_bytes()
    assert shared.startswith(forced)
    # Short of all that they share only by the begin of a character.
    ending = data + shared
    while len(data) < len(ending) and not is_utf8(ending):
        ending = ending[:-1]
    assert data + forced == ending or not is_utf8(data)
    assert matcher.forced_bytes(max_bytes=1) in (b"", forced[:1])
    assert matcher.forced_bytes(0) == b""


def forced_by_masks(matcher: ffwd.Matcher) -> bytes:
    """The bytes that are the only ones in their masks, where the text may not end."""
    ahead, forced = matcher.fork(), b""
    while not ahead.is_accepting():
        allowed = np.flatnonzero(mask_bits(ahead)).tolist()
        if len(allowed) != 1:
            break
        assert ahead.accept_tokens(allowed)
        forced += bytes(allowed)
    return forced


@hypothesis.seed(32)
@settings(max_examples=150)
@hypothesis.given(
    parts=st.lists(
        st.sampled_from(["a", "b", "a{1,2}", "ab?", "(ab){1,2}", "b?a", "a+b", "[ab]"]),
        min_size=1,
        max_size=4,
    ),
    follow=st.sampled_from(["", "a", "b", "ab"]),
    data=st.data(),
)
def test_forced_bytes_are_those_of_masks(
    parts: list[str], follow: str, data: st.DataObject
) -> None:
    """Also where a terminal may end, and what follows begins with the byte that continues it."""
    names = [f"T{number}" for number in range(len(parts))]
    rules = [f"start: {' '.join(names)}" + (f' "{follow}"' if follow else "")]
    rules += [f"{name}: /{part}/" for name, part in zip(names, parts, strict=True)]
    try:
        grammar = ffwd.compile(ffwd.lark("\n".join(rules) + "\n"), byte_vocabulary())
    except ffwd.GrammarError:
        # A greedy terminal can take what has to follow it.
        hypothesis.reject()
    matcher = grammar.matcher()
    for _ in range(6):
        if matcher.is_terminated():
            break
        assert matcher.forced_bytes() == forced_by_masks(matcher)
        allowed = np.flatnonzero(mask_bits(matcher)).tolist()
        assert matcher.accept_token(data.draw(st.sampled_from(allowed)))


def is_utf8(data: bytes) -> bool:
    return data.decode(errors="ignore").encode() == data


@pytest.mark.parametrize(
    ("schema", "text", "forced"),
    [
        # 0 may be written -0 as well.
        (CASES["const"].schema, "", b'{"kind":"x","n":['),
        (CASES["ref-list"].schema, "", b'{"head":"'),
        (CASES["ref-list"].schema, '{"head":"x"', b',"tail":'),
        (CASES["ref-list"].schema, '{"head":"x","tail":n', b"ull}"),
        (CASES["shared-prefixes"].schema, '{"orderI', b'd":"'),
        (CASES["shared-prefixes"].schema, '{"order', b""),
        (CASES["uuid"].schema, '"2eb8aa08', b"-"),
        (CASES["null-or-boolean"].schema, "t", b"rue"),
        (CASES["anything"].schema, "", b""),
    ],
)
def test_forced_bytes_of_schemas(schema: object, text: str, forced: bytes) -> None:
    grammar = ffwd.json_schema(schema, whitespace="compact")  # type: ignore[arg-type]
    matcher = ffwd.compile(grammar, byte_vocabulary()).matcher()
    assert matcher.accept_tokens(list(text.encode()))
    assert matcher.forced_bytes() == forced
    assert matcher.num_tokens == len(text)


def test_forced_bytes_end_somewhere() -> None:
    """An endless forced text is cut at the limit."""
    matcher = ffwd.compile(ffwd.regex("(?:ab){100000}"), byte_vocabulary()).matcher()
    assert matcher.forced_bytes(max_bytes=1001) == (b"ab" * 501)[:1001]
    assert matcher.forced_bytes() == b"ab" * 32768


def test_stats_are_counters() -> None:
    grammar = ffwd.compile(ffwd.json_schema(CASES["nested"].schema), VOCABULARY)
    before = grammar.stats()
    assert {"states", "lexemes", "mask_hits", "masks_computed", "mask_bytes"} <= before.keys()
    assert all(isinstance(value, int) and value >= 0 for value in before.values())
    matcher = grammar.matcher()
    for _ in range(3):
        mask_bits(matcher)
    after = grammar.stats()
    assert after["masks_computed"] == before["masks_computed"] + 1
    assert after["mask_hits"] >= before["mask_hits"] + 2
    assert after["states"] >= before["states"]


def test_matchers_of_one_grammar_share_states() -> None:
    """A second matcher on the same way builds nothing."""
    grammar = ffwd.compile(ffwd.json_schema(CASES["nested"].schema), VOCABULARY)
    data = list(text_of({"user": {"name": "b", "tags": ["x"]}, "active": False}).encode())
    for _ in range(2):
        built = grammar.stats()
        matcher = grammar.matcher()
        for token in data:
            mask_bits(matcher)
            assert matcher.accept_token(token)
    again = grammar.stats()
    assert (again["states"], again["masks_computed"]) == (built["states"], built["masks_computed"])


def test_long_rollback() -> None:
    """Any distance means any."""
    vocabulary = real_vocabulary("gpt2")
    tokens = load("gpt2").tokenizer.encode('{"x": [' + "1.5, true, " * 3000 + "null]}").ids
    matcher = ffwd.compile(ffwd.json_schema(True), vocabulary).matcher()
    views = []
    for position, token in enumerate(tokens):
        if position % 1000 == 0:
            views.append((position, view(matcher)))
        assert matcher.accept_token(token)
    assert matcher.is_accepting()
    for position, seen in reversed(views):
        matcher.rollback(matcher.num_tokens - position)
        assert view(matcher) == seen


def test_the_grammar_and_its_vocabulary() -> None:
    grammar = COMPILED["any"]
    matcher = grammar.matcher()
    assert matcher.grammar is grammar
    assert grammar.vocabulary is VOCABULARY
    assert VOCABULARY.vocab_size == 300
    assert VOCABULARY.eos_token_ids == list(ENDS)
    assert tokens_of(VOCABULARY)[: len(TEXTS)] == TEXTS
    assert VOCABULARY.token_bytes(ENDS[0]) is None
    assert VOCABULARY.max_token_bytes == max(map(len, TEXTS))
    assert "num_tokens=0" in repr(matcher)
