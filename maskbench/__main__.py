"""The command line: `python -m maskbench COMMAND`, some of them in groups."""

from __future__ import annotations

from maskbench.commands import LazyGroup, RecordingGroup

_SPEED = {
    "hard": "maskbench.speed.hard.command:hard_command",
    "growth": "maskbench.speed.growth.command:growth_command",
    "operations": "maskbench.speed.operations.command:operations_command",
    "batches": "maskbench.speed.batches.command:batches_command",
    "logits": "maskbench.speed.logits.command:logits_command",
    "processors": "maskbench.speed.processors.command:processors_command",
    "grammars": "maskbench.speed.grammars.command:grammars_speed_command",
    "tokenizers": "maskbench.speed.tokenizers.command:tokenizers_command",
}
_CONFORMANCE = {
    "keywords": "maskbench.conformance.gates.command:keywords_command",
    "fuzz": "maskbench.conformance.gates.command:fuzz_command",
    "finite": "maskbench.conformance.gates.command:finite_command",
    "budgets": "maskbench.conformance.gates.command:budgets_command",
    "walk": "maskbench.conformance.gates.walk_command:walk_command",
    "grammars": "maskbench.conformance.grammars.command:grammars_command",
    "differential": "maskbench.conformance.differential.command:differential_command",
    "continuations": "maskbench.conformance.canonical.command:continuations_command",
    "canonical-walks": "maskbench.conformance.canonical.command:canonical_walks_command",
    "hostile": "maskbench.conformance.hostile.command:hostile_command",
    "soak": "maskbench.conformance.soak.command:soak_command",
}
_TOOLS = {
    "fetch": "maskbench.tools.fetch:fetch_command",
    "crates": "maskbench.tools.crates:crates_command",
    "instructions": "maskbench.tools.instructions:instructions_command",
    "train-model": "maskbench.tools.train_model.command:train_model_command",
    "evaluate-model": "maskbench.tools.train_model.command:evaluate_model_command",
    "evaluate-ways": "maskbench.tools.train_model.command:evaluate_ways_command",
}

main = RecordingGroup(
    "main",
    help="Measure engines for constrained decoding on JSON schemas.",
    places={
        "run": "maskbench.runs.command:run_command",
        "report": "maskbench.report.command:report_command",
        "compare": "maskbench.regression:compare_command",
        "baseline": "maskbench.regression:baseline_command",
        "canonicality": "maskbench.canonicality.command:canonicality_command",
        "serving": "maskbench.serving.command:serving_command",
        "gpu": "maskbench.speed.gpu.command:gpu_command",
    },
)
for _name, _about, _places in (
    ("speed", "Measures one question each: slow schemas, growth, logits.", _SPEED),
    ("conformance", "Judges masks, verdicts, limits and memory rather than speed.", _CONFORMANCE),
    ("tools", "Fetches data, counts instructions, trains the model in the box.", _TOOLS),
):
    main.add_command(LazyGroup(_name, help=_about, places=_places))


if __name__ == "__main__":
    main(prog_name="python -m maskbench")
