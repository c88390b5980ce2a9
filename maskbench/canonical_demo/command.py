"""`python -m maskbench canonical-demo`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.table import Table

from maskbench import options, results

if TYPE_CHECKING:
    from maskbench.canonical_demo.decoding import Way
    from maskbench.canonical_demo.experiment import Outcome, Result, Trained

FORMAT = "maskbench-canonical-demo-1"

ABOUT = """\
A small transformer learns to write a sentence about an order as a JSON record; the tokenizer is \
trained on other texts before. Each way of forcing writes the same records, which the model has \
not seen, under masks of the same schema. Right: the share of records whose first key, state or \
whole value is the right one, written greedily; sampled: the whole value, sampled with \
temperature 1. Choices: the log-likelihood of the right record, of the tokens that the model had \
to choose, among those that the mask allows. Tokens: that of all its tokens as this way writes \
them, without masks. Both are means in nats a record. Chosen: how many tokens of a record the \
model was asked for.
A model that has only ever seen the tokenizer's own tokens is the worst case. The second one has \
seen some records cut at random as well; large models have seen such text, too, and lose less."""

_HEADINGS = (
    "", "orderId right", "orderName right", "state right", "record right", "sampled right",
    "unfinished", "choices", "tokens", "chosen", "of",
)  # fmt: skip


@click.command("canonical-demo")
@click.option("--steps", type=click.IntRange(min=1), default=1000, show_default=True)
@click.option("--records", type=click.IntRange(min=1), default=200, show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@options.out("Write all figures to this JSON file, and the tables as Markdown next to it.")
def demo_command(steps: int, records: int, seed: int, out: Path | None) -> None:
    """Trains a small model and compares what it writes under each way of forcing."""
    try:
        from maskbench.canonical_demo.experiment import Settings, run
    except ImportError as error:
        raise click.ClickException(f"{error}: pip install '.[bench]'") from error
    settings = replace(Settings(), steps=steps, test_records=records, seed=seed)
    outcome = run(ways(), settings, lambda line: click.echo(line, err=True))
    console = options.console(140)
    console.print(ABOUT, markup=False, soft_wrap=True)
    console.print(_facts(outcome), markup=False, soft_wrap=True)
    for heading, rows in _tables(outcome):
        console.print(f"\n{heading}", style="bold")
        table = Table()
        for name in _HEADINGS:
            table.add_column(name, justify="right" if name else "left")
        for row in rows:
            table.add_row(*_row(row))
        console.print(table)
    if out is not None:
        about = {"format": FORMAT, "machine": results.machine(), "settings": asdict(settings)}
        document = about | {"about": ABOUT} | asdict(outcome)
        out.write_text(json.dumps(document, indent=1, ensure_ascii=False), encoding="utf-8")
        markdown = out.with_suffix(".md")
        markdown.write_text(_markdown(outcome), encoding="utf-8")
        console.print(f"Written: {out} and {markdown}", soft_wrap=True)


def ways() -> list[Way]:
    """The ways that are compared."""
    from maskbench.canonical_demo.decoding import Way
    from maskbench.canonicality.variants import variant

    return [
        Way("masks only", "nothing is forced", None),
        Way("naive forcing", "all forced bytes as tokens", dict(variant("k=0").options)),
        Way("canonical forcing", "by the exact method", dict(variant("exact").options)),
    ]


def _tables(outcome: Outcome) -> Iterator[tuple[str, list[Result]]]:
    for model in outcome.models:
        for whitespace, rows in model.results.items():
            yield f"{_training(model)}; schema with {whitespace} whitespace", rows


def _training(model: Trained) -> str:
    if not model.cut_share:
        return "trained on the tokenizer's own tokens"
    return f"trained with {model.cut_share:.0%} of the records cut at random"


def _row(result: Result) -> tuple[str, ...]:
    return (
        result.way,
        *(f"{result.key_right.get(key, 0.0):.1%}" for key in ("orderId", "orderName")),
        f"{result.state_right:.1%}",
        f"{result.record_right:.1%}",
        f"{result.sampled_right:.1%}",
        f"{result.unfinished}",
        f"{result.choices:.3f}",
        f"{result.tokens:.3f}",
        f"{result.chosen_tokens:.1f}",
        f"{result.all_tokens:.1f}",
    )


def _facts(outcome: Outcome) -> str:
    written = "; ".join(f"{word} = {' '.join(p)}" for word, p in outcome.encodings.items())
    trained = "; ".join(
        f"{_training(model)}: {model.seconds:.0f} s, loss {model.loss:.4f} nats a token"
        for model in outcome.models
    )
    return (
        f"{outcome.parameters:,} parameters, {outcome.vocabulary} tokens. "
        f"The tokenizer's own: {written}. {trained}."
    )


def _markdown(outcome: Outcome) -> str:
    lines = ["# Canonical forcing, a demonstration", "", ABOUT, "", _facts(outcome)]
    for heading, rows in _tables(outcome):
        lines += ["", f"**{heading}**", "", "| " + " | ".join(_HEADINGS) + " |"]
        lines += ["|" + "|".join(["---", *["---:"] * (len(_HEADINGS) - 1)]) + "|"]
        lines += ["| " + " | ".join(_row(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"
