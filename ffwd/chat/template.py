"""A model's own chat template: from a conversation to text, and to a prompt."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol
from weakref import WeakKeyDictionary

from ffwd.chat.assemble import Assembled, assemble
from ffwd.chat.control import ControlTokens, control_tokens, special_token_variables
from ffwd.chat.errors import (
    ChatError,
    ConversationError,
    InjectionError,
    MissingControlTokensError,
    MissingTemplateError,
)
from ffwd.chat.formats.named import FORMATS
from ffwd.chat.limits import DEFAULT_LIMITS, TemplateLimits
from ffwd.chat.messages import is_batch
from ffwd.chat.probe import (
    Examples,
    Terminators,
    find_answer_prefix,
    find_terminators,
    find_thinking,
)
from ffwd.chat.prompt import Part, Prompt, PromptTokenizer, TextPart, ThinkingSection
from ffwd.chat.rendering import (
    Job,
    Rendered,
    compile_template,
    prepare,
    render_plain,
    render_tracked,
)
from ffwd.tokenizer.table import TokenKind

if TYPE_CHECKING:
    from jinja2 import Template

_MAX_FOUND = 64
"""How many sets of variables a template's answers are remembered for: clients may choose them."""


class ChatTemplate:
    """A Jinja template, rendered as transformers renders it; transformers is not needed.

    `source`: the template, or several by name: `tool_use` is used with tools, and `default`
    otherwise. `special_tokens`: the values of `bos_token`, `eos_token`…; `for_tokenizer` finds
    them. Needs the extra `chat`. Immutable and thread-safe: to change a template, make another one.

    Raises `TemplateSyntaxError` with the line, `MissingTemplateError` for names without a
    template, `TemplateLimitError` for a source that is too long.
    """

    def __init__(
        self,
        source: str | Mapping[str, str],
        *,
        name: str | None = None,
        special_tokens: Mapping[str, str] | None = None,
        limits: TemplateLimits = DEFAULT_LIMITS,
    ) -> None:
        self._sources = {"default": source} if isinstance(source, str) else dict(source)
        self._special_tokens = dict(special_tokens or {})
        self._limits = limits
        self.name = name
        if not self._sources:
            raise MissingTemplateError("no chat template is given")
        self._compiled: dict[str, Template] = {}
        self._found: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
        for text in self._sources.values():
            self._template(text)
        self.source()

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        name: str | None = None,
        special_tokens: Mapping[str, str] | None = None,
        limits: TemplateLimits = DEFAULT_LIMITS,
    ) -> "ChatTemplate":
        """Read a `.jinja` file, or raise `MissingTemplateError`."""
        try:
            source = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise MissingTemplateError(
                f"the chat template {path} cannot be read: {error}"
            ) from error
        # The file's own name, if it is one of several.
        return cls(
            source,
            name=name or Path(path).stem,
            special_tokens=special_tokens,
            limits=limits,
        )

    @classmethod
    def for_tokenizer(
        cls,
        tokenizer: "TemplateTokenizer",
        name: str | None = None,
        *,
        limits: TemplateLimits = DEFAULT_LIMITS,
    ) -> "ChatTemplate":
        """Return the templates of a tokenizer; `name`: always the one of that name.

        Raises `MissingTemplateError` where there is none.
        """
        if not tokenizer.chat_templates:
            raise MissingTemplateError(
                "the tokenizer has no chat template: give one (ChatTemplate.from_file), or use one "
                f"of the named formats of ffwd.chat: {', '.join(FORMATS)}"
            )
        return cls(
            tokenizer.chat_templates,
            name=name,
            special_tokens=special_token_variables(tokenizer),
            limits=limits,
        )

    def source(self, *, tools: bool = False) -> str:
        """Return the template that is rendered, with or without tools."""
        name = self.name
        if len(self._sources) == 1 and (name is None or name not in self._sources):
            return next(iter(self._sources.values()))
        if name is None:
            name = "tool_use" if tools and "tool_use" in self._sources else "default"
        if name not in self._sources:
            raise MissingTemplateError(
                f"there is no chat template {name!r}, only {sorted(self._sources)}"
            )
        return self._sources[name]

    def __repr__(self) -> str:
        return f"ChatTemplate({self.name or ', '.join(self._sources)})"

    # ------------------------------------------------------------------------------------ text

    def render_text(
        self,
        messages: Iterable[Any],
        *,
        tools: Sequence[Any] | None = None,
        documents: Sequence[Any] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        now: datetime | None = None,
        **variables: Any,
    ) -> str:
        """Return the conversation as text, as `apply_chat_template(tokenize=False)` does.

        `tools`: JSON schemas, or Python functions (`ffwd.chat.function_schema`). `documents`:
        dicts. `add_generation_prompt`: with what begins the assistant's message.
        `continue_final_message`: without what ends the last message; a string names the field
        that is continued, instead of "content". `now`: what `strftime_now` takes for now.
        `variables`: what the template reads beside these, such as `enable_thinking`.

        To give a model this text, use `render`: text cannot say which of its control tokens were
        the template's. Raises `TemplateError`, `ConversationError`, `ToolError`.
        """
        job = self._job(
            messages,
            tools,
            documents,
            add_generation_prompt,
            continue_final_message,
            variables,
            self._special_tokens,
            now,
        )
        return self._plain(job).text

    def render_texts(self, conversations: Iterable[Iterable[Any]], **options: Any) -> list[str]:
        """Return `render_text` of each conversation; the options are the same."""
        return [self.render_text(messages, **options) for messages in conversations]

    # ---------------------------------------------------------------------------------- prompt

    def render(
        self,
        messages: Iterable[Any],
        *,
        tokenizer: "TemplateTokenizer",
        tools: Sequence[Any] | None = None,
        documents: Sequence[Any] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        trusted_roles: Collection[str] = (),
        missing_control_tokens: Literal["error", "spell"] = "error",
        now: datetime | None = None,
        **variables: Any,
    ) -> Prompt:
        """Return the conversation as a prompt; `prompt.text` is what `render_text` returns.

        Only the template itself writes control tokens. Those in messages, tools, documents and
        variables are text, even if their characters form one, alone or with their surroundings.
        `trusted_roles`: roles whose messages may contain control tokens, such as the model's own
        (`<think>` in `"assistant"`). `missing_control_tokens`: the treatment of a control token
        that the template writes and the vocabulary lacks: an error, or ordinary text, for models
        that were trained so (Zephyr's `<|user|>`).

        The other options are those of `render_text`. Besides its errors, raises
        `MissingControlTokensError`, and `InjectionError` for a control token of unknown origin.
        """
        known = control_tokens(tokenizer)
        special = {**special_token_variables(tokenizer), **self._special_tokens}
        job = self._job(
            messages,
            tools,
            documents,
            add_generation_prompt,
            continue_final_message,
            variables,
            special,
            now,
        )
        plain = self._plain(job)
        assembled = self._assemble(job, plain, known, trusted_roles)
        if assembled.missing and missing_control_tokens == "error":
            raise MissingControlTokensError(
                f"the template writes {', '.join(assembled.missing)}, which the vocabulary has no "
                "tokens for: template and tokenizer belong to different models. For a model that "
                'was trained with them as plain text, pass `missing_control_tokens="spell"`',
                tokens=assembled.missing,
            )
        last = len(job.messages) - 1
        starts = bool(add_generation_prompt or continue_final_message)
        ends = self._terminators(job, tokenizer, known)
        return Prompt(
            parts=assembled.parts,
            tokenizer=tokenizer,
            end_token_ids=tuple(sorted({*tokenizer.eos_token_ids, *ends.token_ids})),
            stop=ends.stop,
            prefill=_prefill(assembled.parts, last) if continue_final_message else "",
            thinking=self._thinking(
                job,
                _tail(assembled.parts, last - bool(continue_final_message)),
                tokenizer,
                known,
            )
            if starts
            else None,
            generation_start=starts,
            num_messages=len(job.messages),
            generation_spans=plain.generation_spans,
            missing_control_tokens=assembled.missing,
        )

    def render_many(self, conversations: Iterable[Iterable[Any]], **options: Any) -> list[Prompt]:
        """Return `render` of each conversation; the options are the same."""
        return [self.render(messages, **options) for messages in conversations]

    # --------------------------------------------------------------------------------- the rest

    def _job(
        self,
        messages: Iterable[Any],
        tools: Sequence[Any] | None,
        documents: Sequence[Any] | None,
        add_generation_prompt: bool,
        continue_final_message: bool | str,
        variables: Mapping[str, Any],
        special_tokens: Mapping[str, str],
        now: datetime | None,
    ) -> Job:
        if is_batch(messages):
            raise ConversationError(
                "several conversations: render_texts and render_many take these", index=0
            )
        return prepare(
            messages,
            tools=tools,
            documents=documents,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
            variables=variables,
            special_tokens=special_tokens,
            now=now,
        )

    def _template(self, source: str) -> "Template":
        if source not in self._compiled:
            self._compiled[source] = compile_template(source, self._limits)
        return self._compiled[source]

    def _assemble(
        self,
        job: Job,
        plain: Rendered,
        known: ControlTokens,
        trusted_roles: Collection[str],
    ) -> Assembled:
        source = self.source(tools=job.tools is not None)
        try:
            rendered = render_tracked(
                self._template(source),
                job,
                source=source,
                limits=self._limits,
                control_tokens=known.ids.keys(),
                trusted_roles=trusted_roles,
            )
        except ChatError as error:
            raise _unlike(str(error)) from error
        if rendered.text != plain.text:
            raise _unlike("its text came out differently")
        return assemble(rendered.text, known)

    def _examples(self, job: Job, known: ControlTokens) -> Examples:
        """Render other messages in the way of a job."""

        def parts(
            messages: Sequence[Any], tools: Sequence[Any] | None, begin: bool
        ) -> tuple[Part, ...]:
            example = prepare(
                messages,
                tools=tools,
                documents=None,
                add_generation_prompt=begin,
                continue_final_message=False,
                variables=job.variables,
                special_tokens=job.special_tokens,
                now=job.now,
            )
            return self._assemble(example, self._plain(example), known, ()).parts

        return parts

    def _thinking(
        self, job: Job, tail: str, tokenizer: "TemplateTokenizer", known: ControlTokens
    ) -> ThinkingSection | None:
        source = self.source(tools=job.tools is not None)
        found = find_thinking(tail, source=source, control=known, tokenizer=tokenizer)
        if found is None:
            return None

        def find() -> str:
            return find_answer_prefix(found, self._examples(job, known))

        prefix: str = self._once(job, tokenizer, found.closed_by, find)
        return replace(found, answer_prefix=prefix)

    def _terminators(
        self, job: Job, tokenizer: "TemplateTokenizer", known: ControlTokens
    ) -> Terminators:
        """Return the tokens and texts that end an answer."""

        def find() -> Terminators:
            return find_terminators(self._examples(job, known), known)

        found: Terminators = self._once(job, tokenizer, None, find)
        return found

    def _once(
        self, job: Job, tokenizer: "TemplateTokenizer", what: str | None, find: Callable[[], Any]
    ) -> Any:
        """Return the result of `find`, cached by tokenizer, template and variables."""
        memo = self._found.setdefault(tokenizer, {})
        try:
            key = (self.source(tools=job.tools is not None), what, _frozen(job.variables))
            known = key in memo
        except TypeError:  # a variable that cannot be a key
            return find()
        if not known:
            if len(memo) >= _MAX_FOUND:
                memo.clear()
            memo[key] = find()
        return memo[key]

    def _plain(self, job: Job) -> Rendered:
        source = self.source(tools=job.tools is not None)
        return render_plain(self._template(source), job, source=source, limits=self._limits)


class TemplateTokenizer(PromptTokenizer, Protocol):
    """The members of a tokenizer that a template uses; `ffwd.tokenizer.Tokenizer` has them."""

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        ...

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """The tokens that end an output."""
        ...

    @property
    def chat_templates(self) -> Mapping[str, str]:
        """The model's templates by name."""
        ...

    @property
    def special_tokens(self) -> Any:
        """Tokens by role: `bos`, `eos`…, each with a `content`, or None."""
        ...

    def token_kind(self, token_id: int, /) -> TokenKind:
        """Return the kind of a token."""
        ...

    def id_to_token(self, token_id: int, /) -> str | None:
        """Return a token's name."""
        ...


def _frozen(variables: Mapping[str, Any]) -> frozenset[tuple[str, type, Any]]:
    """Return a hashable form, with values, because a template may depend on them; 1 is not True."""
    return frozenset((name, type(value), value) for name, value in variables.items())


def _unlike(why: str) -> InjectionError:
    return InjectionError(
        "the template does something with a message that cannot be followed, so it cannot be told "
        f"which control tokens are its own: {why}"
    )


def _tail(parts: Sequence[Part], message: int) -> str:
    """Return the part after the text of a message, and the parts after those before it."""
    own = [
        index
        for index, part in enumerate(parts)
        if isinstance(part, TextPart) and part.message is not None and part.message <= message
    ]
    return "".join(
        part.text if isinstance(part, TextPart) else part.content
        for part in parts[own[-1] + 1 if own else 0 :]
    )


def _prefill(parts: Sequence[Part], message: int) -> str:
    """Return the message's text at the end of the prompt, after the last control token."""
    texts: list[str] = []
    for part in reversed(parts):
        if not isinstance(part, TextPart) or part.message != message:
            break
        texts.append(part.text)
    return "".join(reversed(texts))
