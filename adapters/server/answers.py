"""The objects of responses: whole answers, and the chunks of streams."""

import json
import math
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ffwd.adapters.server.deltas import Delta
from ffwd.adapters.server.errors import ApiError
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.logprobs import Listing, Scored
from ffwd.adapters.server.protocol import ChatRequest, Request
from ffwd.adapters.server.streams import Ending


def encoded(value: Any) -> bytes:
    """JSON in UTF-8; a lone surrogate, which UTF-8 lacks, as its escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", errors="backslashreplace")


def event(value: Any) -> bytes:
    """Return one event of a stream; one that has a `type` is named by it."""
    name = f"event: {value['type']}\n" if "type" in value else ""
    return name.encode() + b"data: " + encoded(value) + b"\n\n"


DONE = b"data: [DONE]\n\n"


@dataclass
class Choice:
    """One of the texts of an answer, as it grows."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[Scored] = field(default_factory=list)
    ending: Ending | None = None

    def add(self, deltas: Sequence[Delta], tokens: Sequence[Scored] = ()) -> None:
        """Append deltas, and the tokens of their content."""
        self.tokens += tokens
        for delta in deltas:
            if delta.kind == "content":
                self.content.append(delta.text)
            elif delta.kind == "reasoning":
                self.reasoning.append(delta.text)
            elif delta.kind == "call":
                self.calls.append(
                    {
                        "id": delta.call_id,
                        "name": delta.text,
                        "arguments": [],
                        "custom": delta.custom,
                    }
                )
            else:
                self.calls[delta.index]["arguments"].append(delta.text)

    @property
    def text(self) -> str:
        """The content."""
        return "".join(self.content)

    def message(self) -> dict[str, Any]:
        """Return the assistant's message."""
        message: dict[str, Any] = {
            "role": "assistant",
            "content": None if self.calls and not self.content else self.text,
            "refusal": None,
        }
        if self.reasoning:
            message["reasoning_content"] = "".join(self.reasoning)
        if self.calls:
            message["tool_calls"] = [
                {
                    "id": call["id"],
                    **_called(call["custom"], "".join(call["arguments"]), call["name"]),
                }
                for call in self.calls
            ]
        return message


class Envelope:
    """The common members of all objects of one answer.

    Args:
        loaded: The model.
        request: What is answered.
        prompt_tokens: How many tokens its prompts have.

    """

    done = DONE
    """What ends a stream after its last event."""

    def __init__(self, loaded: LoadedModel, request: Request, prompt_tokens: int) -> None:
        options = request.stream_options
        self._chat = chat = isinstance(request, ChatRequest)
        self._listing = None if request.num_top is None else Listing(loaded.tokenizer, chat=chat)
        self._prompt_tokens = prompt_tokens
        self._with_usage = options is not None and options.include_usage
        self._model = loaded.name
        self._id = f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}"
        self._created = int(time.time())

    def choice(self) -> Choice:
        """Return what collects the deltas of an answer that is sent at once."""
        return Choice()

    def whole(self, choices: Sequence[Choice]) -> dict[str, Any]:
        """Return an answer that is sent at once."""
        listed = []
        for index, choice in enumerate(choices):
            said: dict[str, Any] = (
                {"message": choice.message()} if self._chat else {"text": choice.text}
            )
            reason = None if choice.ending is None else choice.ending.reason
            logprobs = None if self._listing is None else self._listing.of(choice.tokens)
            listed.append({"index": index, **said, "logprobs": logprobs, "finish_reason": reason})
        return {
            **self._head("chat.completion"),
            "choices": listed,
            "usage": usage([choice.ending for choice in choices], self._prompt_tokens),
        }

    def first(self, index: int) -> list[dict[str, Any]]:
        """Return the first chunks of a stream's choice."""
        if not self._chat:
            return []
        return [self._chunk(index, {"delta": {"role": "assistant", "content": ""}}, None)]

    def chunks(
        self,
        index: int,
        deltas: Sequence[Delta],
        ending: Ending | None,
        tokens: Sequence[Scored] = (),
    ) -> Iterator[dict[str, Any]]:
        """Return the chunks of deltas, with the tokens of their content, and of an end."""
        for delta in merged(deltas):
            said = {"delta": _delta(delta)} if self._chat else {"text": delta.text}
            logprobs = None
            if self._listing is not None and delta.kind == "content":
                logprobs, tokens = self._listing.of(tokens), ()
            yield self._chunk(index, said, None, logprobs)
        if ending is not None:
            yield self._chunk(index, {"delta": {}} if self._chat else {"text": ""}, ending.reason)

    def failed(self, error: ApiError) -> dict[str, Any]:
        """Return the event of a stream that ends with an error."""
        return error.body()

    def last(self, endings: Sequence[Ending | None]) -> list[dict[str, Any]]:
        """Return the chunk with the usage, if the request has that option."""
        if not self._with_usage:
            return []
        used = {"choices": [], "usage": usage(endings, self._prompt_tokens)}
        return [{**self._head("chat.completion.chunk"), **used}]

    def _chunk(
        self,
        index: int,
        said: dict[str, Any],
        reason: str | None,
        logprobs: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        choice = {"index": index, **said, "logprobs": logprobs, "finish_reason": reason}
        usage = {"usage": None} if self._with_usage else {}
        return {**self._head("chat.completion.chunk"), "choices": [choice], **usage}

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self._id,
            "object": kind if self._chat else "text_completion",
            "created": self._created,
            "model": self._model,
        }


def usage(endings: Sequence[Ending | None], prompt_tokens: int) -> dict[str, Any]:
    """Return how many tokens a request took; `forced_tokens` and weights are this server's own."""
    ended = [ending for ending in endings if ending is not None]
    masses = [None if ending is None else ending.log_masses for ending in endings]
    tokens = sum(ending.tokens for ending in ended)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": tokens,
        "total_tokens": prompt_tokens + tokens,
        "completion_tokens_details": {
            "reasoning_tokens": sum(ending.reasoning for ending in ended),
            "forced_tokens": sum(ending.forced for ending in ended),
            **weights(masses),
        },
    }


def weights(masses: Sequence[tuple[float, ...] | None]) -> dict[str, Any]:
    """Return the members with the log masses and the log weight of each choice, if one has them."""
    if all(each is None for each in masses):
        return {}
    return {
        "log_weights": [None if each is None else math.fsum(each) for each in masses],
        "log_masses": [None if each is None else list(each) for each in masses],
    }


def merged(deltas: Sequence[Delta]) -> Iterator[Delta]:
    """Merge adjacent deltas of one kind, so that a slow client gets larger pieces."""
    texts: list[str] = []
    last: Delta | None = None
    for delta in deltas:
        if last is not None and (
            delta.kind != last.kind or delta.index != last.index or delta.kind == "call"
        ):
            yield replace(last, text="".join(texts))
            texts = []
        texts.append(delta.text)
        last = delta
    if last is not None:
        yield replace(last, text="".join(texts))


def _delta(delta: Delta) -> dict[str, Any]:
    if delta.kind == "content":
        return {"content": delta.text}
    if delta.kind == "reasoning":
        return {"reasoning_content": delta.text}
    call: dict[str, Any] = {"index": delta.index}
    if delta.kind == "call":
        call |= {"id": delta.call_id, **_called(delta.custom, "", delta.text)}
    else:
        call |= _called(delta.custom, delta.text)
        # The type comes once, with the id.
        del call["type"]
    return {"tool_calls": [call]}


def _called(custom: bool, arguments: str, name: str | None = None) -> dict[str, Any]:
    """Return the type of a call, and what is called with which arguments or input."""
    kind, member = ("custom", "input") if custom else ("function", "arguments")
    named = {} if name is None else {"name": name}
    return {"type": kind, kind: {**named, member: arguments}}
