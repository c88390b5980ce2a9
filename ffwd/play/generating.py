"""A model that writes: the one in the box, or that of a directory."""

from __future__ import annotations

import threading
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ffwd.model
from ffwd._native import Cancellation
from ffwd.grammar import UnknownKeywordWarning
from ffwd.play.errors import PlayError
from ffwd.play.state import State
from ffwd.sources import SourceText

if TYPE_CHECKING:
    from ffwd.adapters.transformers import ChatModel, GenerationReport
    from ffwd.tokenizer import Tokenizer

_BOX = "the model in the box"


class Generating:
    """A model that is loaded when it is first asked.

    `directory`: the model's; None for the one in the box.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = ffwd.model.path() if directory is None else directory
        self.name = _BOX if directory is None else str(directory)
        self.tokenizer = "box" if directory is None else str(directory)
        """The name of its tokenizer in a session."""
        self._loaded: tuple[ChatModel, Tokenizer] | None = None
        # A model writes one text at a time.
        self._lock = threading.Lock()

    def write(self, state: State, source: SourceText, cancellation: Cancellation) -> dict[str, Any]:
        """Return what the model writes for the prompt, after the text before the cursor.

        The answer has the whole `text`, its `tokens` if they have exactly that text, and counters.

        Raises:
            ImportError: torch or transformers is not installed.
            PlayError: The model cannot continue a text.
            ModelError: The directory has no model that can be used.
            ChatError: The grammar rejects the text before the cursor.
            BudgetError: No text ends within the state's `max_tokens`.

        """
        with self._lock:
            model, tokenizer = self._load()
            return self._write(model, tokenizer, state, source, cancellation)

    def _load(self) -> tuple[ChatModel, Tokenizer]:
        if self._loaded is None:
            from transformers.utils.logging import disable_progress_bar

            from ffwd.adapters.transformers import ChatModel, load_local

            # Its bar would be drawn without a terminal, too.
            disable_progress_bar()
            # A model as small as that in the box is slower on an accelerator.
            device = "cpu" if self.name == _BOX else "auto"
            found = load_local(self._directory, device=device)
            self._loaded = ChatModel(found.model, found.tokenizer), found.tokenizer
        return self._loaded

    def _write(
        self,
        model: ChatModel,
        tokenizer: Tokenizer,
        state: State,
        source: SourceText,
        cancellation: Cancellation,
    ) -> dict[str, Any]:
        import torch

        from ffwd.adapters.transformers import GenerationReport

        units = state.text.encode("utf-16-le", "surrogatepass")
        begun = units[: 2 * state.cursor].decode("utf-16-le", "replace")
        conversation: Any = state.prompt or " "
        if tokenizer.chat_templates:
            conversation = [{"role": "user", "content": state.prompt}]
            if begun:
                conversation.append({"role": "assistant", "content": begun})
        elif begun:
            raise PlayError(
                f"{self.name} has no chat template, so it cannot continue a text: put the cursor "
                "at the start"
            )
        report = GenerationReport(record=True)
        sampling: dict[str, Any] = {"do_sample": False}
        if state.temperature > 0:
            sampling = {"do_sample": True, "temperature": state.temperature}
        torch.manual_seed(state.seed)
        started = time.perf_counter()
        with warnings.catch_warnings():
            # The page has it in the margin.
            warnings.simplefilter("ignore", UnknownKeywordWarning)
            made = model.generate(
                conversation,
                source.grammar,
                max_new_tokens=state.max_tokens,
                report=report,
                should_stop=lambda: cancellation.is_cancelled,
                **sampling,
            )
        return {
            "text": made.text,
            "finish_reason": made.finish_reason,
            "tokens": _tokens(report, made.text),
            "new_tokens": made.stats.tokens,
            "forced": made.stats.forced_tokens,
            "passes": made.stats.forward_passes,
            "mask_us": made.stats.mask_nanoseconds / 1e3,
            "seconds": time.perf_counter() - started,
        }


def _tokens(report: GenerationReport, text: str) -> dict[str, Any] | None:
    """Return the ids of a text and the indices of the healed ones; None if they are not its ids.

    The prompt has the first ones, where the text was begun, without those that were taken back.
    """
    (recording,) = report.recordings
    steps = [step for step in recording.steps if step.text is not None]
    written = b"".join(step.text or b"" for step in steps)
    data = text.encode()
    before = len(data) - len(written)
    kept: list[int] = []
    for token, piece in reversed(recording.prompt):
        if before <= 0 or piece is None:
            break
        kept.insert(0, token)
        before -= len(piece)
    if before != 0 or not data.endswith(written):
        return None
    healed = [len(kept) + place for place, step in enumerate(steps) if step.kind == "healed"]
    return {"ids": kept + [step.token for step in steps], "healed": healed}
