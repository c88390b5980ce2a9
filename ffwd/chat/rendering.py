"""One rendering of one conversation, equal to transformers' `apply_chat_template`."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ffwd.chat.errors import (
    ChatError,
    ConversationError,
    TemplateError,
    TemplateLimitError,
    TemplateRefusedError,
    TemplateSecurityError,
    TemplateSyntaxError,
    UndefinedVariableError,
)
from ffwd.chat.limits import TemplateLimits
from ffwd.chat.messages import plain, plain_messages
from ffwd.chat.tools import tool_schemas

if TYPE_CHECKING:
    from jinja2 import Template

# The names of a message's reasoning; templates read the first, gpt-oss's the second.
_REASONING = ("reasoning_content", "thinking", "reasoning")
_TAG = "CONTINUE_FINAL_MESSAGE_TAG "

# Roles that templates write into the names of control tokens (`<|user|>`). Any other role is text.
KNOWN_ROLES = frozenset(
    {"system", "developer", "user", "assistant", "tool", "function", "model", "human", "gpt"}
    | {"ipython", "observation", "environment", "documents", "document", "context"}
)
SPECIAL_VARIABLES = frozenset(
    f"{role}_token" for role in ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
)

_MOST_FOLDED = 1 << 12
"""Characters, and units of work, of constant expressions that are evaluated in advance."""


@dataclass(frozen=True)
class Job:
    """The input of a rendering; plain values throughout."""

    messages: list[dict[str, Any]]
    tools: list[Any] | None
    documents: list[Any] | None
    add_generation_prompt: bool
    continued: str | None
    """The field of the last message that is to be continued."""
    variables: dict[str, Any]
    """What the caller gave by name."""
    special_tokens: Mapping[str, str]
    now: datetime


def prepare(
    messages: Iterable[Any],
    *,
    tools: Sequence[Any] | None,
    documents: Sequence[Any] | None,
    add_generation_prompt: bool,
    continue_final_message: bool | str,
    variables: Mapping[str, Any],
    special_tokens: Mapping[str, str],
    now: datetime | None,
) -> Job:
    """Check the arguments, and convert them to plain values.

    Raises `ConversationError`, `ToolError`, and `ChatError` for options that exclude each other.
    """
    chat = plain_messages(messages)
    if not chat:
        raise ConversationError("the conversation is empty: it needs at least one message")
    if continue_final_message and add_generation_prompt:
        raise ChatError(
            "continue_final_message continues the last message, add_generation_prompt begins a new "
            "one: give one of them"
        )
    for index, document in enumerate(documents or ()):
        if not isinstance(document, Mapping):
            raise ChatError(
                f"document {index} is {type(document).__name__}, not a dict with 'title' and 'text'"
            )
    # APIs write `content: None` where there is none; templates expect the key to be missing.
    chat = [{key: value for key, value in message.items() if value is not None} for message in chat]
    continued = None
    if continue_final_message:
        continued = continue_final_message if isinstance(continue_final_message, str) else "content"
    return Job(
        messages=[_with_reasoning(message) for message in chat],
        tools=None if tools is None else plain(tool_schemas(tools), what="a tool"),
        documents=None if documents is None else plain(list(documents), what="a document"),
        add_generation_prompt=add_generation_prompt,
        continued=continued,
        variables=plain(dict(variables), what="a variable"),
        special_tokens=special_tokens,
        now=now or datetime.now(),
    )


def _with_reasoning(message: dict[str, Any]) -> dict[str, Any]:
    reasoning = next((message[key] for key in _REASONING if message.get(key) is not None), None)
    if reasoning is None:
        return message
    return {"thinking": reasoning, **message, "reasoning_content": reasoning}


@dataclass(frozen=True)
class Rendered:
    """The text, and the characters in it that `{% generation %}` marked."""

    text: str
    generation_spans: tuple[tuple[int, int], ...]


def compile_template(source: str, limits: TemplateLimits) -> "Template":
    """Compile a template, or raise `TemplateSyntaxError`, `TemplateLimitError` or `ImportError`."""
    try:
        import jinja2
    except ImportError as error:
        raise ImportError(
            "chat templates need Jinja2: pip install 'ffwd[chat]'", name="jinja2"
        ) from error
    from ffwd.chat.jinja.environment import environment
    from ffwd.chat.jinja.run import Run, running

    if len(source) > limits.source_characters:
        raise TemplateLimitError(
            f"the template has {len(source)} characters, more than {limits.source_characters}: "
            "TemplateLimits(source_characters=...) allows more"
        )
    try:
        # Small constant parts are evaluated here, others with the rest.
        with running(Run(replace(limits, characters=_MOST_FOLDED, work=_MOST_FOLDED))):
            return environment().compiled(source)
    except jinja2.TemplateSyntaxError as error:
        raise TemplateSyntaxError(
            f"line {error.lineno} of the template: {error.message}", line=error.lineno
        ) from error
    except TemplateError:
        raise
    except (RecursionError, MemoryError, SyntaxError, OverflowError, ValueError) as error:
        raise TemplateSyntaxError(
            f"the template cannot be compiled ({type(error).__name__}): it may be nested too deeply"
        ) from error


def render_plain(
    template: "Template", job: Job, *, source: str, limits: TemplateLimits
) -> Rendered:
    """Return the rendered text."""
    messages = [dict(message) for message in job.messages]
    continued = _tag(messages[-1], job, source=source, tag=_TAG)
    rendered = _run(
        template,
        job,
        messages,
        {**job.special_tokens, **job.variables},
        job.tools,
        job.documents,
        limits,
        continued,
    )
    # The result for objects that are no plain values may exceed a string.
    return Rendered(str.__str__(rendered.text), rendered.generation_spans)


def render_tracked(
    template: "Template",
    job: Job,
    *,
    source: str,
    limits: TemplateLimits,
    control_tokens: Collection[str],
    trusted_roles: Collection[str],
) -> Rendered:
    """Return the rendered text with the origin of its characters (`ffwd.chat.jinja.tracked`)."""
    from ffwd.chat.jinja import tracked

    if template.escapes:  # type: ignore[attr-defined]
        raise ChatError("it escapes text for HTML")
    messages = []
    for index, message in enumerate(job.messages):
        role = message.get("role")
        origin = tracked.origin_of_message(index, trusted=role in trusted_roles)
        marked = {tracked.mark(key, origin): tracked.mark(v, origin) for key, v in message.items()}
        if role in KNOWN_ROLES:
            marked["role"] = role
        messages.append(marked)
    continued = _tag(messages[-1], job, source=source, tag=tracked.uniform(_TAG, tracked.TAG))
    variables = {
        key: value
        # The name of a special token, passed again as a variable.
        if key in SPECIAL_VARIABLES and isinstance(value, str) and value in control_tokens
        else tracked.mark(value, tracked.CALLER)
        for key, value in job.variables.items()
    }
    return _run(
        template,
        job,
        messages,
        {**job.special_tokens, **variables},
        tracked.mark(job.tools, tracked.CALLER),
        tracked.mark(job.documents, tracked.CALLER),
        limits,
        continued,
    )


def _run(
    template: "Template",
    job: Job,
    messages: list[dict[str, Any]],
    variables: dict[str, Any],
    tools: Any,
    documents: Any,
    limits: TemplateLimits,
    continued: str | None,
) -> Rendered:
    from ffwd.chat.jinja.environment import environment
    from ffwd.chat.jinja.run import Run, running

    given = {
        "messages": messages,
        "tools": tools,
        "documents": documents,
        "add_generation_prompt": job.add_generation_prompt,
    }
    clash = sorted(given.keys() & variables.keys())
    if clash:
        raise ChatError(f"{clash[0]} is not a variable but an argument of its own")
    run = Run(limits, job.now)
    with running(run):
        try:
            context = template.new_context({**given, **variables})
            for block in template.root_render_func(context):
                run.blocks.append(block)
            text = environment().concat(run.blocks)
        except Exception as error:
            try:
                environment().handle_exception()
            except Exception as located:
                raise typed(located) from located
            raise typed(error) from error
    if continued is not None:
        text = _cut(text, continued)
    return Rendered(text, tuple(run.generation_spans))


def typed(error: BaseException) -> ChatError:
    """Return this package's error for a failure in a template."""
    import jinja2

    from ffwd.chat.jinja.environment import (
        NamedUndefinedError,
        RaisedByTemplateError,
        template_line,
    )

    if isinstance(error, ChatError):
        return error
    line = template_line(error)
    at = f"line {line} of the template: " if line is not None else ""
    if isinstance(error, RaisedByTemplateError):
        return TemplateRefusedError(error.message or "the template refuses", line=line)
    if isinstance(error, NamedUndefinedError):
        return UndefinedVariableError(f"{at}{error.message}", line=line, variable=error.name)
    if isinstance(error, jinja2.exceptions.SecurityError):
        return TemplateSecurityError(f"{at}{error.message}", line=line)
    if isinstance(error, (RecursionError, MemoryError)) or (
        isinstance(error, OverflowError) and "Range too big" in str(error)
    ):
        return TemplateLimitError(f"{at}{type(error).__name__}: {error}", line=line)
    return TemplateError(f"{at}{type(error).__name__}: {error}", line=line)


def _tag(message: dict[str, Any], job: Job, *, source: str, tag: str) -> str | None:
    """Put a tag after the text to continue, and return that text."""
    if job.continued is None:
        return None
    index = len(job.messages) - 1
    role = str(message.get("role", ""))
    text = message.get(job.continued)
    if text is None:
        raise ConversationError(
            f"the last message has no {job.continued!r} that could be continued",
            index=index,
            role=role,
        )
    fields = [job.continued]
    if job.continued in _REASONING:
        # It has several names, and the template reads one of them.
        fields = [field for field in _REASONING if message.get(field) == text]
    if not any(field in source for field in fields):
        raise ConversationError(
            f"the template does not read {job.continued!r}, so it cannot be continued",
            index=index,
            role=role,
        )
    if isinstance(text, (list, tuple)):
        blocks = list(text)
        for at in reversed(range(len(blocks))):
            if isinstance(blocks[at], Mapping) and "text" in blocks[at]:
                found = blocks[at]["text"]
                blocks[at] = {**blocks[at], "text": _tagged(found, tag)}
                message[job.continued] = blocks
                return str(found)
        raise ConversationError(
            "the last message has no text block that could be continued", index=index, role=role
        )
    for field in fields:
        message[field] = _tagged(message[field], tag)
    return str(text)


def _tagged(text: Any, tag: str) -> str:
    if not isinstance(text, str):
        raise ConversationError(f"only text can be continued, not {type(text).__name__}")
    from ffwd.chat.jinja.tracked import concat

    return concat([text, tag])


def _cut(text: str, continued: str) -> str:
    """Return the text before the tag, without the space that the template trimmed there."""
    from ffwd.chat.jinja.tracked import is_tag

    if continued.strip() not in text or _TAG.strip() not in text:
        raise ConversationError(
            "the last message does not appear in the prompt as it is, so it cannot be continued: "
            f"the template leaves out some of {_excerpt(continued.strip())}"
        )
    place = text.rindex(_TAG.strip())
    if not is_tag(text, place):
        raise ChatError(
            f"the text behind the last message contains {_TAG.strip()}, which marks its end: "
            "remove that from the messages"
        )
    whole = text[place : place + len(_TAG)] == _TAG
    return text[:place] if whole else text[:place].rstrip()


def _excerpt(text: str, most: int = 60) -> str:
    return repr(text) if len(text) <= most else f"{text[:most]!r}… ({len(text)} characters)"
