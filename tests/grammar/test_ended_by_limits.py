"""Limits of tokens on terminals that take what must follow: where the limit is met, they end."""

import random
from collections.abc import Iterable, Iterator
from functools import cache

import numpy as np
import pytest
from compiled import END, byte_vocabulary, mask
from larkpeer import Peer

import ffwd

# A terminal, and how many tokens it may have.
Part = tuple[frozenset[str], int | None]
Sequence = tuple[Part, ...]
# The text of the terminal that is being read, the tokens that have a part of it, and the sequences
# that are left, that terminal among them.
Thread = tuple[str, int, frozenset[Sequence]]
Threads = frozenset[Thread]

TOKENS: list[bytes | None] = [bytes([byte]) for byte in range(256)] + [None]
TOKENS += [text.encode() for text in ["aa", "ab", "ba", "bb", "ac", "aab", "aba", "cab"]]
LONG = ffwd.Vocabulary(TOKENS, eos_token_ids=[END])
SPELLED = {
    token: spelled.decode()
    for token, spelled in enumerate(TOKENS)
    if spelled is not None and set(spelled) <= set(b"abc")
}


class Lexer:
    """Tokens of some sequences of finite terminals, by longest match, within their limits."""

    def __init__(self, sequences: Iterable[Sequence]) -> None:
        self.start: Threads = frozenset({("", 0, frozenset(sequences))})
        self.alive = cache(self._alive)

    @staticmethod
    def after(left: Iterable[Sequence], text: str) -> frozenset[Sequence]:
        """What is left where the terminal has this text."""
        return frozenset(rest[1:] for rest in left if rest and text in rest[0][0])

    def letter(self, thread: Thread, letter: str) -> Thread | None:
        """Reads a letter: the terminal goes on if any of those that may come does."""
        text, used, left = thread
        longer = text + letter
        if any(word.startswith(longer) for rest in left if rest for word in rest[0][0]):
            return (longer, used, left)
        ended = self.after(left, text) if text else frozenset()
        return self.letter(("", 0, ended), letter) if ended else None

    def step(self, threads: Threads, token: str) -> Threads:
        """Reads a token, and ends the terminals that have had all of theirs."""
        found = set()
        for thread in threads:
            at: Thread | None = thread
            for letter in token:
                at = at and self.letter(at, letter)
            if at is None:
                continue
            text, used, left = at
            over = frozenset(rest for rest in left if rest and rest[0][1] == used + 1)
            found.add((text, used + 1, left - over))
            found.add(("", 0, self.after(over, text)))
        return frozenset(thread for thread in found if thread[2])

    def is_end(self, threads: Threads) -> bool:
        """Whether the text may end here."""
        return any(() in (self.after(left, text) if text else left) for text, _, left in threads)

    def _alive(self, threads: Threads) -> bool:
        if self.is_end(threads) or not threads:
            return bool(threads)
        return any(self.alive(self.step(threads, text)) for text in SPELLED.values())

    def allowed(self, threads: Threads) -> set[int]:
        """The tokens after which a text can still end."""
        steps = {token: self.step(threads, text) for token, text in SPELLED.items()}
        found = {token for token, after in steps.items() if after and self.alive(after)}
        return found | ({END} if self.is_end(threads) else set())

    def places(self, most: int) -> Iterator[tuple[list[int], Threads]]:
        """Different places that texts come to, each with tokens that lead there."""
        seen = {self.start}
        pending: list[tuple[list[int], Threads]] = [([], self.start)]
        while pending and len(seen) < most:
            tokens, threads = pending.pop(0)
            yield tokens, threads
            for token in sorted(self.allowed(threads) - {END}):
                after = self.step(threads, SPELLED[token])
                if after not in seen:
                    seen.add(after)
                    pending.append(([*tokens, token], after))


def all_words(letters: str, most: int) -> frozenset[str]:
    words = [""]
    for _ in range(most):
        words += {word + letter for word in words for letter in letters}
    return frozenset(words) - {""}


def random_sequences(source: random.Random) -> list[Sequence]:
    words = ["".join(source.choices("aabbc", k=source.randint(1, 3))) for _ in range(9)]
    terminals = [frozenset(source.sample(words, source.randint(1, 3))) for _ in range(3)]
    terminals += [all_words("ab", 4), all_words("a", 3), frozenset(["ab", "abab"])]
    parts = [(words, source.choice([None, 1, 2, 2, 3])) for words in terminals]
    return [
        tuple(source.choices(parts, k=source.randint(1, 4))) for _ in range(source.randint(1, 3))
    ]


def lark(sequences: list[Sequence]) -> str:
    names: dict[Part, str] = {}
    for part in (part for sequence in sequences for part in sequence):
        names.setdefault(part, f"t{len(names)}")
    lines = ["start: " + " | ".join(" ".join(names[t] for t in rest) for rest in sequences)]
    for (words, limit), name in names.items():
        attribute = "" if limit is None else f"[max_tokens={limit}]"
        lines.append(f"{name}{attribute}: /{'|'.join(sorted(words))}/")
    return "\n".join(lines)


@pytest.mark.parametrize("seed", range(400))
def test_masks_are_what_can_end_within_the_limits(seed: int) -> None:
    sequences = random_sequences(random.Random(seed))
    lexer, text = Lexer(sequences), lark(sequences)
    if not lexer.alive(lexer.start):
        with pytest.raises((ffwd.GrammarError, ffwd.BudgetError)):
            ffwd.compile(ffwd.lark(text), LONG).matcher()
        return
    compiled = ffwd.compile(ffwd.lark(text), LONG)
    for tokens, threads in lexer.places(40):
        matcher = compiled.matcher()
        assert matcher.accept_tokens(tokens), (text, tokens)
        expected = lexer.allowed(threads)
        found = set(np.flatnonzero(mask(matcher, len(TOKENS))).tolist())
        assert found == expected, (text, tokens, found ^ expected)
        for token in [*SPELLED, END]:
            assert (matcher.validate_tokens([token]) == 1) == (token in expected)


# Terminals of which each beginning is a text, so that a limit can always end them.
GREEDY = ["/[ab]+/", "/[abc]+/", "/a+/", "/[ab]{1,5}/", "/(a|b|c)+/"]
# llguidance counts the token of a lexeme of one byte for the part behind it, so there is none.
LITERALS = ['"bc"', '"ab"', '"ca"', '"<<"', "A"]


def random_grammar(source: random.Random) -> str:
    """Small texts between parts with limits, some of them optional, repeated or in a choice."""
    parts, after = [], ['"<<"']
    for number in range(source.randint(1, 3)):
        parts.append(source.choice(after))
        part, after = f"r{number}", LITERALS
        if source.random() < 0.5:
            # Where another lexeme ends with the limit, llguidance takes only that.
            part, after = source.choice([f"{part}?", f"({part} | B)", f"({part} B)*"]), ['"<<"']
        parts.append(part)
    parts.append(source.choice(after))
    lines = ["start: " + " ".join(parts)]
    for number in range(3):
        limit, body = source.randint(1, 4), source.choice(GREEDY)
        if f"r{number}" in lines[0]:
            lines.append(f"r{number}[max_tokens={limit}]: {body}")
    return "\n".join([*lines, "A: /ab|bb/", 'B: "<b>"'])


@pytest.fixture(scope="module")
def peer() -> Peer:
    return Peer()


@pytest.mark.parametrize("seed", range(150))
def test_texts_are_those_of_llguidance(peer: Peer, seed: int) -> None:
    """Random walks of either are texts of the other, where they end."""
    source = random.Random(seed)
    text = random_grammar(source)
    try:
        compiled = ffwd.compile(ffwd.lark(text), byte_vocabulary())
        compiled.matcher()
    except (ffwd.GrammarError, ffwd.BudgetError):
        compiled = None
    theirs = peer.matcher(text)
    ended = 0
    for _ in range(20):
        other = theirs.deep_copy()
        tokens: list[int] = []
        while len(tokens) < 25 and not other.is_stopped():
            if other.is_accepting() and compiled is not None:
                ended += 1
                matcher = compiled.matcher()
                assert matcher.accept_tokens([*tokens, END]), (text, tokens)
            letters = [byte for byte in b"abc<>." if other.deep_copy().try_consume_tokens([byte])]
            if not letters:
                break
            tokens.append(source.choice(letters))
            assert other.try_consume_tokens(tokens[-1:])
        assert compiled is not None or not other.is_accepting(), (text, tokens)
    if compiled is None:
        return
    for _ in range(20):
        matcher, other = compiled.matcher(), theirs.deep_copy()
        for _ in range(200):
            allowed = matcher.allowed_token_ids()
            assert allowed, (text, matcher.tokens)
            token = END if END in allowed and source.random() < 0.3 else source.choice(allowed)
            assert matcher.accept_token(token)
            if token == END:
                break
            assert other.try_consume_tokens([token]), (text, matcher.tokens)
        assert matcher.is_terminated()
        assert other.is_accepting(), (text, matcher.tokens)


THINK = 'start: "<think>" r "</think>" "ok"\nr[max_tokens={}]: /(\\n|.)*/'
TEXTS = [
    (THINK.format(4), "<think>hmm.</think>ok"),
    (THINK.format(60), "<think>" + "h" * 60 + "</think>ok"),
    ('start: "xa" r "b"\nr[max_tokens=2]: /[ab]+/', "xaabb"),
    ('start: "<" x ">"\nx: %lark {\n' + THINK.format(4) + "\n}", "<<think>hmm.</think>ok>"),
]


@pytest.mark.parametrize(("text", "wanted"), TEXTS)
def test_what_follows_comes_at_the_limit(peer: Peer, text: str, wanted: str) -> None:
    matcher = ffwd.compile(ffwd.lark(text), byte_vocabulary()).matcher()
    assert matcher.accept_tokens([*wanted.encode(), END])
    assert peer.accepts(peer.matcher(text), wanted)


def test_a_mask_far_from_the_limit_has_all_letters() -> None:
    compiled = ffwd.compile(ffwd.lark(THINK.format(3000)), byte_vocabulary())
    matcher = compiled.matcher()
    assert matcher.accept_tokens(list(b"<think>" + b"</think>" * 370))
    assert {*b"abc<>\n"} <= set(matcher.allowed_token_ids())
    assert matcher.accept_tokens(list(b"x" * 40))
    assert matcher.forced_bytes() == b"</think>ok"
    assert compiled.stats()["states"] < 80


REFUSED = [
    (THINK.format(4).replace("r[", "r[lazy, "), None),
    ('start: "a" A "b" r "c"\nA: /[ab]+/\nr[max_tokens=2]: /[a-z]*/', "the terminal `A` takes all"),
    ('start: "x" r "b" | "x" A "a"\nA: /a+/\nr[max_tokens=3]: /b+/', None),
    ('start: "a" /[ab]+/ "b"', "a terminal of the rule `start` takes all"),
    ('start: r "ab"\nr[max_tokens=3]: /(ab)+/', "rule `r` .* has at most 3 tokens"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED)
def test_the_message_names_what_takes_all(text: str, message: str | None) -> None:
    def begin() -> ffwd.Matcher:
        return ffwd.compile(ffwd.lark(text), byte_vocabulary()).matcher()

    if message is None:
        begin()
        return
    with pytest.raises(ffwd.GrammarError, match=message):
        begin()
