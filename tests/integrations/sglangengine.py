"""Requests, all at once, through the whole of SGLang on a processor; a process of its own.

python sglangengine.py REQUESTS RESULTS: files of JSON, a list of sampling parameters and
the list of what came of them.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

# Before anything of SGLang is imported, here and in its processes.
os.environ["SGLANG_USE_CPU_ENGINE"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"


def write_model(folder: str) -> None:
    """A model with random weights and the tests' tokenizer."""
    import torch
    from sglangharness import LOGITS_WIDTH, end_id, tiny_tokenizer
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=LOGITS_WIDTH,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        bos_token_id=0,
        pad_token_id=0,
        eos_token_id=end_id(),
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)


async def run(engine: Any, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What came of each; an error as its text."""

    async def one(number: int, params: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = await engine.async_generate(f"request {number}", params)
        except Exception as error:
            return {"error": str(error)}
        return {"text": answer["text"], "finish": answer["meta_info"]["finish_reason"]}

    return await asyncio.gather(*(one(*request) for request in enumerate(requests)))


def main(requests: Path, results: Path) -> None:
    """Start the engine, ask it everything twice, and stop it."""
    with tempfile.TemporaryDirectory() as model:
        write_model(model)
        from sglang.srt.entrypoints.engine import Engine

        engine = Engine(
            model_path=model,
            device="cpu",
            dtype="float32",
            attention_backend="torch_native",
            sampling_backend="pytorch",
            grammar_backend="ffwd",
            disable_overlap_schedule=True,
            constrained_json_max_whitespace_cnt=1,
            max_total_tokens=16384,
            mem_fraction_static=0.1,
            random_seed=0,
            log_level="warning",
        )
        try:
            asked = json.loads(requests.read_text(encoding="utf-8"))
            # The second time every grammar comes from the cache.
            answers = [engine.loop.run_until_complete(run(engine, asked)) for _ in range(2)]
            results.write_text(json.dumps(answers), encoding="utf-8")
        finally:
            engine.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
