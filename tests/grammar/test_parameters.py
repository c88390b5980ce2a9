"""Rules with a parameter of more values than could be expanded, beside llguidance."""

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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


CHANGES: dict[str, Callable[[int], int]] = {
    "_": lambda value: value,
    "incr([0:2])": lambda value: value + (value & 3 < 3),
    "decr([0:2])": lambda value: value - (value & 3 > 0),
    "incr([1:4])": lambda value: value + 2 * (value >> 1 & 7 < 7),
    "set_bit(2)": lambda value: value | 4,
    "clear_bit(0)": lambda value: value & ~1,
}
CONDITIONS: dict[str, Callable[[int], bool]] = {
    "true": lambda value: True,
    "lt([0:2], 3)": lambda value: value & 3 < 3,
    "eq([0:2], 2)": lambda value: value & 3 == 2,
    "bit_clear(2)": lambda value: not value & 4,
    "bit_set(1)": lambda value: bool(value & 2),
    "and(gt([0:4], 1), lt([1:4], 6))": lambda value: value & 15 > 1 and (value >> 1) & 7 < 6,
}


@dataclass
class LeftRecursive:
    """Rules with a parameter of four bits, which may begin with each other.

    Further bits count what is around them, so that all values are too many to be expanded.
    """

    rules: dict[str, list[tuple[str, list[str]]]]

    @classmethod
    def drawn(cls, seed: int) -> "LeftRecursive":
        source = random.Random(f"left-recursive {seed}")

        def part(letters: float) -> str:
            if source.random() < letters:
                return source.choice("ab")
            return f"{source.choice('pq')}::{source.choice(list(CHANGES))}"

        rules = {}
        for name in "pq":
            ways = [
                (
                    source.choice(list(CONDITIONS)),
                    [part(0.25), *(part(0.6) for _ in range(source.randint(0, 2)))],
                )
                for _ in range(source.randint(1, 3))
            ]
            if source.random() < 0.3:
                ways.append((source.choice(list(CONDITIONS)), []))
            rules[name] = [*ways, ("true", [source.choice("ab")])]
        return cls(rules)

    def lark(self) -> str:
        lines = [
            "start: c::0",
            'c::_: "," c::incr([16:40]) %if lt([16:40], 600000)',
            '    | "<" p::_ ">" c::incr([16:40]) | "."',
        ]
        for name, ways in self.rules.items():
            written = [
                " ".join(f'"{part}"' if part in "ab" else part for part in parts or ['""'])
                + (f" %if {condition}" if condition != "true" else "")
                for condition, parts in ways
            ]
            lines.append(f"{name}::_: " + "\n    | ".join(written).replace('""""', '""'))
        return "\n".join(lines)

    def texts(self, most: int) -> set[str]:
        """All texts of `p::0` up to a length, found by putting together shorter ones."""
        found: dict[tuple[str, int], set[str]] = {
            (name, value): set() for name in self.rules for value in range(32)
        }
        while True:
            before = sum(map(len, found.values()))
            for (name, value), texts in found.items():
                for condition, parts in self.rules[name]:
                    if CONDITIONS[condition](value):
                        texts |= self._joined(found, parts, value, most)
            if sum(map(len, found.values())) == before:
                return found["p", 0]

    @staticmethod
    def _joined(
        found: dict[tuple[str, int], set[str]], parts: list[str], value: int, most: int
    ) -> set[str]:
        joined = {""}
        for part in parts:
            nexts = {part}
            if part not in "ab":
                name, change = part.split("::")
                nexts = found[name, CHANGES[change](value)]
            joined = {text + more for text in joined for more in nexts if len(text + more) <= most}
        return joined

    def has(self, text: str) -> bool:
        """Whether `p::0` has a text, by the spans of all parts in it."""
        found: dict[tuple[str, int], set[tuple[int, int]]] = {
            (name, value): set() for name in self.rules for value in range(32)
        }
        while True:
            before = sum(map(len, found.values()))
            for (name, value), spans in found.items():
                for condition, parts in self.rules[name]:
                    if not CONDITIONS[condition](value):
                        continue
                    begun = {(at, at) for at in range(len(text) + 1)}
                    for part in parts:
                        if part in "ab":
                            nexts = {(at, at + 1) for at, it in enumerate(text) if it == part}
                        else:
                            rule, change = part.split("::")
                            nexts = found[rule, CHANGES[change](value)]
                        begun = {(a, d) for a, b in begun for c, d in nexts if b == c}
                    spans |= begun
            if sum(map(len, found.values())) == before:
                return (0, len(text)) in found["p", 0]


def short_texts(most: int) -> Iterator[str]:
    for length in range(most + 1):
        yield from map("".join, itertools.product("ab", repeat=length))


@pytest.mark.parametrize("seed", range(60))
def test_what_begins_with_itself_has_the_texts_found_by_trying(seed: int) -> None:
    grammar = LeftRecursive.drawn(seed)
    compiled = ffwd.compile(ffwd.lark(grammar.lark()), byte_vocabulary())
    expected = grammar.texts(5)
    accepted = {text for text in short_texts(5) if accepts(compiled, f",<{text}>,.")}
    assert accepted == expected, grammar.lark()


@pytest.mark.parametrize("seed", range(30))
def test_masks_of_what_begins_with_itself_are_those_of_llguidance(peer: Peer, seed: int) -> None:
    """Where llguidance allows more, no text of the grammar goes on like that."""
    grammar = LeftRecursive.drawn(seed)
    text = grammar.lark()
    matcher = ffwd.compile(ffwd.lark(text), byte_vocabulary()).matcher()
    theirs = peer.matcher(text)
    source = random.Random(seed)
    for _ in range(25):
        allowed = matcher.allowed_token_ids()
        assert (END in allowed) == theirs.is_accepting(), (text, matcher.tokens)
        if theirs.is_stopped():
            break
        for byte in b"ab<>,.":
            may = bool(theirs.deep_copy().try_consume_tokens([byte]))
            assert not theirs.is_error(), theirs.get_error()
            written = bytes(matcher.tokens).decode() + chr(byte)
            if may and byte in b"ab>" and byte not in allowed:
                begun = written[written.rindex("<") + 1 :]
                rests = [""] if byte == ord(">") else short_texts(4)
                assert not any(grammar.has(begun.rstrip(">") + rest) for rest in rests), written
            else:
                assert (byte in allowed) == may, (text, written)
        token = source.choice([token for token in allowed if token != END])
        assert matcher.accept_token(token)
        assert theirs.try_consume_tokens([token])


def test_counters_beside_what_begins_with_itself_are_followed_to_their_end() -> None:
    text = counters(4, 50, "l::_") + '\nl::_: l::incr([40:48]) "x" %if lt([40:48], 5) | "y"'
    compiled = ffwd.compile(ffwd.lark(text), byte_vocabulary())
    assert accepts(compiled, "a b c d " * 50 + "yxxxxx")
    assert not accepts(compiled, "a b c d " * 50 + "yxxxxxx")
    assert not accepts(compiled, "a " * 51 + "y")
