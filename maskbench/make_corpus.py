"""Writes the built-in corpus from the shapes: `python -m maskbench.make_corpus [--check]`.

The labels hold by construction: instances are drawn to be valid, and each invalid one is a drawn
instance with a single edit that breaks it. `--check` writes nothing: it says whether the committed
file is what this script writes, and lets jsonschema-rs decide on every label.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from maskbench.data import BUILTIN_CORPUS
from maskbench.shapes import all_shapes

CORPUS_FILE = BUILTIN_CORPUS / "builtin.jsonl"
_SEED = 20240229
_VALID_PER_SHAPE = 4


def make_cases() -> list[dict[str, Any]]:
    """Every case, in the format of `maskbench.data`."""
    return [
        {
            "id": f"builtin_{shape.id}",
            "meta": {"features": list(shape.features)},
            "schema": shape.schema,
            "tests": shape.tests(_SEED, valid=_VALID_PER_SHAPE),
        }
        for shape in all_shapes()
    ]


def write_lines(cases: list[dict[str, Any]]) -> str:
    """The cases as JSON Lines."""
    return "".join(
        json.dumps(case, ensure_ascii=False, separators=(",", ":")) + "\n" for case in cases
    )


def disagreements(cases: list[dict[str, Any]]) -> Iterator[str]:
    """Each label that jsonschema-rs does not confirm, with formats asserted."""
    import jsonschema_rs

    for case in cases:
        validator = jsonschema_rs.validator_for(case["schema"], validate_formats=True)
        for index, test in enumerate(case["tests"]):
            if validator.is_valid(test["data"]) != test["valid"]:
                yield f"{case['id']} tests[{index}]: labelled {test['valid']}: {test['data']!r}"


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; verify the file and its labels.")
@click.option("--out", type=click.Path(path_type=Path), default=CORPUS_FILE, help="Where to write.")
def main(check: bool, out: Path) -> None:
    """Writes or checks the built-in corpus."""
    cases = make_cases()
    text = write_lines(cases)
    if not check:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8", newline="\n")
        return
    problems = list(disagreements(cases))
    if not out.is_file() or out.read_text(encoding="utf-8") != text:
        problems.append(f"{out.name} is not what this script writes")
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        raise SystemExit(1)
    instances = sum(len(case["tests"]) for case in cases)
    click.echo(f"{len(cases)} schemas, {instances} instances, all labels confirmed")


if __name__ == "__main__":
    main()
