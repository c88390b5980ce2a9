"""`ffwd.generate`: a value from a model, its tokenizer, messages and a schema, in one call.

The generation itself is in `ffwd.adapters.transformers`, which is imported by the first call.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from ffwd.grammar import PropertyOrder, TypedSchema, Whitespace

if TYPE_CHECKING:
    from ffwd.adapters.transformers import (
        ChatModel,
        FastForward,
        Generation,
        GenerationReport,
        Sampling,
        Stream,
    )

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])
Conversation: TypeAlias = str | Sequence[Mapping[str, Any]]
Typed: TypeAlias = type[T] | TypedSchema[T]
"""A schema whose values have a type."""

# Every overload repeats the options, because type checkers and editors have no other way to combine
# them with further options. tests/typed/ checks that they are equal.


@overload
def generate(
    model: Any,
    tokenizer: Any,
    messages: Conversation,
    schema: Typed[T],
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> Generation[T]: ...


@overload
def generate(
    model: Any,
    tokenizer: Any,
    messages: Sequence[Conversation],
    schema: Typed[T],
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> list[Generation[T]]: ...


@overload
def generate(
    model: Any,
    tokenizer: Any,
    messages: Conversation,
    schema: Any,
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> Generation[Any]: ...


@overload
def generate(
    model: Any,
    tokenizer: Any,
    messages: Sequence[Conversation],
    schema: Any,
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> list[Generation[Any]]: ...


def generate(
    model: Any,
    tokenizer: Any,
    messages: Conversation | Sequence[Conversation],
    schema: Any,
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> Any:
    """Generate an answer that follows a schema, and return its value.

        class Person(pydantic.BaseModel):
            name: str
            born: int

        messages = [{"role": "user", "content": "Who was Ada Lovelace?"}]
        generation = ffwd.generate(model, tokenizer, messages, Person)
        generation.value  # a Person
        generation.text, generation.finish_reason, generation.stats

    The chat template is rendered so that no message becomes a control token. The grammar starts at
    the end of the prompt, forced tokens take no forward pass, and the answer is complete within
    `max_new_tokens`. The model's generation config controls sampling, as always.

    Args:
        model: A decoder-only model of transformers.
        tokenizer: Its tokenizer: transformers' object, or anything that `ffwd.tokenizer.load`
            reads.
        messages: A conversation: messages with `role` and `content`; or a prompt as text, which is
            passed to the model unchanged. If the last message is the assistant's, the answer
            continues it. A list of conversations is a batch and returns a list.
        schema: The form of the answer: a Python type (`ffwd.schema_of`), a JSON Schema as a dict or
            JSON text, or any grammar of ffwd, compiled or not.
        max_new_tokens: The most tokens of the answer, reasoning and end token included. The default
            is that of the generation config, otherwise 1,024 or the room left in the context.
        complete: Allow only tokens after which the answer can still end within `max_new_tokens`.
            Without it the answer may be truncated, and then has no `value`.
        reasoning: Let the model reason before it answers, between `<think>` and `</think>`. It
            always does if the chat template opens its reasoning.
        reasoning_tokens: Let the model reason first in any case, in at most this number of tokens.
        draft_tokens: Let the model first answer freely, in at most this number of tokens. The
            draft becomes a message of the conversation, the user's last message is repeated, and
            the answer follows. It takes a second prompt, and is not for streams.
        whitespace: The whitespace in JSON, for a schema; see `ffwd.json_schema`.
        property_order: The order of properties; see `ffwd.json_schema`, whose other options except
            `registry` are accepted too, such as `numbers`.
        canonical: Allow only tokens that keep the output a tokenization of the tokenizer itself.
        fast_forward: Whether and how forced tokens skip the model. False for beam search and
            assisted decoding.
        tools: The tools that the chat template receives.
        template_variables: Its other variables, such as `enable_thinking`.
        report: An object that is filled with statistics, token by token if it asks for that.
        masses: Report `log_masses` and `log_weight` of the answer: how much of the model's
            probability the grammar allowed at each token. Costs a log-sum-exp of each row of
            logits, and a pass over forced tokens at the end.
        sampling: `"masks"` samples token by token under masks. The others sample from the model
            given the grammar: of `particles` texts one is drawn by its importance weight.
            `"weighted"` writes them in one batch, `"smc"` also ends texts of little weight and
            continues others instead, and `"adaptive"` writes them one after the other and learns
            what to avoid. More texts come closer. The temperature applies; cuts, penalties and
            streams are refused.
        particles: The number of these texts, by default 16.
        should_stop: A function called after every token; the answer ends when it returns true.
        **generate_options: Options of `model.generate`: `do_sample`, `temperature`, ….

    Returns:
        A `Generation`: `value`, `text`, `complete`, `finish_reason`, `reasoning`, `tokens`,
        `stats`. A list of them for a batch.

    Raises:
        ImportError: torch or transformers are not installed.
        BudgetError: No accepted output ends within `max_new_tokens`.
        ChatError: The chat template is missing or rejects the messages.
        UnsupportedTypeError: The type has no JSON Schema.
        VocabularyError: The tokenizer cannot be read, or belongs to another model.
        FfwdError: The schema or grammar is invalid; see `ffwd.compile`.
        TypeError: An argument has another type, or does not go together with another one; the
            message names what does.
        NoTokenLeftError: The model gives no text of the grammar any probability.
        ValueError: The messages are empty, the context has no room for an answer, or `sampling`,
            `particles`, `reasoning_tokens` or `draft_tokens` has no such value.

    Warns:
        UnknownKeywordWarning: The schema has an unknown keyword that resembles a known one.
    """
    return _chat_model(model, tokenizer).generate(
        messages,
        schema,
        max_new_tokens=max_new_tokens,
        complete=complete,
        reasoning=reasoning,
        reasoning_tokens=reasoning_tokens,
        draft_tokens=draft_tokens,
        whitespace=whitespace,
        property_order=property_order,
        canonical=canonical,
        fast_forward=fast_forward,
        tools=tools,
        template_variables=template_variables,
        report=report,
        masses=masses,
        sampling=sampling,
        particles=particles,
        should_stop=should_stop,
        **generate_options,
    )


def _options_of_generate(function: Function) -> Function:
    """Copy `generate`'s options to a function's signature, for `help` and notebooks."""
    signature = inspect.signature(function)
    own = list(signature.parameters.values())[:-1]
    options = list(inspect.signature(generate).parameters.values())[len(own) :]
    function.__signature__ = signature.replace(parameters=[*own, *options])  # type: ignore[attr-defined]
    return function


@overload
async def generate_async(
    model: Any,
    tokenizer: Any,
    messages: Conversation,
    schema: Typed[T],
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> Generation[T]: ...


@overload
async def generate_async(
    model: Any,
    tokenizer: Any,
    messages: Sequence[Conversation],
    schema: Typed[T],
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> list[Generation[T]]: ...


@overload
async def generate_async(
    model: Any,
    tokenizer: Any,
    messages: Conversation,
    schema: Any,
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> Generation[Any]: ...


@overload
async def generate_async(
    model: Any,
    tokenizer: Any,
    messages: Sequence[Conversation],
    schema: Any,
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> list[Generation[Any]]: ...


@_options_of_generate
async def generate_async(
    model: Any,
    tokenizer: Any,
    messages: Conversation | Sequence[Conversation],
    schema: Any,
    **options: Any,
) -> Any:
    """Run `generate` on a separate thread, so that the event loop stays responsive.

        generation = await ffwd.generate_async(model, tokenizer, messages, Person)

    A cancelled task (`asyncio.timeout`, `task.cancel()`) stops the model after its current forward
    pass, and only then ends. Arguments and errors are those of `generate`.
    """
    return await _chat_model(model, tokenizer).generate_async(messages, schema, **options)


@overload
def stream(
    model: Any,
    tokenizer: Any,
    messages: Conversation,
    schema: Typed[T],
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> Stream[T]: ...


@overload
def stream(
    model: Any,
    tokenizer: Any,
    messages: Conversation,
    schema: Any,
    *,
    max_new_tokens: int | None = None,
    complete: bool = True,
    reasoning: bool = False,
    reasoning_tokens: int | None = None,
    draft_tokens: int | None = None,
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    masses: bool = False,
    sampling: Sampling = "masks",
    particles: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> Stream[Any]: ...


@_options_of_generate
def stream(
    model: Any, tokenizer: Any, messages: Conversation, schema: Any, **options: Any
) -> Stream[Any]:
    """Generate an answer that follows a schema, and yield its chunks as they are written.

        with ffwd.stream(model, tokenizer, messages, Person) as stream:
            for chunk in stream:
                print(chunk.text, end="", flush=True)
        person = stream.result().value

    A chunk has `text`, and the `events` that became certain: the values that began or ended, with
    their positions (`Matcher.events`). `async for` works as well. Leaving the `with` stops the
    model.

    Arguments and errors are those of `generate`; the iteration raises errors of the model.
    """
    return _chat_model(model, tokenizer).stream(messages, schema, **options)


def _chat_model(model: Any, tokenizer: Any) -> ChatModel:
    try:
        adapter = importlib.import_module("ffwd.adapters.transformers")
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("torch", "transformers", "tokenizers"):
            raise
        raise ImportError(
            f"generating needs {error.name}, which is not installed: pip install "
            "'ffwd[transformers]'",
            name=error.name,
        ) from error
    made: ChatModel = adapter.ChatModel(model, tokenizer)
    return made
