"""`ffwd demo`: the model in the box writes records, in four ways side by side."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ffwd import FfwdError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.table import Table

    from ffwd.adapters.demo import Demo, Outcome, Task, TokenTrace

FORMAT = "ffwd-demo-1"
_NEEDED = "ffwd demo needs more than is installed ({}): pip install 'ffwd[demo]'"

_ABOUT = """\
Unconstrained: the model alone. Masks: only tokens with which the text can still follow the \
schema. Forced tokens take no forward pass of their own: the schema decides them. Naive forcing \
tokenizes forced text by itself; canonical forcing gives the tokens that the tokenizer has for the \
whole text, which are the only ones that the model was trained on.
Likelihood: how probable the model finds the tokens of the answer after the prompt, in nats, by \
one plain forward pass without masks; and its perplexity per byte of the answer (1 is certain)."""


@click.command(context_settings={"show_default": True})
@click.option("--prompts", default=5, type=click.IntRange(1, 1000), help="How many prompts.")
@click.option("--seed", default=0, type=int, help="Of the prompts.")
@click.option("--text", help="Ask for a record of this text, instead of prompts that are drawn.")
@click.option(
    "--schema",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --text: the JSON Schema of the record.  [default: name and age]",
)
@click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A model of transformers with a chat template.  [default: the one in the box]",
)
@click.option("--tokens", is_flag=True, help="Show each token of the first answer.")
@click.option("--json", "as_json", is_flag=True, help="Write all figures as JSON.")
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

    The exit status is 0 if all answers that were written under masks are valid.
    """
    if schema is not None and text is None:
        raise click.UsageError("--schema says what a record of --text is: give both")
    try:
        import torch
        from rich.console import Console

        from ffwd.adapters.demo import Demo, Task, tasks
    except ImportError as error:
        raise click.ClickException(_NEEDED.format(error)) from None
    # A model this small is faster on one thread, many times so on a busy machine.
    torch.set_num_threads(1)
    chosen = tasks(prompts, seed=seed)
    if text is not None:
        chosen = [Task(*_own(text, schema), None)]
    try:
        box = Demo(None if model is None else str(model))
        written = [box.write(task) for task in chosen]
    except FfwdError as error:
        raise click.ClickException(f"{type(error).__name__}: {error}") from None
    except OSError as error:
        raise click.ClickException(
            f"{model}: no model of transformers could be read there: {error}"
        ) from None
    outcomes = [each for each, _ in written]
    harm = _harm(box, chosen)
    if as_json:
        click.echo(json.dumps(_figures(chosen, outcomes, harm), indent=1))
    else:
        console = Console(highlight=False)
        _show(console, box, chosen, outcomes, harm)
        _show_tokens(console, box, chosen[0], written[0][1], whole=tokens)
    if not all(each.valid for row in outcomes for each in row[1:]):
        raise SystemExit(1)


def _own(text: str, schema: Path | None) -> tuple[list[dict[str, Any]], Any]:
    """The prompt for a text of the user's own, and the schema."""
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
            raise click.ClickException(f"{schema}: not JSON: {error}") from None
    keys = wanted.get("properties", {}) if isinstance(wanted, dict) else {}
    asked = f"{text}\nKeys: {', '.join(keys)}" if keys else f"{text}\nGive it as JSON."
    return [{"role": "user", "content": asked}], wanted


def _harm(box: "Demo", tasks: "list[Task]") -> dict[str, float] | None:
    """The mean log-likelihood of the right records in nats, cut in both ways."""
    known = [(task, task.right) for task in tasks if task.right is not None]
    if not known:
        return None
    sums = {"naive": 0.0, "canonical": 0.0}
    for task, right in known:
        prompt = box.prompt(task)["input_ids"][0].tolist()
        for name in sums:
            tokens = box.cut(task, right, naive=name == "naive")
            sums[name] += box.likelihood(prompt, tokens)
    return {name: total / len(known) for name, total in sums.items()}


def _by_way(outcomes: "list[list[Outcome]]") -> "list[list[Outcome]]":
    return [list(column) for column in zip(*outcomes, strict=True)]


def _summary(of: "list[Outcome]") -> dict[str, Any]:
    """One way over all prompts: counts, sums, and means in nats."""
    known = [each.right for each in of if each.right is not None]
    return {
        "way": of[0].way,
        "answers": len(of),
        "valid": sum(each.valid for each in of),
        "right": sum(known) if known else None,
        "tokens": sum(each.tokens for each in of),
        "forced": sum(each.forced for each in of),
        "passes": sum(each.passes for each in of),
        "seconds": sum(each.seconds for each in of),
        "likelihood": sum(each.likelihood for each in of) / len(of),
        "perplexity": sum(each.perplexity for each in of) / len(of),
    }


def _figures(
    tasks: "list[Task]", outcomes: "list[list[Outcome]]", harm: dict[str, float] | None
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "ways": [_summary(of) for of in _by_way(outcomes)],
        "likelihood_of_the_right_record": harm,
        "prompts": [
            {
                "messages": task.messages,
                "schema": task.schema,
                "right": task.right,
                "outcomes": [asdict(each) | {"perplexity": each.perplexity} for each in row],
            }
            for task, row in zip(tasks, outcomes, strict=True)
        ],
    }


def _show(
    console: "Console",
    box: "Demo",
    tasks: "list[Task]",
    outcomes: "list[list[Outcome]]",
    harm: dict[str, float] | None,
) -> None:
    from rich.text import Text

    console.print(
        f"A Llama of {box.model.num_parameters():,} parameters, and a tokenizer of"
        f" {len(box.tokenizer):,} tokens.",
        soft_wrap=True,
    )
    for number, (task, row) in enumerate(zip(tasks, outcomes, strict=True), start=1):
        console.print(f"\nPrompt {number} of {len(tasks)}", style="bold")
        console.print(Text(f"  {task.messages[-1]['content']}"), soft_wrap=True)
        told: dict[str, list[str]] = {}
        for each in row:
            told.setdefault(each.text, []).append(f"{each.way} ({_verdict(each)})")
        for text, ways in told.items():
            console.print("; ".join(ways), style="dim", soft_wrap=True)
            console.print(Text(f"  {text}"), soft_wrap=True)
    console.print()
    console.print(_table(outcomes))
    if harm is not None:
        console.print(
            "The right records, as the model finds them: as canonical forcing cuts them"
            f" {harm['canonical']:.2f} nats, as naive forcing does {harm['naive']:.2f} nats.",
            soft_wrap=True,
        )
    console.print(f"\n{_ABOUT}", soft_wrap=True)


def _table(outcomes: "list[list[Outcome]]") -> "Table":
    """A column for each way, over all prompts."""
    from rich.table import Table

    summaries = [_summary(of) for of in _by_way(outcomes)]
    count = len(outcomes)
    table = Table(title=f"All {count} prompts" if count > 1 else None, title_justify="left")
    table.add_column("")
    for summary in summaries:
        table.add_column(summary["way"], justify="right")
    rows: dict[str, Callable[[dict[str, Any]], str]] = {
        "valid": lambda of: f"{of['valid']} of {count}",
        "right": lambda of: "-" if of["right"] is None else f"{of['right']} of {count}",
        "tokens": lambda of: str(of["tokens"]),
        "forced tokens": lambda of: str(of["forced"]),
        "forward passes": lambda of: str(of["passes"]),
        "time": lambda of: f"{1e3 * of['seconds']:.0f} ms",
        "likelihood": lambda of: f"{of['likelihood']:.2f} nats",
        "perplexity per byte": lambda of: f"{of['perplexity']:.4f}",
    }
    for name, show in rows.items():
        table.add_row(name, *map(show, summaries))
    return table


def _verdict(outcome: "Outcome") -> str:
    if not outcome.valid:
        return "not valid"
    if outcome.right is None:
        return "valid"
    return "right" if outcome.right else "valid, not right"


def _show_tokens(
    console: "Console", box: "Demo", task: "Task", tokens: "list[TokenTrace]", *, whole: bool
) -> None:
    """The tokens of an answer: those that the model chose, and those that were forced."""
    from rich.table import Table
    from rich.text import Text

    if whole:
        table = Table(title="The first answer, with canonical forcing", title_justify="left")
        table.add_column("token")
        table.add_column("allowed by the mask", justify="right")
        table.add_column("")
        for entry in tokens:
            allowed = "" if entry.allowed is None else f"{entry.allowed:,}"
            kind = "forced" if entry.forced else "chosen by the model"
            table.add_row(Text(repr(box.tokenizer.decode([entry.token]))), allowed, kind)
        console.print(table)
        return
    line = Text("\nThe first answer, [chosen by the model] and forced: ")
    for entry in tokens:
        text = box.tokenizer.decode([entry.token])
        line.append(text if entry.forced else f"[{text}]", "green" if entry.forced else "bold")
    console.print(line, soft_wrap=True)
    console.print("--tokens shows how many tokens each mask left to choose from.", style="dim")
