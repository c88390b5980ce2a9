"""`python -m maskbench gpu` on a CPU: its loops, its tables, and what it leaves out."""

import json
import sys
import time
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from transformers import PreTrainedTokenizerFast

import ffwd.tokenizer
from maskbench import commands
from maskbench.__main__ import main
from maskbench.data import BUILTIN_CORPUS
from maskbench.speed.gpu import measure
from maskbench.speed.gpu.decoding import (
    WrongTokenError,
    chunks_of,
    forced_share,
    ways,
    widths,
    write,
)
from maskbench.speed.gpu.joining import joining
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
    passes = Passes(model, 3, max(sum(widths(peers, batch)), STEPS) + 2, graphs=False)
    steps = {way.name: len(write(passes, way).steps) for way in ways(peers, batch, CPU)}
    forced = steps.pop("ffwd, forced")
    assert set(steps) == {"none", *peers.names, *(f"{name}, overlapped" for name in peers.names)}
    assert set(steps.values()) == {STEPS}
    assert forced == len(widths(peers, batch)) - 1 <= STEPS


def test_the_loops_wait_once_a_step_on_an_accelerator(model, peers, documents):
    batch = documents[:2]
    only = ("none", "ffwd, overlapped", "xgrammar, overlapped", "ffwd, forced")
    with Accelerator() as accelerator:
        passes = Passes(placed(model), 2, 64, graphs=True)
        passes.warm([1, 2])
        for way in ways(peers, batch, DEVICE, only=only):
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
        chunks_of(peers.matcher("ffwd", wrong.schema), wrong.tokens)


def test_forced_chunks_are_the_document(peers, documents):
    for text in documents:
        chunks = chunks_of(peers.matcher("ffwd", text.schema), text.tokens)
        assert [token for chunk in chunks for token in chunk] == text.tokens
        assert 0 <= forced_share(peers, text) < 1
    assert [pass_width(tokens) for tokens in (1, 2, 3, 4, 5, 9)] == [1, 2, 4, 4, 8, 16]


@pytest.mark.parametrize("engine", ["ffwd", "xgrammar", "llguidance"])
def test_an_unseen_schema_joins(model, peers, documents, engine):
    fresh = [TokenizedDocument(documents[3].schema, documents[3].tokens[: STEPS // 3])] * 2
    passes = Passes(model, 3, STEPS + 2, graphs=False)
    found = joining(passes, peers, engine, documents[:3], fresh, CPU)
    assert len(found.lost) == len(found.waited) == 2
    assert all(1 <= waited <= found.steps for waited in found.waited)
    assert found.worst > 0
    assert found.step > 0


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
    bench.device, bench.left_out, ran = CPU, [], []

    def too_large():
        raise torch.OutOfMemoryError("no")

    bench.part("512 rows", too_large)
    bench.part("1 rows", lambda: ran.append(1))
    assert bench.left_out == ["512 rows: the device has too little memory"]
    assert ran == [1]


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
