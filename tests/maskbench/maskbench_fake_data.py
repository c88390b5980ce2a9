"""Cases for the fake engine, as the command line takes them. Its tokenizer is `bytes`."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def case(name, behave=None, log=None, valid=("ab", "ac"), language=("ab", "ac")):
    """A case whose instances are strings; the language is that of their JSON texts."""
    schema = {"language": [json.dumps(text) for text in language], "behave": behave, "name": name}
    if log is not None:
        schema["log"] = str(log)
    tests = [{"valid": True, "data": text} for text in valid]
    tests.append({"valid": False, "data": "x"})
    return {"id": name, "schema": schema, "tests": tests}


def write_cases(file, cases):
    """A `.jsonl` file."""
    file.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    return file


def command(*arguments):
    """The command line with the fake engines within reach, and its environment."""
    places = [str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    path = os.pathsep.join(filter(None, places))
    environment = os.environ | {"PYTHONPATH": path}
    return [sys.executable, "-m", "maskbench", "run", *map(str, arguments)], environment


def maskbench_run(*arguments):
    """Runs it to the end."""
    line, environment = command(*arguments)
    return subprocess.run(
        line, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )


def verdicts(out):
    """By engine: id, verdict and outcomes of each schema of a results file."""
    document = json.loads(out.read_text(encoding="utf-8"))
    return {
        name: [
            (s["index"], s["id"], s["verdict"], [d["outcome"] for d in s.get("documents", ())],
             s.get("forced"), s.get("reason"))
            for s in engine["schemas"]
        ]
        for name, engine in document["engines"].items()
    }  # fmt: skip
