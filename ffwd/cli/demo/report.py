"""The output of `ffwd demo`: the answers, the figures of each way, and their meaning."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ffwd.adapters.transformers import TokenTrace
    from ffwd.cli.demo.ways import Outcome, Task
    from ffwd.tokenizer import Tokenizer

_WAYS = {
    "unconstrained": "The model alone.",
    "masks": "Only tokens with which the text can still follow the schema.",
    "naive forcing": "Masks, and what the schema decides is appended without asking the model,"
    " cut into tokens by itself.",
    "canonical forcing": "The same, cut as the tokenizer cuts the whole text. This is what ffwd"
    " does.",
}
_ROWS: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "valid": (
        "JSON that follows the schema.",
        lambda of: f"{of['valid']} of {of['answers']}",
    ),
    "right": (
        "And all values are those of the text.",
        lambda of: "-" if of["right"] is None else f"{of['right']} of {of['answers']}",
    ),
    "tokens": ("Of the answers, their end tokens included.", lambda of: f"{of['tokens']:,}"),
    "forced tokens": ("Those that the model was not asked for.", lambda of: f"{of['forced']:,}"),
    "forward passes": (
        "Of the model; the one over the prompt is the first.",
        lambda of: f"{of['passes']:,}",
    ),
    "time": ("Of generate(), on this machine.", lambda of: f"{1e3 * of['seconds']:,.0f} ms"),
    "likelihood": (
        "How likely the model itself finds the tokens of an answer after the prompt, without any"
        " mask: the natural logarithm, on average; 0 nats would be certain.",
        lambda of: f"{of['likelihood']:.2f} nats",
    ),
    "perplexity": (
        "The same for each byte of the answers; 1 would be certain.",
        lambda of: f"{of['perplexity']:.4f}",
    ),
}


class Report:
    """Writes to standard output, coloured on a terminal.

    Args:
        tokenizer: How tokens are shown.

    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        from rich.console import Console

        self._console = Console(highlight=False)
        self._tokenizer = tokenizer

    def introduce(self, prompts: int, parameters: int) -> None:
        """Say what is done, and in which ways."""
        texts = "a short text" if prompts == 1 else f"{prompts} short texts"
        self._say(
            f"A model of {parameters:,} parameters writes JSON records of {texts}, in four ways:"
        )
        self._define(_WAYS)

    def prompt(self, title: str, task: Task, outcomes: list[Outcome]) -> None:
        """Write a prompt and its answers, equal ones together."""
        keys = "" if task.named else ", which does not say how its schema names the keys"
        self._say(f"\n{title}{keys}", style="bold")
        self._indented(task.messages[-1]["content"])
        ways: dict[str, list[Outcome]] = {}
        for each in outcomes:
            ways.setdefault(each.text, []).append(each)
        for text, same in ways.items():
            named = "all four" if len(same) == len(outcomes) else ", ".join(o.way for o in same)
            verdict, style = _verdict(same[0])
            self._say(f"{named}: {verdict}", style=style)
            self._indented(text)
        if task.right is not None and not any(each.right for each in outcomes):
            self._say("the right answer", style="dim")
            self._indented(task.right)

    def table(self, summaries: list[dict[str, Any]]) -> None:
        """Write a column for each way, over all prompts."""
        from rich.table import Table

        table = Table()
        table.add_column("")
        for summary in summaries:
            table.add_column(summary["way"], justify="right")
        for name, (_, show) in _ROWS.items():
            table.add_row(name, *map(show, summaries))
        self._console.print()
        self._console.print(table)
        self._define({name: about for name, (about, _) in _ROWS.items()})

    def harm(
        self,
        cuts: list[dict[str, list[tuple[int, float]]] | None],
        means: dict[str, float] | None,
    ) -> None:
        """Write the effect of naive forcing on the likelihood of the right answers."""
        if means is None:
            return
        self._say("\nWhy canonical", style="bold")
        differing = (
            (number, cut)
            for number, cut in enumerate(cuts, start=1)
            if cut is not None and _tokens(cut["naive"]) != _tokens(cut["canonical"])
        )
        first = next(differing, None)
        if first is not None:
            number, cut = first
            self._say(
                "A model has learned the tokens that its tokenizer makes. The right answer to"
                f" prompt {number} begins so in each way, with how likely the model finds each"
                " token:"
            )
            for name, tokens in self._until_equal(cut).items():
                shown = ", ".join(f"{self._shown(t)} {_probability(p)}" for t, p in tokens)
                self._indented(f"{name:<9}  {shown}")
        self._say(
            "On average the right answers to prompts that name the keys have a log-likelihood of"
            f" {means['canonical']:.2f} nats as canonical forcing cuts them, and of"
            f" {means['naive']:.2f} nats as naive forcing does."
        )

    def trace(self, tokens: list[TokenTrace], *, listed: bool) -> None:
        """Write the tokens of an answer: the model's choices, and the forced ones."""
        from rich.table import Table
        from rich.text import Text

        if listed:
            table = Table(title="The first answer, with canonical forcing", title_justify="left")
            table.add_column("token")
            table.add_column("allowed by the mask", justify="right")
            table.add_column("")
            for entry in tokens:
                allowed = "" if entry.allowed is None else f"{entry.allowed:,}"
                kind = "forced" if entry.forced else "chosen by the model"
                table.add_row(Text(self._shown(entry.token)), allowed, kind)
            self._console.print()
            self._console.print(table)
            return
        line = Text()
        for entry in tokens:
            text = self._text(entry.token)
            line.append(text if entry.forced else f"[{text}]", "green" if entry.forced else "bold")
        self._say("\nThe first answer, with canonical forcing", style="bold")
        # A line break at a blank would hide the blank.
        width = self._console.width
        for part in line.divide(range(width, len(line), width)):
            self._console.print(part, soft_wrap=True)
        self._say("The model was asked for the tokens in brackets; --tokens lists them with masks.")

    def _until_equal(
        self, cut: dict[str, list[tuple[int, float]]]
    ) -> dict[str, list[tuple[int, float]]]:
        """Return both prefixes, up to the token after which they agree again."""
        ends = {
            name: [len(text) for text in self._beginnings(tokens)] for name, tokens in cut.items()
        }
        differs = False
        for end in sorted(set(ends["naive"]) | set(ends["canonical"])):
            shared = end in ends["naive"] and end in ends["canonical"]
            if differs and shared:
                return {name: cut[name][: ends[name].index(end) + 1] for name in cut}
            differs = differs or not shared
        return cut

    def _beginnings(self, tokens: list[tuple[int, float]]) -> Iterable[bytes]:
        text = b""
        for token, _ in tokens:
            text += self._tokenizer.decode_bytes([token], skip_special_tokens=False)
            yield text

    def _text(self, token: int) -> str:
        return self._tokenizer.decode([token], skip_special_tokens=False)

    def _shown(self, token: int) -> str:
        return repr(self._text(token))

    def _say(self, text: str, style: str = "") -> None:
        from rich.text import Text

        self._console.print(Text(text, style))

    def _indented(self, text: str) -> None:
        from rich.padding import Padding
        from rich.text import Text

        if self._console.is_terminal:
            self._console.print(Padding(Text(text), (0, 0, 0, 2), expand=False))
        else:
            # Lines stay whole, so that they can be searched.
            self._console.print(Text(textwrap.indent(text, "  ")), soft_wrap=True)

    def _define(self, entries: dict[str, str]) -> None:
        """Return words, each with its meaning."""
        width = max(map(len, entries)) + 4
        for name, about in entries.items():
            lines = textwrap.wrap(about, max(self._console.width - width, 20))
            text = ("\n" + " " * width).join(lines)
            self._say(f"  {name:<{width - 2}}{text}", style="dim")


def _tokens(cut: list[tuple[int, float]]) -> list[int]:
    return [token for token, _ in cut]


def _probability(likelihood: float) -> str:
    """Return a log-likelihood as a probability that is easy to compare."""
    share = math.exp(likelihood)
    if share >= 0.01:
        return f"{share:.0%}"
    if likelihood < math.log(1e-9):
        return f"1 in 10^{-likelihood / math.log(10):.0f}"
    return f"1 in {float(f'{1 / share:.2g}'):,.0f}"


def _verdict(outcome: Outcome) -> tuple[str, str]:
    """Return the verdict on an answer, and its style."""
    if not outcome.valid:
        return "not valid", "red"
    if outcome.right is None:
        return "valid", "green"
    return ("right", "green") if outcome.right else ("valid, but not right", "yellow")
