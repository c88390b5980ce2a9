"""Rules with a parameter of more values than could be expanded, beside llguidance."""

import random

import pytest
from compiled import END, accepts, byte_vocabulary
from larkpeer import Peer

import ffwd


def counters(count: int, most: int, end: str) -> str:
    """So many letters, each at most so often, and an end."""
    alternatives = [
        f'"{chr(97 + number)} " lst::incr([{8 * number}:{8 * number + 8}]) '
        f"%if lt([{8 * number}:{8 * number + 8}], {most})"
        for number in range(count)
    ]
    return "start: lst::0\nlst::_: " + "\n     | ".join([*alternatives, end])


def all_of(count: int, most: int) -> str:
    """An end where each letter has come that often."""
    conditions = [f"ge([{8 * number}:{8 * number + 8}], {most})" for number in range(count)]
    whole = conditions[0]
    for condition in conditions[1:]:
        whole = f"and({whole}, {condition})"
    return f'"X" %if {whole}'


@pytest.fixture(scope="module")
def peer() -> Peer:
    return Peer()


@pytest.mark.parametrize("end", ['"X"', all_of(7, 50)])
def test_seven_counters_are_followed_to_their_end(end: str) -> None:
    compiled = ffwd.compile(ffwd.lark(counters(7, 50, end)), byte_vocabulary())
    letters = [letter for letter in "abcdefg" for _ in range(50)]
    random.Random(3).shuffle(letters)
    matcher = compiled.matcher()
    left = dict.fromkeys("abcdefg", 50)
    for letter in letters:
        found = {chr(token) for token in matcher.allowed_token_ids()} - {"X"}
        assert found == {letter for letter, often in left.items() if often}
        assert matcher.accept_tokens(list(f"{letter} ".encode()))
        left[letter] -= 1
    assert matcher.allowed_token_ids() == [ord("X")]
    assert matcher.accept_tokens([ord("X"), END])
    assert accepts(compiled, "a b X") == (end == '"X"')


GRAMMARS = [
    counters(4, 60, '"X"'),
    counters(7, 50, '"X" | "Y" %if is_zeros([0:8])'),
    # Words, blanks, and rules in between.
    "%ignore / +/\nstart: many::0\n"
    'many::_: WORD pair::incr([0:16]) %if lt([0:16], 30000) | "." %if bit_set(1) | ";"\n'
    'pair::_: "," many::_ | "," ("(" many::decr([0:16]) ")")? many::incr([16:40])\n'
    "WORD: /[a-c]+/",
    'start: "<" each::0 ">" each::1\n'
    'each::_: "" %if bit_set(17) | "ab" each::incr([0:16]) | "ac" next::set_bit(17)\n'
    "next::_: TAIL each::_ | TAIL? each::incr([18:40])\nTAIL: /[0-9]/",
]


@pytest.mark.parametrize("text", GRAMMARS)
def test_texts_are_those_of_llguidance(peer: Peer, text: str) -> None:
    compiled = ffwd.compile(ffwd.lark(text), byte_vocabulary())
    theirs = peer.matcher(text)
    for seed in range(12):
        source = random.Random(seed)
        matcher, other = compiled.matcher(), theirs.deep_copy()
        for _ in range(60):
            allowed = matcher.allowed_token_ids()
            assert allowed
            assert (END in allowed) == other.is_accepting(), (text, matcher.tokens)
            if other.is_stopped():
                break
            for byte in b"abcdefgXY.;,()< >0159":
                may = bool(other.deep_copy().try_consume_tokens([byte]))
                assert (byte in allowed) == may, (text, bytes(matcher.tokens), chr(byte))
            token = source.choice([token for token in allowed if token != END] or [END])
            assert matcher.accept_token(token)
            if token == END:
                break
            assert other.try_consume_tokens([token])


def test_a_condition_that_never_holds_is_a_limit_with_its_rule() -> None:
    text = counters(7, 50, '"X" %if gt([0:8], 200)')
    with pytest.raises(ffwd.LimitExceededError, match="rule `lst`") as caught:
        ffwd.compile(ffwd.lark(text), byte_vocabulary(), limits=ffwd.Limits(compile_steps=None))
    assert caught.value.line == 2


def test_what_begins_with_itself_is_expanded_beforehand() -> None:
    text = 'start: e::0\ne::_: e::incr([0:4]) "a" %if lt([0:4], 9) | "b" %if eq([0:4], 9)'
    compiled = ffwd.compile(ffwd.lark(text), byte_vocabulary())
    assert accepts(compiled, "b" + "a" * 9)
    assert not accepts(compiled, "b" + "a" * 8)


def test_a_part_that_is_only_empty_may_come_back_to_itself() -> None:
    text = "start: lst::0 none::0\n" + counters(7, 50, '"X"').split("\n", 1)[1]
    text += '\nnone::_: "" | none::incr([0:8])'
    compiled = ffwd.compile(ffwd.lark(text), byte_vocabulary())
    assert accepts(compiled, "a b X")
    assert not accepts(compiled, "a b")


def test_too_many_values_of_what_begins_with_itself_are_a_limit_with_its_rule() -> None:
    text = 'start: l::0\nl::_: l::incr([0:32]) "a" %if lt([0:32], 2000000) | "x"'
    with pytest.raises(ffwd.LimitExceededError, match="rule `l` may begin with itself") as caught:
        ffwd.compile(ffwd.lark(text), byte_vocabulary(), limits=ffwd.Limits(compile_seconds=None))
    assert caught.value.line == 2


def test_refusals_do_not_depend_on_the_values_that_come() -> None:
    for many in ("", "0"):
        most = f"5{many}{many}{many}"
        step = f'p::_: "a" p::incr([0:16]) %if lt([0:16], {most}) | "b" none %if gt([0:16], 65000)'
        text = f'start: p::0\n{step} | "c"\nnone: "d" none'
        with pytest.raises(ffwd.GrammarError, match="rule `none`") as caught:
            ffwd.compile(ffwd.lark(text), byte_vocabulary())
        assert caught.value.line == 3
