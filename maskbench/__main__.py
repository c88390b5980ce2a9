"""The command line: `python -m maskbench COMMAND`."""

from __future__ import annotations

import click

from maskbench.canonicality.command import canonicality_command
from maskbench.conformance.canonical.command import canonical_walks_command, continuations_command
from maskbench.conformance.differential.command import differential_command
from maskbench.conformance.gates.budgets_command import budgets_command
from maskbench.conformance.gates.command import finite_command, fuzz_command, keywords_command
from maskbench.conformance.gates.walk_command import walk_command
from maskbench.conformance.grammars.command import grammars_command
from maskbench.conformance.hostile.command import hostile_command
from maskbench.conformance.soak.command import soak_command
from maskbench.regression import baseline_command, compare_command
from maskbench.report.command import RecordingGroup, report_command
from maskbench.runs.command import run_command
from maskbench.serving.command import serving_command
from maskbench.speed.batches.command import batches_command
from maskbench.speed.grammars.command import grammars_speed_command
from maskbench.speed.growth.command import growth_command
from maskbench.speed.hard.command import hard_command
from maskbench.speed.logits.command import logits_command
from maskbench.speed.operations.command import operations_command
from maskbench.speed.tokenizers.command import tokenizers_command
from maskbench.tools.fetch import fetch_command
from maskbench.tools.instructions import instructions_command
from maskbench.tools.train_model.command import evaluate_model_command, train_model_command


@click.group(cls=RecordingGroup)
def main() -> None:
    """Measures engines for constrained decoding on JSON schemas."""


main.add_command(baseline_command)
main.add_command(batches_command)
main.add_command(budgets_command)
main.add_command(compare_command)
main.add_command(canonical_walks_command)
main.add_command(canonicality_command)
main.add_command(continuations_command)
main.add_command(differential_command)
main.add_command(evaluate_model_command)
main.add_command(fetch_command)
main.add_command(finite_command)
main.add_command(fuzz_command)
main.add_command(grammars_command)
main.add_command(grammars_speed_command)
main.add_command(growth_command)
main.add_command(hard_command)
main.add_command(hostile_command)
main.add_command(instructions_command)
main.add_command(keywords_command)
main.add_command(logits_command)
main.add_command(operations_command)
main.add_command(report_command)
main.add_command(run_command)
main.add_command(serving_command)
main.add_command(soak_command)
main.add_command(tokenizers_command)
main.add_command(train_model_command)
main.add_command(walk_command)


if __name__ == "__main__":
    main(prog_name="python -m maskbench")
