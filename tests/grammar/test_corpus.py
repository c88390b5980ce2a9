"""The corpus of grammars: its examples hold, and masks are those of the peers.

The long form is `python -m maskbench conformance grammars`, on real vocabularies.
"""

from pathlib import Path

import pytest

from maskbench.conformance.grammars import examples
from maskbench.conformance.grammars.cases import (
    CORPUS,
    KINDS,
    CorpusError,
    GrammarCase,
    parse_cases,
    read_corpus,
)
from maskbench.conformance.grammars.command import is_bad, verdict
from maskbench.conformance.grammars.compare import CompareSettings, GrammarComparison, default_peers
from maskbench.conformance.grammars.expected import read_expected
from maskbench.conformance.grammars.generated import generated
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.engines.base import RefusedError
from maskbench.tokenizer import resolve

CASES = [*read_corpus(), *generated()]
EXPECTED = read_expected()


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> EngineSetup:
    spec = resolve("bytes", tmp_path_factory.mktemp("tokenizers"))
    return EngineSetup(spec, Whitespace.FLEXIBLE)


def comparison(setup: EngineSetup, subject: str) -> GrammarComparison:
    """Few walks, so that all cases take seconds."""
    return GrammarComparison(
        CompareSettings(setup, subject, default_peers(), seed=1, walks=2, steps=25)
    )


def test_the_corpus_is_large_and_small():
    """In cases, and in bytes."""
    assert len(CASES) >= 200
    assert {case.kind for case in CASES} == set(KINDS)
    assert sum(file.stat().st_size for file in CORPUS.iterdir()) < 300_000
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)
    assert set(EXPECTED) <= set(names)


@pytest.mark.parametrize("kind", KINDS)
def test_masks_are_those_of_the_peer(setup: EngineSetup, kind: str):
    """At every step of every walk, but for the differences that are named with their reasons."""
    compare = comparison(setup, "ffwd")
    failures = []
    for case in CASES:
        if case.kind != kind:
            continue
        report = compare(case)
        what = verdict(report, EXPECTED.get(case.name), "ffwd")
        if is_bad(what):
            failures.append(
                f"{case.name}: {what} {report.refused} {report.wrong_examples} "
                f"{report.differences} {report.gave_up}"
            )
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("kind", KINDS)
def test_examples_hold_for_the_peer(setup: EngineSetup, kind: str):
    """What the corpus says of its texts, somebody else's engine says too."""
    name = default_peers()[kind]
    engine = find(name)(setup)
    encoder = examples.ContinuationEncoder(setup.tokenizer)
    (end,) = setup.tokenizer.eos_token_ids
    wrong = []
    judged = 0
    for case in CASES:
        if case.kind != kind or not encoder.knows(case):
            continue
        try:
            compiled = engine.compile_grammar(kind, case.text)
        except RefusedError:
            assert EXPECTED[case.name].what == "refused", case.name
            continue
        judged += 1
        texts = [(text, True) for text in case.accepted]
        texts += [(text, False) for text in case.rejected]
        for text, expected in texts:
            session = compiled.session()
            found = all(session.accept(token) for token in encoder.encode(text))
            if found:
                session.fill()
                found = bool(engine.bitmask[end // 32] >> (end % 32) & 1)
            if found is not expected:
                wrong.append(f"{case.name}: {text!r}")
    assert judged >= 5
    assert not wrong, "\n".join(wrong)


def test_a_difference_is_seen(setup: EngineSetup):
    """XGrammar's `.` matches a line break, and its `(?i)` is refused."""
    compare = comparison(setup, "xgrammar")
    by_name = {case.name: case for case in CASES}
    report = compare(by_name["rx_lazy"])
    assert report.differences[0].subject_only == (repr(b"\n"),)
    assert verdict(report, None, "xgrammar") == "UNEXPECTED: masks"
    assert "xgrammar" in compare(by_name["rx_insensitive"]).refused
    assert verdict(compare(by_name["rx_dot"]), None, "xgrammar") == "WRONG EXAMPLES"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("start: a\n=== x |\n", 2),
        ('=== x | y\na\naccept "a"\nb\n', 4),
        ('=== x | y\na\naccept "a\n', 3),
        ("=== x | y\na\n", 4),
    ],
)
def test_a_broken_file_is_refused_with_its_line(text: str, line: int):
    with pytest.raises(CorpusError, match=f"^f:{line}: "):
        list(parse_cases(text, "lark", "f"))


def test_a_case_is_read_as_it_is():
    """Grammars keep their line breaks and what looks like a heading inside."""
    text = '=== a b| x y\nstart: "="\n\n x: /===/\naccept "\\u00e9"\nreject ""\n\n'
    assert list(parse_cases(text, "lark", "f")) == [
        GrammarCase(
            "a b", "lark", 'start: "="\n\n x: /===/\n', frozenset({"x", "y"}), ("é",), ("",)
        )
    ]


def test_files_have_kinds_that_are_known():
    assert {file.suffix[1:] for file in CORPUS.iterdir()} == {*KINDS, "json"}
    assert all(isinstance(file, Path) for file in CORPUS.iterdir())
