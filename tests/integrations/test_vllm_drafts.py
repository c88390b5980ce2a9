"""Which drafts are replaced, and by what; vLLM itself is in `test_vllm_engine_offline.py`."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

import ffwd
from ffwd.adapters.vllm_drafts import ForcedDrafts, ForcedDraftsError, install

OURS = "ffwd.adapters.vllm_drafts.ForcedDrafts"


class Grammar:
    """Forces 100, 101, 102, …"""

    def forced(self, max_tokens: int) -> list[int]:
        assert max_tokens > 0
        return list(range(100, 100 + max_tokens))


@dataclass
class Request:
    """What is asked of vLLM's requests."""

    grammar: Any = field(default_factory=Grammar)
    max_tokens: int = 50
    num_output_tokens: int = 10
    reasoning: bool = False

    @property
    def use_structured_output(self) -> bool:
        return self.grammar is not None

    @property
    def structured_output_request(self) -> Any:
        return SimpleNamespace(grammar=self.grammar)


def manager(
    method: str = "custom_class", model: str | None = OURS, count: int = 4, *, v2: bool = False
) -> Any:
    class Manager:
        def __init__(self) -> None:
            speculative = SimpleNamespace(method=method, model=model, num_speculative_tokens=count)
            self.vllm_config = SimpleNamespace(
                speculative_config=speculative if method else None, use_v2_model_runner=v2
            )

        def _get_constraint_bounds(self, request: Request, spec_tokens: Any) -> Any:
            assert len(spec_tokens) == 0
            return (int(request.reasoning),) * 2

        def validate_tokens(self, request: Request, spec_tokens: list[int]) -> list[int]:
            """The original."""
            return spec_tokens[:1]

    for _ in range(2):
        install(Manager, Grammar)
    return Manager()


def test_forced_tokens_replace_the_drafts() -> None:
    assert manager().validate_tokens(Request(), []) == [100, 101, 102, 103]
    assert manager(count=2).validate_tokens(Request(), [0, 0]) == [100, 101]
    assert manager().validate_tokens.__doc__ == "The original."


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([100, 101, 0, 0], [100, 101]),
        ([0, 101, 102, 103], []),
        ([100, 101, 102, 103], [100, 101, 102, 103]),
        ([100], [100]),
        ([-1, -1], []),
        ([], []),
    ],
)
def test_the_runner_v2_has_drafts_of_which_the_filler_is_cut_off(
    given: list[int], kept: list[int]
) -> None:
    assert manager(v2=True).validate_tokens(Request(), given) == kept
    assert manager(v2=True).validate_tokens(Request(grammar=None), given) == []


@pytest.mark.parametrize(("left", "drafted"), [(0, 0), (1, 0), (2, 1), (3, 2), (5, 4), (9, 4)])
def test_no_more_is_drafted_than_the_request_may_have(left: int, drafted: int) -> None:
    """A pass yields one token beside the drafts."""
    request = Request(max_tokens=10 + left)
    assert len(manager().validate_tokens(request, [])) == drafted


@pytest.mark.parametrize(
    "request_", [Request(grammar=None), Request(grammar=object()), Request(reasoning=True)]
)
def test_nothing_is_drafted_where_no_grammar_of_ffwd_is_active(request_: Request) -> None:
    assert manager().validate_tokens(request_, [7, 8]) == []


@pytest.mark.parametrize(
    ("method", "model"), [("ngram", None), ("custom_class", "other.Drafts"), ("", None)]
)
def test_the_drafts_of_others_are_left_alone(method: str, model: str | None) -> None:
    assert manager(method, model).validate_tokens(Request(), [7, 8]) == [7]


def config(backend: str, *, ahead: bool) -> Any:
    return SimpleNamespace(
        structured_outputs_config=SimpleNamespace(backend=backend),
        scheduler_config=SimpleNamespace(async_scheduling=ahead),
    )


def test_configurations_without_drafts_are_told_what_to_change() -> None:
    with pytest.raises(ForcedDraftsError, match=r"is 'auto': add --structured-outputs-config\.bac"):
        ForcedDrafts(config("auto", ahead=False))
    with pytest.raises(ForcedDraftsError, match="use --no-async-scheduling"):
        ForcedDrafts(config("ffwd", ahead=True))
    assert issubclass(ForcedDraftsError, ffwd.FfwdError)
