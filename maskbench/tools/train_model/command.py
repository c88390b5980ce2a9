"""`python -m maskbench tools train-model`, `evaluate-model` and `evaluate-ways`."""

from __future__ import annotations

import hashlib
import json
import tempfile
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from maskbench.tools.train_model.evaluation import Score
    from maskbench.tools.train_model.training import TrainingSettings

_NEEDED = "{}: pip install '.[bench]'"


@click.command("train-model", context_settings={"show_default": True})
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--steps", default=6000, type=click.IntRange(min=1), help="Batches of each process.")
@click.option(
    "--simple-steps",
    default=600,
    type=click.IntRange(min=0),
    help="First steps, in which all texts are simple extractions; later every third one is.",
)
@click.option(
    "--decay",
    default=1500,
    type=click.IntRange(min=1),
    help="Last steps, in which the learning rate falls to nothing.",
)
@click.option(
    "--processes",
    default=2,
    type=click.IntRange(min=1),
    help="Each has batches of its own and one thread; their gradients are averaged.",
)
@click.option("--seed", default=0, type=int, help="Of the texts and of the first weights.")
def train_model_command(
    folder: Path, steps: int, simple_steps: int, decay: int, processes: int, seed: int
) -> None:
    """Train the model in the box, and write it to FOLDER.

    The result depends on the options, the number of processes among them, and in its last digits on
    the processor and the version of torch.
    """
    try:
        from torch.multiprocessing.spawn import spawn

        from maskbench.tools.train_model.tokenizer import train_tokenizer
        from maskbench.tools.train_model.training import TrainingSettings
    except ImportError as error:
        raise click.ClickException(_NEEDED.format(error)) from None
    settings = TrainingSettings(
        steps=steps, simple_steps=simple_steps, decay=decay, processes=processes, seed=seed
    )
    tokenizer = train_tokenizer(seed)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    with tempfile.NamedTemporaryFile() as meeting:
        if settings.processes == 1:
            _train(0, settings, folder, meeting.name)
        else:
            # They meet at a file that does not exist yet.
            place = f"{meeting.name}.processes"
            start: Any = spawn  # It has no types.
            start(_train, args=(settings, folder, place), nprocs=settings.processes)
    weights = (folder / "model.safetensors").read_bytes()
    made = {"settings": asdict(settings), "sha256": hashlib.sha256(weights).hexdigest()}
    (folder / "training.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    click.echo(f"written to {folder}")


def _train(process: int, settings: TrainingSettings, folder: Path, place: str) -> None:
    """Return one process of the training; the first one writes the model."""
    import torch
    from transformers import AutoTokenizer

    from maskbench.tools.train_model.training import train

    torch.set_num_threads(1)
    if settings.processes > 1:
        torch.distributed.init_process_group(
            "gloo", f"file://{place}", rank=process, world_size=settings.processes
        )
    begun = monotonic()

    def report(steps: int, loss: float, _: Any) -> None:
        click.echo(f"step {steps}: loss {loss:.3f}, {monotonic() - begun:.0f} s", err=True)

    model = train(
        AutoTokenizer.from_pretrained(folder, trust_remote_code=False), settings, report, process
    )
    if process == 0:
        model.save_pretrained(folder)
    if settings.processes > 1:
        torch.distributed.destroy_process_group()


@click.command("evaluate-model", context_settings={"show_default": True})
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--conversations", default=400, type=click.IntRange(min=1))
@click.option("--simple", is_flag=True, help="Only extractions as training begins with.")
@click.option("--seed", default=0, type=int)
def evaluate_model_command(
    folder: Path | None, conversations: int, simple: bool, seed: int
) -> None:
    """Say how often the model in FOLDER is wholly right; without a folder, the model in the box."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        import ffwd.model
        from maskbench.tools.train_model.evaluation import evaluate
    except ImportError as error:
        raise click.ClickException(_NEEDED.format(error)) from None
    torch.set_num_threads(1)
    where = ffwd.model.path() if folder is None else folder
    model = AutoModelForCausalLM.from_pretrained(where, trust_remote_code=False).eval()
    scores = evaluate(
        model,
        AutoTokenizer.from_pretrained(where, trust_remote_code=False),
        conversations,
        seed=seed,
        simple=simple,
    )
    click.echo("| task | conversations | right | right under masks |\n|---|---|---|---|")
    for score in scores:
        click.echo(_row(score))


@click.command("evaluate-ways", context_settings={"show_default": True})
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--conversations", default=40, type=click.IntRange(min=1), help="Of each task.")
@click.option("--seed", default=0, type=int)
def evaluate_ways_command(folder: Path | None, conversations: int, seed: int) -> None:
    """Say how often answers are right under masks, with reasoning, after a draft and sampled."""
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        import ffwd.model
        from maskbench.tools.train_model.ways import evaluate_ways
    except ImportError as error:
        raise click.ClickException(_NEEDED.format(error)) from None
    torch.set_num_threads(1)
    where = ffwd.model.path() if folder is None else folder
    model = AutoModelForCausalLM.from_pretrained(where, trust_remote_code=False).eval()
    tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False)
    click.echo("| task | options | answers | right | passes an answer |\n|---|---|---:|---:|---:|")
    for way in evaluate_ways(model, tokenizer, conversations, seed=seed):
        share, passes = way.right / way.answers, way.passes / way.answers
        click.echo(f"| {way.task} | `{way.way}` | {way.answers} | {share:.0%} | {passes:.1f} |")


def _row(score: Score) -> str:
    def share(count: int | None) -> str:
        return "" if count is None else f"{count / score.answers:.0%}"

    return f"| {score.task} | {score.answers} | {share(score.free)} | {share(score.masked)} |"
