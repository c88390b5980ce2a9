"""vLLM's model runner V2 and engine core on a processor, of which only the model is missing.

The real runner prepares inputs, samples, verifies drafts and updates its states, with the real
kernels in Triton's interpreter (`TRITON_INTERPRET=1`). The real `step_with_batch_queue` of the
engine core schedules a pass before the tokens of the pass before are known. In place of the model,
its KV cache and CUDA's streams are stand-ins.
"""

import pickle
import queue
from collections import Counter, deque
from concurrent.futures import Future
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch
import vllm.v1.worker.gpu.model_runner as runner_module
from vllm.config import ParallelConfig, SpeculativeConfig, VllmConfig
from vllm.config.compilation import CUDAGraphMode
from vllm.v1.engine.core import EngineCore
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
from vllm.v1.worker.gpu import buffer_utils
from vllm.v1.worker.gpu.cudagraph_utils import BatchExecutionDescriptor
from vllm.v1.worker.gpu.input_batch import InputBatch, InputBuffers
from vllm.v1.worker.gpu.sample.sampler import Sampler
from vllm.v1.worker.gpu.spec_decode.rejection_sampler import RejectionSampler
from vllm.v1.worker.gpu.states import RequestState
from vllm_scheduling import Outcome, RandomModel, SchedulerRun, engine_config

from ffwd.adapters.vllm.drafts import NAME

CPU = torch.device("cpu")
HAS_NGRAMS = find_spec("vllm.v1.worker.gpu.spec_decode.ngram") is not None
"""Whether the runner has n-grams, as that of vLLM 0.31 has not."""

# There is nothing to pin memory for.
buffer_utils.is_uva_available = lambda: False


def v2_config(folder: Path, *, drafts: int, max_seqs: int, **structured: Any) -> VllmConfig:
    """What `vllm serve FOLDER` would run with on the model runner V2."""
    config = engine_config(folder, max_seqs=max_seqs, **structured)
    if drafts:
        config.speculative_config = SpeculativeConfig(
            method="custom_class",
            model=NAME,
            num_speculative_tokens=drafts,
            target_model_config=config.model_config,
            target_parallel_config=ParallelConfig(),
        )
    config.scheduler_config.async_scheduling = True
    assert config.use_v2_model_runner
    return config


def drafter_config(folder: Path, *, drafts: int, max_seqs: int) -> VllmConfig:
    """The same with vLLM's n-grams, which are found on the device; vLLM 0.31 has none there."""
    config = engine_config(folder, drafts=drafts, max_seqs=max_seqs)
    if not HAS_NGRAMS:
        config.speculative_config.method = "draft_model"
    config.scheduler_config.async_scheduling = True
    assert config.use_v2_model_runner
    return config


class Output:
    """What `AsyncOutput` is, without streams."""

    def __init__(self, *, model_runner_output: Any, sampler_output: Any, **others: Any) -> None:
        self.output: ModelRunnerOutput = model_runner_output
        counts = others["num_sampled_tokens"].tolist()
        rows = sampler_output.sampled_token_ids.tolist()
        pairs = zip(rows, counts, strict=True)
        self.output.sampled_token_ids = [row[:count] for row, count in pairs]


class Drafts:
    """What `DraftTokensHandler` is, without streams."""

    def set_draft_tokens(self, input_batch: InputBatch, drafts: torch.Tensor) -> None:
        self.drafts = DraftTokenIds(list(input_batch.req_ids), drafts.tolist())

    def get_draft_tokens(self) -> DraftTokenIds:
        return DraftTokenIds(list(self.drafts.req_ids), [*map(list, self.drafts.draft_token_ids)])


class Masks:
    """What `StructuredOutputsWorker` is, without streams."""

    def __init__(self, stride: int) -> None:
        self.stride = stride

    def apply_grammar_bitmask(
        self, logits: torch.Tensor, batch: InputBatch, names: list[str], bitmask: np.ndarray
    ) -> None:
        bits = np.unpackbits(bitmask.view(np.uint8), axis=1, bitorder="little")
        allowed = torch.from_numpy(bits[:, : logits.shape[1]].astype(bool))
        first = batch.cu_num_logits.tolist()
        packed = 0
        for at, name in enumerate(names):
            place = batch.req_ids.index(name)
            count = first[place + 1] - first[place]
            # Before vLLM 0.33, rows are packed.
            row = at * self.stride if self.stride else packed
            packed += count
            rows = slice(first[place], first[place + 1])
            logits[rows] = logits[rows].masked_fill(~allowed[row : row + count], -torch.inf)


class Runner(runner_module.GPUModelRunner):
    """The model runner V2 with a model that is a function of a request's seed and its tokens."""

    def __init__(self, config: VllmConfig, model: RandomModel, seeds: dict[str, int]) -> None:
        self.vllm_config = config
        self.model_config = config.model_config
        self.speculative_config = config.speculative_config
        self.device = CPU
        self.vocab_size = config.model_config.get_vocab_size()
        self.max_num_reqs = config.scheduler_config.max_num_seqs
        self.max_num_tokens = config.scheduler_config.max_num_batched_tokens
        self.num_speculative_steps = config.num_speculative_tokens
        self.is_first_pp_rank = self.is_last_pp_rank = True
        self.use_pp = self.check_ep_fault = False
        for missing in (
            "pcp_manager", "pp_handler", "pooling_runner", "encoder_cache", "adaptive_verification",
            "batch_sharder", "fast_prefill", "aux_output_connector", "main_stream",
            "output_copy_stream", "execute_model_state",
        ):  # fmt: skip
            setattr(self, missing, None)
        self.block_tables, self.lora_state = MagicMock(), MagicMock()
        self.kv_connector, self.eplb, self.prompt_logprobs_worker = (
            MagicMock(),
            MagicMock(),
            MagicMock(),
        )
        self.model_state = MagicMock(num_new_sampled_tokens_per_step=1, supports_mm_inputs=False)
        self._draft_workspace_lane = 0
        self.decode_query_len = self.num_speculative_steps + 1
        self.req_states = RequestState(
            max_num_reqs=self.max_num_reqs,
            max_model_len=config.model_config.max_model_len,
            max_num_batched_tokens=self.max_num_tokens,
            num_speculative_steps=self.num_speculative_steps,
            vocab_size=self.vocab_size,
            device=CPU,
        )
        self.input_buffers = InputBuffers(self.max_num_reqs, self.max_num_tokens, CPU)
        self.sampler = Sampler(
            config,
            self.max_num_reqs,
            self.vocab_size,
            CPU,
            self.req_states,
            num_speculative_tokens=self.num_speculative_steps + 1,
        )
        self.speculator = self.rejection_sampler = None
        if self.speculative_config is not None:
            states = (self.req_states,) if HAS_NGRAMS else ()
            self.speculator = runner_module.init_speculator(config, CPU, *states)
            self.rejection_sampler = RejectionSampler(self.sampler, self.speculative_config, CPU)
        self.draft_tokens_handler = Drafts()
        self.random = model
        self.model = self
        self.seeds = seeds
        self.structured_outputs_worker: Any = None

    def compute_logits(self, rows: torch.Tensor) -> torch.Tensor:
        """The logits after the input tokens at some places of the batch."""
        batch: InputBatch = self.batch
        starts = batch.query_start_loc_np
        logits = []
        for at in rows[:, 0].tolist():
            place = int(np.searchsorted(starts[: batch.num_reqs + 1], at, side="right")) - 1
            state = int(batch.idx_mapping_np[place])
            begin = int(batch.positions[starts[place]])
            known = self.req_states.all_token_ids.gpu[state, :begin].tolist()
            tokens = known + batch.input_ids[starts[place] : at + 1].tolist()
            answer = tokens[int(self.req_states.prompt_len.np[state]) :]
            logits.append(self.random.logits(self.seeds[batch.req_ids[place]], answer))
        width = self.vocab_size
        return torch.tensor(np.array(logits).reshape(-1, width), dtype=torch.float32)

    def execute(self, scheduled: Any) -> None:
        """What `execute_model` does, without the model."""
        self.finish_requests(scheduled)
        self.add_requests(scheduled)
        self.update_requests(scheduled)
        if not scheduled.num_scheduled_tokens:
            return
        count = scheduled.total_num_scheduled_tokens
        state, _ = self.gather_batch_req_state(scheduled, False)
        shape = BatchExecutionDescriptor(
            cg_mode=CUDAGraphMode.NONE, num_tokens=count, num_reqs=len(state.req_ids)
        )
        self.batch = self.prepare_inputs(scheduled, state, shape, 0)
        fields = dict.fromkeys(runner_module.ExecuteModelState._fields)
        fields["input_batch"] = self.batch
        fields["hidden_states"] = torch.arange(count)[:, None]
        if "num_spec_tokens_to_schedule" in fields:
            fields["num_spec_tokens_to_schedule"] = scheduled.num_spec_tokens_to_schedule
        self.execute_model_state = runner_module.ExecuteModelState(**fields)


class Executor:
    """Workers of a model in this process; what goes to them is pickled.

    Those of tensor parallelism have the same logits, and must choose the same tokens and drafts.
    """

    def __init__(self, runners: list[Runner]) -> None:
        self.runners = runners
        self.passes = 0
        self.counts: list[tuple[int, ...]] = []

    def execute_model(self, scheduled: Any, *, non_block: bool) -> Future:
        assert non_block
        for runner in self.runners:
            runner.execute(pickle.loads(pickle.dumps(scheduled)))
        drafts = scheduled.scheduled_spec_decode_tokens
        counts = tuple(len(drafts.get(name, ())) for name in scheduled.num_scheduled_tokens)
        self.counts.append(counts)
        done: Future = Future()
        empty = ModelRunnerOutput(req_ids=[], req_id_to_index={})
        done.set_result(None if scheduled.num_scheduled_tokens else empty)
        return done

    def sample_tokens(self, grammar: Any, *, non_block: bool) -> Future:
        assert non_block
        self.passes += 1
        done: Future = Future()
        sent = pickle.dumps(grammar)
        first, *others = [
            runner.sample_tokens(pickle.loads(sent)).output for runner in self.runners
        ]
        assert all(first.sampled_token_ids == other.sampled_token_ids for other in others)
        done.set_result(first)
        return done

    def take_draft_token_ids(self) -> DraftTokenIds:
        first, *others = [runner.draft_tokens_handler.get_draft_tokens() for runner in self.runners]
        assert all(first == other for other in others)
        return first


class Core(EngineCore):
    """The engine core with this scheduler and this worker."""

    def __init__(self, run: "RunnerRun") -> None:
        self.scheduler = run.scheduler
        self.structured_output_manager = run.manager
        self.model_executor = run.executor
        self.vllm_config = run.config
        self.batch_queue_size = 2
        self.batch_queue = deque(maxlen=2)
        self.is_mm_encoder_only = self.is_pooling_model = self.log_stats = False
        self.check_for_draft_tokens = run.config.speculative_config is not None
        self.async_scheduling = True
        self.aborts_queue = queue.Queue()
        self._weight_version = "default"

    def log_error_detail(self, scheduler_output: Any) -> Any:
        """Let errors pass."""
        return nullcontext()


class RunnerRun(SchedulerRun):
    """As `SchedulerRun`, with the model runner V2 and asynchronous scheduling.

    Args:
        config: The engine's.
        model: What stands for the model.
        ranks: How many workers sample, as with tensor parallelism.
        named: As for `SchedulerRun`.

    """

    def __init__(
        self, config: VllmConfig, model: RandomModel, *, ranks: int = 1, **named: Any
    ) -> None:
        super().__init__(config, model, **named)
        runner_module.AsyncOutput = Output
        runners = [Runner(config, model, self._seeds) for _ in range(ranks)]
        self.runner = runners[0]
        stride = 1 + config.num_speculative_tokens
        packs = not hasattr(self.manager, "_masked_reasoning_ends")
        for runner in runners:
            runner.structured_outputs_worker = Masks(0 if packs else stride)
        self.executor = Executor(runners)
        self.core = Core(self)
        # How many passes gave tokens, by request.
        self.passes: Counter[str] = Counter()
        # The drafts of requests with a grammar that vLLM verified, and those it accepted.
        self.drafted = self.accepted = 0
        self._update, self.scheduler.update_from_output = (
            self.scheduler.update_from_output,
            self._counted,
        )

    def _counted(self, scheduled: Any, output: Any) -> Any:
        for name, drafts in scheduled.scheduled_spec_decode_tokens.items():
            request = self.scheduler.requests.get(name)
            at = output.req_id_to_index.get(name)
            if request is None or not request.use_structured_output or at is None:
                continue
            real = [token for token in drafts if token >= 0]
            self.drafted += len(real)
            self.accepted += min(len(real), max(0, len(output.sampled_token_ids[at]) - 1))
        return self._update(scheduled, output)

    def step(self) -> bool:
        """One call of the engine core; whether anything was done."""
        if not self.scheduler.has_requests() and not self.core.batch_queue:
            return False
        done, executed = self.core.step_with_batch_queue()
        for outputs in (done or {}).values():
            for output in outputs.outputs:
                outcome: Outcome = self.outcomes[output.request_id]
                outcome.tokens += output.new_token_ids
                self.passes[output.request_id] += bool(output.new_token_ids)
                if output.finish_reason is not None:
                    outcome.reason = str(output.finish_reason)
        return executed or done is not None
