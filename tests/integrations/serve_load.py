"""A server under load: `python tests/integrations/serve_load.py --requests 5000 --clients 50`.

Makes a tiny model, serves it by `ffwd serve` in a process of its own, and asks for structured and
plain answers, streamed and whole, while some clients read slowly, some vanish in the middle and
some send schemas that are wrong. Prints what came, how long it took, and what the process held
before and after: memory, threads, file descriptors, open texts.
"""

import argparse
import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import httpx
import psutil
from serve_models import COLOURS, HELLO, PLACES, TOOLS, function, schema_format, write_model

CHAT = "/v1/chat/completions"


def spawn(folder, *options):
    """`ffwd serve` on a free port; the process and its URL."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "ffwd.cli", "serve", str(folder)),
            *("--port", "0", "--threads", "1", *options),
        ],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    lines = []
    for line in process.stderr:
        lines.append(line)
        found = re.search(r"running on (http://\S+)", line)
        if found is not None:
            # Nobody may stop reading, or the server would block on its log.
            threading.Thread(target=process.stderr.read, daemon=True).start()
            return process, found[1]
    raise RuntimeError("".join(lines))


def held(process, url):
    """What the process holds."""
    found = {}
    for line in httpx.get(f"{url}/metrics", timeout=600).text.splitlines():
        name, _, value = line.rpartition(" ")
        found[name.removeprefix("ffwd_server_")] = value
    whole = psutil.Process(process.pid)
    return {
        "rss_mb": round(whole.memory_info().rss / 2**20, 1),
        "threads": whole.num_threads(),
        "fds": whole.num_fds(),
        **{
            name: int(float(found[name]))
            for name in ("open_requests", "running_texts", "waiting_texts", "open_texts")
        },
        "grammars": int(float(found["grammar_cache_grammars"])),
        "grammar_mb": round(float(found["grammar_cache_bytes"]) / 2**20, 1),
        "forward_passes": int(float(found["forward_passes_total"])),
        "completion_tokens": int(float(found["completion_tokens_total"])),
        "forced_tokens": int(float(found["forced_tokens_total"])),
        "late_masks": int(float(found["late_masks_total"])),
        "cancelled": int(float(found["cancelled_requests_total"])),
    }


def request(number, rng):
    """A kind of client, and what it asks."""
    body = {"messages": HELLO, "seed": number, "max_tokens": 60, "stream": rng.random() < 0.8}
    kind = rng.choices(
        ["json", "places", "regex", "choice", "tools", "text", "new", "bad"],
        [4, 3, 1, 1, 3, 2, 1, 1],
    )[0]
    if kind == "json":
        body["response_format"] = schema_format(COLOURS)
    elif kind == "places":
        body["structured_outputs"] = {"json": PLACES}
    elif kind == "regex":
        body["structured_outputs"] = {"regex": "[a-z]{3,9}-[0-9]{2}"}
    elif kind == "choice":
        body["structured_outputs"] = {"choice": ["yes, gladly", "no, never"]}
    elif kind == "tools":
        body |= {"tools": TOOLS, "tool_choice": "required"}
    elif kind == "new":
        # A schema that nobody has asked for before.
        body |= {
            "tools": [function(f"tool_{number}", COLOURS)],
            "tool_choice": "required",
        }
    elif kind == "bad":
        body["response_format"] = schema_format({"type": "object", "required": 3})
    manner = rng.choices(["patient", "slow", "vanishes"], [8, 1, 1])[0]
    return kind, manner, body


async def ask(client, number, rng, came):
    kind, manner, body = request(number, rng)
    try:
        async with client.stream("POST", CHAT, json=body) as response:
            status = response.status_code
            if kind == "bad":
                assert status == 400, await response.aread()
                came["refused"] += 1
                return
            if status != 200:
                came[f"status {status}"] += 1
                return
            if manner == "vanishes":
                async for _ in response.aiter_raw(20):
                    break
                came["vanished"] += 1
                return
            data = b""
            async for part in response.aiter_raw():
                data += part
                if manner == "slow":
                    await asyncio.sleep(0.05)
    except httpx.TransportError as error:
        came[type(error).__name__] += 1
        return
    check(kind, body, data)
    came[f"{manner} {'streamed' if body['stream'] else 'whole'}"] += 1


def check(kind, body, data):
    """Whatever is constrained is valid."""
    content, arguments, names, reason = "", [], [], None
    if body["stream"]:
        events = [line[6:] for line in data.decode().splitlines() if line]
        assert events[-1] == "[DONE]"
        for event in map(json.loads, events[:-1]):
            (choice,) = event["choices"]
            content += choice["delta"].get("content") or ""
            for part in choice["delta"].get("tool_calls") or []:
                if "id" in part:
                    names.append(part["function"]["name"])
                    arguments.append("")
                arguments[part["index"]] += part["function"]["arguments"]
            reason = choice["finish_reason"] or reason
    else:
        (choice,) = json.loads(data)["choices"]
        content, reason = choice["message"]["content"], choice["finish_reason"]
        for call in choice["message"].get("tool_calls") or []:
            names.append(call["function"]["name"])
            arguments.append(call["function"]["arguments"])
    if kind in ("json", "places"):
        assert set(json.loads(content)) == set((COLOURS if kind == "json" else PLACES)["required"])
        assert reason == "stop"
    elif kind == "regex":
        assert re.fullmatch("[a-z]{3,9}-[0-9]{2}", content), content
    elif kind == "choice":
        assert content in ("yes, gladly", "no, never")
    elif kind in ("tools", "new"):
        assert names
        assert reason == "tool_calls"
        for text in arguments:
            assert isinstance(json.loads(text), dict)


async def load(url, *, requests, clients, seed, every=0, note=None):
    """Ask so many times, so many at a time; what came."""
    came = Counter()
    rng = random.Random(seed)
    numbers = iter(range(requests))
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits) as client:

        async def one():
            for number in numbers:
                if every and number and number % every == 0:
                    note(number)
                await ask(client, number, rng, came)

        await asyncio.gather(*(one() for _ in range(clients)))
    return came


def settled(process, url, seconds=600):
    """What is held once nothing is open."""
    until = time.monotonic() + seconds
    while True:
        now = held(process, url)
        # The request for the metrics is no request for the model.
        if not (now["open_requests"] or now["running_texts"] or now["waiting_texts"]):
            return now
        assert time.monotonic() < until, now
        time.sleep(0.1)


def stop(process):
    """Have it end by itself."""
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=600)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--grammar-cache-mb", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        process, url = spawn(
            write_model(Path(folder)), "--grammar-cache-mb", str(given.grammar_cache_mb)
        )
        try:
            print("seed", given.seed)
            print("at first", held(process, url))
            began = time.monotonic()

            def note(number):
                print(number, f"{time.monotonic() - began:.0f} s", held(process, url), flush=True)

            came = asyncio.run(
                load(
                    url,
                    requests=given.requests,
                    clients=given.clients,
                    seed=given.seed,
                    every=max(given.requests // 10, 1),
                    note=note,
                )
            )
            seconds = time.monotonic() - began
            print("came", dict(sorted(came.items())))
            print(f"{given.requests / seconds:.1f} requests a second, {seconds:.0f} s")
            print("at last", settled(process, url))
        finally:
            print("exit status", stop(process))


if __name__ == "__main__":
    main()
