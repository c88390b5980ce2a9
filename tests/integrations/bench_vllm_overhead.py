"""What structured output costs vLLM's engine core per step, backend by backend.

    python tests/integrations/bench_vllm_overhead.py [--batch 1 32 128 256 512] [--drafts 0 4]

In an environment with vLLM, XGrammar and llguidance (docs/engines.md). No model runs: vLLM's own
`StructuredOutputManager` compiles the grammars, checks the drafts, fills the bitmasks and accepts
the tokens, as the engine core has it do between two forward passes. The tokens are those of
documents that are valid against the schemas, so that all backends do the same steps. Schemas or
documents that some backend refuses are left out and counted. The tokenizer is Mistral's Tekken,
with 131,072 tokens, which vLLM itself brings along.

A batch has a fixed number of slots. Each begins somewhere in a document, and takes the next one
when that has ended, so that the requests of a step are at different positions, as in a server.
Backends take turns, a part of the steps each. `shared`: the slots have 8 schemas in common.
`distinct`: each slot has its own, as far as there are enough. `first` has one slot and new
grammars: all steps of the first request with each.

With drafts, each slot has as many as are configured, right ones with the probability 0.7 each,
and those that the grammar refuses are taken out by the manager first, as vLLM's scheduler does.
The step is then check, bitmask and accept.
"""

import argparse
import gc
import json
import lzma
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import realtokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast
from vllm import SamplingParams
from vllm.config import SpeculativeConfig
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

import ffwd.adapters.vllm

BACKENDS = ("ffwd", "xgrammar", "guidance")
ROOT = Path(__file__).resolve().parent.parent.parent
SEED = 20261122
SHARED_SCHEMAS = 8
RIGHT_DRAFTS = 0.7


@dataclass(frozen=True)
class Document:
    """A schema and the tokens of a text that is valid against it, with an end token."""

    name: str
    schema: str
    tokens: tuple[int, ...]


@dataclass
class Times:
    """Seconds of one backend's steps: by the clock, and of all its threads' processors."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    fill: float = 0.0
    accept: float = 0.0
    rows: int = 0


def write_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Write Tekken and the configuration of a model that has it."""
    real = realtokenizers.load("tekken")
    end = real.tokenizer.id_to_token(real.eos_token_ids[0])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=real.tokenizer, eos_token=end)
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=real.width,
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=1,
        max_position_embeddings=8192,
        bos_token_id=None,
        eos_token_id=real.eos_token_ids[0],
        architectures=["LlamaForCausalLM"],
    )
    config.save_pretrained(folder)
    return tokenizer


def read_documents(tokenizer: PreTrainedTokenizerFast, path: Path) -> list[Document]:
    """The first valid document of each schema of a corpus, compact, in random order."""
    found = []
    with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as file:
        lines = list(file)
    random.Random(SEED).shuffle(lines)
    for case in map(json.loads, lines):
        valid = [test["data"] for test in case["tests"] if test["valid"]]
        if not valid:
            continue
        text = json.dumps(valid[0], ensure_ascii=False, separators=(",", ":"))
        if len(text) > 4000:
            continue
        tokens = tokenizer.encode(text, add_special_tokens=False)
        found.append(
            Document(case["id"], json.dumps(case["schema"]), (*tokens, tokenizer.eos_token_id))
        )
        if len(found) == 1500:
            break
    return found


class Backend:
    """vLLM's manager with one of its backends."""

    def __init__(self, name: str, folder: Path, batch: int, drafts: int) -> None:
        self.name = name
        arguments = EngineArgs(
            model=str(folder),
            max_model_len=4096,
            max_num_seqs=max(batch, 2),
            max_num_batched_tokens=4096,
            structured_outputs_config={"backend": name},
            enforce_eager=True,
        )
        self.config = arguments.create_engine_config()
        if drafts:
            self.config.speculative_config = SpeculativeConfig(
                method="ngram",
                num_speculative_tokens=drafts,
                prompt_lookup_max=2,
                target_model_config=self.config.model_config,
                target_parallel_config=self.config.parallel_config,
            )
        self.manager = StructuredOutputManager(self.config)
        self._made = 0

    def request(self, document: Document) -> Request | None:
        """A request whose grammar is compiled; None if the backend refuses the schema."""
        self._made += 1
        params = SamplingParams(
            max_tokens=4096,
            structured_outputs=StructuredOutputsParams(json=document.schema),
        )
        params.update_from_generation_config({}, document.tokens[-1])
        params.structured_outputs._backend = self.name
        request = Request(f"{self.name}-{self._made}", [1], params, None)
        self.manager.grammar_init(request)
        structured = request.structured_output_request
        deadline = time.monotonic() + 600
        while structured.grammar is None and time.monotonic() < deadline:
            time.sleep(0.0002)
        return None if isinstance(structured.grammar, Exception) else request

    def takes(self, document: Document) -> bool:
        """Whether the backend compiles the schema, and accepts the document."""
        request = self.request(document)
        if request is None:
            return False
        grammar = request.structured_output_request.grammar
        return all(grammar.accept_tokens(request.request_id, [t]) for t in document.tokens)


class Slots:
    """The requests of one backend that run at once, all of them where the others' are, too."""

    def __init__(self, backend: Backend, plan: list[list[Document]], drafts: int) -> None:
        self._backend = backend
        self._drafts = drafts
        self._rng = random.Random(SEED)
        self._plan = plan
        self._turn = [0] * len(plan)
        self._requests: dict[str, Request] = {}
        self._slots: list[tuple[str, tuple[int, ...], int]] = []
        for slot in range(len(plan)):
            self._slots.append(self._begin(slot, self._rng.random()))

    def _begin(self, slot: int, share: float = 0.0) -> tuple[str, tuple[int, ...], int]:
        documents = self._plan[slot]
        document = documents[self._turn[slot] % len(documents)]
        self._turn[slot] += 1
        request = self._backend.request(document)
        if request is None:
            raise RuntimeError(f"{self._backend.name} refuses {document.name}, which it took")
        name = request.request_id
        self._requests[name] = request
        start = int(share * (len(document.tokens) - 1))
        for token in document.tokens[:start]:
            self._backend.manager.accept_tokens(request, [token])
        return name, document.tokens, start

    def _draft(self, width: int) -> list[list[int]]:
        drafts = []
        for _, tokens, at in self._slots:
            right = tokens[at : at + self._drafts]
            drafts.append(
                [
                    t if self._rng.random() < RIGHT_DRAFTS else self._rng.randrange(width)
                    for t in right
                ]
            )
        return drafts

    def step(self, times: Times, width: int) -> None:
        """One step of all slots; those that have ended begin anew afterwards."""
        manager, requests = self._backend.manager, self._requests
        names = [name for name, _, _ in self._slots]
        drafted = self._draft(width) if self._drafts else []
        scheduled: dict[str, list[int]] = {}
        ran, begun = time.process_time(), time.perf_counter()
        for name, tokens in zip(names, drafted, strict=False):
            valid = manager.validate_tokens(requests[name], tokens)
            if valid:
                scheduled[name] = valid
        manager.grammar_bitmask(requests, names, scheduled)
        filled = time.perf_counter()
        news = []
        for name, tokens, at in self._slots:
            count = 1
            for token in scheduled.get(name, ()):
                if token != tokens[at + count - 1] or at + count == len(tokens):
                    break
                count += 1
            news.append((requests[name], list(tokens[at : at + count])))
        accepting, accepted = time.perf_counter(), manager.accept_tokens
        fine = [accepted(request, tokens) for request, tokens in news]
        ended = time.perf_counter()
        times.processor.append(time.process_time() - ran)
        times.wall.append(ended - begun - (accepting - filled))
        times.fill += filled - begun
        times.accept += ended - accepting
        times.rows += len(names)
        if not all(fine):
            raise RuntimeError(f"{self._backend.name} refuses a token that it took before")
        for slot, (name, tokens, at) in enumerate(self._slots):
            after = at + len(news[slot][1])
            if after == len(tokens):
                del requests[name]
                self._slots[slot] = self._begin(slot)
            else:
                self._slots[slot] = (name, tokens, after)


def usable(documents: list[Document], backends: list[Backend], wanted: int) -> list[Document]:
    """Documents that every backend takes; says how many each refused."""
    refused: dict[str, int] = defaultdict(int)
    found: list[Document] = []
    for document in documents:
        if len(found) == wanted:
            break
        for backend in backends:
            if not backend.takes(document):
                refused[backend.name] += 1
                break
        else:
            found.append(document)
    print(f"{len(found)} schemas; refused, asked in turn: {dict(refused)}")
    return found


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def report(what: str, times: dict[str, Times]) -> None:
    """A line for each backend: its steps, and how many times as long as ffwd's they are."""
    base = times[BACKENDS[0]]
    for name, taken in times.items():
        columns = []
        for kind in ("processor", "wall"):
            mine, ours = getattr(taken, kind), getattr(base, kind)
            for share in (0.5, 0.99):
                value = percentile(mine, share)
                columns.append(f"{1e3 * value:8.3f} ({value / percentile(ours, share):5.2f})")
        rows = 1e6 / max(taken.rows, 1)
        print(
            f"{what:24s} {name:9s} {'  '.join(columns)}"
            f"   us a row: fill {taken.fill * rows:6.2f} accept {taken.accept * rows:6.2f}"
            f" processor {sum(taken.processor) * rows:6.2f}",
            flush=True,
        )


def run_steps(
    what: str, folder: Path, plan: list[list[Document]], drafts: int, steps: int, width: int
) -> None:
    """Steps of all backends in turns, ten at a time; the first ten of each do not count."""
    slots = {
        name: Slots(Backend(name, folder, len(plan), drafts), plan, drafts) for name in BACKENDS
    }
    times = {name: Times() for name in BACKENDS}
    gc.collect()
    for part in range(steps // 10 + 1):
        shift = part % len(BACKENDS)
        for name in BACKENDS[shift:] + BACKENDS[:shift]:
            taken = times[name] if part else Times()
            for _ in range(10):
                slots[name].step(taken, width)
    report(what, times)


def run_first(folder: Path, documents: list[Document], width: int) -> None:
    """Each document once, alone, in a manager that has seen none of the grammars."""
    backends = [Backend(name, folder, 1, 0) for name in BACKENDS]
    times = {name: Times() for name in BACKENDS}
    for index, document in enumerate(documents):
        shift = index % len(backends)
        for backend in backends[shift:] + backends[:shift]:
            backend_slots = Slots(backend, [[document]], 0)
            backend_slots._slots = [(*backend_slots._begin(0)[:2], 0)]
            for _ in range(len(document.tokens) - 1):
                backend_slots.step(times[backend.name], width)
    report("1 first", times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32, 128, 256, 512])
    parser.add_argument("--drafts", type=int, nargs="+", default=[0, 4])
    parser.add_argument("--steps", type=int, default=200, help="of each backend and case")
    parser.add_argument("--schemas", type=Path, default=ROOT / "maskbench/corpus/builtin.jsonl")
    parser.add_argument("--cases", nargs="+", default=["first", "shared", "distinct"])
    options = parser.parse_args()
    ffwd.adapters.vllm.register()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = read_documents(write_tokenizer(folder), options.schemas)
        judges = [Backend(backend, folder, 2, 0) for backend in BACKENDS]
        width = judges[0].config.model_config.get_vocab_size()
        wanted = max(options.batch) if "distinct" in options.cases else 64
        documents = usable(documents, judges, max(wanted, 64))
        print(f"seed {SEED}; milliseconds a step, and multiples of ffwd's")
        print(f"{'':34s} processor: p50         p99               wall: p50               p99")
        if "first" in options.cases:
            run_first(folder, documents[:64], width)
        for batch in options.batch:
            for drafts in options.drafts:
                for case in options.cases:
                    if case == "first":
                        continue
                    count = SHARED_SCHEMAS if case == "shared" else len(documents)
                    rng = random.Random(SEED)
                    chosen = documents[:count]
                    rng.shuffle(chosen)
                    plan = [
                        chosen[slot % count :] + chosen[: slot % count] for slot in range(batch)
                    ]
                    if case == "distinct":
                        plan = [own[:1] for own in plan]
                    run_steps(
                        f"{batch} K={drafts} {case}", folder, plan, drafts, options.steps, width
                    )


if __name__ == "__main__":
    main()
