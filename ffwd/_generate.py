"""`ffwd.generate`: from a model, its tokenizer, messages and a schema to a value, in one call.

What generates is in `ffwd.adapters.transformers`, which is imported when one of these is called.
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
        Stream,
    )

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])
Conversation: TypeAlias = str | Sequence[Mapping[str, Any]]
Typed: TypeAlias = type[T] | TypedSchema[T]
"""A schema whose values have a type."""

# The options stand in every overload, for type checkers and editors know no other way to say them
# together with options of others; tests/typed/ holds them equal.


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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> Any:
    """An answer that follows a schema, as a value.

        class Person(pydantic.BaseModel):
            name: str
            born: int

        messages = [{"role": "user", "content": "Who was Ada Lovelace?"}]
        generation = ffwd.generate(model, tokenizer, messages, Person)
        generation.value  # a Person
        generation.text, generation.finish_reason, generation.stats

    The chat template is rendered so that no message becomes a control token, the grammar begins
    where the prompt ends, forced tokens take no forward pass, and the text is complete within
    `max_new_tokens`. How tokens are chosen, the model's generation config says, as always.

    Args:
        model: A decoder-only model of transformers.
        tokenizer: Its tokenizer: transformers' object, or whatever `ffwd.tokenizer.load` reads.
        messages: A conversation: messages with `role` and `content`; or a prompt as text, which is
            given to the model as it stands. Where the last message is the assistant's, the answer
            goes on from it. A list of conversations is a batch, and has a list of answers.
        schema: What the answer is: a Python type (`ffwd.schema_of`), a JSON Schema as a dict or
            JSON text, or any grammar of ffwd, also one that is compiled.
        max_new_tokens: How many tokens the answer takes at most, reasoning and end token included;
            by default what the generation config says, otherwise 1,024 or what the context has room
            for.
        complete: Leave only tokens after which the text can still end within `max_new_tokens`.
            Without it the text may be cut off, and then has no `value`.
        reasoning: The model may reason before it answers, between `<think>` and `</think>`. (Where
            the chat template has opened its reasoning, it does in any case.)
        whitespace: Where whitespace may stand in JSON, for a schema; see `ffwd.json_schema`.
        property_order: In which order properties come, likewise. All other options of
            `ffwd.json_schema` but `registry` are taken, too, such as `numbers`.
        canonical: Leave only tokens with which the tokenizer itself would have cut the text.
        fast_forward: Whether forced tokens skip the model, and how. False for beam search and
            assisted decoding.
        tools: What the chat template is told of tools.
        template_variables: What else it reads, such as `enable_thinking`.
        report: Filled with what happened, token by token if it is asked to.
        should_stop: Asked after every token; the answer ends there once it is true.
        **generate_options: Of `model.generate`: `do_sample`, `temperature`, `generation_config` ….

    Returns:
        A `Generation`: `value`, `text`, `complete`, `finish_reason`, `reasoning`, `tokens`,
        `stats`. A list of them for a batch.

    Raises:
        ImportError: torch or transformers are not installed.
        BudgetError: No text of the grammar ends within `max_new_tokens`.
        ChatError: There is no chat template, or it refuses the messages.
        UnsupportedTypeError: The type has no JSON Schema.
        VocabularyError: The tokenizer cannot be read, or belongs to another model.
        FfwdError: What is wrong with a schema or grammar; see `ffwd.compile`.
        TypeError: An argument is of another kind; the message says what would do.
        ValueError: There is no message, or no room for an answer.

    Warns:
        UnknownKeywordWarning: The schema has a keyword that is none, and looks like one.

    """
    return _chat_model(model, tokenizer).generate(
        messages,
        schema,
        max_new_tokens=max_new_tokens,
        complete=complete,
        reasoning=reasoning,
        whitespace=whitespace,
        property_order=property_order,
        canonical=canonical,
        fast_forward=fast_forward,
        tools=tools,
        template_variables=template_variables,
        report=report,
        should_stop=should_stop,
        **generate_options,
    )


def _options_of_generate(function: Function) -> Function:
    """Shows `help` and notebooks the options of `generate` where a function takes the same ones."""
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
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
    """`generate` on a thread of its own, so that an event loop goes on.

        generation = await ffwd.generate_async(model, tokenizer, messages, Person)

    A task that is cancelled (`asyncio.timeout`, `task.cancel()`) stops the model after its current
    forward pass, and only then ends. Arguments and errors are those of `generate`.
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
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
    whitespace: Whitespace | None = None,
    property_order: PropertyOrder | None = None,
    canonical: bool = False,
    fast_forward: bool | FastForward = True,
    tools: Sequence[Any] | None = None,
    template_variables: Mapping[str, Any] | None = None,
    report: GenerationReport | None = None,
    should_stop: Callable[[], bool] | None = None,
    **generate_options: Any,
) -> Stream[Any]: ...


@_options_of_generate
def stream(
    model: Any, tokenizer: Any, messages: Conversation, schema: Any, **options: Any
) -> Stream[Any]:
    """An answer that follows a schema, while it is written.

        with ffwd.stream(model, tokenizer, messages, Person) as stream:
            for chunk in stream:
                print(chunk.text, end="", flush=True)
        person = stream.result().value

    A chunk has `text`, and the `events` that have become certain: which value has begun or ended,
    and where (`Matcher.events`). `async for` works likewise. Leaving the `with` stops the model.

    Arguments and errors are those of `generate`; errors of the model come where chunks are taken.
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
