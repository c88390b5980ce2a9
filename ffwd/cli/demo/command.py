"""`ffwd demo`: the model in the box writes records, in four ways side by side."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ffwd import FfwdError
from ffwd.cli import exits
from ffwd.cli.output import Failure, command, failure, write_json
from ffwd.cli.progress import tracked, waiting

if TYPE_CHECKING:
    from ffwd.cli.demo.ways import Demo, Outcome, Task

FORMAT = "ffwd-demo-1"


@command(no_args_is_help=False)
@click.option(
    "--prompts", default=6, show_default=True, type=click.IntRange(1, 1000), help="How many."
)
@click.option("--seed", default=0, show_default=True, type=int, help="Of the prompts.")
@click.option("--text", help="Ask for a record of this text, instead of prompts that are drawn.")
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --text: the JSON Schema of the record.  [default: name and age]",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="The directory of a model of transformers.  [default: the model in the box]",
)
@click.option("--tokens", is_flag=True, help="List each token of the first answer.")
def demo(
    prompts: int,
    seed: int,
    text: str | None,
    schema: Path | None,
    model: Path | None,
    tokens: bool,
    as_json: bool,
) -> None:
    """Write JSON records of short texts with a small model, in four ways side by side.

    The model is part of ffwd, and nothing is downloaded. It writes without a grammar, under masks,
    and under masks with forced tokens: cut naively, and as its tokenizer cuts them.

    \b
    Examples:
      ffwd demo
      ffwd demo --prompts 1 --seed 3 --tokens
      ffwd demo --text 'Grace is 45 years old.'
      ffwd demo --text 'The red lamp costs 30.' --schema schema.json --json

    Exit status: 0 all answers under masks are valid; 1 one is not, or the schema is refused;
    2 usage; 4 a package is not installed; 5 the model cannot be used.
    """
    if schema is not None and text is None:
        raise click.UsageError("--schema says what a record of --text is: give both")
    box = _load(model)
    from ffwd.cli.demo.ways import Task, tasks

    chosen = tasks(prompts, seed=seed) if text is None else [Task(*_own(text, schema))]
    try:
        written = [box.write(task) for task in tracked(chosen, "writing", total=len(chosen))]
    except FfwdError as error:
        raise failure(error, where="" if schema is None else str(schema)) from error
    outcomes = [each for each, _ in written]
    cuts = [_cuts(box, task) for task in chosen]
    if as_json:
        write_json(_data(chosen, outcomes, cuts))
    else:
        from ffwd.cli.demo.report import Report

        report = Report(box.tokenizer)
        report.introduce(len(chosen), box.model.num_parameters())
        for number, (task, row) in enumerate(zip(chosen, outcomes, strict=True), start=1):
            report.prompt(f"Prompt {number} of {len(chosen)}", task, row)
        report.table(summaries(outcomes))
        report.harm(cuts, mean_likelihoods(cuts))
        report.trace(written[0][1], listed=tokens)
    if not all(each.valid for row in outcomes for each in row[1:]):
        click.get_current_context().exit(exits.BAD)


def _load(model: Path | None) -> Demo:
    try:
        with waiting("loading torch and transformers"):
            # Needed later, and imported here so that all missing packages are reported at once.
            import rich  # noqa: F401
            import torch

            from ffwd.cli.demo.ways import Demo
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        raise Failure(
            f"{package or error} is not installed: pip install 'ffwd[demo]'",
            exit_code=exits.MISSING,
            kind="MissingPackage",
        ) from error
    if model is None:
        # A model this small is faster on one thread, and many times faster on a busy machine.
        torch.set_num_threads(1)
    try:
        return Demo(None if model is None else str(model))
    except FfwdError as error:
        kind = type(error).__name__
        raise Failure(str(error), exit_code=exits.UNUSABLE, kind=kind) from error


def _own(text: str, schema: Path | None) -> tuple[list[dict[str, Any]], Any]:
    """Return the prompt for the user's own text, and the schema."""
    wanted: Any = {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    if schema is not None:
        try:
            wanted = json.loads(schema.read_text(encoding="utf-8"))
        except ValueError as error:
            raise Failure(
                f"{schema}: not JSON: {error}", exit_code=exits.BAD, kind="SchemaError"
            ) from error
    keys = wanted.get("properties", {}) if isinstance(wanted, dict) else {}
    asked = f"{text}\nKeys: {', '.join(keys)}" if keys else f"{text}\nGive it as JSON."
    return [{"role": "user", "content": asked}], wanted


Cut = list[tuple[int, float]]
"""Tokens of an answer, each with its log-likelihood in nats."""


def _cuts(box: Demo, task: Task) -> dict[str, Cut] | None:
    """Return the right record of a task as both ways of forcing tokenize it.

    Nothing for a prompt that names no keys, because there the keys are what the model finds
    unlikely.
    """
    if task.right is None or not task.named:
        return None
    prompt = box.start(task).prompt_ids
    found = {}
    for name in ("naive", "canonical"):
        tokens = box.cut(task, task.right, naive=name == "naive")
        found[name] = list(zip(tokens, box.likelihoods(prompt, tokens), strict=True))
    return found


def summaries(outcomes: list[list[Outcome]]) -> list[dict[str, Any]]:
    """Return the counts and sums of each way over all prompts, and its mean likelihood."""
    return [_summary(list(column)) for column in zip(*outcomes, strict=True)]


def _summary(of: list[Outcome]) -> dict[str, Any]:
    known = [each.right for each in of if each.right is not None]
    likelihood = sum(each.likelihood for each in of)
    # The end token counts for one byte.
    size = sum(len(each.text.encode()) + 1 for each in of)
    return {
        "way": of[0].way,
        "answers": len(of),
        "valid": sum(each.valid for each in of),
        "right": sum(known) if known else None,
        "tokens": sum(each.tokens for each in of),
        "forced": sum(each.forced for each in of),
        "passes": sum(each.passes for each in of),
        "seconds": sum(each.seconds for each in of),
        "likelihood": likelihood / len(of),
        "perplexity": math.exp(-likelihood / size),
    }


def mean_likelihoods(cuts: list[dict[str, Cut] | None]) -> dict[str, float] | None:
    """Return the mean log-likelihood of the right records in nats, tokenized in both ways."""
    known = [cut for cut in cuts if cut is not None]
    if not known:
        return None
    return {
        name: sum(each for cut in known for _, each in cut[name]) / len(known)
        for name in ("naive", "canonical")
    }


def _data(
    tasks: list[Task], outcomes: list[list[Outcome]], cuts: list[dict[str, Cut] | None]
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "ways": summaries(outcomes),
        "likelihood_of_the_right_record": mean_likelihoods(cuts),
        "prompts": [
            {
                "messages": task.messages,
                "schema": task.schema,
                "right": task.right,
                "named": task.named,
                "right_as_tokens": cut,
                "outcomes": [asdict(each) for each in row],
            }
            for task, row, cut in zip(tasks, outcomes, cuts, strict=True)
        ],
    }
