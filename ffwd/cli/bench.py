"""`ffwd bench`: the time of a grammar with a tokenizer on this machine."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np

import ffwd
from ffwd import CompiledGrammar
from ffwd.cli.grammars import GrammarSource, read_text, takes_grammar
from ffwd.cli.output import command, counted, milliseconds, note, printable, write_json
from ffwd.cli.progress import tracked
from ffwd.cli.tokenizers import ShownTokens, vocabulary_option
from ffwd.cli.walking import at
from ffwd.play.peers import Engine, Ffwd, RefusedError, Session, peers


@command()
@takes_grammar
@vocabulary_option
@click.option(
    "--text-file",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="A text of the grammar to walk along; may be given often.  [default: random texts]",
)
@click.option("--texts", default=20, show_default=True, type=click.IntRange(1), help="Random ones.")
@click.option(
    "--max-tokens", default=200, show_default=True, type=click.IntRange(1), help="Of a random one."
)
@click.option("--seed", default=0, show_default=True, help="Of the random texts.")
@click.option(
    "--rounds", default=5, show_default=True, type=click.IntRange(1), help="Of all texts."
)
@click.option("--no-peers", is_flag=True, help="Only ffwd.")
def bench(
    source: GrammarSource,
    tokenizer_source: str | None,
    files: tuple[str, ...],
    texts: int,
    max_tokens: int,
    seed: int,
    rounds: int,
    no_peers: bool,
    as_json: bool,
) -> None:
    """Time GRAMMAR with a tokenizer: compiling, masks, and how much is forced.

    Every engine walks along the same texts and makes the mask of every place; the engines take
    turns. llguidance and XGrammar are timed beside ffwd where they are installed and TOKENIZER has
    a tokenizer.json. For figures to rely on there is maskbench, in the repository.

    \b
    Examples:
      ffwd bench schema.json --tokenizer path/of/a/model
      ffwd bench schema.json -t path/of/a/model --text-file answer.json --rounds 20 --json

    Exit status: 0 done; 1 the grammar or a text is refused; 2 usage; 5 the tokenizer cannot be
    used.
    """
    tokens = ShownTokens(tokenizer_source)
    compiled = source.compile(tokens.vocabulary)
    if files:
        walks = [_given(compiled, read_text(file), tokens) for file in files]
    else:
        rng = random.Random(seed)
        walks = [_random_walk(compiled, rng, max_tokens) for _ in range(texts)]
    engines: list[Engine] = [Ffwd(source, tokens.vocabulary)]
    absent: dict[str, str] = {}
    if not no_peers:
        others, absent = peers(source, tokens.vocabulary, tokens.definition())
        engines += others
    figures = {engine.name: Figures(engine.version) for engine in engines}
    for turn in tracked(range(rounds), "timing", total=rounds):
        # The first engine may find the caches colder.
        for place in range(len(engines)):
            engine = engines[(turn + place) % len(engines)]
            _measure(engine, walks, figures[engine.name])
    data = {
        "grammar": source.name,
        "tokenizer": tokens.source,
        "vocab_size": tokens.vocabulary.vocab_size,
        "texts": len(walks),
        "tokens": sum(len(walk) for walk in walks),
        "rounds": rounds,
        "forced_share": _forced_share(compiled, walks),
        "engines": {name: found.data() for name, found in figures.items()},
        "absent": absent,
    }
    if as_json:
        write_json(data)
    else:
        _write(data)


# ---------------------------------------------------------------------------------------- texts


def _given(compiled: CompiledGrammar, text: str, tokens: ShownTokens) -> list[int]:
    # The final line end of editors is not part of a JSON text.
    matcher = at(compiled, text.rstrip("\n"), None, tokens)
    return matcher.tokens


def _random_walk(compiled: CompiledGrammar, rng: random.Random, max_tokens: int) -> list[int]:
    """Return a text of at most this many tokens, or a longer one if none is so short."""
    needed = len(compiled.shortest_completion())
    matcher = compiled.matcher(max_tokens=max(max_tokens, needed))
    ends = set(compiled.vocabulary.eos_token_ids)
    while not matcher.is_terminated():
        forced = matcher.fast_forward_tokens()
        if not (forced and matcher.accept_tokens(forced)):
            matcher.accept_token(rng.choice(matcher.allowed_token_ids()))
    return [token for token in matcher.tokens if token not in ends]


def _forced_share(compiled: CompiledGrammar, walks: list[list[int]]) -> float:
    forced = total = 0
    for walk in walks:
        steps = ffwd.view.replay(compiled, walk).steps
        forced += sum(step.kind == "forced" for step in steps)
        total += len(steps)
    return forced / max(total, 1)


# --------------------------------------------------------------------------------------- timing


@dataclass
class Figures:
    """The figures of one engine, in nanoseconds."""

    version: str
    compiles: list[int] = field(default_factory=list)
    masks: list[int] = field(default_factory=list)
    refused: str | None = None
    """Why it does not take the grammar, or what it did with a text."""
    refused_texts: int = 0

    def data(self) -> dict[str, Any]:
        """Return the figures in microseconds."""
        if not self.masks:
            return {"version": self.version, "refused": self.refused}
        times = np.array(self.masks) / 1e3
        return {
            "version": self.version,
            "compile_and_first_mask_us": float(np.median(self.compiles)) / 1e3,
            "masks": len(self.masks),
            "mean_us": float(times.mean()),
            "p50_us": float(np.percentile(times, 50)),
            "p99_us": float(np.percentile(times, 99)),
            "max_us": float(times.max()),
            "refused": self.refused,
            "refused_texts": self.refused_texts,
        }


def _measure(engine: Engine, walks: list[list[int]], figures: Figures) -> None:
    now = time.perf_counter_ns
    started = now()
    try:
        begin: Callable[[], Session] = engine.compile()
    except RefusedError as error:
        figures.refused = str(error).strip().split("\n")[0]
        return
    begin().fill()
    figures.compiles.append(now() - started)
    figures.refused_texts = 0
    for walk in walks:
        session = begin()
        for place, token in enumerate(walk):
            started = now()
            session.fill()
            taken = session.accept(token)
            figures.masks.append(now() - started)
            if not taken:
                figures.refused_texts += 1
                figures.refused = f"refuses token {place + 1} of a text"
                break


# ------------------------------------------------------------------------------------ for people


def _write(data: dict[str, Any]) -> None:
    click.echo(
        f"{counted(data['texts'], 'text')} of {counted(data['tokens'], 'token')}, "
        f"{counted(data['rounds'], 'round')}; {printable(data['tokenizer'])}: "
        f"{data['vocab_size']:,} tokens"
    )
    click.echo(f"forced by ffwd: {data['forced_share']:.1%} of the tokens\n")
    columns = ("compile, 1st mask", "mean", "p50", "p99", "slowest")
    click.echo(f"{'mask and accept':22}" + "".join(f"{name:>18}" for name in columns))
    for name, found in data["engines"].items():
        title = f"{name} {found['version']}"
        if "mean_us" not in found:
            click.echo(f"{title:22}  {printable(found['refused'])}")
            continue
        keys = ("compile_and_first_mask_us", "mean_us", "p50_us", "p99_us", "max_us")
        times = "".join(f"{milliseconds(found[key] * 1e3):>18}" for key in keys)
        click.echo(f"{title:22}{times}")
        if found["refused_texts"]:
            click.echo(
                f"{'':22}  {found['refused_texts']} texts not to their end: {found['refused']}"
            )
    for name, why in data["absent"].items():
        note(f"without {name}: {why}")
