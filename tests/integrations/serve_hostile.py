"""How hostile schemas slow others down: `python tests/integrations/serve_hostile.py`.

Serves a tiny model and asks for answers with a schema that is known and with schemas that nobody
has asked for; alone, then beside clients with schemas that are made to be slow, then alone again.
Prints how long answers took, and how many times as long beside hostile clients.
"""

import argparse
import itertools
import tempfile
import threading
import time
from pathlib import Path

import httpx
from serve_load import CHAT, spawn, stop
from serve_models import COLOURS, HELLO, PLACES, write_model

KINDS = ("known", "new")


def hostile(number):
    """One of many schemas, which differs from all that were asked for before."""
    schemas = [
        {"type": "number", "multipleOf": 1e300, "minimum": 1, "maximum": 5e300},
        {"type": "array", "uniqueItems": True, "minItems": 30, "items": {"type": "object"}},
        {"type": "object", "properties": {f"p{i}": {"$ref": "#"} for i in range(400)}},
        {"type": "string", "pattern": "^(?=.*a)(?=.*b)(?=.*c)(?=.*d)(?=.*e)(?=.*f).{1,2000}$"},
        {"type": "array", "minItems": 100_000, "items": {"type": "string", "minLength": 50}},
        {"enum": [f"value {number} {i}" for i in range(3000)]},
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
    return {**schemas[number % len(schemas)], "title": f"hostile {number}"}


class Clients:
    """Ask one server for answers, until a time."""

    def __init__(self, url):
        self._url = url
        self._numbers = itertools.count()

    def _ask(self, client, schema):
        body = {
            "messages": HELLO,
            "max_tokens": 60,
            "seed": next(self._numbers),
            "structured_outputs": {"json": schema},
        }
        began = time.monotonic()
        response = client.post(CHAT, json=body)
        return response, time.monotonic() - began

    def good(self, kind, until, took):
        with httpx.Client(base_url=self._url, timeout=600) as client:
            while time.monotonic() < until:
                new = {**PLACES, "title": f"new {next(self._numbers)}"}
                response, seconds = self._ask(client, COLOURS if kind == "known" else new)
                assert response.status_code == 200, response.text
                took.append(seconds)

    def bad(self, until):
        with httpx.Client(base_url=self._url, timeout=600) as client:
            while time.monotonic() < until:
                self._ask(client, hostile(next(self._numbers)))

    def phase(self, name, seconds, num_hostile):
        """The times of good answers, by kind, sorted."""
        until = time.monotonic() + seconds
        took = {kind: [] for kind in KINDS}
        threads = [
            threading.Thread(target=self.good, args=(kind, until, took[kind]))
            for kind in KINDS
            for _ in range(2)
        ]
        threads += [threading.Thread(target=self.bad, args=(until,)) for _ in range(num_hostile)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
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
    parser.add_argument("--seconds", type=float, default=25)
    parser.add_argument("--clients", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        process, url = spawn(write_model(Path(folder)))
        try:
            clients = Clients(url)
            clients.phase("warm", 3, 0)
            before = clients.phase("alone", given.seconds / 2, 0)
            beside = clients.phase("beside", given.seconds, given.clients)
            after = clients.phase("alone", given.seconds / 2, 0)
            for kind in KINDS:
                alone = quantiles(sorted(before[kind] + after[kind]))
                ratios = [b / a for a, b in zip(alone, quantiles(beside[kind]), strict=True)]
                print(kind, "times as long: median {:.2f}, p95 {:.2f}, most {:.2f}".format(*ratios))
        finally:
            print("exit status", stop(process))


if __name__ == "__main__":
    main()
