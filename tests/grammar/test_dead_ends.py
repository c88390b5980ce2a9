"""Longest matches that take what must follow: no mask leads where nothing may come."""

import random
import re
from collections.abc import Iterable

import numpy as np
import pytest
from compiled import END, byte_vocabulary, mask

import ffwd

Sequence = tuple[frozenset[str], ...]

# Also tokens that go past the end of a terminal.
TOKENS: list[bytes | None] = [bytes([byte]) for byte in range(256)] + [None]
TOKENS += [text.encode() for text in ["aa", "ab", "ba", "bb", "ac", "aab", "aba", "bca", "cab"]]
LONG = ffwd.Vocabulary(TOKENS, eos_token_ids=[END])


class Lexer:
    """The texts of some sequences of finite terminals, by longest match, letter by letter.

    A state is the text of the terminal that is being read, and the sequences that are left, that
    terminal among them.
    """

    def __init__(self, sequences: Iterable[Sequence]) -> None:
        self.start = ("", frozenset(sequences))

    @staticmethod
    def after(state: tuple[str, frozenset[Sequence]]) -> frozenset[Sequence]:
        """What is left where the terminal ends here."""
        text, left = state
        return frozenset(rest[1:] for rest in left if rest and text in rest[0])

    def step(
        self, state: tuple[str, frozenset[Sequence]], letter: str
    ) -> tuple[str, frozenset[Sequence]] | None:
        """Reads a letter: the terminal goes on if any of those that may come does."""
        text, left = state
        longer = text + letter
        if any(word.startswith(longer) for rest in left if rest for word in rest[0]):
            return (longer, left)
        ended = self.after(state) if text else frozenset()
        return self.step(("", ended), letter) if ended else None

    def is_end(self, state: tuple[str, frozenset[Sequence]]) -> bool:
        """Whether the text may end here."""
        return () in (self.after(state) if state[0] else state[1])

    def live(self) -> dict[str, tuple[set[str], bool]]:
        """By each beginning of a text: the letters with which one goes on, and if it is one."""
        found: dict[str, tuple[set[str], bool]] = {}

        def visit(text: str, state: tuple[str, frozenset[Sequence]]) -> bool:
            letters = set()
            for letter in "abc":
                after = self.step(state, letter)
                if after is not None and visit(text + letter, after):
                    letters.add(letter)
            ends = self.is_end(state)
            if letters or ends:
                found[text] = (letters, ends)
            return bool(letters or ends)

        visit("", self.start)
        return found


def random_sequences(source: random.Random) -> list[Sequence]:
    words = ["".join(source.choices("aabbc", k=source.randint(1, 3))) for _ in range(9)]
    terminals = [frozenset(source.sample(words, source.randint(1, 3))) for _ in range(5)]
    return [
        tuple(source.choices(terminals, k=source.randint(1, 4)))
        for _ in range(source.randint(1, 3))
    ]


def lark(sequences: list[Sequence]) -> str:
    names: dict[frozenset[str], str] = {}
    for terminal in (terminal for sequence in sequences for terminal in sequence):
        names.setdefault(terminal, f"T{len(names)}")
    lines = ["start: " + " | ".join(" ".join(names[t] for t in rest) for rest in sequences)]
    lines += [f"{name}: /{'|'.join(sorted(words))}/" for words, name in names.items()]
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(300))
def test_masks_have_what_goes_on_to_an_end(seed: int) -> None:
    """Of random grammars, every mask beside all texts that there are, with longer tokens too; and
    what is forced."""
    sequences = random_sequences(random.Random(seed))
    live = Lexer(sequences).live()
    text = lark(sequences)
    if not live:
        with pytest.raises(ffwd.GrammarError, match="matches no text"):
            ffwd.compile(ffwd.lark(text), LONG)
        return
    compiled = ffwd.compile(ffwd.lark(text), LONG)
    for begin, (_, ends) in live.items():
        matcher = compiled.matcher()
        assert matcher.accept_tokens(list(begin.encode())), (text, begin)
        row = mask(matcher, len(TOKENS))
        found = {token for token in map(int, np.flatnonzero(row)) if token != END}
        expected = {
            token
            for token, spelled in enumerate(TOKENS)
            if spelled and spelled.isascii() and begin + spelled.decode() in live
        }
        assert found == expected, (text, begin)
        assert bool(row[END]) == ends, (text, begin)
        for letter in "abc":
            accepted = matcher.validate_tokens([ord(letter)]) == 1
            assert accepted == (begin + letter in live), (text, begin, letter)
        assert matcher.forced_bytes().decode() == forced(live, begin), (text, begin)


def forced(live: dict[str, tuple[set[str], bool]], begin: str) -> str:
    """What comes after the beginning of a text, whatever the text."""
    text = begin
    while len(live[text][0]) == 1 and not live[text][1]:
        text += "".join(live[text][0])
    return text[len(begin) :]


# Without a text: a terminal takes what must follow, at once, later, or on every way.
WITHOUT_TEXTS = [
    ('start: A "a"\nA: /a+/', "A", 2, 1),
    ('start: "x" "y" A "a"\nA: /a+/', "A", 2, 1),
    # The first byte of the letter that follows may begin one of the terminal.
    ('start: ID "è"\nID: /[ké]+/', "ID", 2, 1),
    ('start: "x" (A "ab" | B "bb")\nA: /a[ab]*/\nB: /b+/', "A", 2, 1),
    ('start: (A "b")* A "a"\nA: /a+/', "A", 2, 1),
    ("start: A B\nA: /a+/\nB: /a/", "A", 2, 1),
]


@pytest.mark.parametrize(("text", "name", "line", "column"), WITHOUT_TEXTS)
def test_a_grammar_without_texts_is_refused(text: str, name: str, line: int, column: int) -> None:
    with pytest.raises(ffwd.GrammarError, match=f"the terminal `{name}` takes all") as caught:
        ffwd.compile(ffwd.lark(text), byte_vocabulary())
    assert (caught.value.line, caught.value.column) == (line, column)


PATTERNS = ["a+", "b+", "[ab]+", "a", "b", "ab", "a?", "[ab]", "b*", "a*c", "[abc]+", "c", "(ab)+"]


def random_terminals(source: random.Random) -> tuple[dict[str, str], list[list[tuple[str, str]]]]:
    """Patterns by terminal, and alternatives of terminals with how often they come."""
    names = "ABCD"[: source.randint(2, 4)]
    body = [
        [(source.choice(names), source.choice(["", "", "+", "?"])) for _ in range(count)]
        for count in (source.randint(2, 4) for _ in range(source.randint(1, 2)))
    ]
    used = sorted({name for alternative in body for name, _ in alternative})
    return {name: source.choice(PATTERNS) for name in used}, body


def blamed(
    patterns: dict[str, str], body: list[list[tuple[str, str]]], *ended: str
) -> set[str] | None:
    """The terminals that are named as taking all; `#` comes behind those that are `ended`."""
    alternatives = [
        " ".join(f'({name} "#"){times}' if name in ended else name + times for name, times in way)
        for way in body
    ]
    lines = [f"{name}: /{pattern}/" for name, pattern in patterns.items()]
    text = "\n".join(["start: " + " | ".join(alternatives), *lines])
    try:
        ffwd.compile(ffwd.lark(text), byte_vocabulary())
    except ffwd.GrammarError as error:
        message = str(error)
    else:
        return None
    assert "takes all that could follow" in message, text
    return set(re.findall("`([A-Z])`", message))


def test_the_terminal_that_is_named_is_at_fault() -> None:
    """If something else between one terminal and what follows gives the grammar a text, then
    behind the one that is named; else it is needed there as well."""
    source = random.Random(11)
    several = dead = 0
    for _ in range(300):
        patterns, body = random_terminals(source)
        named = blamed(patterns, body)
        if named is None:
            continue
        dead += 1
        # Terminals with the same pattern are one.
        alike = {name for name in patterns if patterns[name] == patterns[min(named)]}
        assert named == alike, (patterns, body)
        cures = [name for name in patterns if blamed(patterns, body, name) is None]
        if cures:
            assert blamed(patterns, body, *named) is None, (patterns, body, named, cures)
            continue
        several += 1
        others = [name for name in patterns if name not in named]
        assert blamed(patterns, body, *patterns) is None, (patterns, body)
        if blamed(patterns, body, *others) is None:
            assert blamed(patterns, body, *named) != named, (patterns, body, named)
    assert dead >= 20
    assert several >= 1


# A grammar, a text of it, and letters that must not come after it, as they lead nowhere.
AVOIDED = [
    ('start: A "b"\nA: /a+|ab+/', "a", "b"),
    ('start: "x" start | A "a" | "y"\nA: /a+/', "x", "a"),
    ('start: "x" start | A "a" | "y"\nA: /a+/', "", "a"),
    ('start: "(" start ")" | "(" A "a" | "c"\nA: /a+/', "(((", "a"),
    ('start: (A | B "c")+\nA: /ab/\nB: /ac*/', "a", "c"),
    ('start: (A "b")* A "a" | B start?\nA: /a+/\nB: "c"', "c", "a"),
]


@pytest.mark.parametrize(("text", "begin", "letters"), AVOIDED)
def test_what_leads_nowhere_does_not_come(text: str, begin: str, letters: str) -> None:
    matcher = ffwd.compile(ffwd.lark(text), LONG).matcher()
    assert matcher.accept_tokens(list(begin.encode()))
    row = mask(matcher, len(TOKENS))
    assert row.any()
    for token in np.flatnonzero(row):
        spelled = TOKENS[token]
        assert spelled is None or spelled.decode()[0] not in letters
    for letter in letters:
        assert matcher.validate_tokens([ord(letter)]) == 0


@pytest.mark.parametrize(
    ("text", "begin", "forced"),
    [
        ('start: A "qa"\nA: /[^<]*/', b"", b"qa"),
        ("start: /[^<]*/ /qa/i", b"Q", b""),
        ("start: /[^<]*/ /\\x1f/", b"", b"\x1f"),
        # The text may end.
        ('start: A ("qa")?\nA: /[^<]*/', b"", b""),
        ('start: (A "b" | "ac") "d"\nA: /a+|ab+/', b"", b"a"),
    ],
)
def test_what_leads_nowhere_does_not_hide_what_is_forced(
    text: str, begin: bytes, forced: bytes
) -> None:
    matcher = ffwd.compile(ffwd.lark(text), LONG).matcher()
    assert matcher.accept_tokens(list(begin))
    assert matcher.forced_bytes() == forced


ENDLESS = ["a*", "[ab]*", "a+b?", "(ab)*", "[^b]*", "[^a]+", "b", "ab", "ba|c", "c+"]


def test_a_byte_is_forced_where_a_mask_has_no_other() -> None:
    """Of random grammars with endless terminals, after each text of four letters at most."""
    source = random.Random(5)
    forced = 0
    for _ in range(200):
        sequences = [
            " ".join(
                f"/{terminal}/" for terminal in source.choices(ENDLESS, k=source.randint(2, 4))
            )
            for _ in range(source.randint(1, 2))
        ]
        text = "start: " + " | ".join(sequences)
        try:
            compiled = ffwd.compile(ffwd.lark(text), LONG)
        except ffwd.GrammarError:
            continue
        begins = [b""]
        for begin in begins:
            matcher = compiled.matcher()
            assert matcher.accept_tokens(list(begin))
            row = mask(matcher, len(TOKENS))
            allowed = [int(byte) for byte in np.flatnonzero(row[:256])]
            only = bytes(allowed) if len(allowed) == 1 and not row[END] else b""
            # Bytes are not named from the middle of a character.
            if not only or only.isascii():
                assert matcher.forced_bytes()[:1] == only, (text, begin)
            forced += len(only)
            if len(begin) < 4:
                begins += [begin + bytes([byte]) for byte in allowed if byte in b"abc"]
    assert forced > 100


def test_a_text_goes_on_to_its_end_however_it_is_chosen() -> None:
    """Nested to any depth, where each level has ways that lead nowhere."""
    text = 'start: "(" start ")" | "[" start A "]" | "{" A "a" "}" | B\nA: /a+/\nB: /b/'
    compiled = ffwd.compile(ffwd.lark(text), LONG)
    for seed in range(20):
        source, matcher = random.Random(seed), compiled.matcher()
        for step in range(400):
            allowed = np.flatnonzero(mask(matcher, len(TOKENS))).tolist()
            assert allowed, matcher.tokens
            deeper = [token for token in allowed if (TOKENS[token] or b"")[:1] in b"([{"]
            shallow = [token for token in allowed if token not in deeper]
            token = source.choice((shallow if step > 30 else allowed) or allowed)
            assert matcher.accept_token(token)
            if matcher.is_terminated():
                break
        assert matcher.is_terminated()
        assert ord("{") not in matcher.tokens


def test_shortest_completions_go_round_dead_ends() -> None:
    text = 'start: "x" A "a" | "xyz" A "b" | "x" "y" "y" "y" "y" "y"\nA: /a+/'
    compiled = ffwd.compile(ffwd.lark(text), byte_vocabulary())
    tokens = compiled.shortest_completion()
    assert compiled.matcher().accept_tokens(tokens)


def draw_recursive(source: random.Random) -> str:
    """Return a grammar whose rules contain each other, and in which `T0` takes what `"11"` needs.

    The search for dead ends meets more rows than it examines, so it is repeated nearer to them.
    """
    parts = ["T0", "T1", "T2", '"1"', '"11"', '"ac"', '"b"', "r0", "r2", "(T1 | T2)"]

    def some(count: int) -> str:
        return " ".join(source.choice(parts) for _ in range(count))

    dead = f'r2 T2 T0 {source.choice(["(T1 | T2)", "T1", "T2", ""])} T0 "11"'
    r0 = ["T1", source.choice(["T1 r0", "(T1)* (r0){2,} r0", "r0 r0", some(2)]), dead]
    more = ['r0 "1" T2', "T0 r0", '"1" "ac"', 'T1 r0 "b"', '"1" T0', some(2), some(3)]
    r2 = ['""', *(source.choice(more) for _ in range(source.randint(1, 4)))]
    terminals = 'T0: (("1c")+){3,5}\nT1: ("b"){3,5}\nT2: /[1ac]/ /[bca]/\n'
    return f"start: r0\nr0: {' | '.join(r0)}\nr2: {' | '.join(r2)}\n{terminals}"


def test_no_mask_is_empty_where_a_search_ends_early() -> None:
    texts = ["aa", "ab", "1c", "1c1", "c1", "bb", "11", "bbb", "a1", "1b", "ac1", "cb"]
    tokens = [*(bytes([byte]) for byte in range(256)), None, *map(str.encode, texts)]
    vocabulary = ffwd.Vocabulary(tokens, eos_token_ids=[END])
    walked = 0
    for seed in range(30):
        source = random.Random(seed)
        text = draw_recursive(source)
        try:
            compiled = ffwd.compile(ffwd.lark(text), vocabulary)
            for _ in range(3):
                matcher = compiled.matcher()
                while len(matcher.tokens) < 12 and not matcher.is_terminated():
                    allowed = matcher.allowed_token_ids()
                    assert allowed, (text, matcher.tokens)
                    for token in allowed:
                        assert token == END or matcher.validate_tokens([token]) == 1
                    assert matcher.accept_token(source.choice(allowed))
            walked += 1
        except ffwd.LimitExceededError:
            continue
    assert walked > 20
