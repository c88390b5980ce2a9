"""What grammars cost `ffwd serve`: its throughput with and without them, in turns.

    python tests/integrations/bench_serve_overhead.py [--clients 32] [--seconds 20] [--rounds 3]

Makes a small model with a tokenizer of 131,072 tokens and serves it in a process of its own. As
many clients as are asked for send one request after the other, each for 64 tokens. In a turn all
of them ask for the same kind of answer: `plain` for text, `shared` for one of 8 schemas, `new` for
a schema that no request had before; in `newcomer` one client asks for `new` and the others for
`shared`. A turn is measured from when all clients are at work until it
ends. `tokens` are those of answers, forced ones included, `rows` what the model is run for: tokens
that are chosen, and parts of prompts. `ms a token` is the time of all threads on processors.
"""

import argparse
import asyncio
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx
import psutil
import torch
from serve_load import CHAT, spawn, stop
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import realtokenizers

KINDS = ("plain", "shared", "newcomer", "new")
_TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
_WORDS = ("name", "city", "notes", "labels", "size", "kind", "owner", "places", "day", "reason")


def write_model(folder, *, size, layers):
    """A random Llama with Mistral's Tekken."""
    real = realtokenizers.load("tekken")
    end = real.tokenizer.id_to_token(real.eos_token_ids[0])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=real.tokenizer, eos_token=end)
    tokenizer.chat_template = _TEMPLATE
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=real.width,
            hidden_size=size,
            intermediate_size=3 * size,
            num_hidden_layers=layers,
            num_attention_heads=size // 64,
            num_key_value_heads=size // 64,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=real.eos_token_ids[0],
        )
    )
    model.generation_config = GenerationConfig(eos_token_id=real.eos_token_ids[0])
    model.save_pretrained(folder)
    return folder


def schema(number):
    """A record whose names and bounds depend on the number."""
    rng = random.Random(number)
    names = [f"{word}{rng.randrange(100)}" for word in rng.sample(_WORDS, 5)]
    kinds = [
        {"type": "string", "maxLength": rng.randrange(40, 90)},
        {"type": "array", "items": {"type": "string", "pattern": "^[a-z]{2,9}$"}},
        {"type": "integer", "minimum": 0, "maximum": rng.randrange(10, 10_000)},
        {"enum": [f"{rng.choice(_WORDS)} {index}" for index in range(20)]},
        {"type": "object", "additionalProperties": {"type": "number"}},
    ]
    return {
        "type": "object",
        "properties": dict(zip(names, kinds, strict=True)),
        "required": names,
        "additionalProperties": False,
    }


async def turn(process, url, kind, *, clients, seconds, numbers):
    """Rows, passes and tokens a second, and seconds of processors."""
    limits = httpx.Limits(max_connections=clients + 1, max_keepalive_connections=clients + 1)
    going = True
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits) as client:

        async def one(client_number):
            asked = kind
            if kind == "newcomer":
                asked = "shared" if client_number else "new"
            while going:
                number = next(numbers)
                body = {
                    "messages": [{"role": "user", "content": f"Say something of {number}."}],
                    "max_tokens": 64,
                    "seed": number,
                    "stream": True,
                }
                if asked != "plain":
                    wanted = {
                        "name": "r",
                        "schema": schema(number % 8 if asked == "shared" else number),
                    }
                    body["response_format"] = {"type": "json_schema", "json_schema": wanted}
                async with client.stream("POST", CHAT, json=body) as response:
                    assert response.status_code == 200, await response.aread()
                    async for _ in response.aiter_raw():
                        pass

        async def counted():
            found = {}
            for line in (await client.get("/metrics")).text.splitlines():
                name, _, value = line.rpartition(" ")
                found[name.removeprefix("ffwd_server_")] = value
            names = (
                "batch_texts_sum",
                "forward_passes_total",
                "completion_tokens_total",
                "late_masks_total",
            )
            used = psutil.Process(process.pid).cpu_times()
            return time.perf_counter(), [
                *(float(found[name]) for name in names),
                used.user + used.system,
            ]

        tasks = [asyncio.create_task(one(number)) for number in range(clients)]
        await asyncio.sleep(2)
        began, before = await counted()
        await asyncio.sleep(seconds)
        ended, after = await counted()
        going = False
        await asyncio.gather(*tasks)
    return [(b - a) / (ended - began) for a, b in zip(before, after, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=256, help="of the model's states")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2, help="of the model")
    given = parser.parse_args()
    numbers = itertools.count(1000)
    found = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder), size=given.size, layers=given.layers)
        process, url = spawn(model, "--threads", str(given.threads))
        try:
            for _ in range(given.rounds):
                for kind in KINDS:
                    rates = asyncio.run(
                        turn(
                            process,
                            url,
                            kind,
                            clients=given.clients,
                            seconds=given.seconds,
                            numbers=numbers,
                        )
                    )
                    found[kind].append(rates)
                    print(
                        json.dumps({"kind": kind, "rates": [round(r, 1) for r in rates]}),
                        flush=True,
                    )
        finally:
            stop(process)
    medians = {
        kind: [statistics.median(one) for one in zip(*rates, strict=True)]
        for kind, rates in found.items()
    }
    plain = medians["plain"]
    print(f"{'':8}{'tokens/s':>10}{'rows/s':>9}{'passes/s':>10}{'tokens/s by plain':>19}", end="")
    print(f"{'ms a token':>12}")
    for kind, (rows, passes, tokens, _, used) in medians.items():
        print(f"{kind:8}{tokens:10.1f}{rows:9.1f}{passes:10.1f}{tokens / plain[2]:19.3f}", end="")
        print(f"{1000 * used / tokens:12.2f}")


if __name__ == "__main__":
    main()
