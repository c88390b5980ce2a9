"""vLLM's whole engine in this process, on a tiny model; counts what it does."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before vLLM is imported: one GiB for the cache, and the engine in this process.
os.environ["VLLM_CPU_KVCACHE_SPACE"] = "1"
os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"

from mixed_requests import MixedRequest
from vllm import LLM, SamplingParams
from vllm.sampling_params import StructuredOutputsParams

import ffwd.adapters.vllm

DRAFTS = "ffwd.adapters.vllm_drafts.ForcedDrafts"


@dataclass(frozen=True)
class Answer:
    """One request's output."""

    text: str
    token_ids: tuple[int, ...]
    finish_reason: str


@dataclass(frozen=True)
class Counts:
    """What an engine did: forward passes, tokens that were drafted, those of them accepted."""

    passes: int
    drafted: int
    accepted: int


class OfflineEngine:
    """`LLM` with ffwd's backend and `drafts` forced tokens at a time; 0 for no speculation.

    Options are those of `LLM`.
    """

    def __init__(self, model: Path, *, drafts: int = 0, backend: str = "ffwd", **options: Any):
        self.drafts = drafts
        # `LLM` reads its options before it loads plugins.
        ffwd.adapters.vllm.register()
        if drafts:
            options["speculative_config"] = {
                "method": "custom_class",
                "model": DRAFTS,
                "num_speculative_tokens": drafts,
            }
        structured = {"backend": backend, **options.pop("structured_outputs_config", {})}
        self.llm = LLM(
            str(model),
            dtype="float32",
            enforce_eager=True,
            structured_outputs_config=structured,
            disable_log_stats=False,
            seed=0,
            **options,
        )
        self.core = self.llm.llm_engine.engine_core.engine_core
        self._passes = 0
        execute = self.core.model_executor.execute_model

        def counted(scheduler_output: Any, **options: Any) -> Any:
            self._passes += scheduler_output.total_num_scheduled_tokens > 0
            return execute(scheduler_output, **options)

        self.core.model_executor.execute_model = counted

    def answer(self, requests: Sequence[MixedRequest], *, arriving: int = 1000) -> list[Answer]:
        """Answer them greedily; so many more of them arrive before each step."""
        engine = self.llm.llm_engine
        waiting = [(str(number), request) for number, request in enumerate(requests)]
        answers: dict[str, Answer] = {}
        while waiting or engine.has_unfinished_requests():
            for name, request in waiting[:arriving]:
                engine.add_request(name, request.prompt, self.sampling(request))
            del waiting[:arriving]
            for output in engine.step():
                if output.finished:
                    found = output.outputs[0]
                    answers[output.request_id] = Answer(
                        found.text, tuple(found.token_ids), found.finish_reason
                    )
        return [answers[str(number)] for number in range(len(requests))]

    @staticmethod
    def sampling(request: MixedRequest, **options: Any) -> SamplingParams:
        structured = (
            StructuredOutputsParams(**{request.kind: request.spec}) if request.kind else None
        )
        return SamplingParams(
            temperature=0,
            max_tokens=request.max_tokens,
            structured_outputs=structured,
            **options,
        )

    def counts(self) -> Counts:
        values = {
            metric.name: metric.value
            for metric in self.llm.get_metrics()
            if metric.name.startswith("vllm:spec_decode_num_") and hasattr(metric, "value")
        }
        return Counts(
            self._passes,
            values.get("vllm:spec_decode_num_draft_tokens", 0),
            values.get("vllm:spec_decode_num_accepted_tokens", 0),
        )

    def close(self) -> None:
        self.core.shutdown()
