"""A form that fills itself in while the model writes, in a terminal.

python docs/examples/streaming_ui.py
"""

from collections.abc import Iterable
from datetime import date
from typing import Any

from pydantic import BaseModel, Field
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text
from transformers import AutoModelForCausalLM, AutoTokenizer

import ffwd
import ffwd.model


class Trip(BaseModel):
    """A traveller and a destination."""

    traveler: str = Field(max_length=30)
    origin: str = Field(max_length=30)
    destination: str = Field(max_length=30)
    date: date


TEXTS = [
    "Grace goes from Lisbon to Oslo. The day is 2027-03-14.",
    "A train to Vienna leaves Prague. Felix takes it. The day is 2028-11-05.",
    "Maria wants to go to Tokyo. The trip begins in Seoul. The day is 2026-08-21.",
]


class Form:
    """The values of one answer, by their pointers, as far as they have come."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.certain: set[str] = set()

    def take(self, events: Iterable[ffwd.Event]) -> None:
        """Add what has become certain; the value around all others has no pointer."""
        for event in events:
            if event.kind != "value" or not event.pointer:
                continue
            if event.action == "begin":
                self.texts[event.pointer] = ""
            elif event.action == "delta":
                self.texts[event.pointer] += event.text or ""
            elif event.action == "end":
                self.certain.add(event.pointer)

    def cell(self, pointer: str) -> Text:
        """Return the display of a value: a cursor follows one that is being written."""
        if pointer not in self.texts:
            return Text("·", style="dim")
        text = self.texts[pointer].strip('"')
        return Text(text, style="green") if pointer in self.certain else Text(text + "▌")


def table(forms: list[Form]) -> Table:
    """Return all answers so far."""
    made = Table(*Trip.model_fields)
    for form in forms:
        made.add_row(*(form.cell(f"/{name}") for name in Trip.model_fields))
    return made


def main(console: Console | None = None) -> list[Trip]:
    """Fill in a row for each text."""
    model = AutoModelForCausalLM.from_pretrained(ffwd.model.path())
    tokenizer = AutoTokenizer.from_pretrained(ffwd.model.path())

    forms: list[Form] = []
    trips: list[Trip] = []
    with Live(table(forms), console=console, auto_refresh=False) as live:
        for text in TEXTS:
            live.console.print(text, style="dim")
            messages: list[dict[str, Any]] = [
                {"role": "user", "content": f"{text}\nKeys: {', '.join(Trip.model_fields)}"}
            ]
            forms.append(Form())
            # Leaving the block, with Ctrl-C for instance, stops the model.
            with ffwd.stream(
                model, tokenizer, messages, Trip, max_new_tokens=100, whitespace="compact"
            ) as stream:
                for chunk in stream:
                    forms[-1].take(chunk.events)
                    live.update(table(forms), refresh=True)
            trips.append(stream.result().value)
    return trips


if __name__ == "__main__":
    main()
