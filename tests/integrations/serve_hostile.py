"""How hostile schemas slow others down: `python tests/integrations/serve_hostile.py`.

Serves a tiny model and asks for answers with a schema that is known and with schemas that nobody
has asked for; alone, then beside clients with schemas that are made to be slow, in turns.
Prints how long answers took, and how many times as long beside hostile clients. These have a
process of their own, and have imported, written their bodies and connected before good clients
begin: what they do for themselves delays no good client.
"""

import argparse
import contextlib
import itertools
import json
import multiprocessing
import tempfile
import threading
import time
from pathlib import Path

import httpx
from serve_load import CHAT, spawn, stop
from serve_models import COLOURS, HELLO, PLACES, write_model

KINDS = ("known", "new")


def hostile():
    """Schemas that take long, each in its own way."""
    return [
        {"type": "number", "multipleOf": 1e300, "minimum": 1, "maximum": 5e300},
        {"type": "array", "uniqueItems": True, "minItems": 30, "items": {"type": "object"}},
        {"type": "object", "properties": {f"p{i}": {"$ref": "#"} for i in range(400)}},
        {"type": "string", "pattern": "^(?=.*a)(?=.*b)(?=.*c)(?=.*d)(?=.*e)(?=.*f).{1,2000}$"},
        {"type": "array", "minItems": 100_000, "items": {"type": "string", "minLength": 50}},
        {"enum": [f"value {i}" for i in range(3000)]},
        {
            "allOf": [
                {"anyOf": [{"type": "integer", "multipleOf": p}, {"minimum": p}]}
                for p in (7, 11, 13, 17, 19)
            ]
        },
        {"type": "string", "pattern": "(((((a{1,100}){1,100}){1,100}){1,100}){1,100})"},
        {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "type": {"const": f"k{i}"},
                        **{f"f{i * k % 60}": {"type": "integer"} for k in range(1, 9)},
                    },
                }
                for i in range(41)
            ]
        },
        {"type": "string", "pattern": "(.*a.{200}.*b.{100})|(.*b.{150})"},
        {
            "allOf": [
                {
                    "if": {"properties": {f"k{i}": {"const": "a"}}, "required": [f"k{i}"]},
                    "then": {"required": [f"x{i}"]},
                    "else": {"required": [f"y{i}"]},
                }
                for i in range(60)
            ]
        },
        {"type": "object", "minProperties": 2000},
        {"type": "string", "allOf": [{"pattern": f"(.{{{40 + i}}})*x{i}"} for i in range(12)]},
        {"type": "integer", "multipleOf": 1_000_000_007, "minimum": 10**30},
        {
            "type": "object",
            "patternProperties": {
                f"^.*{letter}.*$": {"type": "integer", "multipleOf": i + 2}
                for i, letter in enumerate("abcdefghijklmnopqrst")
            },
        },
        {
            "oneOf": [
                {
                    "properties": {f"p{i}": {"type": "integer"}, f"p{i + 1}": {"type": "string"}},
                    "required": [f"p{i}"],
                }
                for i in range(100)
            ]
        },
        {
            "type": "array",
            "uniqueItems": True,
            "contains": {"type": "integer", "maximum": 60},
            "minContains": 50,
        },
        {"enum": [[i, i + 1, {"a": i}] for i in range(2000)]},
        {"type": "object", "required": [f"r{i}" for i in range(800)]},
        {
            "type": "object",
            "unevaluatedProperties": False,
            "anyOf": [{"properties": {f"q{i}": {"type": "string"}}} for i in range(14)],
        },
    ]


def body(schema, seed):
    """A request for an answer."""
    return {
        "messages": HELLO,
        "max_tokens": 60,
        "seed": seed,
        "structured_outputs": {"json": schema},
    }


def attack(url, number, phase, ready, until):
    """Ask for hostile answers, so many at a time, with schemas that nobody has asked for before.

    Says when it is `ready`, and begins when it is told until when.
    """
    bodies = [json.dumps(body({**schema, "title": "TITLE"}, 1)) for schema in hostile()]
    numbers = itertools.count()
    with contextlib.ExitStack() as stack:
        # Each reads the machine's certificates.
        clients = [
            stack.enter_context(httpx.Client(base_url=url, timeout=600)) for _ in range(number)
        ]
        for client in clients:
            client.get("/version")
        ready.set()
        end = until.get()

        def ask(client):
            while time.monotonic() < end:
                number = next(numbers)
                given = bodies[number % len(bodies)].replace("TITLE", f"hostile {phase}.{number}")
                client.post(CHAT, content=given, headers={"content-type": "application/json"})

        threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


class Clients:
    """Ask one server for answers, until a time."""

    def __init__(self, url):
        self._url = url
        self._numbers = itertools.count()

    def good(self, kind, until, took):
        with httpx.Client(base_url=self._url, timeout=600) as client:
            while time.monotonic() < until:
                new = {**PLACES, "title": f"new {next(self._numbers)}"}
                asked = body(COLOURS if kind == "known" else new, next(self._numbers))
                began = time.monotonic()
                response = client.post(CHAT, json=asked)
                took.append(time.monotonic() - began)
                assert response.status_code == 200, response.text

    def phase(self, name, seconds, num_hostile):
        """The times of good answers, by kind, sorted."""
        context = multiprocessing.get_context("spawn")
        ready, end = context.Event(), context.Queue()
        attackers = context.Process(
            target=attack, args=(self._url, num_hostile, next(self._numbers), ready, end)
        )
        attackers.start()
        while not ready.wait(timeout=1):
            assert attackers.is_alive()
        until = time.monotonic() + seconds
        end.put(until)
        took = {kind: [] for kind in KINDS}
        threads = [
            threading.Thread(target=self.good, args=(kind, until, took[kind]))
            for kind in KINDS
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        attackers.join()
        for kind, times in took.items():
            times.sort()
            print(f"{name:>8} {kind:>6} {len(times):5} answers, ms: {summary(times)}", flush=True)
        return took


def quantiles(times):
    return times[len(times) // 2], times[int(len(times) * 0.95)], times[-1]


def summary(times):
    return "median {:.0f}, p95 {:.0f}, most {:.0f}".format(*(1000 * t for t in quantiles(times)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        process, url = spawn(write_model(Path(folder)))
        try:
            clients = Clients(url)
            clients.phase("warm", 3, 0)
            alone, beside = ({kind: [] for kind in KINDS} for _ in range(2))
            for _ in range(given.rounds):
                for name, num_hostile, all_took in (
                    ("alone", 0, alone),
                    ("beside", given.clients, beside),
                ):
                    took = clients.phase(name, given.seconds, num_hostile)
                    for kind in KINDS:
                        all_took[kind] += took[kind]
            for kind in KINDS:
                both = quantiles(sorted(alone[kind])), quantiles(sorted(beside[kind]))
                ratios = [b / a for a, b in zip(*both, strict=True)]
                print(kind, "times as long: median {:.2f}, p95 {:.2f}, most {:.2f}".format(*ratios))
        finally:
            print("exit status", stop(process))


if __name__ == "__main__":
    main()
