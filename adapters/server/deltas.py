"""From the certain part of a text to the deltas of an answer."""

import math
import random
import string
import uuid
from collections import deque
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


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the content, and where it begins in the output, in bytes."""

    start: int
    text: str


class AnswerReader:
    """Reads the deltas of one answer off its matcher.

    Args:
        matcher: Of the answer.
        start: Where the answer begins; what the prompt has of its text is not repeated.
        stops: Strings at which the text ends.
        tool_format: How calls are written.
        tools: The schemas of the functions by name; None for that of a custom tool.
        tracked: Whether `pieces` says where the content stands.
        early_stops: Whether the whole text is searched for stops, or only what `stop_after` says.

    """

    def __init__(
        self,
        matcher: Matcher,
        *,
        start: Start,
        stops: Sequence[str] = (),
        tool_format: ToolFormat | None = None,
        tools: Mapping[str, Mapping[str, Any] | None] | None = None,
        tracked: bool = False,
        early_stops: bool = True,
    ) -> None:
        self._matcher = matcher
        # Events include the prefill of a text.
        self._again = len(start.prefill)
        self._start = start
        self._stopping = StopSequenceDecoder(_BYTES, stop_strings=list(stops)) if stops else None
        self._stop_from: float = 0 if early_stops else math.inf
        """The first byte of the output that is searched for stops."""
        self._format = tool_format
        self._tools = tools or {}
        self._rewritten = tool_format is not None and not isinstance(
            tool_format.arguments, JsonArguments
        )
        self._written: list[str] = []
        self._values: list[int] = []
        self._begin = 0
        self._pieces: deque[Piece] | None = deque() if tracked else None
        """The content that `pieces` has not returned."""
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

    def stop_after(self, tokens: Sequence[int]) -> None:
        """Search for stops in the text behind the first tokens of the answer."""
        spelled = self._start.vocabulary.token_bytes
        # A prefix is written again.
        begin = len(self._start.prefill) - len(self._start.prefix)
        self._stop_from = begin + sum(len(spelled(token) or b"") for token in tokens)

    def _searched(self, text: str, start: int) -> str:
        """Return what is certain not to be a stop in text from a byte on, and in text before it."""
        assert self._stopping is not None
        data = text.encode()
        early = data[: int(max(min(self._stop_from - start, len(data)), 0))]
        before = early.decode(errors="ignore")
        output = self._stopping.step_batch(list(text[len(before) :].encode()))
        self.stopped = output.stopped
        return before + output.text

    def pieces(self, deltas: Sequence[Delta]) -> list[Piece]:
        """Return the pieces that the content in deltas consists of; each delta is given once."""
        left = sum(len(delta.text) for delta in deltas if delta.kind == "content")
        found: list[Piece] = []
        while left and self._pieces:
            piece = self._pieces.popleft()
            text, rest = piece.text[:left], piece.text[left:]
            found.append(Piece(piece.start, text))
            left -= len(text)
            if rest:
                self._pieces.appendleft(Piece(piece.start + len(text.encode()), rest))
        return found

    def _of(self, event: Event, deltas: list[Delta]) -> None:
        kind, action = event.kind, event.action
        if kind == "content" and action == "delta":
            text = self._new(event)
            if text and self._pieces is not None:
                self._pieces.append(Piece(max(event.start, self._again), text))
            if self._stopping is not None:
                text = self._searched(text, max(event.start, self._again))
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
