"""A record for each line of a file. It may be stopped at any time, and goes on where it was.

python docs/examples/batch.py docs/examples/letters.jsonl records.jsonl
"""

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pydantic import BaseModel, Field
from transformers import AutoModelForCausalLM, AutoTokenizer

import ffwd
import ffwd.model


class Order(BaseModel):
    """The data of a line."""

    customer: str = Field(max_length=40)
    status: Literal["new", "paid", "returned", "refunded", "refused"]
    total: float = Field(ge=0)


@dataclass(frozen=True)
class Row:
    """A line of the source: its number, and its text or what is wrong with it."""

    number: int
    text: str | None
    error: str = ""


def done(output: Path) -> set[int]:
    """Return the finished lines, without a partial last line of an interrupted run."""
    if not output.exists():
        return set()
    data = output.read_bytes()
    whole = data.rfind(b"\n") + 1
    if whole < len(data):
        os.truncate(output, whole)
    return {json.loads(line)["line"] for line in data[:whole].splitlines()}


def waiting(source: Path, known: set[int]) -> Iterator[Row]:
    """Return the lines without a result."""
    with source.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, start=1):
            if number not in known and line.strip():
                yield read(number, line)


def read(number: int, line: str) -> Row:
    """Return a line as a row."""
    try:
        found = json.loads(line)
    except ValueError as error:
        return Row(number, None, f"no JSON: {error}")
    if not isinstance(found, dict) or not isinstance(found.get("text"), str):
        return Row(number, None, 'no object with a string as its "text"')
    return Row(number, found["text"])


class Extractor:
    """Makes a result of each line."""

    def __init__(self) -> None:
        self.model: Any = AutoModelForCausalLM.from_pretrained(ffwd.model.path())
        self.tokenizer = AutoTokenizer.from_pretrained(ffwd.model.path())
        self.schema = ffwd.schema_of(Order, whitespace="compact")

    def orders(self, texts: Sequence[str]) -> list[Order]:
        """Return the orders of some texts, in one batch."""
        keys = ", ".join(Order.model_fields)
        made = ffwd.generate(
            self.model,
            self.tokenizer,
            [[{"role": "user", "content": f"{text}\nKeys: {keys}"}] for text in texts],
            self.schema,
        )
        return [generation.value for generation in made]

    def results(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """Yield `{"line", "record"}` or `{"line", "error"}` for each row."""
        made = iter(self._each([row.text for row in rows if row.text is not None]))
        return [
            {"line": row.number, **({"error": row.error} if row.text is None else next(made))}
            for row in rows
        ]

    def _each(self, texts: list[str]) -> list[dict[str, Any]]:
        if not texts:
            return []
        try:
            return [{"record": order.model_dump()} for order in self.orders(texts)]
        except (ffwd.FfwdError, ValueError) as error:
            if len(texts) == 1:
                return [{"error": f"{type(error).__name__}: {error}"}]
        # One of them is to blame, and the others are not.
        return [made for text in texts for made in self._each([text])]


def write(output: BinaryIO, results: list[dict[str, Any]]) -> None:
    """Add results; they are on the disk when this returns."""
    for result in results:
        output.write(json.dumps(result, ensure_ascii=False).encode() + b"\n")
    output.flush()
    os.fsync(output.fileno())


def main() -> int:
    """Exit with 1 where some lines have no record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help='lines with {"text": …}')
    parser.add_argument("output", type=Path, help="where results go; what is in it is kept")
    parser.add_argument("--batch-size", type=int, default=8)
    asked = parser.parse_args()

    known = done(asked.output)
    extractor = Extractor()
    rows = waiting(asked.source, known)
    records = errors = 0
    with asked.output.open("ab") as output:
        while batch := list(islice(rows, asked.batch_size)):
            results = extractor.results(batch)
            write(output, results)
            failed = sum("error" in result for result in results)
            errors += failed
            records += len(results) - failed
    print(f"{len(known)} lines were done, {records} new records, {errors} new errors")
    return 1 if errors else 0


if __name__ == "__main__":
    raise SystemExit(main())
