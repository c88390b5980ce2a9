"""The command line: `python -m maskbench COMMAND`."""

from __future__ import annotations

from pathlib import Path

import click

from maskbench import options, results, tables
from maskbench.batches.command import batches_command
from maskbench.canonical_demo.command import demo_command
from maskbench.canonicality.command import canonicality_command
from maskbench.canonicality.gates import canonical_walks_command, continuations_command
from maskbench.comparison import comparisons
from maskbench.encoding.command import tokenizers_command
from maskbench.gates.command import fuzz_command, keywords_command, walks_command
from maskbench.growth.command import growth_command
from maskbench.hard.command import hard_command
from maskbench.instructions import instructions_command
from maskbench.logits.command import logits_command
from maskbench.operations.command import operations_command
from maskbench.runs.command import run_command


@click.group()
def main() -> None:
    """Measures engines for constrained decoding on JSON schemas."""


main.add_command(batches_command)
main.add_command(demo_command)
main.add_command(canonical_walks_command)
main.add_command(canonicality_command)
main.add_command(continuations_command)
main.add_command(fuzz_command)
main.add_command(growth_command)
main.add_command(hard_command)
main.add_command(instructions_command)
main.add_command(keywords_command)
main.add_command(logits_command)
main.add_command(operations_command)
main.add_command(run_command)
main.add_command(tokenizers_command)
main.add_command(walks_command)


@main.command("compare")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--subject", default="ffwd", show_default=True, help="The engine beside its peers.")
@options.markdown
def compare_command(files: tuple[Path, ...], subject: str, markdown: bool) -> None:
    """Prints the tables of pairs of engines for results that `run --out` has written."""
    console = options.console()
    for file in files:
        try:
            document, logs = results.read(file)
        except results.ResultsError as error:
            raise click.ClickException(str(error)) from error
        if subject not in logs:
            raise click.ClickException(f"{file}: no engine {subject!r}; it has {', '.join(logs)}")
        settings = document["settings"]
        store = "emptied before each schema" if settings["cold_store"] else "kept"
        title = f"{document['tokenizer']['name']}, store {store}, {file.name}"
        pairs = comparisons(logs, subject)
        if markdown:
            click.echo(f"### {title}\n\n{tables.markdown(pairs)}")
        else:
            console.print(title, style="bold underline")
            tables.show_comparisons(console, pairs)


if __name__ == "__main__":
    main(prog_name="python -m maskbench")
