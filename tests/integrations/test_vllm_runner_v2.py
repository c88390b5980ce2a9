"""Forced drafts with vLLM's model runner V2: its kernels, its scheduler, and no model."""

import inspect
import json
import os
import re
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="needs an environment with vLLM: docs/engines.md")
if os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs Triton's interpreter: make engines", allow_module_level=True)
pytest.importorskip("lark")
pytest.importorskip("partial_json_parser")

import torch
import vllm.v1.worker.gpu.model_runner as runner_module
import vllm.v1.worker.gpu.spec_decode as spec_decode
import vllm.v1.worker.gpu.spec_decode.rejection_sampler_utils as rejection
from mixed_requests import MixedRequest, mixed_requests
from test_vllm_scheduler_stress import SEED, model, submit_all
from vllm.triton_utils import tl, triton
from vllm.v1.worker.gpu.spec_decode.speculator import BaseSpeculator
from vllm_models import END, WIDTH, write_model
from vllm_runner_v2 import HAS_NGRAMS, Runner, RunnerRun, drafter_config, v2_config
from vllm_scheduling import FollowingModel, RandomModel, SchedulerRun, engine_config

import ffwd
import ffwd.adapters.vllm
from ffwd.adapters.vllm import surface
from ffwd.adapters.vllm.splice import SPLICE_VARIABLE, Splicer, splice_refusal
from ffwd.engine import EngineRequest
from ffwd.tokenizer import from_huggingface

pytestmark = pytest.mark.engine
ffwd.adapters.vllm.register()

CORPUS = Path(__file__).resolve().parents[2] / "maskbench/corpus/builtin.jsonl"
REQUESTS = {f"r{i}": request for i, request in enumerate(mixed_requests(seed=SEED))}
DRAFTER = "vllm.v1.worker.gpu.spec_decode." + (
    "ngram.speculator.NgramGPUSpeculator"
    if HAS_NGRAMS
    else "draft_model.speculator.PlainDraftModelSpeculator"
)
# The interpreter takes a second for a pass of all of them.
DOCUMENTS = 4
# A sample of the requests: each kind is among them.
SOME = dict(list(REQUESTS.items())[:12])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def plain(folder: Path) -> SchedulerRun:
    """What all requests say without drafts, and without asynchronous scheduling."""
    run = SchedulerRun(engine_config(folder, max_seqs=len(REQUESTS)), model(folder))
    submit_all(run, REQUESTS)
    run.run()
    return run


class Step:
    """A step's output: for each entry, the request, the row, the token, and what is forced."""

    def __init__(self, *entries: tuple[str, int, int, list[int]]) -> None:
        self.structured_output_request_ids = names = sorted({name for name, *_ in entries})
        rows = [[names.index(n), r, t, *run, *[-1] * (3 - len(run))] for n, r, t, run in entries]
        self.forced = np.array(rows, np.int64).reshape(-1, 6)


def test_runs_replace_the_drafts_of_their_samples() -> None:
    """Whatever else is in the batch, and in whatever order."""
    states = torch.tensor([5, 2, 0, 3])
    batch = SimpleNamespace(req_ids=["c", "a", "plain", "b"], idx_mapping=states)
    last = torch.tensor([[40], [0], [70], [80], [0], [60]])
    counts = torch.tensor([1, 3, 1, 2], dtype=torch.int32)
    step = Step(
        ("a", 2, 70, [7, 8]),  # A hit.
        ("a", 1, 70, [1, 1]),  # Another row.
        ("a", 2, 71, [2, 2]),  # Another token.
        ("b", 1, 80, [9, 9, 9]),  # A hit of all columns.
        ("b", 0, 80, [3]),
        ("c", 0, 61, [4]),
        ("gone", 0, 40, [5, 5, 5]),  # Not in this batch.
    )
    drafts = torch.arange(100, 112).view(4, 3)
    splicer = Splicer()
    assert not splicer.has_table
    with splicer.during(step):
        assert splicer.has_table
        spliced = splicer.splice(drafts, batch, counts, last)
    assert not splicer.has_table
    assert spliced.tolist() == [[100, 101, 102], [7, 8, 105], [106, 107, 108], [9, 9, 9]]
    assert drafts.tolist() == torch.arange(100, 112).view(4, 3).tolist()


def test_the_runner_is_extended_once_and_warms_up(folder: Path) -> None:
    """In warm-up there is no step, and the arguments are named."""
    config = v2_config(folder, drafts=3, max_seqs=2)
    speculator = runner_module.init_speculator(config, torch.device("cpu"), None)
    names = tuple(inspect.signature(BaseSpeculator.propose).parameters)[2:]
    batch = SimpleNamespace(num_reqs=2)
    drafts = speculator.propose(input_batch=batch, **dict.fromkeys(names))
    assert drafts.tolist() == [[0] * 3] * 2
    assert isinstance(speculator, BaseSpeculator)
    wrapped = {
        f"{owner.__name__ if inspect.ismodule(owner) else owner.__module__}.{name}"
        for owner, name in ((spec_decode, "init_speculator"), (Runner, "sample_tokens"))
        if getattr(owner, name).__globals__["__name__"].startswith("ffwd.")
    }
    listed = {
        f"{symbol.module}.{symbol.name.split('.')[-1]}"
        for symbol in surface.SYMBOLS
        if symbol.use.startswith("wrapped") and symbol.module.startswith("vllm.v1.worker.")
    }
    assert {name.replace("vllm_runner_v2", runner_module.__name__) for name in wrapped} == listed


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"method": "suffix"}, "drafts of 'suffix' are not understood, only of 'eagle', "),
        ({"enable_adaptive_verification": True}, "adaptive verification drops drafts"),
        ({"rejection_sample_method": "synthetic"}, "it must be 'standard' or 'block'"),
    ],
)
def test_what_cannot_be_spliced_is_named(
    folder: Path, options: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = drafter_config(folder, drafts=3, max_seqs=2)
    assert splice_refusal(config) is None
    speculative = SimpleNamespace(**{**vars(config.speculative_config), **options})
    others = {"speculative_config": speculative, "use_v2_model_runner": True}
    refused = SimpleNamespace(**{**vars(config), **others})
    found = splice_refusal(refused)
    assert found is not None
    assert reason in found
    monkeypatch.setenv(SPLICE_VARIABLE, "0")
    assert splice_refusal(config) == ""
    assert splice_refusal(v2_config(folder, drafts=3, max_seqs=2)) is None
    monkeypatch.setenv(SPLICE_VARIABLE, "no")
    with pytest.raises(ffwd.FfwdError, match="must be 0 or 1, not 'no'"):
        splice_refusal(config)
    # No one expects it.
    config.structured_outputs_config.backend = "auto"
    assert splice_refusal(config) == ""


@pytest.mark.parametrize("drafts", [0, 4, 16])
def test_the_text_does_not_depend_on_drafts(folder: Path, plain: SchedulerRun, drafts: int) -> None:
    run = RunnerRun(v2_config(folder, drafts=drafts, max_seqs=len(SOME)), model(folder))
    submit_all(run, SOME)
    run.run(timeout_s=900)
    for name in SOME:
        outcome = plain.outcomes[name]
        assert run.outcomes[name].tokens == outcome.tokens, name
        assert run.outcomes[name].reason == outcome.reason, name
    check_accepted(run)
    assert (run.accepted > 50) == (drafts > 0)
    # Whole graphs are captured for no drafts, and for as many as are asked for.
    decoding = [counts for counts in run.executor.counts if any(counts)]
    assert {count for counts in decoding for count in counts} <= {0, drafts}
    assert not drafts or run.executor.passes < plain.steps / 2


def check_accepted(run: RunnerRun) -> None:
    """Every forced draft is accepted. vLLM 0.31 verifies filler as well, where masks allow it."""
    assert run.accepted == run.drafted or (not HAS_NGRAMS and run.accepted < run.drafted)


def submit(
    run: SchedulerRun,
    requests: dict[str, MixedRequest],
    temperatures: tuple[float, ...] = (0.0,),
) -> None:
    for index, (name, request) in enumerate(requests.items()):
        run.submit(
            name,
            {request.kind: request.spec} if request.kind else None,
            seed=index,
            prompt=run.tokenizer.encode(request.prompt),
            max_tokens=request.max_tokens,
            temperature=temperatures[index % len(temperatures)],
        )


def test_every_forced_draft_is_accepted_at_any_temperature(folder: Path) -> None:
    run = RunnerRun(v2_config(folder, drafts=4, max_seqs=len(SOME)), model(folder))
    submit(run, SOME, (0.3, 1.0, 2.0))
    run.run(timeout_s=900)
    check_accepted(run)
    assert run.accepted > 50
    for name, request in SOME.items():
        text = run.tokenizer.decode(run.outcomes[name].tokens, skip_special_tokens=True)
        assert request.is_valid(text), (name, text)


def test_all_ranks_choose_the_same(folder: Path, plain: SchedulerRun) -> None:
    """With tensor parallelism, every rank samples under the rows and the table of one process."""
    few = dict(list(SOME.items())[:6])
    config = v2_config(folder, drafts=4, max_seqs=len(few))
    run = RunnerRun(config, model(folder), ranks=2)
    submit(run, few)
    run.run(timeout_s=900)
    assert {name: run.outcomes[name].tokens for name in few} == {
        name: plain.outcomes[name].tokens for name in few
    }
    assert run.accepted > 20


@pytest.mark.parametrize("drafts", [0, 4])
def test_no_text_ends_before_min_tokens(folder: Path, drafts: int) -> None:
    """vLLM's sampler excludes end tokens after the mask, and forced drafts leave them out."""
    run = RunnerRun(v2_config(folder, drafts=drafts, max_seqs=4), model(folder))
    run.submit("long", {"regex": "(ab?c?)+"}, min_tokens=12)
    run.submit("other", {"choice": ["no"]}, min_tokens=1)
    outcomes = run.run(timeout_s=900)
    tokens = outcomes["long"].tokens
    assert len(tokens) > 12
    text = run.tokenizer.decode(tokens, skip_special_tokens=True)
    assert re.fullmatch("(ab?c?)+", text), text
    assert run.tokenizer.decode(outcomes["other"].tokens, skip_special_tokens=True) == "no"
    assert {outcome.reason for outcome in outcomes.values()} == {"stop"}


@cache
def documents() -> list[tuple[str, str]]:
    """Schemas of the corpus, each with a document."""
    cases = [json.loads(line) for line in CORPUS.read_text(encoding="utf-8").splitlines()]
    found = []
    for case in cases:
        valid = [test["data"] for test in case["tests"] if test["valid"]]
        if valid and len(found) < DOCUMENTS:
            text = json.dumps(valid[0], ensure_ascii=False, separators=(",", ":"))
            if len(text) < 160:
                found.append((json.dumps(case["schema"]), text))
    assert len(found) == DOCUMENTS
    return found


class Speaker(RandomModel):
    """A model that wants to say another text for each request."""

    def __init__(self, wanted: list[list[int]]) -> None:
        self.width = WIDTH
        self.models = [FollowingModel(WIDTH, END, tokens) for tokens in wanted]

    def logits(self, seed: int, tokens: list[int]) -> np.ndarray:
        return self.models[seed].logits(0, tokens)


def passes_if_known(
    vocabulary: ffwd.Vocabulary, schema: str, tokens: list[int], count: int, whitespace: Any
) -> int:
    """How many passes a text takes if the token before is known to whoever drafts."""
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace=whitespace), vocabulary)
    request = EngineRequest(grammar, narrow=True)
    done = passes = 0
    while done < len(tokens):
        assert request.accept_tokens("", tokens[done : done + 1])
        run = request.forced(count)
        assert tokens[done + 1 :][: len(run)] == run
        assert request.accept_tokens("", run)
        done, passes = done + 1 + len(run), passes + 1
    return passes


def test_nearly_all_is_saved_that_drafts_can_save(folder: Path) -> None:
    """Within a fifth of drafts that know the last token."""
    drafts = 16
    config = v2_config(folder, drafts=drafts, max_seqs=DOCUMENTS, disable_any_whitespace=True)
    run = RunnerRun(config, Speaker([]))
    wanted = [run.tokenizer.encode(text, add_special_tokens=False) for _, text in documents()]
    run.runner.random = Speaker(wanted)
    for at, (schema, _) in enumerate(documents()):
        run.submit(f"r{at}", {"json": schema}, seed=at)
    run.run(timeout_s=900)
    vocabulary = from_huggingface(
        run.tokenizer.backend_tokenizer, vocab_size=WIDTH, eos_token_ids=[2, 3]
    )
    tokens = passes = known = 0
    for at, (schema, _) in enumerate(documents()):
        said = run.outcomes[f"r{at}"].tokens
        tokens += len(said)
        passes += run.passes[f"r{at}"]
        known += passes_if_known(vocabulary, schema, said, drafts, "compact")
    check_accepted(run)
    print(f"{tokens} tokens, {passes} passes; {known} if drafts know the last token")
    assert tokens - passes >= 0.8 * (tokens - known) > 0


class Guessing(BaseSpeculator):
    """A drafter whose drafts are drawn from logits of its own, and mostly wrong."""

    supports_mm_inputs = False

    def __init__(self, config: Any, *, tells: bool) -> None:
        self.steps = config.num_speculative_tokens
        shape = (config.scheduler_config.max_num_seqs, self.steps, WIDTH)
        self.logits = torch.randn(shape, generator=torch.Generator().manual_seed(SEED))
        # As with `draft_sample_method="probabilistic"`.
        self.draft_logits = self.logits if tells else None

    def init_cudagraph_manager(self, cudagraph_mode: Any) -> None: ...

    def capture(self) -> None: ...

    def propose(self, input_batch: Any, *arguments: Any, **named: Any) -> torch.Tensor:
        shares = torch.softmax(self.logits[input_batch.idx_mapping], dim=-1)
        generator = torch.Generator().manual_seed(len(input_batch.req_ids))
        return torch.multinomial(shares.flatten(0, 1), 1, generator=generator).view(-1, self.steps)


@pytest.mark.parametrize(("temperature", "tells"), [(0.0, False), (1.0, False), (1.0, True)])
def test_forced_tokens_come_before_a_drafters(
    folder: Path,
    plain: SchedulerRun,
    temperature: float,
    tells: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No pass more than without the drafter, also where its own probabilities count."""
    # The interpreter runs neither the kernels of vLLM's n-grams nor CUDA's own functions.
    monkeypatch.setattr(DRAFTER, partial(guess, tells=tells))
    monkeypatch.setattr(rejection.tldevice, "log1p", log1p, raising=False)
    run = RunnerRun(drafter_config(folder, drafts=4, max_seqs=len(SOME)), model(folder))
    submit(run, SOME, (temperature,))
    run.run(timeout_s=900)
    vocabulary = from_huggingface(
        run.tokenizer.backend_tokenizer, vocab_size=WIDTH, eos_token_ids=[2, 3]
    )
    checked = 0
    for name, request in SOME.items():
        said = run.outcomes[name].tokens
        text = run.tokenizer.decode(said, skip_special_tokens=True)
        assert request.is_valid(text), (name, text)
        if temperature == 0:
            assert said == plain.outcomes[name].tokens, name
        if request.kind == "json":
            known = passes_if_known(vocabulary, request.spec, said, 4, "consistent")
            # Within a fifth, as without a drafter.
            assert len(said) - run.passes[name] >= 0.8 * (len(said) - known), name
            checked += len(said) - known
    assert checked > 20


def guess(config: Any, *_: Any, tells: bool) -> Guessing:
    return Guessing(config, tells=tells)


@triton.jit
def log1p(value):  # type: ignore[no-untyped-def]
    return tl.log(1 + value)
