"""What SGLang's scheduler does around grammars, with its own objects and without a model.

`GrammarManager`, `Req`, `SamplingBatchInfo` and what accepts tokens and masks drafts are
SGLang's. Logits are random.
"""

import random
import time
from array import array
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.managers.scheduler_components.batch_result_processor import (
    SchedulerBatchResultProcessor,
)
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.runtime_context import get_context, get_parallel, get_serving
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo
from sglang.srt.sampling.sampling_params import SamplingParams
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from ffwd.adapters import sglang as plugin

END = "</s>"
THINK_END = "</think>"
CONTROLS = ["<pad>", END, "<think>", THINK_END, "<tool_call>", "</tool_call>"]
# Wider than the tokenizer: models pad their output layer.
LOGITS_WIDTH = 640


@cache
def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE with some hundred tokens."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=[AddedToken(text, special=True) for text in CONTROLS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    line = '{"name": "Ada", "colour": ["red", "green"], "count": 12, "done": true, "none": null}'
    core.train_from_iterator([line, line.replace(" ", ""), "get_weather city the and of"], trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token=END, pad_token="<pad>")
    # SGLang adds it to every tokenizer that it loads.
    tokenizer.additional_stop_token_ids = None
    return tokenizer


def end_id() -> int:
    token = tiny_tokenizer().convert_tokens_to_ids(END)
    assert isinstance(token, int)
    return token


class Batch:
    """As much of a batch as sampling reads."""

    def __init__(self, reqs: list[Req]) -> None:
        self.reqs = reqs
        self.device = "cpu"


class Running:
    """As much of the running batch as the wait for grammars reads."""

    def __init__(self, count: int = 0) -> None:
        self.count = count

    def is_empty(self) -> bool:
        return not self.count


class SmallScheduler:
    """Requests from their arrival to their end, in batches, as SGLang's scheduler has them.

    Args:
        backend: What `--grammar-backend` names.
        options: Other arguments of SGLang's server.

    """

    def __init__(
        self,
        backend: str = "ffwd",
        *,
        tokenizer: Any = None,
        vocab_size: int = LOGITS_WIDTH,
        seed: int = 0,
        **options: Any,
    ) -> None:
        plugin.register()
        self._override = get_context().override_server_args(
            grammar_backend=backend, device="cpu", **options
        )
        server_args = self._override.install()
        get_parallel().override_permanently(pp_rank=0, tp_rank=0)
        self.tokenizer = tokenizer or tiny_tokenizer()
        self.vocab_size = vocab_size
        self.ends = {self.tokenizer.eos_token_id}
        self.random = random.Random(seed)
        self.generator = torch.Generator().manual_seed(seed)
        alone = SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True)
        self.running = Running()
        self.manager = GrammarManager(
            SimpleNamespace(
                server_args=server_args,
                tokenizer=self.tokenizer,
                model_config=SimpleNamespace(
                    vocab_size=vocab_size,
                    hf_eos_token_id=self.ends,
                    think_end_ids=self._think_end_ids(),
                ),
                dp_tp_cpu_group=None,
                dp_tp_group=alone,
                pp_group=None,
                running_batch=self.running,
                last_batch=None,
            )
        )
        self.steps = 0

    def __enter__(self) -> "SmallScheduler":
        return self

    def __exit__(self, *_: object) -> None:
        self._override.restore()

    @property
    def backend(self) -> Any:
        return self.manager.grammar_backend

    def request(
        self,
        name: str,
        *,
        max_new_tokens: int = 400,
        require_reasoning: bool = False,
        custom_params: Any = None,
        **grammar: Any,
    ) -> Req:
        """A request with one of json_schema, regex, ebnf and structural_tag, or with none."""
        params = SamplingParams(
            max_new_tokens=max_new_tokens, custom_params=custom_params, **grammar
        )
        params.normalize(self.tokenizer)
        params.verify(self.vocab_size)
        req = Req(
            rid=name,
            origin_input_text="",
            origin_input_ids=array("q", [5, 6, 7]),
            sampling_params=params,
            require_reasoning=require_reasoning,
            eos_token_ids=self.ends,
            vocab_size=self.vocab_size,
        )
        req.tokenizer = self.tokenizer
        return req

    def admit(self, requests: list[Req], timeout_s: float = 60) -> list[Req]:
        """Those that are ready to run, once all have been compiled or refused."""
        ready = [req for req in requests if not self.manager.process_req_with_grammar(req)]
        deadline = time.monotonic() + timeout_s
        while self.manager.has_waiting_grammars():
            assert time.monotonic() < deadline, "grammars are still being compiled"
            ready += self.manager.get_ready_grammar_requests()
        for req in ready:
            req.update_finish_state(0)
        return ready

    def run(self, requests: list[Req], max_steps: int = 2000) -> None:
        """Step until all have ended."""
        running = [req for req in requests if not req.finished()]
        for _ in range(max_steps):
            if not running:
                return
            self.step(running)
            running = [req for req in running if not req.finished()]
        raise AssertionError(f"{len(running)} requests have not ended")

    def sampling_info(self, requests: list[Req]) -> SamplingBatchInfo:
        batch = Batch(requests)
        info = SamplingBatchInfo.from_schedule_batch(batch, self.vocab_size)
        # As the forward batch does where any request has a grammar.
        if any(req.grammar for req in requests):
            info.grammars = [req.grammar for req in requests]
        return info

    def step(self, requests: list[Req]) -> list[int]:
        """One token for every request: random logits, the mask of the grammars, the maximum."""
        info = self.sampling_info(requests)
        logits = torch.randn(len(requests), self.vocab_size, generator=self.generator)
        info.update_regex_vocab_mask()
        info.apply_logits_bias(logits)
        assert torch.isfinite(logits).any(dim=1).all()
        tokens = logits.argmax(dim=1).tolist()
        for req, token in zip(requests, tokens, strict=True):
            self.commit(req, [token])
        self.steps += 1
        return tokens

    def commit(self, req: Req, tokens: list[int]) -> None:
        """What the scheduler does with sampled tokens."""
        req.output_ids.extend(tokens)
        req.update_finish_state(len(tokens))
        if req.grammar is not None:
            self.accept(req, tokens)
            req.grammar.finished = req.finished()

    def accept(self, req: Req, tokens: list[int]) -> list[int]:
        """Go on by tokens; those that the grammar took."""
        return SchedulerBatchResultProcessor._accept_grammar_tokens(None, req, tokens)

    def text(self, req: Req) -> str:
        """The output without its end token."""
        ids = [token for token in req.output_ids if token not in self.ends]
        text = self.tokenizer.decode(ids, skip_special_tokens=False)
        assert isinstance(text, str)
        return text

    def _think_end_ids(self) -> list[int] | None:
        # As the scheduler finds them.
        if not get_serving().reasoning_parser:
            return None
        parser = ReasoningParser(
            model_type=get_serving().reasoning_parser,
            stream_reasoning=False,
            tokenizer=self.tokenizer,
        )
        return parser.detector.get_think_end_token_ids(self.tokenizer)
