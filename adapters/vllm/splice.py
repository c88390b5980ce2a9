"""Forced drafts on vLLM's model runner V2: what a worker does with the tables of `ahead.py`.

After a step's tokens are sampled, vLLM asks the speculator for drafts. If a sample has an entry
in the step's table, its run replaces the first drafts, on the device, without waiting for it. A
configuration without a drafter has a speculator that proposes nothing else.

Nothing of vLLM's runner is imported before vLLM imports it.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from vllm.v1.core.sched.output import GrammarOutput

from ffwd import FfwdError
from ffwd.adapters.vllm.drafts import NAME, ForcedDraftsError, draft_limit

_SPECULATORS = "vllm.v1.worker.gpu.spec_decode"
_RUNNER = "vllm.v1.worker.gpu.model_runner"

# The parameters of `BaseSpeculator.propose` up to the last that is read here.
_PROPOSE = (
    "input_batch",
    "attn_metadata",
    "slot_mappings",
    "last_hidden_states",
    "aux_hidden_states",
    "num_sampled",
    "num_rejected",
    "last_sampled",
)

DRAFTERS = ("eagle", "eagle3", "mtp", "draft_model", "ngram", "ngram_gpu")
"""The methods of `speculative_config` before whose drafts forced tokens are spliced."""

SPLICE_VARIABLE = "FFWD_VLLM_SPLICE"
"""Set to 0, drafters keep their own drafts."""

VERIFICATIONS = ("standard", "block")
"""The values of `rejection_sample_method` that accept a token if nothing else is allowed."""

# Tables are filled up to a multiple of so many entries, so that memory is used again.
_ENTRIES = 64


@dataclass
class ForcedGrammarOutput(GrammarOutput):  # type: ignore[misc]
    """A bitmask, and which tokens are forced after each token that may be sampled under it.

    Attributes:
        forced: A table as of `ffwd.engine.forced_table`, whose requests are those of
            `structured_output_request_ids`.

    """

    forced: NDArray[np.int64] | None = None


def splice_refusal(vllm_config: Any) -> str | None:
    """Return why forced tokens are not spliced into the drafts of a configuration.

    None if they are; an empty text if no one expects them.

    Raises:
        FfwdError: The environment variable is neither 0 nor 1.

    """
    speculative = vllm_config.speculative_config
    if speculative is None or vllm_config.structured_outputs_config.backend != "ffwd":
        return ""
    if not vllm_config.use_v2_model_runner:
        return ""
    if draft_limit(vllm_config) == 0 and not _is_wanted():
        return ""
    if draft_limit(vllm_config) == 0 and speculative.method not in DRAFTERS:
        return f"drafts of {speculative.method!r} are not understood, only of {_either(DRAFTERS)}"
    if speculative.enable_adaptive_verification:
        return "adaptive verification drops drafts by the confidence of the drafter"
    if speculative.rejection_sample_method not in VERIFICATIONS:
        return (
            f"rejection_sample_method={speculative.rejection_sample_method!r} may reject them; it"
            f" must be {_either(VERIFICATIONS)}"
        )
    if getattr(vllm_config, "watermark_config", None) is not None:
        return "watermarks are verified against the drafter's own tokens"
    return None


def _is_wanted() -> bool:
    text = os.environ.get(SPLICE_VARIABLE, "1")
    if text not in ("0", "1"):
        raise FfwdError(f"{SPLICE_VARIABLE} must be 0 or 1, not {text!r}")
    return text == "1"


def _either(names: tuple[str, ...]) -> str:
    return ", ".join(map(repr, names[:-1])) + f" or {names[-1]!r}"


def extend_worker() -> None:
    """Let vLLM's runner V2 splice forced tokens into drafts; a second call does nothing."""
    package = import_module(_SPECULATORS)
    if hasattr(package.init_speculator, "_ffwd_splices"):
        return
    original = package.init_speculator

    @functools.wraps(original)
    def init_speculator(vllm_config: Any, device: Any, *states: Any) -> Any:
        refusal = splice_refusal(vllm_config)
        if draft_limit(vllm_config) == 0:
            speculator = original(vllm_config, device, *states)
        elif refusal is None:
            speculator = _forced_speculator(vllm_config, device)
        else:
            reason = refusal or "the backend of structured outputs is another one"
            raise ForcedDraftsError(f"{NAME} cannot be used: {reason}")
        if refusal is None:
            _extend_speculator(speculator)
            _extend_runner()
        return speculator

    init_speculator._ffwd_splices = True  # type: ignore[attr-defined]
    package.init_speculator = init_speculator  # type: ignore[attr-defined]
    # It has the function by name.
    if _RUNNER in sys.modules:
        sys.modules[_RUNNER].init_speculator = init_speculator  # type: ignore[attr-defined]


def _forced_speculator(vllm_config: Any, device: Any) -> Any:
    """Return a speculator that proposes nothing, to be spliced."""
    from vllm.v1.worker.gpu.spec_decode.speculator import BaseSpeculator

    class ForcedSpeculator(BaseSpeculator):  # type: ignore[misc]
        """Proposes token 0, which every vocabulary has: what is not forced is filler."""

        supports_mm_inputs = False
        draft_logits = None
        num_speculative_steps = int(vllm_config.num_speculative_tokens)

        def init_cudagraph_manager(self, cudagraph_mode: Any) -> None:
            """Do nothing: there is no draft model."""

        def capture(self) -> None:
            """Do nothing: there is no draft model."""

        def propose(self, input_batch: Any, *_args: Any, **_named: Any) -> torch.Tensor:
            """Return filler for each request."""
            shape = (input_batch.num_reqs, self.num_speculative_steps)
            return torch.zeros(shape, dtype=torch.int64, device=device)

    return ForcedSpeculator()


class Splicer:
    """Replaces the first drafts of requests whose sample has an entry in the step's table."""

    def __init__(self) -> None:
        self._output: Any = None

    @contextmanager
    def during(self, grammar_output: Any) -> Iterator[None]:
        """Use the table of a step, if it has one."""
        self._output = grammar_output
        try:
            yield
        finally:
            self._output = None

    @property
    def has_table(self) -> bool:
        """Whether the step has a table."""
        return getattr(self._output, "forced", None) is not None

    def splice(
        self,
        drafts: torch.Tensor,
        input_batch: Any,
        num_sampled: torch.Tensor,
        last_sampled: torch.Tensor,
    ) -> torch.Tensor:
        """Return drafts with the forced tokens of the step's table.

        Args:
            drafts: int64 [requests, drafts].
            input_batch: The step's.
            num_sampled: How many tokens each request has sampled.
            last_sampled: The last of them, by request state.

        """
        owners = self._output.structured_output_request_ids
        table = _of_batch(self._output.forced, owners, input_batch.req_ids)
        if not len(table):
            return drafts
        entries = _to_device(table, drafts.device)
        owner, row, token, runs = entries[:, 0], entries[:, 1], entries[:, 2], entries[:, 3:]
        sampled = last_sampled.view(-1)[input_batch.idx_mapping[owner]]
        is_hit = (num_sampled[owner] - 1 == row) & (sampled == token)
        # What is no hit is written to a row behind those of the requests.
        count = drafts.shape[0]
        target = torch.where(is_hit, owner, count)
        spliced = torch.cat([drafts, drafts.new_zeros((1, drafts.shape[1]))])
        columns = spliced[:, : runs.shape[1]]
        columns[target] = torch.where(runs >= 0, runs, columns[owner])
        return spliced[:count]


def _of_batch(table: Any, owners: list[str], batch: list[str]) -> Any:
    """Return the entries of requests of a batch, owned by their positions in it, and padding."""
    places = {name: at for at, name in enumerate(batch)}
    position = np.array([places.get(name, -1) for name in owners], np.int64)
    kept = table[position[table[:, 0]] >= 0]
    if not len(kept):
        return kept
    full = np.full((-len(kept) % _ENTRIES + len(kept), table.shape[1]), -1, np.int64)
    full[: len(kept)] = kept
    full[: len(kept), 0] = position[kept[:, 0]]
    # No request samples after -2 drafts.
    full[len(kept) :, :2] = (0, -2)
    return full


def _to_device(table: Any, device: Any) -> torch.Tensor:
    from vllm.utils.torch_utils import async_tensor_h2d

    moved: torch.Tensor = async_tensor_h2d(table, device=device)
    return moved


def _extend_speculator(speculator: Any) -> None:
    """Splice into what a speculator proposes.

    Raises:
        ForcedDraftsError: The method has other parameters than are known.

    """
    from vllm.v1.worker.gpu.spec_decode.speculator import BaseSpeculator

    names = tuple(inspect.signature(BaseSpeculator.propose).parameters)[1 : len(_PROPOSE) + 1]
    if names != _PROPOSE:
        raise ForcedDraftsError(
            f"this vLLM's BaseSpeculator.propose has the parameters {', '.join(names)}; ffwd knows"
            f" {', '.join(_PROPOSE)}"
        )
    original = speculator.propose
    splicer = Splicer()

    @functools.wraps(original)
    def propose(input_batch: Any, *arguments: Any, **named: Any) -> Any:
        drafts = original(input_batch, *arguments, **named)
        # Not in warm-up, whose arguments are named.
        if not splicer.has_table:
            return drafts
        given = {**dict(zip(_PROPOSE[1:], arguments, strict=False)), **named}
        return splicer.splice(drafts, input_batch, given["num_sampled"], given["last_sampled"])

    speculator.propose = propose
    speculator._ffwd_splicer = splicer


def _extend_runner() -> None:
    """Let the runner keep each step's table while it samples."""
    runner = sys.modules[_RUNNER].GPUModelRunner
    original: Callable[..., Any] = runner.sample_tokens
    if hasattr(original, "_ffwd_splices"):
        return

    @functools.wraps(original)
    def sample_tokens(self: Any, grammar_output: Any) -> Any:
        splicer = getattr(self.speculator, "_ffwd_splicer", None)
        if splicer is None:
            return original(self, grammar_output)
        with splicer.during(grammar_output):
            return original(self, grammar_output)

    sample_tokens._ffwd_splices = True  # type: ignore[attr-defined]
    runner.sample_tokens = sample_tokens
