"""Fuzzes all targets in turn, for as long as is asked, and keeps what came of it as lines of JSON.

    python tests/fuzzing/campaign.py --out DIR --minutes 240

Those in Rust must have been built (`make fuzz` does both); those in Python need Atheris, the extra
`fuzz`. Inputs that fail are kept in DIR/artifacts, found corpora in DIR/corpora.
"""

import argparse
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CRATE = ROOT / "ffwd/native/fuzz"
HERE = Path(__file__).resolve().parent

RUST = tuple(path.stem for path in sorted((CRATE / "fuzz_targets").glob("*.rs")))
PYTHON = (
    "structural_tag",
    "response_format",
    "tools",
    "gguf",
    "ranks",
    "tekken",
    "sentencepiece",
    "tokenizer_json",
    "any_tokenizer",
    "chat_template",
)
DICTIONARIES = {"schema": "schema", "lark": "lark", "gbnf": "gbnf", "ebnf": "ebnf"} | {
    "regex": "regex",
    "pretokenizer": "regex",
    "structural_tag": "request",
    "response_format": "request",
    "tools": "request",
    "chat_template": "jinja",
    "gguf": "gguf",
    "tekken": "tokenizer",
    "tokenizer_json": "tokenizer",
    "model": "tokenizer",
}
STATUS = re.compile(rb"#(\d+)\D.*?cov: (\d+) ft: (\d+) corp: (\d+)")
KINDS = ("crash", "timeout", "oom", "slow-unit")
"""How libFuzzer calls the inputs that it keeps."""


@dataclass(frozen=True)
class Run:
    """How one target is run."""

    target: str
    command: list[str]
    environment: dict[str, str]


def options(target: str, out: Path, seconds: int) -> list[str]:
    """What libFuzzer is told."""
    corpus, artifacts = out / "corpora" / target, out / "artifacts" / target
    corpus.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(parents=True, exist_ok=True)
    told = [
        f"-max_total_time={seconds}",
        "-timeout=10",
        "-rss_limit_mb=2560",
        "-max_len=4096",
        "-print_final_stats=1",
        f"-artifact_prefix={artifacts}/",
    ]
    if target in DICTIONARIES:
        told.append(f"-dict={CRATE / 'dictionaries' / DICTIONARIES[target]}.dict")
    seeds = CRATE / "corpus" / target
    return [*told, str(corpus), *([str(seeds)] if seeds.is_dir() else [])]


def run_of(target: str, out: Path, binaries: Path, seconds: int) -> Run | None:
    """The command of a target; None where a Rust target has not been built."""
    told = options(target, out, seconds)
    if target in PYTHON:
        paths = os.pathsep.join([str(ROOT), str(HERE), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, str(HERE / "fuzzatheris.py"), target, *told]
        return Run(target, command, {"PYTHONPATH": paths})
    binary = binaries / target
    if not binary.is_file():
        return None
    # In processes of its own, so that it goes on after a failure.
    going_on = ["-fork=1", "-ignore_crashes=1", "-ignore_timeouts=1", "-ignore_ooms=1"]
    return Run(target, [str(binary), *going_on, *told], {})


def kept(artifacts: Path) -> dict[str, int]:
    """How many inputs of each kind are kept."""
    return {kind: len(list(artifacts.glob(f"{kind}-*"))) for kind in KINDS}


def measured(run: Run, seconds: int, niceness: int, log: Path, artifacts: Path) -> dict[str, Any]:
    """Runs a target, and reads from what it printed how often it ran and how much it covers."""
    begin = time.time()
    before = kept(artifacts)
    with log.open("wb") as output:
        process = subprocess.Popen(
            run.command,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **run.environment},
            preexec_fn=lambda: os.nice(niceness),
            start_new_session=True,
        )
        # It ends by itself; a minute later it is ended.
        timer = threading.Timer(seconds + 60, lambda: os.killpg(process.pid, signal.SIGKILL))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
    printed = log.read_bytes()
    found = STATUS.findall(printed)
    runs = re.findall(rb"stat::number_of_executed_units:\s+(\d+)", printed)
    after = kept(artifacts)
    executions = max([int(line[0]) for line in found] + [int(count) for count in runs], default=0)
    return {
        "target": run.target,
        "begin": time.strftime("%H:%M:%S", time.gmtime(begin)),
        "wall_s": round(time.time() - begin, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "executions": executions,
        "coverage": max((int(line[1]) for line in found), default=0),
        "features": max((int(line[2]) for line in found), default=0),
        "corpus": int(found[-1][3]) if found else 0,
        "found": {kind: after[kind] - before[kind] for kind in KINDS},
        "exit": os.waitstatus_to_exitcode(status),
    }


def work(
    targets: "itertools.cycle[str]", lock: threading.Lock, given: argparse.Namespace, end: float
) -> None:
    """Takes one target after the other until the time is over."""
    while (left := end - time.time()) > 5:
        with lock:
            target = next(targets)
        seconds = int(min(given.slot, left))
        while seconds > 3:
            run = run_of(target, given.out, given.binaries, seconds)
            if run is None:
                time.sleep(0.2)
                break
            with lock:
                number = len(list((given.out / "logs").iterdir()))
                log = given.out / "logs" / f"{number:05}-{target}.log"
                log.touch()
            result = measured(run, seconds, given.nice, log, given.out / "artifacts" / target)
            with lock, (given.out / "results.jsonl").open("a") as results:
                results.write(json.dumps(result) + "\n")
            # Atheris ends with a finding: it goes on with what is left of the time.
            seconds -= int(result["wall_s"]) + 1
            if result["wall_s"] < 5:
                break


def summary(results: Path) -> str:
    """What all turns came to, target by target, as a table in Markdown."""
    turns = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
    lines = ["| target | wall s | CPU s | executions | edges | kept inputs |"]
    lines.append("|---|---|---|---|---|---|")
    names = dict.fromkeys(turn["target"] for turn in turns)
    for name in [*names, "all"]:
        own = [turn for turn in turns if name in ("all", turn["target"])]
        wall, cpu = (round(sum(turn[key] for turn in own)) for key in ("wall_s", "cpu_s"))
        runs = sum(turn["executions"] for turn in own)
        edges = "" if name == "all" else f"{max(turn['coverage'] for turn in own):,}"
        kept = sum(sum(turn.get("found", {}).values()) for turn in own)
        lines.append(f"| `{name}` | {wall:,} | {cpu:,} | {runs:,} | {edges} | {kept} |")
    return "\n".join(lines)


def main() -> None:
    """Reads the command line, and runs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="where results are kept")
    parser.add_argument("--summary", action="store_true", help="only say what is in it")
    parser.add_argument("--minutes", type=float, default=60, help="in all")
    parser.add_argument("--slot", type=int, default=300, help="seconds for a target at a time")
    parser.add_argument("--jobs", type=int, default=2, help="how many at once")
    parser.add_argument("--nice", type=int, default=19, help="how much others come first")
    parser.add_argument(
        "--binaries",
        type=Path,
        default=CRATE / "target/x86_64-unknown-linux-gnu/release",
        help="where cargo-fuzz has put the targets",
    )
    parser.add_argument("targets", nargs="*", default=[], help="by default all")
    given = parser.parse_args()
    given.out = given.out.resolve()
    if given.summary:
        print(summary(given.out / "results.jsonl"))
        return
    (given.out / "logs").mkdir(parents=True, exist_ok=True)
    chosen = given.targets or [*RUST, *PYTHON]
    if unknown := set(chosen) - {*RUST, *PYTHON}:
        parser.error(f"there are no targets {sorted(unknown)}: there are {[*RUST, *PYTHON]}")
    targets, lock = itertools.cycle(chosen), threading.Lock()
    end = time.time() + 60 * given.minutes
    threads = [
        threading.Thread(target=work, args=(targets, lock, given, end)) for _ in range(given.jobs)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
