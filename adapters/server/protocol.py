"""The checked bodies of requests."""

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ffwd.adapters.server.errors import ApiError, bad, renamed, unsupported
from ffwd.adapters.server.tool_forms import field_of

IGNORED = frozenset(
    {"user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"}
    | {"prompt_cache_retention", "verbosity"}
)
"""Fields that change no answer here."""

REFUSED: dict[str, tuple[Any, str]] = {
    # Field: the value that is the same as none, and why another one is refused.
    "prompt_logprobs": (None, "the tokens of prompts are not scored"),
    "functions": ([], "it has been replaced by `tools`"),
    "function_call": (None, "it has been replaced by `tool_choice`"),
    "audio": (None, "the server writes text"),
    "prediction": (None, "forced tokens need no prediction"),
    "web_search_options": (None, "the server has no search"),
    "best_of": (1, "give `n`"),
    "echo": (False, "the prompt is not repeated"),
    "suffix": (None, "the text is continued at its end only"),
    "use_beam_search": (False, "answers are sampled"),
    "length_penalty": (1, "answers are sampled, without beams"),
    "bad_words": ([], "give `logit_bias` for tokens, or a grammar"),
    "allowed_token_ids": (None, "give a grammar"),
    "include_stop_str_in_output": (False, "answers end before their stop string"),
    "skip_special_tokens": (True, "answers have no control tokens"),
    "spaces_between_special_tokens": (True, "answers have no control tokens"),
    "return_token_ids": (False, "answers are text; /tokenize has the ids of a text"),
    "return_tokens_as_token_ids": (False, "`logprobs` has the bytes of tokens"),
    "logits_processors": (None, "give a grammar"),
    "moderation": (None, "the server has none"),
}

_Model = TypeVar("_Model", bound="AnyRequest")

NumTop = Annotated[int, Field(ge=0, le=20)]
"""How many of the likeliest tokens are listed."""
Bias = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
Penalty = Annotated[float, Field(ge=-2, le=2, allow_inf_nan=False)]
Probability = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class StreamOptions(BaseModel):
    """The options of a stream besides its deltas."""

    model_config = ConfigDict(extra="forbid")
    include_usage: bool = False
    include_obfuscation: bool | None = None


class StructuredOutputs(BaseModel):
    """vLLM's field of this name: exactly one constraint, and how JSON is written."""

    model_config = ConfigDict(extra="forbid")
    json_: dict[str, Any] | bool | str | None = Field(default=None, alias="json")
    json_object: bool | None = None
    regex: str | None = None
    choice: list[str] | None = None
    grammar: str | None = None
    structural_tag: str | dict[str, Any] | None = None
    disable_any_whitespace: bool = False


class AnyRequest(BaseModel):
    """A request that may name the model."""

    model_config = ConfigDict(extra="forbid", strict=True)
    model: str | None = None

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Name the fields of errors as the client has named them."""
        try:
            yield
        except ApiError as error:
            if error.param is None:
                raise
            raise renamed(error, self.field(error.param)) from error

    def field(self, param: str) -> str:
        """Return a field as the client calls it."""
        return param


class Request(AnyRequest):
    """The common fields of chats and completions."""

    max_tokens: Annotated[int, Field(ge=1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] | None = None
    top_p: Probability | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    seed: int | None = None
    n: Annotated[int, Field(ge=1)] | None = None
    stop: str | list[str] | None = None
    logit_bias: dict[str, Bias] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    repetition_penalty: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    min_tokens: Annotated[int, Field(ge=0)] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    structured_outputs: StructuredOutputs | None = None
    complete: bool | None = None
    """Of this server: whether an answer that follows a grammar always comes to its end within
    `max_tokens`; true by default."""
    masses: bool | None = None
    """Of this server: whether `usage` has the log masses and the log weight of each answer."""

    @property
    def num_top(self) -> int | None:
        """How many of the likeliest tokens are listed; None to list no tokens."""
        return None

    @property
    def stops(self) -> list[str]:
        """The stop strings."""
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or ())


class ChatRequest(Request):
    """The body of `/v1/chat/completions`."""

    messages: Annotated[list[dict[str, Any]], Field(min_length=1)]
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    response_format: dict[str, Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    modalities: list[Literal["text"]] | None = None
    reasoning_effort: str | None = None
    logprobs: bool | None = None
    top_logprobs: NumTop | None = None
    # As vLLM has them.
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    chat_template_kwargs: dict[str, Any] | None = None

    @property
    def num_top(self) -> int | None:
        """How many of the likeliest tokens are listed; None to list no tokens."""
        return (self.top_logprobs or 0) if self.logprobs else None

    @property
    def limit(self) -> int | None:
        """How many tokens an answer may have, as far as the request says."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def limit_param(self) -> str:
        """The field that says so."""
        return "max_tokens" if self.max_completion_tokens is None else "max_completion_tokens"

    def field(self, param: str) -> str:
        """Return a field as the client calls it: tools may be flat."""
        return field_of(param, self.tools or [])


class CompletionRequest(Request):
    """The body of `/v1/completions`."""

    prompt: str | list[int] | list[str] | list[list[int]]
    response_format: dict[str, Any] | None = None
    logprobs: NumTop | None = None

    @property
    def prompts(self) -> list[tuple[str, str | list[int]]]:
        """The prompts, each with the name of its field."""
        several = self.prompt
        if isinstance(several, str) or not several or isinstance(several[0], int):
            return [("prompt", several)]  # type: ignore[list-item]
        return [(f"prompt[{place}]", each) for place, each in enumerate(several)]  # type: ignore[misc]

    @property
    def num_top(self) -> int | None:
        """How many of the likeliest tokens are listed; None to list no tokens."""
        return self.logprobs

    @property
    def limit(self) -> int | None:
        """How many tokens a text may have, as far as the request says."""
        return self.max_tokens

    @property
    def limit_param(self) -> str:
        """The field that says so."""
        return "max_tokens"


class TokenizeRequest(AnyRequest):
    """The body of `/tokenize`: a text, or a chat as it is rendered."""

    prompt: str | None = None
    messages: Annotated[list[dict[str, Any]], Field(min_length=1)] | None = None
    tools: list[dict[str, Any]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    add_special_tokens: bool = True
    """Whether a text has the tokens that begin a prompt; a chat has those of its template."""
    return_token_strs: bool = False

    @property
    def chat(self) -> ChatRequest:
        """The chat that is rendered."""
        return ChatRequest(
            messages=self.messages or [],
            tools=self.tools,
            chat_template_kwargs=self.chat_template_kwargs,
            add_generation_prompt=self.add_generation_prompt,
            continue_final_message=self.continue_final_message,
        )

    def field(self, param: str) -> str:
        """Return a field as the client calls it: tools may be flat."""
        return field_of(param, self.tools or [])


class DetokenizeRequest(AnyRequest):
    """The body of `/detokenize`."""

    tokens: list[int]


_KINDS = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "null",
}
"""What the values of JSON beside objects are called."""


def read_json(data: bytes) -> dict[str, Any]:
    """Return the object in a body.

    Raises:
        ApiError: It is none.

    """
    try:
        value = json.loads(data, parse_constant=_no_constant)
    except RecursionError:
        raise bad("the body is nested too deeply") from None
    except ValueError as error:
        raise bad(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise bad(f"the body must be a JSON object, not {_KINDS[type(value)]}")
    return value


def read_chat(body: dict[str, Any]) -> ChatRequest:
    """Return the request of a chat.

    Raises:
        ApiError: A field is unknown, refused, or has a value that it cannot have.

    """
    fields = _known(body)
    if (modalities := fields.get("modalities")) not in (None, ["text"]):
        raise unsupported("modalities", f"the server writes text, not {modalities!r}")
    request = _validated(ChatRequest, fields)
    if request.top_logprobs and not request.logprobs:
        raise bad(
            "`top_logprobs` is for answers with log probabilities: give `logprobs: true`",
            param="top_logprobs",
        )
    return request


def read_completion(body: dict[str, Any]) -> CompletionRequest:
    """Return the request of a completion; errors are those of `read_chat`."""
    fields = _known(body)
    prompt = fields.get("prompt")
    parts = prompt if isinstance(prompt, list) else []
    kinds = [_KINDS.get(type(part), "an object") for part in parts]
    other = next((place for place, kind in enumerate(kinds) if kind != kinds[0]), None)
    if other is not None:
        raise bad(
            f"`prompt[{other}]` is {kinds[other]} and `prompt[0]` is {kinds[0]}: give strings, or "
            "lists of token ids, or the token ids of one prompt",
            param=f"prompt[{other}]",
            code="invalid_value",
        )
    return _validated(CompletionRequest, fields)


def read_tokenize(body: dict[str, Any]) -> TokenizeRequest:
    """Return the request for the tokens of a text or a chat; errors are those of `read_chat`."""
    fields = {name: value for name, value in body.items() if value is not None}
    request = _validated(TokenizeRequest, fields)
    if (request.prompt is None) == (request.messages is None):
        raise bad("give `prompt`, a text, or `messages`, and not both", param="prompt")
    if request.messages is None:
        for name in ("tools", "chat_template_kwargs", "continue_final_message"):
            if getattr(request, name):
                raise bad(f"`{name}` belongs to `messages`, and there are none", param=name)
    return request


def read_detokenize(body: dict[str, Any]) -> DetokenizeRequest:
    """Return the request for the text of tokens; errors are those of `read_chat`."""
    return _validated(DetokenizeRequest, body)


def checked(model: type[_Model], body: dict[str, Any]) -> _Model:
    """Return a request of another type; errors are those of `read_chat`."""
    return _validated(model, _known(body))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _known(body: dict[str, Any]) -> dict[str, Any]:
    """Return the known fields, without those that have no effect."""
    fields: dict[str, Any] = {}
    guided: dict[str, Any] = {}
    for name, value in body.items():
        if value is None or name in IGNORED:
            continue
        # Until 2025 vLLM had a field for each constraint.
        if name.startswith("guided_") and name != "guided_decoding_backend":
            guided[name.removeprefix("guided_")] = value
            continue
        if name in REFUSED:
            nothing, reason = REFUSED[name]
            if value != nothing:
                raise unsupported(name, reason)
            continue
        fields[name] = value
    if guided:
        if "structured_outputs" in fields:
            name = f"guided_{next(iter(guided))}"
            raise bad(f"give `structured_outputs` or `{name}`, not both", param=name)
        fields["structured_outputs"] = guided
    return fields


def _validated(model: type[_Model], fields: dict[str, Any]) -> _Model:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise _described(error) from None
    except RecursionError:
        raise bad("the body is nested too deeply") from None


def _described(error: ValidationError) -> ApiError:
    """Return the first error; of the branches of a union that of the longest match."""
    errors = error.errors(include_url=False, include_context=False)
    field = errors[0]["loc"][:1]
    first = max((e for e in errors if e["loc"][:1] == field), key=lambda e: len(e["loc"]))
    place = ""
    for step in first["loc"]:
        if isinstance(step, int):
            place += f"[{step}]"
        elif step.isidentifier() and not (place and step in ("str", "bool", "int")):
            # The others are branches of a union.
            place += f".{step}" if place else step
    if first["type"] == "extra_forbidden":
        return bad(f"there is no field `{place}`", param=place, code="unknown_parameter")
    if first["type"] == "missing":
        return bad(f"`{place}` is missing", param=place, code="missing_required_parameter")
    shown = first["input"]
    said = f", not {shown!r}" if isinstance(shown, (str, int, float, bool)) else ""
    if isinstance(shown, float) and not math.isfinite(shown):
        said = ""
    if len(said) > 100:
        said = ""
    return bad(f"`{place}`: {first['msg']}{said}", param=place, code="invalid_value")
