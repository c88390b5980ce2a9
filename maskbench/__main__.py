"""The command line: `python -m maskbench COMMAND`, some of them in groups."""

from __future__ import annotations

import click

from maskbench.canonicality.command import canonicality_command
from maskbench.commands import RecordingGroup
from maskbench.conformance.canonical.command import canonical_walks_command, continuations_command
from maskbench.conformance.differential.command import differential_command
from maskbench.conformance.gates.command import (
    budgets_command,
    finite_command,
    fuzz_command,
    keywords_command,
)
from maskbench.conformance.gates.walk_command import walk_command
from maskbench.conformance.grammars.command import grammars_command
from maskbench.conformance.hostile.command import hostile_command
from maskbench.conformance.soak.command import soak_command
from maskbench.regression import baseline_command, compare_command
from maskbench.report.command import report_command
from maskbench.runs.command import run_command
from maskbench.serving.command import serving_command
from maskbench.speed.batches.command import batches_command
from maskbench.speed.grammars.command import grammars_speed_command
from maskbench.speed.growth.command import growth_command
from maskbench.speed.hard.command import hard_command
from maskbench.speed.logits.command import logits_command
from maskbench.speed.operations.command import operations_command
from maskbench.speed.processors.command import processors_command
from maskbench.speed.tokenizers.command import tokenizers_command
from maskbench.tools.crates import crates_command
from maskbench.tools.fetch import fetch_command
from maskbench.tools.instructions import instructions_command
from maskbench.tools.train_model.command import evaluate_model_command, train_model_command


@click.group(cls=RecordingGroup)
def main() -> None:
    """Measure engines for constrained decoding on JSON schemas."""


def _group(name: str, about: str, *commands: click.Command) -> click.Group:
    return click.Group(name, {command.name or "": command for command in commands}, help=about)


for _command in (
    run_command,
    report_command,
    compare_command,
    baseline_command,
    canonicality_command,
    serving_command,
    _group(
        "speed",
        "Measures one question each: slow schemas, growth, other operations than masks.",
        hard_command,
        growth_command,
        operations_command,
        batches_command,
        logits_command,
        processors_command,
        grammars_speed_command,
        tokenizers_command,
    ),
    _group(
        "conformance",
        "Judges masks, verdicts, limits and memory rather than speed.",
        keywords_command,
        fuzz_command,
        finite_command,
        budgets_command,
        walk_command,
        grammars_command,
        differential_command,
        continuations_command,
        canonical_walks_command,
        hostile_command,
        soak_command,
    ),
    _group(
        "tools",
        "Fetches data, counts instructions, trains the model in the box.",
        fetch_command,
        crates_command,
        instructions_command,
        train_model_command,
        evaluate_model_command,
    ),
):
    main.add_command(_command)


if __name__ == "__main__":
    main(prog_name="python -m maskbench")
