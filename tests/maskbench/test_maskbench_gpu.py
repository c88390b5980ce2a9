"""`python -m maskbench gpu` on a CPU: its loops, its tables, and what it leaves out."""

import json
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from click.testing import CliRunner
from transformers import PreTrainedTokenizerFast

import ffwd.tokenizer
from maskbench import commands
from maskbench.__main__ import main
from maskbench.data import BUILTIN_CORPUS
from maskbench.report.table import Column, Table
from maskbench.speed.gpu import measure
from maskbench.speed.gpu.decoding import (
    Written,
    WrongTokenError,
    chunks_of,
    forced_share,
    ways,
    widths,
    write,
)
from maskbench.speed.gpu.goals import goals
from maskbench.speed.gpu.joining import joining, most_columns
from maskbench.speed.gpu.models import Passes, pass_width, random_model
from maskbench.speed.processors.measure import TokenizedDocument, texts
from maskbench.speed.processors.rows import Peers
from maskbench.tokenizer import HuggingFaceEncoder, resolve

sys.path.insert(0, str(Path(__file__).parents[1] / "adapters"))
from accelerator import DEVICE, Accelerator, placed

STEPS = 12
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    return resolve("builtin", tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def peers(spec):
    loaded = PreTrainedTokenizerFast.from_pretrained(str(spec.directory))
    vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
    return Peers(vocabulary, loaded, spec.vocab_size, 1)


@pytest.fixture(scope="module")
def documents(spec, peers):
    jobs = commands.jobs(BUILTIN_CORPUS, 60, 0, HuggingFaceEncoder(spec))
    found = [text for text in texts(jobs, peers, STEPS, 8) if forced_share(peers, text) is not None]
    assert len(found) >= 4
    return found


@pytest.fixture(scope="module")
def model(spec):
    return random_model("tiny", spec.vocab_size, CPU, torch.float32)


def test_passes_over_a_static_cache_are_those_of_whole_texts(model):
    """Chunks of different lengths, with holes, against the model's own passes."""
    passes = Passes(model, 2, 32, graphs=True)
    written = [[1] * 16, [1] * 16]
    for chunks in ([[5], [6]], [[7, 8, 9], [10]], [[11], [12, 13]]):
        logits = passes.logits(chunks)
        for row, chunk in enumerate(chunks):
            written[row] += chunk
            with torch.inference_mode():
                expected = model(torch.tensor([written[row]])).logits[0, -1]
            torch.testing.assert_close(logits[row], expected, atol=1e-4, rtol=1e-4)
    passes.begin()
    assert passes.passes == 0
    with torch.inference_mode():
        expected = model(torch.tensor([[1] * 16 + [5]])).logits[0, -1]
    torch.testing.assert_close(passes.logits([[5], [6]])[0], expected, atol=1e-4, rtol=1e-4)


def test_every_way_writes_the_documents(model, peers, documents):
    batch = documents[:3]
    wide = {engine: widths(peers, batch, engine) for engine in peers.names}
    passes = Passes(model, 3, max(STEPS, *map(sum, wide.values())) + 2, graphs=False)
    made = ways(peers, batch, CPU, forcing=peers.names)
    steps = {way.name: len(write(passes, way).steps) for way in made}
    for engine in peers.names:
        assert steps.pop(f"{engine}, forced") == len(wide[engine]) - 1 <= STEPS
    assert set(steps) == {"none", *peers.names, *(f"{name}, overlapped" for name in peers.names)}
    assert set(steps.values()) == {STEPS}


def test_the_loops_wait_once_a_step_on_an_accelerator(model, peers, documents):
    batch = documents[:2]
    only = ("none", "ffwd, overlapped", "xgrammar, overlapped", "ffwd, forced", "xgrammar, forced")
    with Accelerator() as accelerator:
        passes = Passes(placed(model), 2, 64, graphs=True)
        passes.warm([1, 2])
        for way in ways(peers, batch, DEVICE, forcing=("ffwd", "xgrammar"), only=only):
            # Each has its first masks on the processor, as long as nothing was masked.
            accelerator.waits.clear()
            written = write(passes, way)
            assert accelerator.waits == {"tolist": len(written.steps)}, way.name


def test_a_mask_that_refuses_the_document_ends_the_measurement(model, peers, documents):
    wrong = TokenizedDocument('{"type": "boolean"}', documents[0].tokens)
    with pytest.raises(WrongTokenError, match="row 0 refuses token"):
        write(
            Passes(model, 1, 64, graphs=False),
            ways(peers, [wrong], CPU, only=["ffwd, overlapped"])[0],
        )
    with pytest.raises(WrongTokenError):
        chunks_of(peers.rows("ffwd", [wrong.schema]), wrong.tokens)


@pytest.mark.parametrize("engine", ["ffwd", "xgrammar", "llguidance"])
def test_forced_chunks_are_the_document(peers, documents, engine):
    longest = 0
    for text in documents:
        chunks = chunks_of(peers.rows(engine, [text.schema]), text.tokens)
        assert [token for chunk in chunks for token in chunk] == text.tokens
        assert 0 <= forced_share(peers, text) < 1
        longest = max(longest, *map(len, chunks))
    assert longest > 1
    assert [pass_width(tokens) for tokens in (1, 2, 3, 4, 5, 9)] == [1, 2, 4, 4, 8, 16]


@pytest.mark.parametrize("engine", ["ffwd", "xgrammar", "llguidance"])
def test_an_unseen_schema_joins(model, peers, documents, engine):
    fresh = [TokenizedDocument(documents[3].schema, documents[3].tokens[: STEPS // 3])] * 2
    passes = Passes(model, 3, most_columns(documents[:3], fresh), graphs=False)
    found = joining(passes, peers, engine, documents[:3], fresh, CPU)
    assert len(found.lost) == len(found.waited) == 2
    assert all(1 <= waited <= found.steps for waited in found.waited)
    assert found.worst > 0
    assert found.step > 0
    assert len(found.after) >= 2 * found.steps


def test_the_first_newcomer_joins_also_when_the_time_is_over(model, peers, documents):
    fresh = [TokenizedDocument(documents[3].schema, documents[3].tokens[: STEPS // 3])] * 2
    passes = Passes(model, 2, most_columns(documents[:2], fresh), graphs=False)
    found = joining(passes, peers, "ffwd", documents[:2], fresh, CPU, over=lambda: True)
    assert len(found.lost) == 1


class CompiledAtTheLastStep:
    """In place of a thread: a future that is done when the warm requests have one step left."""

    def __init__(self, _: int) -> None:
        self.asked = 0

    def submit(self, compiled: Any, *arguments: Any) -> Any:
        self.compiled = compiled(*arguments)
        return self

    def done(self) -> bool:
        self.asked += 1
        return self.asked == STEPS - STEPS // 3 - 1

    def result(self) -> Any:
        return self.compiled

    def shutdown(self) -> None:
        pass


def test_a_newcomer_may_join_with_the_last_step(model, peers, documents, monkeypatch):
    monkeypatch.setattr("maskbench.speed.gpu.joining.ThreadPoolExecutor", CompiledAtTheLastStep)
    fresh = [TokenizedDocument(documents[3].schema, documents[3].tokens[: STEPS // 3])]
    passes = Passes(model, 2, most_columns(documents[:2], fresh), graphs=False)
    found = joining(passes, peers, "ffwd", documents[:2], fresh, CPU)
    assert found.waited == [STEPS - STEPS // 3 - 1]
    assert len(found.after) > STEPS - STEPS // 3


@pytest.mark.parametrize("engine", ["ffwd", "xgrammar", "llguidance"])
def test_forced_tokens_are_accepted(peers, documents, engine):
    """After them, a row has the mask of one that accepted the same tokens singly."""
    forced = 0
    for text in documents:
        rows, twin = (peers.rows(engine, [text.schema]) for _ in range(2))
        for place in range(STEPS):
            done = rows.force(0, text.tokens[place:])
            if done:
                break
            rows.accept([text.tokens[place]])
        for token in text.tokens[:place] + done:
            twin.accept([token])
        masks = [ffwd.allocate_bitmask(1, peers.vocab_size) for _ in range(2)]
        rows.fill(masks[0])
        twin.fill(masks[1])
        assert masks[0].tolist() == masks[1].tolist()
        forced += len(done)
    assert forced > 0


def test_characters_that_end_within_a_token_do_not_force_it(peers):
    [schema] = ['{"const": "street"}']
    rows = peers.rows("xgrammar", [schema])
    vocabulary = peers.vocabulary
    longer = next(
        token
        for token in range(vocabulary.vocab_size)
        if (vocabulary.token_bytes(token) or b"").startswith(b'"')
        and len(vocabulary.token_bytes(token)) > 1
    )
    assert rows.force(0, [longer]) == []
    quote = next(t for t in range(vocabulary.vocab_size) if vocabulary.token_bytes(t) == b'"')
    assert rows.force(0, [quote, longer]) == [quote]


def test_the_point_from_which_forcing_pays():
    assert "about 15.0%" in measure.paying_share([(0.5, 2.0), (0.1, 0.9), (0.2, 1.1)])
    assert "every share" in measure.paying_share([(0.0, 1.0), (0.2, 1.1)])
    assert "no share" in measure.paying_share([(0.0, 0.5), (0.2, 0.9)])


ARGUMENTS = [
    *("gpu", "--device", "cpu", "--shape", "tiny", "--tokenizer", "builtin", "--threads", "1"),
    *("--batch", "2", "--mask-batch", "2", "--steps", "9", "--joins", "1", "--rounds", "1"),
]


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(measure, "_WARM", 2)
    monkeypatch.setattr(measure, "_DOCUMENT", 12)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("small")
def test_the_tables_and_plots(tmp_path):
    out, page, text = tmp_path / "gpu.json", tmp_path / "gpu.html", tmp_path / "gpu.md"
    outputs = ["--out", str(out), "--report", str(page), "--report", str(text)]
    result = CliRunner().invoke(main, [*ARGUMENTS, *outputs])
    assert result.exit_code == 0, result.output
    found = json.loads(out.read_text())
    tables = found["tables"]
    assert set(tables) == {"kernels", "tokens_tiny", "documents_tiny", "joining_tiny"}
    assert found["device"]["vocabulary"] == "builtin, 4,096 tokens"
    assert len(tables["kernels"]["rows"]) == 2
    assert "llguidance: torch compiles its function" in tables["kernels"]["notes"][0]
    assert [row[0] for row in tables["tokens_tiny"]["rows"]][:2] == ["none", "ffwd"]
    assert len(tables["documents_tiny"]["rows"]) == 2 * 4
    assert len(tables["joining_tiny"]["rows"]) == 3
    assert "Steps of tiny, 2 rows" in page.read_text()
    assert "At batch 1 forcing pays" in page.read_text()
    assert "| none | 2 |" in text.read_text()


@pytest.mark.usefixtures("small")
def test_what_the_time_does_not_allow_is_named():
    result = CliRunner().invoke(main, [*ARGUMENTS, "--minutes", "0.0001"])
    assert result.exit_code == 0, result.output
    assert "2 rows: the time was over (--minutes)" in result.output


def test_a_batch_that_does_not_fit_is_named_and_the_rest_goes_on():
    bench = measure._Bench.__new__(measure._Bench)
    plan = {"shapes": (), "batches": (), "mask_batches": (), "steps": 1, "joins": 1}
    later = time.monotonic() + 600
    bench.plan = measure.Plan(**plan, graphs=True, threads=1, rounds=1, until=later)
    bench.device, bench.left_out, bench.end, ran = CPU, [], later, []
    bench.measured = measure.Measured()

    def too_large():
        raise torch.OutOfMemoryError("no")

    def wrong():
        raise ValueError("two\nlines")

    bench.part("512 rows", too_large)
    bench.part("8 rows", wrong)
    bench.part("1 rows", lambda: ran.append(1))
    failed = "8 rows: ValueError: two"
    assert bench.left_out == ["512 rows: the device has too little memory", failed]
    assert bench.measured.failed == [failed]
    assert ran == [1]


@pytest.mark.usefixtures("small")
def test_an_error_of_one_part_is_named_and_the_other_tables_are_written(monkeypatch, tmp_path):
    def wrong(*_, **__):
        raise WrongTokenError("row 0 refuses token 7")

    monkeypatch.setattr(measure, "joining", wrong)
    out = tmp_path / "gpu.json"
    result = CliRunner().invoke(main, [*ARGUMENTS, "--out", str(out)])
    assert result.exit_code == 1
    assert "Error: ffwd: WrongTokenError: row 0 refuses token 7; xgrammar: " in result.output
    tables = json.loads(out.read_text())["tables"]
    assert tables["joining_tiny"]["rows"] == []
    assert tables["documents_tiny"]["rows"]
    assert "At batch 1 forcing pays" in tables["documents_tiny"]["notes"][-1]


def rounds_within(monkeypatch, rounds=9, checks=9):
    """The rounds that `best` measures of 3 with two ways.

    The part's time is over after `rounds` more rounds, and the table's after `checks` looks.
    """
    bench = measure._Bench.__new__(measure._Bench)
    bench.plan, bench.left_out = SimpleNamespace(rounds=3), []
    over = iter([False] * rounds + [True] * 9)
    ends = iter([9] * checks + [0] * 9)
    monkeypatch.setattr(bench, "over", lambda: next(over), raising=False)
    monkeypatch.setattr(measure._Bench, "end", property(lambda self: next(ends)), raising=False)
    monkeypatch.setattr(measure.time, "monotonic", lambda: 5)
    monkeypatch.setattr(measure, "write", lambda passes, way: Written([2.0, 3.0], 2))
    made = bench.best("8 rows", None, lambda: [SimpleNamespace(name=name) for name in "ab"])
    assert set(made) == {"a", "b"}
    assert made["a"] == made["b"]
    assert made["a"].per_token == 2.5
    assert len(made["a"].steps) == made["a"].tokens == 2 * made["a"].rounds
    return made["a"].rounds, bench.left_out


def test_a_measurement_whose_time_is_over_has_fewer_rounds(monkeypatch):
    assert rounds_within(monkeypatch) == (3, [])
    assert rounds_within(monkeypatch, rounds=1) == (2, ["8 rows: 2 of 3 rounds (--minutes)"])
    assert rounds_within(monkeypatch, rounds=0) == (1, ["8 rows: 1 of 3 rounds (--minutes)"])
    # Two ways in the round that warms up, and in the first that is measured.
    assert rounds_within(monkeypatch, checks=4) == (3, [])
    with pytest.raises(measure._TimeOverError):
        rounds_within(monkeypatch, checks=3)


def test_parts_share_what_is_left_of_the_time(monkeypatch):
    bench = measure._Bench.__new__(measure._Bench)
    clock = [100.0]
    monkeypatch.setattr(measure.time, "monotonic", lambda: clock[0])
    bench.device, bench.left_out, bench.until, ends = CPU, [], 140.0, []

    def taking(seconds):
        def part():
            ends.append(bench.until)
            clock[0] += seconds

        return part

    bench.parts([("a", taking(10)), ("b", taking(2)), ("c", taking(99)), ("d", taking(1))])
    assert ends == [110.0, 120.0, 126.0]
    assert bench.left_out == ["d: the time was over (--minutes)"]
    assert bench.until == 140.0


def test_the_goals_on_a_card():
    kernels = Table(
        "kernels",
        "",
        (Column("logits"), Column("rows"), Column("ffwd"), Column("xgrammar"),
         Column("ffwd / limit")),
        (("float32", 1, 2.0, 1.0, 1.2), ("float32", 8, 2.0, None, 1.31)),
    )  # fmt: skip
    tokens = Table(
        "tokens_8b",
        "",
        (Column("masks"), Column("rows"), Column("over none")),
        (("none", 1, 0.0), ("ffwd, overlapped", 1, 0.0031), ("ffwd, overlapped", 128, 0.009)),
    )
    documents = Table(
        "documents_8b",
        "",
        (Column("forced"), Column("share"), Column("rows"), Column("speed")),
        (("10%", 0.1, 1, 1.0), ("25%", 0.24, 1, 1.3), ("25%", 0.25, 8, 1.0)),
    )
    found = goals([kernels, tokens, documents])
    assert found.rows == (
        ("kernel, over the memory limit", "float32, 1 rows", "1.20x", "≤ 1.3x", "yes"),
        ("kernel, over XGrammar's fastest", "float32, 1 rows", "2.00x", "≤ 1x", "no"),
        ("kernel, over the memory limit", "float32, 8 rows", "1.31x", "≤ 1.3x", "no"),
        ("masks, of a token's time (8b)", "1 rows", "0.31%", "< 0.3%", "no"),
        ("masks, of a token's time (8b)", "128 rows", "0.90%", "< 1.0%", "yes"),
        ("forced tokens, speed over masks (8b)", "24.0% forced, 1 row", "1.30x", "≥ 1.3x", "yes"),
    )
    assert goals([]) is None


@pytest.mark.usefixtures("small")
def test_each_model_has_newcomers_of_its_own(spec):
    """What one model's newcomers have compiled, the engines know; so with other documents."""
    plan = measure.Plan(
        shapes=("8b", "1b"), batches=(2,), mask_batches=(2,), steps=9, joins=2, graphs=False,
        threads=1, rounds=1, until=time.monotonic() + 600,
    )  # fmt: skip
    bench = measure._Bench(plan, spec, BUILTIN_CORPUS, CPU)
    schemas = [text.schema for texts in bench.fresh.values() for text in texts]
    assert [len(texts) for texts in bench.fresh.values()] == [2, 2]
    assert len(set(schemas)) == 4
    # Documents of each share, rather than the nearest that there happen to be.
    for share in measure._SHARES:
        assert min(abs(found - share) for found, _ in bench.whole) < 0.03
    seen = [*bench.texts, *(text for _, text in bench.whole)]
    assert seen
    assert not {text.schema for text in seen} & set(schemas)


def test_a_device_that_is_not_there_is_named():
    result = CliRunner().invoke(main, ["gpu", "--device", "cuda:99"])
    assert result.exit_code == 1
    assert "torch cannot use cuda:99" in result.output


def test_a_wide_vocabulary_of_its_own(tmp_path):
    spec = resolve("builtin-128k", tmp_path)
    assert spec.vocab_size == 128_256
    vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
    assert vocabulary.bpe.exact
    encoder = HuggingFaceEncoder(spec)
    text = '{"name": "the ordered numbers", "count": 12}'
    assert (
        b"".join(vocabulary.token_bytes(token) for token in encoder.encode(text)) == text.encode()
    )


def test_a_command_that_lacks_a_package_says_which(monkeypatch):
    monkeypatch.setitem(main._places, "serving", "maskbench.no_such_module:command")
    main.commands.pop("serving", None)
    help_text = CliRunner().invoke(main, ["--help"])
    assert help_text.exit_code == 0
    result = CliRunner().invoke(main, ["serving"])
    assert result.exit_code == 1
    assert "serving needs a package that is not installed: maskbench.no_such_module" in (
        result.output
    )
