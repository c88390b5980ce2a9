"""Regular expressions in three dialects, operators on languages, and parts of a text."""

import contextlib
import random
import re
import sys
import unicodedata
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import interegular
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ffwd
from ffwd import complement, intersection, lit, regex, repeat, seq, substring_of
from ffwd.grammar import _regex

END = 256
VOCABULARY = ffwd.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=[END])

# Letters with a case of their own among them, and what dialects take for spaces and digits.
TEXT = "aabbAB1_ -.\n\réÉ\u017fsK\u212aßẞİi\u0131\u03c3ςΣµμ\x00{,}]#c\x1c\u0663"
ATOMS: list[str] = [
    *"abAB1_ -.{}]#",
    "{,",
    "\\n",
    "é",
    "É",
    "\u017f",
    "s",
    "K",
    "\u212a",
    "ß",
    "ẞ",
    "İ",
    "i",
    "\u0131",
]
ATOMS += ["\\w", "\\W", "\\d", "\\D", "\\s", "\\S", "[ab]", "[^a]", "[\\w-]", "[^\\d]", "[a-cé]"]
ATOMS += ["[i-k]", "[]a]", "[^]a]", "\\b", "\\B", "^", "$", "\\A", "\\Z", "\\x61", "\\141", "\\0"]
ATOMS += ["(?#c)", "\u03c3", "ς", "µ", "\\N{LATIN SMALL LETTER A}", "[^\\WK]", "[\\N{EM DASH}-]"]
COUNTS = ["*", "+", "?", "{2}", "{,2}", "{1,}", "{0}", "{1,3}", "{,}", "*?", "+?", "??", "{1,2}?"]
GROUPS = ["(", "(?:", "(?:", "(?i:", "(?s:", "(?m:", "(?x:", "(?-i:", "(?P<n>"]
LOOKS = ["(?=", "(?!", "(?<=", "(?<!"]
# The dialect is that of Python 3.11 to 3.13.
if sys.version_info >= (3, 11):
    COUNTS += ["*+", "++", "?+", "{1,2}+", "{2,}+", "{0,2}+"]
    LOOKS += ["(?>"]
if sys.version_info >= (3, 14):
    ATOMS.remove("\\B")  # matches in an empty text
FLAGS = {"a": re.A, "i": re.I, "m": re.M, "s": re.S, "x": re.X}


def matcher_of(grammar: ffwd.Grammar) -> Callable[[str], bool]:
    """Whether a whole text belongs to a grammar, byte by byte."""
    try:
        compiled = ffwd.compile(grammar, VOCABULARY)
    except ffwd.GrammarError as error:
        if "no text matches" in str(error):
            return lambda text: False
        raise

    def matches(text: str) -> bool:
        matcher = compiled.matcher()
        return matcher.accept_tokens([*text.encode(), END])

    return matches


def pattern(source: random.Random, depth: int) -> str:
    """A pattern of Python's `re`; not all of them are well formed."""
    kind = source.random()
    if depth == 0 or kind < 0.25:
        return source.choice(ATOMS)
    inner = pattern(source, depth - 1)
    if kind < 0.5:
        return inner + "".join(pattern(source, depth - 1) for _ in range(source.randrange(3)))
    if kind < 0.65:
        return f"{source.choice(GROUPS)}{inner}|{pattern(source, depth - 1)})"
    if kind < 0.85:
        return (inner if source.random() < 0.3 else f"(?:{inner})") + source.choice(COUNTS)
    other = "|" + pattern(source, depth - 1) if source.random() < 0.3 else ""
    return f"{source.choice(LOOKS)}{inner}{other})"


def compiled_by_python(text: str, flags: str) -> re.Pattern[str] | None:
    """None if Python refuses it."""
    number = 0
    for flag in flags:
        number |= FLAGS[flag]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.compile(text, number)
        except (re.error, OverflowError):
            return None


@pytest.mark.parametrize("seed", range(6))
def test_patterns_mean_what_python_says(seed: int) -> None:
    """Those that Python refuses are refused, and others only for what is no regular language."""
    source = random.Random(seed)
    compared = 0
    for _ in range(150):
        text = pattern(source, source.randrange(1, 5))
        flags = "".join(flag for flag in FLAGS if source.random() < 0.15)
        search = source.random() < 0.4
        expected = compiled_by_python(text, flags)
        grammar = regex(text, dialect="python", search=search, flags=flags)
        refused: Exception | None = None
        try:
            found = matcher_of(grammar)
        except (ffwd.GrammarError, ffwd.LimitExceededError) as error:
            refused = error
        if refused is not None:
            limit = isinstance(refused, ffwd.LimitExceededError)
            known = limit or "not supported" in str(refused)
            assert known or expected is None, (text, flags, refused)
            continue
        assert expected is not None, (text, flags)
        letters = [letter for letter in dict.fromkeys(text) if letter in TEXT]
        letters += source.sample(TEXT, 3)
        for length in [0, 1, 1, 2, 2, 3, 3, 4, 5, 6]:
            candidate = "".join(source.choices(letters, k=length))
            wanted = expected.search(candidate) if search else expected.fullmatch(candidate)
            assert found(candidate) == bool(wanted), (text, flags, search, candidate)
            compared += 1
    assert compared > 1000


@pytest.mark.parametrize("flags", ["", "a", "i", "ai"])
@pytest.mark.parametrize(
    "of", [r"\w", r"\d", r"\s", "k", "[i-kß]", "ς", "[^\u017f]", "\u0345", "[À-þ]"]
)
def test_every_character_is_classified_as_python_does(of: str, flags: str) -> None:
    """But for those that one of the two Unicode versions does not know."""
    compiled = ffwd.compile(regex(of, dialect="python", flags=flags), VOCABULARY)
    expected = compiled_by_python(of, flags)
    assert expected is not None
    differ = []
    # All planes with a letter that has a case, and others here and there.
    codes = [*range(0xD800), *range(0xE000, 0x1_1000, 3), *range(0x1_1000, 0x11_0000, 997)]
    for code in codes:
        found = compiled.matcher().accept_tokens([*chr(code).encode(), END])
        if found != bool(expected.fullmatch(chr(code))):
            differ.append(code)
    assert [code for code in differ if unicodedata.category(chr(code)) != "Cn"] == []


REGEX = st.recursive(
    st.sampled_from(["a", "b", "[ab]", "[^a]", "c", "."]),
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map("".join)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})")
        | st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        )
    ),
    max_leaves=6,
)
SHORT = st.lists(st.text("abc", max_size=6), min_size=8, max_size=8)


@settings(max_examples=60)
@given(REGEX, st.sampled_from(["rust", "ecma", "python"]), SHORT)
def test_finite_automata_agree(
    text: str, dialect: Literal["rust", "ecma", "python"], candidates: list[str]
) -> None:
    """With those of interegular, and in every dialect."""
    automaton = interegular.parse_pattern(text).to_fsm()
    found = matcher_of(regex(text, dialect=dialect))
    for candidate in candidates:
        assert found(candidate) == automaton.accepts(candidate), (text, candidate)


@settings(max_examples=60)
@given(REGEX, REGEX, SHORT)
def test_operators_are_those_of_answers(left: str, right: str, candidates: list[str]) -> None:
    """An intersection has what both have, a complement what is missing."""
    both = matcher_of(regex(left) & regex(right))
    neither = matcher_of(~(regex(left) | regex(right)))
    only = matcher_of(regex(left) & ~seq(regex(right), repeat("c", 0, 1)))
    for candidate in candidates:
        in_left, in_right = (bool(re.fullmatch(one, candidate)) for one in (left, right))
        assert both(candidate) == (in_left and in_right)
        assert neither(candidate) == (not in_left and not in_right)
        longer = re.fullmatch(f"(?:{right})c?", candidate)
        assert only(candidate) == (in_left and not longer)


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["a", "b", "ab", "ba", " ", "é", "aab"]), max_size=8), st.data())
def test_parts_of_a_text_are_its_runs(chunks: list[str], data: st.DataObject) -> None:
    """All of them, and nothing else."""
    runs = {
        "".join(chunks[first:last])
        for first in range(len(chunks) + 1)
        for last in range(first, len(chunks) + 1)
    }
    found = matcher_of(substring_of(chunks))
    for run in runs:
        assert found(run)
    for other in data.draw(st.lists(st.text("ab é", max_size=5), max_size=10)):
        assert found(other) == (other in runs)


def test_a_long_text_can_be_quoted() -> None:
    """Its size is no matter, and what was not said cannot be."""
    source = random.Random(1)
    words = ["".join(source.choices("abcdefgh", k=source.randrange(1, 9))) for _ in range(20_000)]
    text = " ".join(words)
    by_words = matcher_of(substring_of(text))
    assert by_words(" ".join(words[700:1200]))
    assert not by_words(" ".join(words[700:1200]) + "i")
    assert not by_words(" ".join([words[700], words[702], words[705], words[700]]) + " zz")
    by_characters = matcher_of(substring_of(text, by="chars"))
    assert by_characters(text[1234:2345])
    assert by_characters("")


def test_operators_flatten_and_have_equal_values() -> None:
    """Also their texts make them again."""
    a, b = regex("a+"), lit("b")
    assert a & b & "c" == intersection(a, b, lit("c"))
    assert ("a" & a) == intersection(lit("a"), a)
    assert ~~a == a
    assert complement("x") == ~lit("x")
    assert hash(~a) == hash(~regex("a+"))
    for grammar in [a & b, ~a, substring_of(["x", "y"]), regex("a", dialect="ecma", flags="i")]:
        assert eval(repr(grammar), vars(ffwd)) == grammar
    assert substring_of("a b", by="chars").chunks == ("a", " ", "b")
    assert substring_of("don't go").chunks == ("don", "'", "t", " ", "go")


@pytest.mark.parametrize(
    ("grammar", "column"),
    [
        (regex("a(", dialect="python"), 2),
        (regex("(a)\\1", dialect="python"), 4),
        (regex("(?<n>a)\\k<n>", dialect="ecma"), 8),
        (regex("é)", dialect="ecma", flags="u"), 2),
        (regex("x[b-a]"), 3),
    ],
)
def test_errors_have_a_place(grammar: ffwd.Grammar, column: int) -> None:
    """Line and column, and a caret in the text."""
    with pytest.raises(ffwd.GrammarError) as caught:
        ffwd.compile(grammar, VOCABULARY)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert str(caught.value).endswith("\n  " + " " * (column - 1) + "^")


def test_what_is_not_regular_is_refused_by_name() -> None:
    """In an intersection and in a complement."""
    for part, name in [
        (ffwd.json_schema({}), "a JSON Schema"),
        (ffwd.token(3), "a token"),
        (ffwd.limit("a", max_tokens=3), "a limit in tokens"),
        (seq(regex(r"a\b.*"), "b"), "looks around"),
    ]:
        for grammar in (part & regex("a"), ~part):
            with pytest.raises(ffwd.GrammarError, match=name):
                ffwd.compile(grammar, VOCABULARY)


def test_bad_arguments_are_refused() -> None:
    """Before anything is compiled."""
    with pytest.raises(ValueError, match="dialect must be one of"):
        regex("a", dialect="perl")  # type: ignore[arg-type]
    with pytest.raises(ffwd.GrammarError, match="unknown flag 'g'"):
        regex("a", dialect="ecma", flags="g")
    with pytest.raises(TypeError, match="needs a sequence"):
        substring_of("abc", by="chunks")
    with pytest.raises(TypeError, match="needs a str"):
        substring_of(["a"], by="chars")
    with pytest.raises(ffwd.GrammarError, match="lone surrogate"):
        substring_of(["a", "\ud800"])
    with pytest.raises(ffwd.GrammarError, match="at least one"):
        intersection()
    with pytest.raises(TypeError):
        regex("a") & 3  # type: ignore[operator]


HOSTILE = [
    "(" * 100_000,
    "(" * 150 + "a" + ")" * 150,
    "(a{1,1000}){1,1000}",
    "(?:" * 60 + "a" + "{1,1000})" * 60,
    "(a+)+$",
    "(a|aa)+$",
    "(.*a){20}",
    "(?:a?){5000}a{5000}",
    "a" * 65_536,
    "a" * 70_000,
    "(a|b|ab)*" * 500,
    "[a-z]" * 10_000,
    "(?=(a+)+b)" * 10,
    "|" * 60_000,
    r"\w{99}(\baa)aa|a|a",
]


@pytest.mark.parametrize("dialect", ["rust", "ecma", "python"])
@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_hostile_patterns_end(
    place: int, dialect: Literal["rust", "ecma", "python"], search: bool
) -> None:
    """Compiled or refused with a type, and read after that."""
    with contextlib.suppress(ffwd.GrammarError, ffwd.LimitExceededError):
        matcher_of(regex(HOSTILE[place], dialect=dialect, search=search))("a" * 40 + "b")


def test_the_page_names_every_dialect_and_flag() -> None:
    """As the code has them."""
    page = (Path(__file__).parent.parent / "docs/regex.md").read_text(encoding="utf-8")
    flags = [f"`{' '.join(letters)}`" for letters in _regex.FLAGS.values()]
    assert f"| flags | {' | '.join(flags)} |" in page
    assert all(f'`"{dialect}"`' in page for dialect in _regex.FLAGS)
