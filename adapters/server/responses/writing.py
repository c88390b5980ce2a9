"""The object of a response and the events of its stream, made of the deltas of a chat."""

import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ffwd.adapters.server.answers import merged, weights
from ffwd.adapters.server.deltas import Delta
from ffwd.adapters.server.errors import ApiError
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.logprobs import Listing, Scored
from ffwd.adapters.server.responses.reading import ResponsesRequest
from ffwd.adapters.server.streams import Ending


@dataclass
class Collected:
    """The deltas of an answer that is sent at once."""

    deltas: list[Delta] = field(default_factory=list)
    tokens: list[Scored] = field(default_factory=list)
    ending: Ending | None = None

    def add(self, deltas: Sequence[Delta], tokens: Sequence[Scored] = ()) -> None:
        """Append deltas, and the tokens of their content."""
        self.deltas += deltas
        self.tokens += tokens


class ResponseEnvelope:
    """The events of one response, and the response itself.

    Args:
        loaded: The model.
        request: What was asked for.
        prompt_tokens: How many tokens the prompt has.

    """

    done = b""
    """What ends a stream after its last event."""

    def __init__(self, loaded: LoadedModel, request: ResponsesRequest, prompt_tokens: int) -> None:
        self._prompt_tokens = prompt_tokens
        self._listing = Listing(loaded.tokenizer, chat=True)
        self._characters = 0
        """How many the texts of all items have."""
        self._next = 0
        self._open: _Item | None = None
        self._response: dict[str, Any] = {
            "id": f"resp_{uuid.uuid4().hex}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "model": loaded.name,
            "output": [],
            "usage": None,
            **request.shown,
        }

    def choice(self) -> Collected:
        """Return what collects the deltas of an answer that is sent at once."""
        return Collected()

    def whole(self, choices: Sequence[Collected]) -> dict[str, Any]:
        """Return a response that is sent at once."""
        (choice,) = choices
        for _ in self.chunks(0, choice.deltas, choice.ending, choice.tokens):
            pass
        return self._response

    def first(self, index: int) -> list[dict[str, Any]]:
        """Return the first events of a stream."""
        return [self._of_response("created"), self._of_response("in_progress")]

    def chunks(
        self,
        index: int,
        deltas: Sequence[Delta],
        ending: Ending | None,
        tokens: Sequence[Scored] = (),
    ) -> Iterator[dict[str, Any]]:
        """Return the events of deltas, with the tokens of their content, and of an end."""
        rest = deque(tokens)
        for delta in merged(deltas):
            begun: list[Scored] = []
            if delta.kind == "content":
                self._characters += len(delta.text)
                while rest and rest[0].offset < self._characters:
                    begun.append(rest.popleft())
            yield from self._delta(delta, begun)
        if ending is not None:
            yield from self._end(ending)

    def failed(self, error: ApiError) -> dict[str, Any]:
        """Return the event of a stream that ends with an error."""
        self._response["status"] = "failed"
        self._response["error"] = {"code": "server_error", "message": error.message}
        return self._of_response("failed")

    def last(self, endings: Sequence[Ending | None]) -> list[dict[str, Any]]:
        """Return nothing: the last event of an end has all that there is."""
        return []

    def _delta(self, delta: Delta, tokens: Sequence[Scored] = ()) -> Iterator[dict[str, Any]]:
        item = self._open
        # Arguments belong to the call before them, and each call is an item.
        if item is None or delta.kind == "call" or delta.kind not in ("arguments", item.kind):
            yield from self._close("completed")
            yield from self._begin(delta)
        if delta.kind != "call" and self._open is not None:
            listed = self._listing.entries(tokens, no_bytes=[])
            self._open.texts.append(delta.text)
            self._open.logprobs += listed
            members: dict[str, Any] = {"delta": delta.text}
            if delta.kind == "content":
                members["logprobs"] = listed
            yield self._of_item(self._open, self._open.event("delta"), **members)

    def _begin(self, delta: Delta) -> Iterator[dict[str, Any]]:
        item = self._open = _Item(delta, len(self._response["output"]))
        self._response["output"].append(item.value("in_progress"))
        yield self._event(
            "output_item.added", output_index=item.index, item=item.value("in_progress")
        )
        if item.has_parts:
            yield self._of_item(item, "content_part.added", part=item.part())

    def _close(self, status: str) -> Iterator[dict[str, Any]]:
        item, self._open = self._open, None
        if item is None:
            return
        yield self._of_item(item, item.event("done"), **item.whole())
        if item.has_parts:
            yield self._of_item(item, "content_part.done", part=item.part())
        self._response["output"][item.index] = item.value(status)
        yield self._event("output_item.done", output_index=item.index, item=item.value(status))

    def _end(self, ending: Ending) -> Iterator[dict[str, Any]]:
        if all(item["type"] == "reasoning" for item in self._response["output"]):
            # An empty answer is a message, too.
            yield from self._delta(Delta("content", ""))
        status = "incomplete" if ending.reason == "length" else "completed"
        yield from self._close(status)
        self._response |= {
            "status": status,
            "completed_at": int(time.time()) if status == "completed" else None,
            "usage": _usage(ending, self._prompt_tokens),
        }
        if status == "incomplete":
            self._response["incomplete_details"] = {"reason": "max_output_tokens"}
        yield self._of_response(status)

    def _of_item(self, item: "_Item", kind: str, **members: Any) -> dict[str, Any]:
        place: dict[str, Any] = {"item_id": item.id, "output_index": item.index}
        if item.has_parts:
            place["content_index"] = 0
        return self._event(kind, **place, **members)

    def _of_response(self, kind: str) -> dict[str, Any]:
        response = {**self._response, "output": list(self._response["output"])}
        return self._event(kind, response=response)

    def _event(self, kind: str, **members: Any) -> dict[str, Any]:
        number, self._next = self._next, self._next + 1
        return {"type": f"response.{kind}", "sequence_number": number, **members}


_PREFIXES = {"content": "msg", "reasoning": "rs", "call": "fc", "custom": "ctc"}
_EVENTS = {
    "content": "output_text",
    "reasoning": "reasoning_text",
    "call": "function_call_arguments",
    "custom": "custom_tool_call_input",
}


class _Item:
    """An item of the output that is being written."""

    def __init__(self, first: Delta, index: int) -> None:
        self.kind = first.kind
        self.index = index
        self.texts: list[str] = []
        self.logprobs: list[dict[str, Any]] = []
        """The tokens of a text."""
        self._form = "custom" if first.custom else first.kind
        self.id = f"{_PREFIXES[self._form]}_{uuid.uuid4().hex}"
        self._call = first

    @property
    def has_parts(self) -> bool:
        """Whether its text is in a part."""
        return self.kind != "call"

    def event(self, action: str) -> str:
        """Return the name of an event of its text."""
        return f"{_EVENTS[self._form]}.{action}"

    def whole(self) -> dict[str, Any]:
        """Return the members of the last event of its text."""
        logprobs = {"logprobs": self.logprobs} if self.kind == "content" else {}
        return {_MEMBERS[self._form]: "".join(self.texts), **logprobs}

    def part(self) -> dict[str, Any]:
        """Return its part."""
        text = "".join(self.texts)
        if self.kind == "reasoning":
            return {"type": "reasoning_text", "text": text}
        # The list of a part that is sent does not grow.
        logprobs = list(self.logprobs)
        return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}

    def value(self, status: str) -> dict[str, Any]:
        """Return the item as far as it is written."""
        head: dict[str, Any] = {"id": self.id, "status": status}
        parts = [] if status == "in_progress" else [self.part()]
        if self.kind == "content":
            return {**head, "type": "message", "role": "assistant", "content": parts}
        if self.kind == "reasoning":
            return {**head, "type": "reasoning", "summary": [], "content": parts}
        call = {"call_id": self._call.call_id, "name": self._call.text, **self.whole()}
        return {**head, "type": f"{_CALLS[self._form]}_call", **call}


_MEMBERS = {"content": "text", "reasoning": "text", "call": "arguments", "custom": "input"}
_CALLS = {"call": "function", "custom": "custom_tool"}


def _usage(ending: Ending, prompt_tokens: int) -> Mapping[str, Any]:
    """Return the tokens of a response; `forced_tokens` and weights are this server's own."""
    return {
        "input_tokens": prompt_tokens,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": ending.tokens,
        "output_tokens_details": {
            "reasoning_tokens": ending.reasoning,
            "forced_tokens": ending.forced,
            **weights([ending.log_masses]),
        },
        "total_tokens": prompt_tokens + ending.tokens,
    }
