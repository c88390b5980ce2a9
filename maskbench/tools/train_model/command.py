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

from maskbench.intervals import mean_interval, share_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from maskbench.tools.train_model.evaluation import Score
    from maskbench.tools.train_model.training import TrainingSettings
    from maskbench.tools.train_model.ways import Way

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
@click.option(
    "--vocabulary-size",
    default=2048,
    type=click.IntRange(min=512),
    help="Tokens of the tokenizer, which is trained first.",
)
@click.option(
    "--layers", default=4, type=click.IntRange(min=2), help="Two of them begin with copying."
)
@click.option(
    "--mantissa-bits",
    default=4,
    type=click.IntRange(1, 23),
    help="Of each weight that is written: fewer compress better. Up to 7 are bfloat16.",
)
def train_model_command(
    folder: Path,
    steps: int,
    simple_steps: int,
    decay: int,
    processes: int,
    seed: int,
    vocabulary_size: int,
    layers: int,
    mantissa_bits: int,
) -> None:
    """Train the model in the box, or with other options another one, and write it to FOLDER.

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
        steps=steps,
        simple_steps=simple_steps,
        decay=decay,
        processes=processes,
        layers=layers,
        mantissa_bits=mantissa_bits,
        seed=seed,
    )
    tokenizer = train_tokenizer(seed, vocabulary_size)
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
    weights = _store_rounded(folder / "model.safetensors", mantissa_bits)
    made = {"settings": asdict(settings), "sha256": hashlib.sha256(weights).hexdigest()}
    (folder / "training.json").write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    click.echo(f"written to {folder}")


def _store_rounded(file: Path, mantissa_bits: int) -> bytes:
    """Round the float32 weights in `file`, and return its bytes.

    `config.json` still says float32, the type in which models are loaded.
    """
    import torch
    from safetensors.torch import load_file, save_file

    dropped = 23 - mantissa_bits

    def rounded(weight: Any) -> Any:
        bits = weight.contiguous().view(torch.int32) + (1 << dropped >> 1)
        whole = (bits >> dropped << dropped).view(torch.float32)
        return whole.bfloat16() if mantissa_bits <= 7 else whole

    weights = {name: rounded(weight) for name, weight in load_file(file).items()}
    save_file(weights, file, metadata={"format": "pt"})
    return file.read_bytes()


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
@click.option(
    "--task", "tasks", multiple=True, help="One of extraction, question, reasoning, simple."
)
@click.option("--way", "ways", multiple=True, help="As the table names it.")
@click.option("--seed", default=0, type=int, help="Of conversations and samples.")
def evaluate_ways_command(
    folder: Path | None,
    conversations: int,
    tasks: tuple[str, ...],
    ways: tuple[str, ...],
    seed: int,
) -> None:
    """Say how often answers are right under masks, with reasoning, after a draft and sampled.

    --task and --way may be given several times; without them, all ways answer all tasks but the
    simple one. Intervals are of 95%. The log-likelihood, in nats, is that of sampling the tokens of
    the right answer at temperature 1. `more right` and `gain` are the differences of share and
    log-likelihood to plain masks, by answers, if those are among the ways. Passes are forward
    passes an answer.
    """
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        import ffwd.model
        from maskbench.tools.train_model.ways import (
            ASKED,
            USUAL,
            WAYS,
            evaluate_ways,
        )
    except ImportError as error:
        raise click.ClickException(_NEEDED.format(error)) from None
    for option, given, known in (("--task", tasks, ASKED), ("--way", ways, WAYS)):
        for name in given:
            if name not in known:
                raise click.BadParameter(
                    f"there is no {name!r}: give one of {', '.join(known)}", param_hint=option
                )
    torch.set_num_threads(1)
    where = ffwd.model.path() if folder is None else folder
    model = AutoModelForCausalLM.from_pretrained(where, trust_remote_code=False).eval()
    tokenizer = AutoTokenizer.from_pretrained(where, trust_remote_code=False)
    click.echo("| task | options | answers | right | more right | log-likelihood | gain | passes |")
    click.echo("|---|---|---:|---:|---:|---:|---:|---:|")
    found = evaluate_ways(
        model,
        tokenizer,
        conversations,
        seed=seed,
        tasks=tasks or USUAL,
        ways=ways or tuple(WAYS),
    )
    by_name = {(way.task, way.way): way for way in found}
    for way in found:
        click.echo(_row_of_way(way, by_name.get((way.task, way.plain))))


def _row_of_way(way: Way, plain: Way | None) -> str:
    """Return a line of the table.

    Args:
        way: What it is about.
        plain: The same answers under plain masks.

    """
    answers, right = len(way.right), sum(way.right)
    low, high = share_interval(right, answers)
    more: list[float] = []
    gain: list[float] = []
    if plain is not None:
        more = _differences(way.right, plain.right)
    if plain is not None and way.log_likelihoods:
        gain = _differences(way.log_likelihoods, plain.log_likelihoods)
    cells = (
        way.task,
        f"`{way.way}`",
        f"{answers}",
        f"{right / answers:.0%} ({low:.0%} to {high:.0%})",
        _mean(more),
        _mean(way.log_likelihoods),
        _mean(gain),
        f"{way.passes / answers:.1f}",
    )
    return f"| {' | '.join(cells)} |"


def _differences(values: Sequence[float], others: Sequence[float]) -> list[float]:
    return [value - other for value, other in zip(values, others, strict=True)]


def _mean(values: Sequence[float]) -> str:
    """Return the mean and its interval; nothing without values."""
    if not values:
        return ""
    # Adding 0 makes a negative zero positive.
    mean, low, high = (
        f"{round(value, 2) + 0.0:.2f}"
        for value in (sum(values) / len(values), *mean_interval(values))
    )
    return f"{mean} ({low} to {high})"


def _row(score: Score) -> str:
    def share(count: int | None) -> str:
        return "" if count is None else f"{count / score.answers:.0%}"

    return f"| {score.task} | {score.answers} | {share(score.free)} | {share(score.masked)} |"
