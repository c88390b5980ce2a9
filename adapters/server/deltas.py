"""From the certain part of a text to the deltas of an answer."""

import random
import string
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ffwd import Event, Matcher
from ffwd.adapters.server.custom_tools import InputReader
from ffwd.adapters.server.tool_arguments import json_arguments
from ffwd.chat import Start
from ffwd.streaming import Decoder, StopSequenceDecoder
from ffwd.tools import JsonArguments, ToolFormat

_BYTES = Decoder([bytes([byte]) for byte in range(256)])
"""Stop strings are looked for in what an answer says, however it was cut into tokens."""

_NINE = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Delta:
    """More of an answer.

    Attributes:
        kind: Text, reasoning, the beginning of a call, or more of its arguments.
        text: What is added; of a call's beginning the name.
        index: Which call.
        call_id: Of a call's beginning.
        custom: Whether the call is of a custom tool, whose arguments are its input.

    """

    kind: Literal["content", "reasoning", "call", "arguments"]
    text: str
    index: int = 0
    call_id: str = ""
    custom: bool = False


class AnswerReader:
    """Reads the deltas of one answer off its matcher.

    Args:
        matcher: Of the answer.
        start: Where the answer begins; what the prompt has of its text is not repeated.
        stops: Strings at which the text ends.
        tool_format: How calls are written.
        tools: The schemas of the functions by name; None for that of a custom tool.

    """

    def __init__(
        self,
        matcher: Matcher,
        *,
        start: Start,
        stops: Sequence[str] = (),
        tool_format: ToolFormat | None = None,
        tools: Mapping[str, Mapping[str, Any] | None] | None = None,
    ) -> None:
        self._matcher = matcher
        # Events include the prefill of a text.
        self._again = len(start.prefill)
        self._stopping = StopSequenceDecoder(_BYTES, stop_strings=list(stops)) if stops else None
        self._format = tool_format
        self._tools = tools or {}
        self._rewritten = tool_format is not None and not isinstance(
            tool_format.arguments, JsonArguments
        )
        self._written: list[str] = []
        self._values: list[int] = []
        self._begin = 0
        self._input: InputReader | None = None
        self.num_calls = 0
        self.stopped = False
        """Whether a stop string has come."""

    def read(self, *, finish: bool = False) -> list[Delta]:
        """Return the deltas that became certain; with `finish` the text ends."""
        deltas: list[Delta] = []
        for event in self._matcher.events(finish=finish):
            self._of(event, deltas)
            if self.stopped:
                break
        if finish and self._stopping is not None and not self.stopped:
            self._add(deltas, "content", self._stopping.flush().text)
        return deltas

    def _of(self, event: Event, deltas: list[Delta]) -> None:
        kind, action = event.kind, event.action
        if kind == "content" and action == "delta":
            text = self._new(event)
            if self._stopping is not None:
                output = self._stopping.step_batch(list(text.encode()))
                text, self.stopped = output.text, output.stopped
            self._add(deltas, "content", text)
        elif kind == "reasoning" and action == "delta":
            self._add(deltas, "reasoning", self._new(event))
        elif kind == "tool_call" and action == "begin":
            custom = event.name in self._tools and self._tools[event.name] is None
            self._input = InputReader() if custom else None
            call_id = self._call_id()
            deltas.append(Delta("call", event.name, self.num_calls, call_id, custom))
            self.num_calls += 1
        elif kind == "tool_arguments":
            self._arguments(event, deltas)
        elif kind == "value" and action == "begin" and event.pointer == "":
            self._values.append(event.start)

    def _arguments(self, event: Event, deltas: list[Delta]) -> None:
        """Send JSON and inputs as they come, and other notations when they are complete."""
        if self._input is not None:
            if event.action == "delta":
                self._add(deltas, "arguments", self._input.read(event.text or ""))
        elif event.action == "begin":
            self._written, self._values, self._begin = [], [], event.start
        elif event.action == "delta":
            if self._rewritten:
                self._written.append(event.text or "")
            else:
                self._add(deltas, "arguments", event.text or "")
        elif event.action == "end" and self._rewritten and self._format is not None:
            text = json_arguments(
                "".join(self._written),
                self._format,
                self._tools.get(event.name) or {},
                frozenset(start - self._begin for start in self._values),
            )
            self._add(deltas, "arguments", text)

    def _new(self, event: Event) -> str:
        """Return the added text of a delta."""
        text = event.text or ""
        if event.start >= self._again:
            return text
        return text.encode()[self._again - event.start :].decode(errors="replace")

    def _add(
        self, deltas: list[Delta], kind: Literal["content", "reasoning", "arguments"], text: str
    ) -> None:
        if text:
            custom = kind == "arguments" and self._input is not None
            deltas.append(Delta(kind, text, max(self.num_calls - 1, 0), custom=custom))

    def _call_id(self) -> str:
        if self._format is not None and self._format.name.startswith("mistral"):
            # Its templates refuse ids of another form in the next prompt.
            return "".join(_NINE.choices(string.ascii_letters + string.digits, k=9))
        return f"call_{uuid.uuid4().hex[:24]}"
