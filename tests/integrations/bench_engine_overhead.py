"""The processor and wall time that grammars cost an engine in one step, for each of its backends.

    python tests/integrations/bench_engine_overhead.py vllm [--batch 1 32 128] [--drafts 0 4]
    python tests/integrations/bench_engine_overhead.py sglang --batch 32 128

In the environment `vllm-0.33` or `sglang` of docs/engines.md, without a model. In vLLM it is
`StructuredOutputManager` that compiles the grammars, checks drafts, fills the bitmasks and accepts
tokens. In SGLang these are `GrammarManager`, `SamplingBatchInfo.update_regex_vocab_mask` or, with
drafts, `build_grammar_vocab_mask`, and `_accept_grammar_tokens`. The tokens are those of documents
that are valid against the schemas, so that all backends do the same steps. Schemas or documents
that some backend refuses are left out and counted. The tokenizer is Mistral's Tekken, with 131,072
tokens.

A batch has a fixed number of slots. Each begins somewhere in a document, and takes the next one
when that has ended, so that the requests of a step are at different positions, as in a server.
Backends take turns, a part of the steps each. `shared`: the slots have 8 schemas in common.
`distinct`: each slot has its own, as far as there are enough. `first` has one slot and new
grammars: all steps of the first request with each. `newcomer` has 31 slots with shared schemas, and
one more for requests with a schema that nobody has seen, one after the other. Its steps are those
of an engine: the grammars' part, then 6 ms of a model, during which this thread sleeps. What a step
takes longer beside a newcomer is reported: while its grammar is compiled, in the steps of its first
tokens, and in later ones.

With drafts, each slot has as many as are configured, right ones with the probability 0.7 each. In
vLLM those that the grammar refuses are taken out by the manager first, as the scheduler does.
SGLang leaves them to the masks. The step is then check, bitmask and accept.
"""

import argparse
import gc
import itertools
import json
import logging
import lzma
import os
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import realtokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast

ROOT = Path(__file__).resolve().parent.parent.parent
SEED = 20261122
WIDTH = 131_072
SHARED_SCHEMAS = 8
RIGHT_DRAFTS = 0.7
CASES = ("first", "newcomer", "shared", "distinct")


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


class Backend(Protocol):
    """One backend of grammars of an engine."""

    name: str

    def request(self, document: Document) -> Any:
        """A request whose grammar is compiled; None if the backend refuses the schema."""

    def new(self, document: Document) -> Any:
        """A request that has not reached the scheduler."""

    def arrive(self, request: Any) -> None:
        """Let the engine's threads compile a request's grammar."""

    def is_compiled(self, request: Any) -> bool:
        """Whether such a request can join the batch."""
        ...

    def accept(self, request: Any, tokens: list[int]) -> bool:
        """Commit tokens, as the engine does after a pass."""
        ...

    def ready(self, requests: list[Any]) -> Any:
        """What the engine has at hand when the step begins; not timed."""

    def fill(self, requests: list[Any], ready: Any, drafts: list[list[int]]) -> list[list[int]]:
        """Fill the bitmask; the drafts that are verified."""
        ...


class VllmBackend:
    """vLLM's manager with one of its backends."""

    def __init__(self, name: str, folder: Path, batch: int, drafts: int) -> None:
        from vllm.config import SpeculativeConfig
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.structured_output import StructuredOutputManager

        self.name = name
        arguments = EngineArgs(
            model=str(folder),
            max_model_len=4096,
            max_num_seqs=max(batch, 2),
            max_num_batched_tokens=4096,
            structured_outputs_config={"backend": name},
            enforce_eager=True,
        )
        config = arguments.create_engine_config()
        if drafts:
            config.speculative_config = SpeculativeConfig(
                method="ngram",
                num_speculative_tokens=drafts,
                prompt_lookup_max=2,
                target_model_config=config.model_config,
                target_parallel_config=config.parallel_config,
            )
        self._manager = StructuredOutputManager(config)
        # Managers of a process share ffwd's grammars. A new one is to have seen none.
        if self._manager.backend is not None:
            self._manager.backend.destroy()
        self._made = 0

    def request(self, document: Document) -> Any:
        request = self.new(document)
        self.arrive(request)
        deadline = time.monotonic() + 600
        while not self.is_compiled(request) and time.monotonic() < deadline:
            time.sleep(0.0002)
        grammar = request.structured_output_request.grammar
        return None if isinstance(grammar, Exception) else request

    def new(self, document: Document) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import StructuredOutputsParams
        from vllm.v1.request import Request

        self._made += 1
        params = SamplingParams(
            max_tokens=4096,
            structured_outputs=StructuredOutputsParams(json=document.schema),
        )
        params.update_from_generation_config({}, document.tokens[-1])
        params.structured_outputs._backend = self.name
        return Request(f"{self.name}-{self._made}", [1], params, None)

    def arrive(self, request: Any) -> None:
        self._manager.grammar_init(request)

    def is_compiled(self, request: Any) -> bool:
        return request.structured_output_request.is_grammar_ready

    def accept(self, request: Any, tokens: list[int]) -> bool:
        return self._manager.accept_tokens(request, tokens)

    def ready(self, requests: list[Any]) -> dict[str, Any]:
        return {request.request_id: request for request in requests}

    def fill(self, requests: list[Any], ready: Any, drafts: list[list[int]]) -> list[list[int]]:
        manager = self._manager
        scheduled: dict[str, list[int]] = {}
        for request, tokens in zip(requests, drafts, strict=False):
            valid = manager.validate_tokens(request, tokens)
            if valid:
                scheduled[request.request_id] = valid
        manager.grammar_bitmask(ready, [*ready], scheduled)
        return [scheduled.get(name, []) for name in ready]


class SglangBackend:
    """What SGLang's scheduler does with one of its backends."""

    def __init__(self, name: str, folder: Path, batch: int, drafts: int) -> None:
        from sglangharness import SmallScheduler

        del batch, drafts
        self.name = name
        tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
        tokenizer.additional_stop_token_ids = None
        width = LlamaConfig.from_pretrained(folder).vocab_size
        self._scheduler = SmallScheduler(name, tokenizer=tokenizer, vocab_size=width)
        self._made = 0

    def new(self, document: Document) -> Any:
        self._made += 1
        name = f"{self.name}-{self._made}"
        return self._scheduler.request(name, max_new_tokens=4096, json_schema=document.schema)

    def request(self, document: Document) -> Any:
        request = self.new(document)
        self._scheduler.running.count = 0
        self._scheduler.admit([request])
        return None if request.finished() else request

    def arrive(self, request: Any) -> None:
        if not self._scheduler.manager.process_req_with_grammar(request):
            raise RuntimeError(f"{self.name} has seen the grammar of {request.rid}")

    def is_compiled(self, request: Any) -> bool:
        self._scheduler.running.count = 1
        manager = self._scheduler.manager
        return not manager.has_waiting_grammars() or bool(manager.get_ready_grammar_requests())

    def accept(self, request: Any, tokens: list[int]) -> bool:
        return len(self._scheduler.accept(request, tokens)) == len(tokens)

    def ready(self, requests: list[Any]) -> Any:
        return self._scheduler.sampling_info(requests)

    def fill(self, requests: list[Any], ready: Any, drafts: list[list[int]]) -> list[list[int]]:
        import torch
        from sglang.srt.speculative.spec_utils import GrammarTree, build_grammar_vocab_mask

        if not drafts:
            ready.update_regex_vocab_mask()
            return [[] for _ in requests]
        # The last accepted token is the root, which counts for nothing.
        longest = max(map(len, drafts))
        padded = [[0, *tokens, *[0] * (longest - len(tokens))] for tokens in drafts]
        build_grammar_vocab_mask(
            reqs=requests,
            tree=GrammarTree.from_linear_chain(torch.tensor(padded)),
            sampling_info=ready,
            device="cpu",
            barrier=None,
        )
        return drafts


ENGINES: dict[str, tuple[type[Backend], tuple[str, ...]]] = {
    "vllm": (VllmBackend, ("ffwd", "xgrammar", "guidance")),
    "sglang": (SglangBackend, ("ffwd", "xgrammar", "llguidance")),
}


def takes(backend: Backend, document: Document) -> bool:
    """Whether the backend compiles the schema, and accepts the document."""
    request = backend.request(document)
    return request is not None and all(backend.accept(request, [t]) for t in document.tokens)


class Slots:
    """The requests of one backend that run at once, all of them where the others' are, too."""

    def __init__(self, backend: Backend, plan: list[list[Document]], drafts: int) -> None:
        self._backend = backend
        self._drafts = drafts
        self._rng = random.Random(SEED)
        self._plan = plan
        self._turn = [0] * len(plan)
        self._slots: list[tuple[Any, tuple[int, ...], int]] = []
        for slot in range(len(plan)):
            self._slots.append(self._begin(slot, self._rng.random()))

    def _begin(self, slot: int, share: float = 0.0) -> tuple[Any, tuple[int, ...], int]:
        documents = self._plan[slot]
        document = documents[self._turn[slot] % len(documents)]
        self._turn[slot] += 1
        request = self._backend.request(document)
        if request is None:
            raise RuntimeError(f"{self._backend.name} refuses {document.name}, which it took")
        start = int(share * (len(document.tokens) - 1))
        for token in document.tokens[:start]:
            self._backend.accept(request, [token])
        return request, document.tokens, start

    def restart(self) -> None:
        """Begin the first slot's next document from its first token."""
        self._slots[0] = self._begin(0)

    def join(self, document: Document, request: Any) -> None:
        self._slots.append((request, document.tokens, 0))

    @property
    def guest_at(self) -> int | None:
        """The position of the request that has joined; None once it has ended."""
        return self._slots[-1][2] if len(self._slots) > len(self._plan) else None

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
        requests = [request for request, _, _ in self._slots]
        drafted = self._draft(width) if self._drafts else []
        ready, accept = self._backend.ready(requests), self._backend.accept
        ran, begun = time.process_time(), time.perf_counter()
        verified = self._backend.fill(requests, ready, drafted)
        filled = time.perf_counter()
        news = []
        for (request, tokens, at), drafts in zip(self._slots, verified, strict=True):
            count = 1
            for token in drafts:
                if token != tokens[at + count - 1] or at + count == len(tokens):
                    break
                count += 1
            news.append((request, list(tokens[at : at + count])))
        accepting = time.perf_counter()
        fine = [accept(request, tokens) for request, tokens in news]
        ended = time.perf_counter()
        times.processor.append(time.process_time() - ran)
        times.wall.append(ended - begun - (accepting - filled))
        times.fill += filled - begun
        times.accept += ended - accepting
        times.rows += len(requests)
        if not all(fine):
            raise RuntimeError(f"{self._backend.name} refuses a token that it took before")
        for slot, (request, tokens, at) in reversed([*enumerate(self._slots)]):
            after = at + len(news[slot][1])
            if after < len(tokens):
                self._slots[slot] = (request, tokens, after)
            elif slot < len(self._plan):
                self._slots[slot] = self._begin(slot)
            else:
                self._slots.pop()


class Newcomers:
    """One backend's steps of an engine: slots that are warm, and one newcomer at a time."""

    APART = 8
    FIRST_TOKENS = 8
    MODEL_SECONDS = 0.006

    def __init__(self, backend: Backend, plan: list[list[Document]]) -> None:
        self.backend = backend
        self._slots = Slots(backend, plan, 0)
        self._arrived: tuple[Document, Any] | None = None
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def warm(self, steps: int) -> None:
        for _ in range(steps):
            self._slots.step(Times(), WIDTH)

    def meet(self, document: Document) -> None:
        """Some steps alone, and those from the newcomer's arrival to its end."""
        for _ in range(self.APART):
            self._step("alone")
        request = self.backend.new(document)
        self._step("compiling", lambda: self._arrive(document, request))
        while self._arrived:
            self._step("compiling", self._join)
        while (at := self._slots.guest_at) is not None:
            self._step("first" if at < self.FIRST_TOKENS else "later")

    def _arrive(self, document: Document, request: Any) -> None:
        self.backend.arrive(request)
        self._arrived = document, request
        self._join()

    def _join(self) -> None:
        if self._arrived and self.backend.is_compiled(self._arrived[1]):
            self._slots.join(*self._arrived)
            self._arrived = None

    def _step(self, kind: str, schedule: Callable[[], None] = lambda: None) -> None:
        """What the scheduler does with arrivals, the masks and tokens of a step, and a pass."""
        began = time.perf_counter()
        schedule()
        scheduled = time.perf_counter() - began
        taken = Times()
        self._slots.step(taken, WIDTH)
        launched = time.perf_counter()
        time.sleep(self.MODEL_SECONDS)
        ran = time.perf_counter() - launched
        self.seconds[kind].append(scheduled + taken.wall[0] + ran)


def run_newcomers(
    backends: list[Backend], plan: list[list[Document]], documents: list[Document]
) -> None:
    """Each document once, in turns, in backends that have not seen its schema."""
    engines = [Newcomers(backend, plan) for backend in backends]
    for engine in engines:
        engine.warm(200)
    gc.collect()
    for index, document in enumerate(documents):
        shift = index % len(engines)
        for engine in engines[shift:] + engines[:shift]:
            engine.meet(document)
    print(f"{len(plan)} warm, {len(documents)} newcomers; microseconds that a step takes longer")
    print(f"{'':22s} {'steps':>6s} {'mean':>8s} {'p50':>8s} {'p99':>8s} {'mean of a step':>15s}")
    for engine in engines:
        alone = engine.seconds.pop("alone")
        mean = sum(alone) / len(alone)
        for kind, taken in [
            *engine.seconds.items(),
            ("all", [*itertools.chain(*engine.seconds.values())]),
        ]:
            added = [
                sum(taken) / len(taken) - mean,
                *(percentile(taken, share) - percentile(alone, share) for share in (0.5, 0.99)),
            ]
            columns = " ".join(f"{1e6 * value:8.1f}" for value in added)
            print(
                f"{engine.backend.name:12s} {kind:9s} {len(taken):6d} {columns}"
                f" {100 * added[0] / mean:14.2f}%",
                flush=True,
            )


def usable(documents: list[Document], backends: list[Backend], wanted: int) -> list[Document]:
    """Documents that every backend takes; says how many each refused."""
    refused: dict[str, int] = defaultdict(int)
    found: list[Document] = []
    for document in documents:
        if len(found) == wanted:
            break
        for backend in backends:
            if not takes(backend, document):
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
    base = next(iter(times.values()))
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
    what: str, backends: list[Backend], plan: list[list[Document]], drafts: int, steps: int
) -> None:
    """Steps of all backends in turns, ten at a time; the first ten of each do not count."""
    slots = [Slots(backend, plan, drafts) for backend in backends]
    times = {backend.name: Times() for backend in backends}
    # As the engines do once they have started. Otherwise a collection of all that was made here
    # falls into a step, half a second of it.
    gc.collect()
    gc.freeze()
    for part in range(steps // 10 + 1):
        shift = part % len(backends)
        for index in [*range(shift, len(backends)), *range(shift)]:
            taken = times[backends[index].name] if part else Times()
            for _ in range(10):
                slots[index].step(taken, WIDTH)
    report(what, times)


def run_first(backends: list[Backend], documents: list[Document]) -> None:
    """Each document once, alone, in backends that have seen none of the grammars."""
    times = {backend.name: Times() for backend in backends}
    for index, document in enumerate(documents):
        shift = index % len(backends)
        for backend in backends[shift:] + backends[:shift]:
            slots = Slots(backend, [[document]], 0)
            slots.restart()
            for _ in range(len(document.tokens) - 1):
                slots.step(times[backend.name], WIDTH)
    report("1 first", times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 32, 128, 256, 512])
    parser.add_argument("--drafts", type=int, nargs="+", default=[0, 4])
    parser.add_argument("--steps", type=int, default=200, help="of each backend and case")
    parser.add_argument("--schemas", type=Path, default=ROOT / "maskbench/corpus/builtin.jsonl")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--newcomers", type=int, default=100, help="in the case newcomer")
    options = parser.parse_args()
    kind, names = ENGINES[options.engine]
    import_module(f"ffwd.adapters.{options.engine}").register()
    logging.disable(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def backends(batch: int, drafts: int) -> list[Backend]:
            return [kind(name, folder, batch, drafts) for name in names]

        documents = read_documents(write_tokenizer(folder), options.schemas)
        wanted = max(options.batch) if "distinct" in options.cases else 64
        if "newcomer" in options.cases:
            wanted = max(wanted, SHARED_SCHEMAS + options.newcomers)
        documents = usable(documents, backends(2, 0), max(wanted, 64))
        print(f"seed {SEED}; milliseconds a step, and multiples of ffwd's")
        print(f"{'':34s} processor: p50         p99               wall: p50               p99")
        if "first" in options.cases:
            run_first(backends(1, 0), documents[:64])
        if "newcomer" in options.cases:
            shared = documents[:SHARED_SCHEMAS]
            plan = [shared[slot % 8 :] + shared[: slot % 8] for slot in range(31)]
            run_newcomers(backends(32, 0), plan, documents[SHARED_SCHEMAS:][: options.newcomers])
        for batch, drafts, case in itertools.product(
            options.batch,
            options.drafts,
            [case for case in options.cases if case in ("shared", "distinct")],
        ):
            count = SHARED_SCHEMAS if case == "shared" else len(documents)
            chosen = documents[:count]
            random.Random(SEED).shuffle(chosen)
            plan = [chosen[slot % count :] + chosen[: slot % count] for slot in range(batch)]
            if case == "distinct":
                plan = [own[:1] for own in plan]
            what = f"{batch} K={drafts} {case}"
            run_steps(what, backends(batch, drafts), plan, drafts, options.steps)


if __name__ == "__main__":
    main()
