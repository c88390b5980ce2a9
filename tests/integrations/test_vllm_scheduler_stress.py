"""vLLM's scheduler with 40 requests of every kind at once, and bad ones among them."""

import random
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="needs an environment with vLLM: docs/engines.md")
pytest.importorskip("lark")
pytest.importorskip("partial_json_parser")

from mixed_requests import MixedRequest, mixed_requests
from vllm.exceptions import VLLMValidationError
from vllm_models import END, SECOND_END, WIDTH, write_model
from vllm_scheduling import Drafter, Outcome, RandomModel, SchedulerRun, engine_config

import ffwd.adapters.vllm

pytestmark = pytest.mark.engine
ffwd.adapters.vllm.register()

SEED = 20261122
# What a front end in Python refuses, and what the error says of it.
HOSTILE = [
    ({"json": '{"type": "object"'}, "InvalidSchemaError"),
    ({"json": {"type": "strin"}}, '"strin" is not a type'),
    ({"json": {"$ref": "https://example.com/s.json"}}, "example.com"),
    ({"json": {"$ref": "#/$defs/none"}}, "#/$defs/none"),
    ({"json": {"$ref": "https://example.com/s.json"}}, "example.com"),
    ({"json": {"allOf": [{"type": "string"}, {"type": "integer"}]}}, "UnsatisfiableSchemaError"),
    ({"json": {"type": "string", "pattern": "(?<=a+)b("}}, "pattern"),
    ({"json": "[" * 100_000}, "nesting"),
    ({"regex": "[a-z"}, "not closed"),
    ({"regex": r"(a)\1"}, "line 1, column 4"),
    ({"grammar": "root ::= root2"}, "root2"),
    ({"grammar": "start: missing"}, "missing"),
    ({"choice": []}, "choice"),
    ({"structural_tag": "{"}, "StructuralTagError"),
    ({"structural_tag": '{"type": "structural_tag", "format": {"type": "nope"}}'}, "nope"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model"))


class Answers:
    """The answers to the requests of a seed, for each way to run them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.requests = {f"r{i}": r for i, r in enumerate(mixed_requests(seed=SEED))}
        self.runs: dict[tuple[int, bool], SchedulerRun] = {}

    def run(self, drafts: int, *, late: bool = False, blocks: int = 10_000) -> dict[str, Outcome]:
        """Run all requests, with drafts that are right about half of the time."""
        oracle = self.run(0) if drafts else {}
        if (drafts, late) not in self.runs or blocks != 10_000:
            config = engine_config(
                self._folder, drafts=drafts, late_drafts=late, max_seqs=len(self.requests)
            )
            run = SchedulerRun(
                config,
                model(self._folder),
                drafter=_drafter(oracle) if drafts else None,
                blocks=blocks,
            )
            submit_all(run, self.requests)
            run.run()
            self.runs[drafts, late] = run
        return self.runs[drafts, late].outcomes


def model(folder: Path) -> RandomModel:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    return RandomModel([*tokens, *[""] * (WIDTH - len(tokens))], END)


def _drafter(oracle: dict[str, Outcome]) -> Drafter:
    rng = random.Random(SEED)

    def draft(name: str, tokens: list[int], count: int) -> list[int]:
        right = oracle[name].tokens[len(tokens) :]
        drafts = (right + [rng.randrange(WIDTH) for _ in range(count)])[:count]
        if rng.random() < 0.5:
            drafts[rng.randrange(count)] = rng.randrange(WIDTH)
        return drafts[: rng.randint(0, count)]

    return draft


def submit_all(run: SchedulerRun, requests: dict[str, MixedRequest]) -> None:
    """Each with a seed of its own; between them those that are refused, on either side."""
    bad = iter(HOSTILE)
    for index, (name, request) in enumerate(requests.items()):
        structured = {request.kind: request.spec} if request.kind else None
        run.submit(
            name,
            structured,
            seed=index,
            prompt=run.tokenizer.encode(request.prompt),
            max_tokens=request.max_tokens,
        )
        if index % 3 == 0 and (hostile := next(bad, None)) is not None:
            with pytest.raises(VLLMValidationError):
                run.submit(f"refused{index}", hostile[0])
            run.outcomes.pop(f"refused{index}", None)
            run.submit(f"bad{index}", hostile[0], validate=False)


@pytest.fixture(scope="module")
def answers(folder: Path) -> Answers:
    print(f"seed {SEED}")
    return Answers(folder)


@pytest.mark.parametrize(
    ("drafts", "late"), [(0, False), (4, False), (16, False), (4, True), (16, True)]
)
def test_a_stress_of_mixed_requests(answers: Answers, drafts: int, late: bool) -> None:
    """All answers are valid, the same as without drafts, and the bad requests fail alone."""
    outcomes = answers.run(drafts, late=late)
    run = answers.runs[drafts, late]
    plain = answers.run(0)
    assert len(answers.requests) == 40
    for name, request in answers.requests.items():
        outcome = outcomes[name]
        text = run.tokenizer.decode(outcome.tokens, skip_special_tokens=True)
        assert request.is_valid(text), (name, request, text)
        if request.kind not in ("", "json_object"):
            assert outcome.reason == "stop", (name, request, text)
            assert outcome.tokens[-1] in (END, SECOND_END)
        assert outcome.tokens == plain[name].tokens
    for name, outcome in outcomes.items():
        if name.startswith("bad"):
            assert (outcome.tokens, outcome.reason) == ([], "error")
    if drafts:
        assert run.accepted > 100
        assert run.accepted < run.drafted
        assert run.steps < answers.runs[0, False].steps
    else:
        assert run.drafted == 0


def test_a_request_that_is_interrupted_goes_on(answers: Answers) -> None:
    """With too little memory for all, requests give way and are taken up again."""
    plain = {name: list(outcome.tokens) for name, outcome in answers.run(0).items()}
    again = Answers(answers._folder)
    assert {name: o.tokens for name, o in again.run(0, blocks=45).items()} == plain
    assert again.runs[0, False].preemptions > 0


@pytest.fixture(scope="module")
def refusing(folder: Path) -> SchedulerRun:
    return SchedulerRun(engine_config(folder), model(folder))


@pytest.mark.parametrize(("structured", "says"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_front_end_refuses_what_is_hostile(
    refusing: SchedulerRun, structured: dict[str, object], says: str
) -> None:
    """With vLLM's error for bad requests, which is an answer with status 400, and ffwd's text."""
    with pytest.raises(VLLMValidationError, match="structured_outputs") as caught:
        refusing.submit("x", structured)
    assert says in str(caught.value)


def test_an_error_of_the_engine_says_what_is_wrong(folder: Path) -> None:
    """Where no front end has looked at the request. Only vLLM 0.33 has a place for the text."""
    run = SchedulerRun(engine_config(folder), model(folder))
    run.submit("bad", {"regex": "[a-z"}, validate=False)
    run.submit("good", {"choice": ["yes"]})
    outcomes = run.run()
    assert outcomes["bad"].reason == "error"
    assert run.tokenizer.decode(outcomes["good"].tokens[:-1]) == "yes"
    if run.tells_errors:
        assert "a set of characters is not closed" in (outcomes["bad"].error or "")
