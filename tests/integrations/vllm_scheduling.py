"""vLLM without its engine: the real scheduler and manager, and a model that is a function.

The model's logits depend on the tokens so far and on a request's seed, and on nothing else, so that
what is right does not depend on drafts, batches or the order of requests.
"""

import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from vllm.config import (
    CacheConfig,
    DeviceConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    SpeculativeConfig,
    StructuredOutputsConfig,
    VllmConfig,
)
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.tokenizers import cached_tokenizer_from_config
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.engine import EngineCoreOutput
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager
from vllm.v1.structured_output.utils import apply_grammar_bitmask

BLOCK_SIZE = 16
MAX_LENGTH = 2048
# Longer than any text of the tests that the grammar brings to an end.
MAX_TOKENS = 1200

Drafter = Callable[[str, list[int], int], list[int]]


def engine_config(
    folder: Path,
    *,
    drafts: int = 0,
    max_seqs: int = 64,
    late_drafts: bool = False,
    prefix_caching: bool = False,
    **structured: Any,
) -> VllmConfig:
    """What `vllm serve FOLDER` would run with, on a processor.

    Args:
        folder: The model.
        drafts: How many tokens are drafted.
        max_seqs: How many requests run at once.
        late_drafts: Whether steps are scheduled before the drafts are known.
        prefix_caching: Whether prompts that begin alike share what is cached of them.
        structured: Fields of `StructuredOutputsConfig`.

    """
    model = ModelConfig(model=str(folder), dtype="float32", seed=0, max_model_len=MAX_LENGTH)
    speculative = None
    if drafts:
        speculative = SpeculativeConfig(
            method="ngram",
            num_speculative_tokens=drafts,
            prompt_lookup_max=2,
            target_model_config=model,
            target_parallel_config=ParallelConfig(),
        )
    config = VllmConfig(
        model_config=model,
        cache_config=CacheConfig(block_size=BLOCK_SIZE, enable_prefix_caching=prefix_caching),
        scheduler_config=SchedulerConfig(
            max_num_seqs=max_seqs,
            max_num_batched_tokens=4096,
            max_model_len=MAX_LENGTH,
            is_encoder_decoder=False,
            async_scheduling=False,
        ),
        device_config=DeviceConfig("cpu"),
        speculative_config=speculative,
        structured_outputs_config=StructuredOutputsConfig(**{"backend": "ffwd", **structured}),
    )
    # With n-grams, which a processor drafts, vLLM would refuse to; the scheduler does not care.
    config.scheduler_config.async_scheduling = late_drafts
    return config


class RandomModel:
    """Logits that are drawn anew for each text, with a liking for what closes brackets and ends.

    Args:
        tokens: What each token stands for.
        end: The end token.

    """

    def __init__(self, tokens: list[str], end: int) -> None:
        self.width = len(tokens)
        self._closing = np.array([any(c in token for c in '"}]') for token in tokens], float)
        self._end = end

    def logits(self, seed: int, tokens: list[int]) -> np.ndarray:
        """float64 [width]."""
        state = zlib.crc32(np.array(tokens, np.int32).tobytes(), seed)
        drawn = np.random.default_rng(state).standard_normal(self.width)
        drawn += self._closing * (len(tokens) / 12)
        drawn[self._end] += 1 + len(tokens) / 8
        return drawn


class FollowingModel(RandomModel):
    """A model that wants to say a given text, as far as it may, by the tokens it is given as."""

    def __init__(self, width: int, end: int, wanted: list[int]) -> None:
        super().__init__([""] * width, end)
        self.wanted = [*wanted, end]

    def logits(self, seed: int, tokens: list[int]) -> np.ndarray:
        drawn = super().logits(seed, tokens)
        if len(tokens) < len(self.wanted):
            drawn[self.wanted[len(tokens)]] += 1000
        return drawn


@dataclass
class Outcome:
    """What became of a request."""

    tokens: list[int] = field(default_factory=list)
    reason: str | None = None
    stop_reason: Any = None
    error: str | None = None


class SchedulerRun:
    """An engine of which only the model is missing."""

    def __init__(
        self,
        config: VllmConfig,
        model: RandomModel,
        *,
        drafter: Drafter | None = None,
        blocks: int = 10_000,
    ) -> None:
        self.config = config
        self.model = model
        self.tokenizer = cached_tokenizer_from_config(config.model_config)
        self.manager = StructuredOutputManager(config)
        spec = FullAttentionSpec(
            block_size=BLOCK_SIZE, num_kv_heads=1, head_size=1, dtype=torch.float32
        )
        cache = KVCacheConfig(
            num_blocks=blocks,
            kv_cache_tensors=[],
            kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
        )
        config.cache_config.num_gpu_blocks = blocks
        self._late = config.scheduler_config.async_scheduling
        self.scheduler = (AsyncScheduler if self._late else Scheduler)(
            vllm_config=config,
            kv_cache_config=cache,
            structured_output_manager=self.manager,
            block_size=BLOCK_SIZE,
        )
        self._drafter = drafter
        self._hasher = None
        if config.cache_config.enable_prefix_caching:
            init_none_hash(sha256)
            self._hasher = get_request_block_hasher(BLOCK_SIZE, sha256)
        self._seeds: dict[str, int] = {}
        self.outcomes: dict[str, Outcome] = {}
        # How many tokens of prompts had been computed for others.
        self.cached = 0
        self.steps = self.preemptions = 0
        # Whether a request's error has a text.
        self.tells_errors = "error" in EngineCoreOutput.__struct_fields__
        self.drafted = self.accepted = 0

    def submit(
        self,
        name: str,
        structured: dict[str, Any] | None = None,
        *,
        seed: int = 0,
        prompt: Iterable[int] = (5, 6, 7),
        validate: bool = True,
        **sampling: Any,
    ) -> None:
        """Add a request, as the front end and then the engine do.

        Args:
            name: Its id.
            structured: Fields of `StructuredOutputsParams`.
            seed: What the model says.
            prompt: Tokens.
            validate: Whether the front end looks at it. vLLM has front ends that do not.
            sampling: Fields of `SamplingParams`.

        """
        params = SamplingParams(
            **{"temperature": 0.0, "max_tokens": MAX_TOKENS, **sampling},
            structured_outputs=StructuredOutputsParams(**structured) if structured else None,
        )
        model_config = self.config.model_config
        if validate:
            params.verify(
                model_config,
                self.config.speculative_config,
                self.config.structured_outputs_config,
                self.tokenizer,
            )
        elif params.structured_outputs is not None:
            params.structured_outputs._backend = "ffwd"
        params.update_from_generation_config(
            model_config.try_get_generation_config(), self.tokenizer.eos_token_id
        )
        request = Request(
            request_id=name,
            prompt_token_ids=list(prompt),
            sampling_params=params,
            pooling_params=None,
            block_hasher=self._hasher,
        )
        self._seeds[name] = seed
        self.outcomes[name] = Outcome()
        self.manager.grammar_init(request)
        self.scheduler.add_request(request)

    def run(self, *, timeout_s: float = 120.0) -> dict[str, Outcome]:
        """Steps until all requests have finished."""
        until = time.monotonic() + timeout_s
        while self.scheduler.has_unfinished_requests():
            assert time.monotonic() < until, self.outcomes
            if not self.step():
                # All are waiting for their grammars.
                time.sleep(0.001)
        return self.outcomes

    def step(self) -> bool:
        """One step; whether anything was to be done."""
        scheduled = self.scheduler.schedule()
        ids = list(scheduled.num_scheduled_tokens)
        requests = self.scheduler.requests
        if self._late and self._drafter is not None:
            waiting = [name for name in ids if scheduled.scheduled_spec_decode_tokens.get(name)]
            self.scheduler.update_draft_token_ids_in_output(self._drafts(waiting), scheduled)
        self.preemptions += len(scheduled.preempted_req_ids or ())
        self.cached += sum(new.num_computed_tokens for new in scheduled.scheduled_new_reqs)
        sampled = self._sample(scheduled, ids)
        done = self.scheduler.update_from_output(
            scheduled,
            ModelRunnerOutput(
                req_ids=ids,
                req_id_to_index={name: index for index, name in enumerate(ids)},
                sampled_token_ids=sampled,
            ),
        )
        for outputs in done.values():
            for output in outputs.outputs:
                outcome = self.outcomes[output.request_id]
                outcome.tokens += output.new_token_ids
                outcome.stop_reason = output.stop_reason
                if output.finish_reason is not None:
                    outcome.reason = str(output.finish_reason)
                error = getattr(output, "error", None)
                outcome.error = error.message if error is not None else None
        if not self._late and self._drafter is not None:
            running = [name for name in ids if name in requests]
            self.scheduler.update_draft_token_ids(self._drafts(running))
        self.steps += bool(ids)
        return bool(ids)

    def _drafts(self, names: list[str]) -> DraftTokenIds:
        assert self._drafter is not None
        count = self.config.num_speculative_tokens
        drafts = []
        for name in names:
            tokens = list(self.scheduler.requests[name].output_token_ids)
            drafts.append(self._drafter(name, tokens, count)[:count])
        return DraftTokenIds(names, drafts)

    def _sample(self, scheduled: Any, ids: list[str]) -> list[list[int]]:
        """Greedy, with rejection of the drafts from the first wrong one on."""
        if not ids:
            return []
        rows = []
        for name in ids:
            tokens = list(self.scheduler.requests[name].output_token_ids)
            drafts = scheduled.scheduled_spec_decode_tokens.get(name, [])
            texts = [tokens + drafts[:count] for count in range(1 + len(drafts))]
            rows += [self.model.logits(self._seeds[name], text) for text in texts]
        logits = torch.tensor(np.array(rows), dtype=torch.float32)
        grammar = self.scheduler.get_grammar_bitmask(scheduled)
        if grammar is not None:
            apply_grammar_bitmask(scheduled, grammar, SimpleNamespace(req_ids=ids), logits)
        best = logits.argmax(dim=-1).tolist()
        assert not torch.isinf(logits.max(dim=-1).values).any(), "a mask that allows nothing"
        sampled = []
        for name in ids:
            drafts = scheduled.scheduled_spec_decode_tokens.get(name, [])
            mine, best = best[: 1 + len(drafts)], best[1 + len(drafts) :]
            if self.scheduler.requests[name].is_prefill_chunk:
                sampled.append([])
                continue
            right = 0
            while right < len(drafts) and drafts[right] == mine[right]:
                right += 1
            self.drafted += len([token for token in drafts if token >= 0])
            self.accepted += right
            sampled.append(mine[: right + 1])
        return sampled
