"""Fuzzes `ffwd serve` by its own description: `python tests/fuzzing/server.py --minutes 30`.

Serves a tiny random model, and has schemathesis ask it what `/openapi.json` describes, valid and
not, one request after another. A finding is an answer of the 500s, one that the description does
not have, or one that takes what the description refuses; then the exit status is not 0.
Needs the extra `fuzz`. What was asked and answered is kept in OUT as lines of JSON.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integrations"))

from serve_load import spawn, stop
from serve_models import write_model

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
)


def fuzz(url: str, seconds: float, out: Path, *more: str) -> int:
    """Run schemathesis, and return its exit status."""
    program = Path(sys.executable).with_name("schemathesis")
    return subprocess.run(
        [
            *(str(program), "--no-color", "fuzz", f"{url}/openapi.json"),
            *("--max-time", f"{seconds:g}", "--continue-on-failure", "--request-timeout", "120"),
            *("--checks", ",".join(CHECKS), "--report", "ndjson", "--report-dir", str(out)),
            *more,
        ],
        check=False,
    ).returncode


def answers(value: Any) -> Iterator[int]:
    """The statuses of all answers in a record."""
    if isinstance(value, dict):
        if isinstance(value.get("status_code"), int):
            yield value["status_code"]
        for member in value.values():
            yield from answers(member)
    elif isinstance(value, list):
        for item in value:
            yield from answers(item)


def main() -> None:
    """Reads the command line, and runs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="where the record is kept")
    parser.add_argument("--minutes", type=float, default=30)
    given, more = parser.parse_known_args()
    out = given.out.resolve()
    before = set(out.glob("*.ndjson"))
    with tempfile.TemporaryDirectory() as folder:
        process, url = spawn(write_model(Path(folder)))
        try:
            status = fuzz(url, 60 * given.minutes, out, *more)
            died = process.poll() is not None
        finally:
            stop(process)
    counts: Counter[int] = Counter()
    for record in set(out.glob("*.ndjson")) - before:
        with record.open(encoding="utf-8") as lines:
            for line in lines:
                counts.update(answers(json.loads(line)))
    print("answers by status:", ", ".join(f"{k}: {n}" for k, n in sorted(counts.items())))
    sys.exit("the server ended by itself" if died else status)


if __name__ == "__main__":
    main()
