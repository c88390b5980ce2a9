"""From a request to its sequences: prompt, grammar, matchers."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Literal, TypeAlias, TypeVar

import ffwd
from ffwd import CompiledGrammar, DeadlineExceededError, LimitExceededError, Matcher
from ffwd.adapters.server.asking import Asked, Reader
from ffwd.adapters.server.custom_tools import is_custom
from ffwd.adapters.server.deltas import AnswerReader
from ffwd.adapters.server.ends import ends_of
from ffwd.adapters.server.errors import BAD_INPUT, ApiError, bad, of_ffwd
from ffwd.adapters.server.loading import LoadedModel
from ffwd.adapters.server.logprobs import scores_of
from ffwd.adapters.server.messages import may_reason, render_chat
from ffwd.adapters.server.options import ServerOptions
from ffwd.adapters.server.penalties import adjustments_of
from ffwd.adapters.server.protocol import (
    ChatRequest,
    CompletionRequest,
    Request,
    TokenizeRequest,
    read_chat,
    read_completion,
)
from ffwd.adapters.server.sampling import Sampling
from ffwd.adapters.server.streams import Stream
from ffwd.adapters.server.texts import Text
from ffwd.adapters.server.tool_forms import nested
from ffwd.adapters.server.tool_marks import with_strictness
from ffwd.adapters.shared.cache import GrammarCache
from ffwd.adapters.shared.metrics import GrammarMetrics
from ffwd.adapters.shared.requests import GrammarRequest
from ffwd.adapters.shared.warming import build_masks
from ffwd.chat import Start

_BOUNDS = {"least": (10_000, 1 << 14), "small": (100_000, 1 << 16)}
"""Elementary steps, of compiling a grammar and of each of its first calls, and bytes of a schema or
grammar: about 2 and 15 ms. Reading the bytes takes time with Python's lock held, and no steps."""
_SECONDS = 2.0
_PROCESSOR_SECONDS = 0.25
"""If those seconds are over and less of the processor was used, others kept the machine busy."""
_MOST_REMEMBERED = 4096
_SMALLER = ("compile_steps", "call_steps", "compile_seconds", "call_seconds")

Effort: TypeAlias = Literal["least", "small", "any"]
"""What preparing a request may cost: two bounds, or all that the limits of the server allow."""
EFFORTS: tuple[Effort, ...] = ("least", "small", "any")

_Number = TypeVar("_Number", int, float)


class TooMuchEffort(Exception):  # noqa: N818 - no error: the request goes another way
    """A request needs more effort than it was given."""


# The messages of a request that only names a grammar.
_EXAMPLE = [{"role": "user", "content": "a"}]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rendered:
    """A request's prompt, and the constraint on its answer."""

    request: Request
    asked: Asked
    key: GrammarRequest
    """What the grammar depends on."""
    begin: Callable[[CompiledGrammar], Start]
    """Where the answer begins under a grammar."""
    stops: tuple[str, ...]
    limit: int | None
    limit_param: str
    prompt_param: str = "messages"
    others: tuple["Rendered", ...] = ()
    """The request with its further prompts."""

    @property
    def plain(self) -> bool:
        """Whether the answer is any text."""
        return self.asked.param is None


class Preparer:
    """Makes texts of requests; any number of threads may use it.

    Args:
        loaded: The model.
        options: Limits.
        metrics: Where grammars are counted.

    """

    def __init__(
        self, loaded: LoadedModel, options: ServerOptions, metrics: GrammarMetrics | None = None
    ) -> None:
        self._loaded = loaded
        self._options = options
        self._read = Reader(loaded.tool_format, loaded.no_tool_format, options.writing)
        self.cache = GrammarCache(
            loaded.vocabulary,
            max_bytes=options.grammar_cache_bytes,
            limits=options.limits,
            read=self._read,
            metrics=metrics,
        )
        limits = options.limits
        self._compiling = {"any": limits} | {
            effort: replace(
                limits,
                compile_steps=_least(limits.compile_steps, steps),
                compile_seconds=_least(limits.compile_seconds, _SECONDS),
            )
            for effort, (steps, _) in _BOUNDS.items()
        }
        self._calling = {"any": limits} | {
            effort: replace(
                limits,
                call_steps=_least(limits.call_steps, steps),
                call_seconds=_least(limits.call_seconds, _SECONDS),
            )
            for effort, (steps, _) in _BOUNDS.items()
        }
        # By hash, because texts may be long. A collision only causes more caution.
        self._efforts: dict[int, Effort] = {}
        self._lock = Lock()

    def text_ids(self, text: str, *, special: bool, param: str = "prompt") -> list[int]:
        """Return the ids of a prompt that is a text, with the tokens before it or without.

        Raises:
            ApiError: It cannot be encoded.

        """
        tokenizer = self._loaded.tokenizer
        try:
            return [*(tokenizer.prefix_ids if special else ()), *tokenizer.encode(text)]
        except BAD_INPUT as error:
            raise of_ffwd(error, param) from error

    def chat_ids(self, request: TokenizeRequest) -> list[int]:
        """Return the ids of a chat, as it is rendered; errors are those of `chat`."""
        chat = request.chat
        prompt = render_chat(self._loaded, chat, self._tools(chat))
        try:
            return prompt.ids
        except BAD_INPUT as error:
            raise of_ffwd(error, "messages") from error

    def _tools(self, request: ChatRequest) -> list[dict[str, Any]]:
        tools = request.tools or []
        if len(tools) > self._options.max_tools:
            raise bad(
                f"{len(tools)} tools; this server takes {self._options.max_tools}", param="tools"
            )
        return nested(tools)

    def chat(self, request: ChatRequest) -> Rendered:
        """Return the prompt of a chat.

        Raises:
            ApiError: What is wrong with the request.

        """
        self._check(request)
        tools = self._tools(request)
        asked = Asked(
            response_format=request.response_format,
            structured=request.structured_outputs,
            tools=with_strictness(tools, request.tool_choice, self._options.tool_strictness),
            tool_choice=request.tool_choice,
            parallel=request.parallel_tool_calls is not False,
        )
        prompt = render_chat(self._loaded, request, tools)
        style = self._loaded.tool_format
        # If messages of other channels are part of the format, it defines the reasoning.
        in_grammar = asked.calls and style is not None and style.repeat_before

        def begin(grammar: CompiledGrammar) -> Start:
            return prompt.start(grammar, reasoning_in_grammar=in_grammar)

        return Rendered(
            request=request,
            asked=asked,
            key=asked.key(may_reason=may_reason(self._loaded, prompt, tools)),
            begin=begin,
            stops=(*request.stops, *prompt.stop),
            limit=request.limit,
            limit_param=request.limit_param,
        )

    def completion(self, request: CompletionRequest) -> Rendered:
        """Return the prompt of a completion; errors are those of `chat`."""
        self._check(request)
        asked = Asked(
            response_format=request.response_format, structured=request.structured_outputs
        )
        texts = len(request.prompts) * (request.n or 1)
        if texts > self._options.max_texts:
            raise bad(
                f"`prompt` and `n` ask for {texts} texts; this server takes "
                f"{self._options.max_texts} in a request",
                param="prompt",
            )
        key = asked.key(may_reason=False)

        def rendered(param: str, ids: Sequence[int], others: tuple[Rendered, ...]) -> Rendered:
            return Rendered(
                request=request,
                asked=asked,
                key=key,
                begin=lambda grammar: Start(grammar=grammar, prompt_ids=tuple(ids)),
                stops=tuple(request.stops),
                limit=request.limit,
                limit_param=request.limit_param,
                prompt_param=param,
                others=others,
            )

        prompts = [(param, self._prompt_ids(prompt, param)) for param, prompt in request.prompts]
        others = tuple(rendered(param, ids, ()) for param, ids in prompts[1:])
        return rendered(*prompts[0], others)

    def _prompt_ids(self, prompt: str | list[int], param: str) -> list[int]:
        if isinstance(prompt, str):
            ids = self.text_ids(prompt, special=True, param=param)
        else:
            ids = prompt
            size = self._loaded.vocabulary.vocab_size
            for place, token in enumerate(ids):
                if not 0 <= token < size:
                    raise bad(
                        f"token {token} is not one of the {size} of the model",
                        param=f"{param}[{place}]",
                    )
        if not ids:
            raise bad(f"`{param}` is empty", param=param)
        return ids

    def named(self, line: dict[str, Any]) -> Rendered:
        """Return the constraint of a line of the file of grammars to warm.

        Raises:
            ValueError: What is wrong with the line.

        """
        try:
            if self._loaded.template is None:
                rendered = self.completion(read_completion({"prompt": [0], **line}))
            else:
                rendered = self.chat(read_chat({"messages": _EXAMPLE, **line}))
        except ApiError as error:
            raise ValueError(str(error)) from error
        if rendered.plain:
            raise ValueError(
                "the line allows any text: give `response_format`, `structured_outputs` or `tools`"
            )
        return rendered

    def warm(self, rendered: Rendered) -> None:
        """Compile a grammar and build its first masks.

        Raises:
            FfwdError: The grammar is refused.
            ValueError: Likewise.

        """
        try:
            grammar = self.cache.get(rendered.key, counts=False)
        except ApiError as error:
            raise ValueError(str(error)) from error
        matcher = rendered.begin(grammar).matcher()
        matcher.fast_forward_tokens()
        matcher.fill_bitmask(ffwd.allocate_bitmask(1, self._loaded.vocabulary.vocab_size), 0)
        build_masks(grammar)

    def effort(self, rendered: Rendered) -> Effort:
        """Return the least effort that a request may take, as far as that is known."""
        with self._lock:
            return self._efforts.get(hash(rendered.key), "least")

    def is_kept(self, rendered: Rendered) -> bool:
        """Return whether its grammar is compiled already."""
        return self.cache.kept(rendered.key) is not None

    def texts(
        self, rendered: Rendered, stream: Stream, *, deadline: float, effort: Effort = "any"
    ) -> list[Text]:
        """Return the sequences to generate, one for each choice: `n` for each prompt.

        Raises:
            ApiError: What is wrong with the request.
            TooMuchEffort: It takes more than `effort`. What was compiled is kept.

        """
        n = rendered.request.n or 1
        return [
            text
            for place, prompt in enumerate((rendered, *rendered.others))
            for text in self._texts(prompt, stream, deadline, effort, first_index=place * n)
        ]

    def _texts(
        self,
        rendered: Rendered,
        stream: Stream,
        deadline: float,
        effort: Effort,
        *,
        first_index: int,
    ) -> list[Text]:
        asked, request = rendered.asked, rendered.request
        began = time.thread_time()
        try:
            start, matcher, limit, complete = self._first(rendered, effort)
        except TooMuchEffort as error:
            spent = time.thread_time() - began
            by_clock = isinstance(error.__cause__, DeadlineExceededError)
            # It can stay this small another time.
            if not by_clock or spent >= _PROCESSOR_SECONDS:
                self._remember(rendered, EFFORTS[EFFORTS.index(effort) + 1])
            raise
        if effort == "small":
            # Other requests of its grammar find the built states.
            self._remember(rendered, "least")
        vocabulary = self._loaded.vocabulary
        ends = ends_of(
            request,
            eos=vocabulary.eos_token_ids,
            vocab_size=vocabulary.vocab_size,
            max_tokens=limit,
            limit_param=rendered.limit_param,
            max_stops=self._options.max_stops,
        )
        texts = []
        for index in range(request.n or 1):
            own = matcher.fork() if index else matcher
            try:
                reader = AnswerReader(
                    own,
                    start=start,
                    stops=rendered.stops,
                    tool_format=self._loaded.tool_format,
                    tools=dict(map(_schema, asked.tools)),
                    tracked=request.num_top is not None,
                    early_stops=not request.min_tokens,
                )
            except BAD_INPUT as error:
                raise of_ffwd(error, "stop") from error
            texts.append(
                Text(
                    prompt_ids=start.prompt_ids,
                    matcher=own,
                    reader=reader,
                    sampling=self._sampling(request, index),
                    max_tokens=limit,
                    free=complete and asked.calls,
                    named=asked.named,
                    stream=stream,
                    index=first_index + index,
                    deadline=deadline,
                    heavy=effort == "any",
                    scores=scores_of(request, start),
                    ends=ends,
                    adjustments=adjustments_of(request, vocabulary.vocab_size),
                )
            )
        return texts

    def _first(self, rendered: Rendered, effort: Effort) -> tuple[Start, Matcher, int, bool]:
        """Return the start of the answer: ids, a matcher, its token limit, and completeness.

        Steps decide whether it takes more than `effort`, so that the same request goes the same way
        each time; the clock does only where a step takes very long.
        """
        asked, request, key = rendered.asked, rendered.request, rendered.key
        was_kept = self.is_kept(rendered)
        if effort in _BOUNDS and not was_kept and len(key.text) > _BOUNDS[effort][1]:
            raise TooMuchEffort
        complete = asked.structured and request.complete is not False
        try:
            # Its calls have the server's limits, because all requests share the grammar.
            grammar = self.cache.get(key, limits=self._compiling[effort])
            start = rendered.begin(grammar)
            limit = self._limit(rendered, len(start.prompt_ids))
            matcher = start.matcher(
                max_tokens=limit if complete else None, limits=self._calling[effort]
            )
            # The states of the first step are built here, where no other text waits for them.
            if effort != "least" or not was_kept:
                matcher.fast_forward_tokens()
                bits = ffwd.allocate_bitmask(1, self._loaded.vocabulary.vocab_size)
                matcher.fill_bitmask(bits, 0)
        except BAD_INPUT as error:
            self._check_effort(error)
            raise of_ffwd(error, asked.param, budget_param=rendered.limit_param) from error
        return start, matcher.fork(limits=self._options.limits), limit, complete

    def _check_effort(self, error: Exception) -> None:
        """Raise `TooMuchEffort` if a limit other than the server's was exceeded."""
        if not isinstance(error, LimitExceededError) or error.limit not in _SMALLER:
            return
        allowed = getattr(self._options.limits, error.limit)
        if allowed is None or error.maximum < allowed:
            raise TooMuchEffort from error

    def _remember(self, rendered: Rendered, effort: Effort) -> None:
        with self._lock:
            self._efforts.pop(hash(rendered.key), None)
            if effort == "least":
                return
            if len(self._efforts) >= _MOST_REMEMBERED:
                self._efforts.clear()
            self._efforts[hash(rendered.key)] = effort

    def _check(self, request: Request) -> None:
        if request.n is not None and request.n > self._options.max_n:
            raise bad(f"`n` is {request.n}; this server takes {self._options.max_n}", param="n")
        if len(request.stops) > self._options.max_stops:
            raise bad(
                f"{len(request.stops)} stop strings; this server takes {self._options.max_stops}",
                param="stop",
            )
        if request.stream_options is not None and not request.stream:
            raise bad(
                "`stream_options` is for streams: give `stream: true`", param="stream_options"
            )

    def _limit(self, rendered: Rendered, prompt_tokens: int) -> int:
        longest = self._loaded.max_model_len
        left = longest - prompt_tokens
        asked = rendered.limit
        if left < 1 or (asked is not None and asked > left):
            wanted = "" if asked is None else f" and {asked} of the answer"
            raise bad(
                f"this model's context has {longest} tokens, and the request needs "
                f"{prompt_tokens} of the prompt{wanted}",
                param=rendered.limit_param if left >= 1 else rendered.prompt_param,
                code="context_length_exceeded",
            )
        return min(left, self._options.default_max_tokens) if asked is None else asked

    def _sampling(self, request: Request, index: int) -> Sampling:
        loaded = self._loaded
        chance = random.Random() if request.seed is None else random.Random(request.seed + index)

        def given(value: float | None, default: float) -> float:
            return default if value is None else value

        return Sampling(
            temperature=given(request.temperature, loaded.temperature),
            top_p=given(request.top_p, loaded.top_p),
            top_k=max(int(given(request.top_k, loaded.top_k)), 0),
            min_p=given(request.min_p, 0.0),
            chance=chance,
        )


def _schema(tool: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """Return the name of a tool and its schema; None for a custom tool."""
    inner = tool[tool["type"]]
    return str(inner["name"]), None if is_custom(tool) else inner.get("parameters") or {}


def _least(limit: _Number | None, other: _Number) -> _Number:
    return other if limit is None else min(limit, other)
