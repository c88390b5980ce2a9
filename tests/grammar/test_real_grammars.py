"""Real grammars in Lark and EBNF: their documents, and the command that measures on them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import ffwd
from maskbench.__main__ import main
from maskbench.conformance.grammars.real import FORMATS, NAMES, read_real
from maskbench.documents import Whitespace
from maskbench.engines import EngineSetup, find
from maskbench.figures.records import record_of
from maskbench.speed.grammars.measure import GrammarEngine, measure
from maskbench.tokenizer import OutputEncoder, resolve

# Of each grammar, a piece that no form of it has; it is put into the middle of a document.
BROKEN = {"json": "tru", "python": " lambda if ) ", "sql": " = = ", "c": " ; ) ] "}


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> EngineSetup:
    spec = resolve("bytes", tmp_path_factory.mktemp("tokenizers"))
    return EngineSetup(spec, Whitespace.FLEXIBLE)


@pytest.mark.parametrize("name", NAMES)
def test_there_are_documents_enough(name: str):
    """Twenty and more, of some length."""
    documents = read_real(name).documents
    assert len(documents) >= 20
    assert len({title for title, _ in documents}) == len(documents)
    assert sum(len(text) for _, text in documents) > 6000


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("engine", "format"), [("ffwd", "lark"), ("ffwd", "ebnf"), ("llguidance", "lark")]
)
def test_documents_belong_to_every_form(setup: EngineSetup, name: str, engine: str, format: str):
    """And do not any more when they are broken in the middle."""
    grammar = read_real(name)
    assert format in FORMATS
    subject = find(engine)(setup)
    compiled = subject.compile_grammar(format, grammar.forms[format])
    (end,) = setup.tokenizer.eos_token_ids

    def accepts(text: str) -> bool:
        session = compiled.session()
        if not all(session.accept(byte) for byte in text.encode()):
            return False
        session.fill()
        return bool(subject.bitmask[end // 32] >> (end % 32) & 1)

    assert [title for title, text in grammar.documents if not accepts(text)] == []
    broken = [text[: len(text) // 2] + BROKEN[name] * 3 for _, text in grammar.documents]
    assert not any(map(accepts, broken))


def test_a_document_that_is_refused_is_no_figure(setup: EngineSetup):
    """An engine that refuses early would look fast."""
    grammar = read_real("json")
    other = read_real("sql")
    wrong = type(grammar)("json", grammar.forms, other.documents)
    contestant = GrammarEngine("ffwd", "lark")
    found = measure([contestant], [wrong], setup, rounds=1, advance=lambda: None)
    figures = found["json"][contestant]
    assert figures.first is None
    assert figures.problem is not None
    assert figures.problem.startswith("customers_by_revenue is refused at token 1")


def test_the_command_writes_all_figures(tmp_path: Path):
    """Of each contestant on each grammar."""
    out = tmp_path / "speed.json"
    arguments = ["speed", "grammars", "--tokenizer", "bytes", "--grammar", "sql", "--rounds", "1"]
    arguments += ["--engine", "ffwd:lark,llguidance:lark", "--out", str(out)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    assert "ffwd:lark" in done.output
    (run,) = json.loads(out.read_text(encoding="utf-8"))["runs"]
    figures = run["grammars"]["sql"]
    assert set(figures) == {"ffwd:lark", "llguidance:lark"}
    tokens = sum(len(text.encode()) for _, text in read_real("sql").documents)
    assert {each["tokens"] for each in figures.values()} == {tokens}
    assert all(each["first"]["p50"] <= each["first"]["max"] for each in figures.values())
    record = record_of(out)["grammars"]["sql"]
    assert set(record) == {"ffwd lark", "llguidance lark"}
    assert record["ffwd lark"]["second"]["p99"] > 0


@pytest.mark.parametrize("engine", ["ffwd", "ffwd:yaml", ":lark"])
def test_a_contestant_has_a_format(engine: str):
    done = CliRunner().invoke(main, ["speed", "grammars", "--engine", engine])
    assert done.exit_code == 2


# Of the first documents, in GPT-2's tokens. With many more, masks take as much longer.
MOST_STACKS = {"json": 500, "python": 12_000, "sql": 4_000, "c": 8_000}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_built_for_masks_is_bounded(name: str, tmp_path: Path):
    """A lexeme that is taken to leave nothing behind it costs thousands of times as much."""
    spec = resolve("gpt2", tmp_path)
    encoder = OutputEncoder(spec)
    grammar = read_real(name)
    vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
    compiled = ffwd.compile(ffwd.lark(grammar.forms["lark"]), vocabulary)
    for _, text in grammar.documents[:3]:
        matcher = compiled.matcher()
        for token in encoder.encode(text):
            matcher.allowed_token_ids()
            assert compiled.stats()["stacks"] < MOST_STACKS[name]
            assert matcher.accept_token(token)
