"""Features of vLLM beside which grammars work as without them: its real scheduler, and no model."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm", reason="needs an environment with vLLM: docs/engines.md")
pytest.importorskip("lark")
pytest.importorskip("partial_json_parser")

from mixed_requests import mixed_requests
from test_vllm_scheduler_stress import SEED, model
from vllm_models import write_model
from vllm_scheduling import BLOCK_SIZE, SchedulerRun, engine_config

import ffwd.adapters.vllm

pytestmark = pytest.mark.engine
ffwd.adapters.vllm.register()

# A sample of the requests: each kind is among them.
REQUESTS = {f"r{i}": request for i, request in enumerate(mixed_requests(seed=SEED)[:12])}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


def submit(run: SchedulerRun, names: list[str]) -> None:
    """The requests of some names, each with its own seed."""
    for name in names:
        request = REQUESTS[name]
        run.submit(
            name,
            {request.kind: request.spec} if request.kind else None,
            seed=int(name[1:]),
            prompt=run.tokenizer.encode(request.prompt),
            max_tokens=request.max_tokens,
        )


@pytest.fixture(scope="module")
def alone(folder: Path) -> dict[str, list[int]]:
    """What one engine says to all requests."""
    run = SchedulerRun(engine_config(folder), model(folder))
    submit(run, [*REQUESTS])
    return {name: outcome.tokens for name, outcome in run.run().items()}


def conversation(folder: Path, *, prefix_caching: bool) -> tuple[int, dict[str, list[int]]]:
    """Tokens of prompts that were cached, and answers of two turns."""
    run = SchedulerRun(engine_config(folder, prefix_caching=prefix_caching), model(folder))
    prompt = list(range(5, 5 + 3 * BLOCK_SIZE))
    asked: list[tuple[str, dict[str, Any] | None]] = [
        ("same grammar", {"json": PERSON}),
        ("another", {"regex": "[a-f]{4,9}"}),
        ("none", None),
    ]
    run.submit("first", {"json": PERSON}, seed=1, prompt=prompt)
    run.run()
    prompt += run.outcomes["first"].tokens
    for seed, (name, structured) in enumerate(asked, start=2):
        run.submit(name, structured, seed=seed, prompt=prompt, max_tokens=60)
    outcomes = run.run()
    return run.cached, {name: outcome.tokens for name, outcome in outcomes.items()}


def test_cached_prompts_change_no_answer(folder: Path) -> None:
    """Also where the answer of a turn before, by a grammar, is what was cached."""
    cached, answers = conversation(folder, prefix_caching=True)
    # Each of the three finds the blocks of the first prompt at least.
    assert cached >= 3 * 3 * BLOCK_SIZE
    assert conversation(folder, prefix_caching=False) == (0, answers)


def test_engines_of_data_parallelism_answer_like_one(
    folder: Path, alone: dict[str, list[int]]
) -> None:
    """Each with a part of the requests, and with a scheduler and grammars of its own."""
    said: dict[str, list[int]] = {}
    for part in (0, 1):
        run = SchedulerRun(engine_config(folder), model(folder))
        submit(run, [*REQUESTS][part::2])
        said.update((name, outcome.tokens) for name, outcome in run.run().items())
    assert said == alone


def test_ranks_with_a_scheduler_each_stay_together(
    folder: Path, alone: dict[str, list[int]]
) -> None:
    """With `external_launcher`, every rank fills its own masks, and must choose the same."""
    ranks = []
    for _ in range(2):
        config = engine_config(folder)
        config.parallel_config.distributed_executor_backend = "external_launcher"
        run = SchedulerRun(config, model(folder))
        submit(run, [*REQUESTS])
        # Compiled at once, or ranks would begin at different steps.
        waiting = run.scheduler.requests.values()
        assert all(
            request.structured_output_request.is_grammar_ready
            for request in waiting
            if request.use_structured_output
        )
        ranks.append(run)
    first, second = ranks
    while first.scheduler.has_unfinished_requests():
        assert first.step() == second.step()
        assert first.outcomes == second.outcomes
    assert not second.scheduler.has_unfinished_requests()
    assert {name: outcome.tokens for name, outcome in first.outcomes.items()} == alone
