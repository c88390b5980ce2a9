"""Fast-forward in vLLM: forced tokens as drafts of speculative decoding.

    vllm serve MODEL --structured-outputs-config.backend ffwd --speculative-config \\
        '{"method": "custom_class", "model": "ffwd.adapters.vllm_drafts.ForcedDrafts",
          "num_speculative_tokens": 16}'

A draft is verified in one forward pass together with the token before it, so forced tokens need no
pass of their own. vLLM requests drafts from its worker, which has no grammar.

On the model runner V2, the engine core sends the worker a table of forced tokens (`ahead.py`,
`splice.py`). On V1, `ForcedDrafts` proposes none in the worker. The scheduler checks drafts against
the grammars after it has accepted a step's tokens, and without asynchronous scheduling before it
plans the next step; `install` adds the forced ones at this point.

This module imports nothing of vLLM when it is imported.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ffwd import FfwdError
from ffwd.adapters.vllm.bounds import grammar_bounds, knows_two_bounds

NAME = "ffwd.adapters.vllm_drafts.ForcedDrafts"
"""What people write in `speculative_config`."""


class ForcedDraftsError(FfwdError):
    """A configuration of vLLM in which forced tokens cannot be drafts; the text says what can."""


class ForcingGrammar(Protocol):
    """A request's grammar that returns forced tokens."""

    def forced(self, max_tokens: int) -> list[int]:
        """Return the next tokens, up to `max_tokens`, as long as the mask allows only one."""
        ...


class ForcedDrafts:
    """The class for `speculative_config`; vLLM's runner V1 makes one in each worker.

    Args:
        vllm_config: The engine's `VllmConfig`.

    Raises:
        ForcedDraftsError: The backend of structured outputs is not ffwd's, ffwd's plugin was not
            loaded, or the scheduler plans ahead of the drafts (`--async-scheduling`).

    """

    def __init__(self, vllm_config: Any) -> None:
        backend = vllm_config.structured_outputs_config.backend
        if backend != "ffwd":
            raise ForcedDraftsError(
                f"{NAME} drafts what ffwd's grammars force, and the backend of structured"
                f" outputs is {backend!r}: add --structured-outputs-config.backend ffwd"
            )
        if vllm_config.scheduler_config.async_scheduling:
            raise ForcedDraftsError(
                f"on the model runner V1, {NAME} needs each step's tokens before the next one is"
                " planned: use --no-async-scheduling, or the model runner V2"
            )
        from vllm.v1.structured_output import StructuredOutputManager

        if not _is_installed(StructuredOutputManager):
            raise ForcedDraftsError(
                f"{NAME} needs ffwd's plugin in every process of vLLM, and VLLM_PLUGINS does"
                " not name it: add ffwd to it, or unset it"
            )

    def __repr__(self) -> str:
        return f"ForcedDrafts({NAME})"

    def load_model(self, *_args: Any, **_kwargs: Any) -> None:
        """Do nothing: there is no draft model."""

    def propose(
        self, sampled_token_ids: Sequence[Sequence[int]], *_args: Any, **_kwargs: Any
    ) -> list[list[int]]:
        """Propose no token for any row; the scheduler adds the forced ones."""
        return [[] for _ in sampled_token_ids]


def install(manager: type, grammar_class: type[ForcingGrammar]) -> None:
    """Have a class of vLLM's `StructuredOutputManager` replace the drafts of `ForcedDrafts`.

    Drafts of every other proposer are left to the manager. So is the runner V2, whose filler alone
    is cut off, except in vLLM 0.31. A second call does nothing.

    Args:
        manager: `vllm.v1.structured_output.StructuredOutputManager`.
        grammar_class: The class of ffwd's grammars in this engine; others get no drafts.

    """
    if _is_installed(manager):
        return
    original: Callable[[Any, Any, list[int]], list[int]] = vars(manager)["validate_tokens"]

    @functools.wraps(original)
    def validate_tokens(self: Any, request: Any, spec_tokens: list[int]) -> list[int]:
        limit = draft_limit(self.vllm_config)
        if limit == 0:
            return original(self, request, spec_tokens)
        is_v2 = _has_runner_v2(self)
        # The runner V2 of vLLM 0.31 verifies what is cut off, too, and without masks.
        if is_v2 and not knows_two_bounds(self):
            return original(self, request, spec_tokens)
        forced = _forced_drafts(self, request, limit, grammar_class)
        if not is_v2:
            return forced
        # The worker has them, and filler. What it has not is not verified.
        return _common_prefix(forced, spec_tokens)

    validate_tokens._ffwd_drafts = True  # type: ignore[attr-defined]
    manager.validate_tokens = validate_tokens  # type: ignore[attr-defined]


def _is_installed(manager: type) -> bool:
    return hasattr(vars(manager).get("validate_tokens"), "_ffwd_drafts")


def draft_limit(vllm_config: Any) -> int:
    """Return how many tokens are drafted at a time; 0 where the drafts are another's."""
    speculative = vllm_config.speculative_config
    if speculative is None or (speculative.method, speculative.model) != ("custom_class", NAME):
        return 0
    return int(speculative.num_speculative_tokens)


def _forced_drafts(
    manager: Any, request: Any, limit: int, grammar_class: type[ForcingGrammar]
) -> list[int]:
    if not request.use_structured_output:
        return []
    grammar = request.structured_output_request.grammar
    # Before the end of the reasoning nothing is constrained.
    start, _ = grammar_bounds(manager, request, ())
    if not isinstance(grammar, grammar_class) or start > 0:
        return []
    # A pass yields one more token than it verifies.
    left = request.max_tokens - request.num_output_tokens - 1
    return grammar.forced(min(limit, left)) if left > 0 else []


def _has_runner_v2(manager: Any) -> bool:
    # Finding out takes longer than a step.
    known = getattr(manager, "_ffwd_runner_v2", None)
    if known is None:
        known = manager._ffwd_runner_v2 = bool(manager.vllm_config.use_v2_model_runner)
    return bool(known)


def _common_prefix(left: list[int], right: list[int]) -> list[int]:
    count = 0
    while count < min(len(left), len(right)) and left[count] == right[count]:
        count += 1
    return left[:count]
