"""How much of a step the masks take, with ffwd and with the host's own structured output.

    export PYTHONPATH=tests
    build/engines/outlines/bin/python tests/integrations/bench_host_masks.py outlines
    build/engines/mlx-lm/bin/python tests/integrations/bench_host_masks.py mlx-lm
    build/engines/onnxruntime-genai/bin/python \\
        tests/integrations/bench_host_masks.py onnxruntime-genai

A model with random weights, DeepSeek's 128,000 tokens and next to no layers generates under a
schema of nine properties, one thread. Printed are processor times per step: of the whole step, and
of the processor in it. A real model's step is longer, so its share is smaller.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import realtokenizers
import torch
from hostcases import SCHEMAS, write_host_model
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import ffwd

SCHEMA = {
    "type": "object",
    "properties": {f"property_number_{at}": schema for at, schema in enumerate(SCHEMAS.values())},
    "additionalProperties": False,
}
del SCHEMA["properties"]["property_number_7"]  # has definitions
SCHEMA["required"] = list(SCHEMA["properties"])
STEPS = 80


class Timed:
    """A processor whose calls are timed, in processor time."""

    def __init__(self, inner: Callable[..., Any]) -> None:
        self.inner = inner
        self.seconds = 0.0
        self.calls = 0

    def __call__(self, *arguments: Any) -> Any:
        # Of this thread alone: in mlx another one computes the logits in the meantime.
        started = time.thread_time()
        result = self.inner(*arguments)
        self.seconds += time.thread_time() - started
        self.calls += 1
        return result

    def reset(self) -> None:
        self.inner.reset()


def write_model(folder: Path) -> None:
    write_host_model(folder)
    core = realtokenizers.load("deepseek").tokenizer
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="<\uff5cend\u2581of\u2581sentence\uff5c>"
    )
    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=129280,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    model.generation_config.update(eos_token_id=tokenizer.eos_token_id)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def report(name: str, processor: Timed | None, run: Callable[[], object]) -> None:
    """Run twice, the first time for caches, and print the second."""
    for _ in range(2):
        if processor is not None:
            processor.seconds, processor.calls = 0.0, 0
        started = time.process_time()
        run()
        spent = time.process_time() - started
    if processor is None:
        print(f"{name:28} step {1e3 * spent / STEPS:7.2f} ms")
        return
    step, mask = spent / processor.calls, processor.seconds / processor.calls
    print(f"{name:28} step {1e3 * step:7.2f} ms   masks {1e3 * mask:6.3f} ms  {mask / step:6.1%}")


def outlines_host(folder: Path) -> None:
    import outlines
    from outlines.types import JsonSchema
    from transformers import AutoModelForCausalLM

    from ffwd.adapters.outlines import GrammarLogitsProcessor, vocabulary_of

    model = outlines.from_transformers(
        AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    )
    vocabulary = vocabulary_of(model)
    options = {"max_new_tokens": STEPS, "do_sample": False}

    def bench(name: str, made: Any) -> None:
        timed = None if made is None else Timed(made)
        generator = outlines.Generator(model, processor=timed)
        extra = {} if timed is not None else {"min_new_tokens": STEPS}
        report(name, timed, lambda: generator("x", **options, **extra))

    bench("no grammar", None)
    bench("ffwd", GrammarLogitsProcessor(model, JsonSchema(SCHEMA), vocabulary=vocabulary))
    for backend in ("outlines_core", "llguidance", "xgrammar"):
        try:
            own = outlines.Generator(model, JsonSchema(SCHEMA), backend)
        except Exception as error:  # the schema or the backend's dependency
            print(f"{backend:28} {type(error).__name__}: {str(error)[:80]}")
            continue
        bench(backend, own.logits_processor)


def mlx_host(folder: Path) -> None:
    import mlx_lm

    from ffwd.adapters.mlx_lm import GrammarLogitsProcessor, vocabulary_of

    loaded = mlx_lm.load(str(folder))
    grammar = ffwd.compile(ffwd.json_schema(json.dumps(SCHEMA)), vocabulary_of(*loaded))

    def bench(name: str, made: Any) -> None:
        timed = None if made is None else Timed(made)
        processors = [] if timed is None else [timed]

        def run() -> None:
            if timed is not None:
                timed.reset()
            mlx_lm.generate(*loaded, "x", max_tokens=STEPS, logits_processors=processors)

        report(name, timed, run)

    bench("no grammar", None)
    bench("ffwd", GrammarLogitsProcessor(grammar))
    bench("ffwd, narrow", GrammarLogitsProcessor(grammar, narrow=True))


def ort_host(folder: Path) -> None:
    import onnxruntime_genai as og

    from ffwd.adapters.onnxruntime_genai import GrammarGenerator, vocabulary_of

    exported = folder / "exported"
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-p", "fp32", "-e", "cpu"]
    builder += ["-i", str(folder), "-o", str(exported), "-c", str(folder / "cache")]
    subprocess.run(builder, check=True, capture_output=True)
    model = og.Model(str(exported))
    grammar = ffwd.compile(ffwd.json_schema(json.dumps(SCHEMA)), vocabulary_of(exported))

    def run(name: str, made: Callable[[Any], Any]) -> None:
        """Print the time of a token, over loops that og makes."""
        for _ in range(2):
            params = og.GeneratorParams(model)
            params.set_search_options(max_length=STEPS + 2, do_sample=False)
            started = time.process_time()
            generator = made(params)
            generator.append_tokens([5, 6])
            while not generator.is_done():
                generator.generate_next_token()
            spent = time.process_time() - started
        print(f"{name:28} token {1e3 * spent / STEPS:7.2f} ms")

    def guided(forced: bool) -> Callable[[Any], Any]:
        def made(params: Any) -> Any:
            params.set_guidance("json_schema", json.dumps(SCHEMA), forced)
            return og.Generator(model, params)

        return made

    run("no grammar", lambda params: og.Generator(model, params))
    run("ffwd, masks", lambda params: GrammarGenerator(model, params, grammar, fast_forward=False))
    run("ffwd", lambda params: GrammarGenerator(model, params, grammar))
    run("set_guidance", guided(False))
    run("set_guidance, forced", guided(True))


HOSTS = {"outlines": outlines_host, "mlx-lm": mlx_host, "onnxruntime-genai": ort_host}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("host", choices=HOSTS)
    host = HOSTS[parser.parse_args().host]
    with tempfile.TemporaryDirectory() as name:
        write_model(Path(name))
        host(Path(name))


if __name__ == "__main__":
    main()
