"""Chat formats as data: the texts before, between and after the messages.

    prompt = LLAMA3.render(messages, tokenizer=tokenizer)
    shorter = LLAMA3.truncate(messages, max_tokens=8000, tokenizer=tokenizer).messages
    mine = replace(CHATML, name="mine", stop=("###",))

A model's own template (`ChatTemplate`) is always more specific than a format of a family. Formats
are for models without one, and for prompts that must be counted and truncated.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal

from ffwd.chat.errors import FormatError, MissingControlTokensError
from ffwd.chat.formats.conversation import SpokenMessage, read_conversation
from ffwd.chat.formats.tokenizer import FormatTokenizer, control_id
from ffwd.chat.formats.truncate import Truncated, truncate
from ffwd.chat.formats.write import Segment, control_parts, write
from ffwd.chat.prompt import ControlPart, Part, Prompt

SystemPlacement = Literal["own", "first", "last"]
"""Whether a system prompt is a message of its own, or part of the user's first or last."""


@dataclass(frozen=True, kw_only=True)
class ChatFormat:
    """A format of conversations: `[system]? (user assistant)* user`. Immutable, without state.

    A message is its prefix, its text, its suffix, and the separator; `bos` stands before the first
    of them, and `eos` after an assistant's suffix. With `ChatFormat()` a conversation is its texts,
    joined: set what you need.

    Raises `FormatError` for fields that cannot be.
    """

    name: str = "custom"
    bos: str = ""
    eos: str = ""
    system_prefix: str = ""
    system_suffix: str = ""
    user_prefix: str = ""
    user_suffix: str = ""
    assistant_prefix: str = ""
    assistant_suffix: str = ""
    name_prefix: str | None = None
    """What stands before the `name` of a message, at the end of the first line of its prefix; None
    where the format has no place for names, and messages that have one are refused."""
    separator: str = ""
    """Behind each message that is complete."""
    stop: tuple[str, ...] = ()
    """What ends an answer: names of control tokens, or texts where the vocabulary has none."""
    add_generation_prompt: bool = True
    """Whether a prompt ends with the beginning of an answer, unless it is rendered otherwise."""
    generation_prompt: str | None = None
    """The beginning of an answer; None: `assistant_prefix`. Without spaces at the end, which
    belong to the first token that the model writes."""
    default_system: str = ""
    """The system prompt of conversations that have none."""
    system_placement: SystemPlacement = "own"
    """With "first" and "last" the system prompt, its prefix and suffix stand before the text of
    the user's first or last message, behind that one's prefix."""
    bos_every_turn: bool = False
    """Whether `bos` stands before every message of the user, rather than once."""
    bos_of_tokenizer: bool = False
    """Whether a prompt without `bos` begins with what the tokenizer puts before texts by itself
    (Hermes on Llama 3 needs it, Qwen has none; a SentencePiece model does not say)."""
    strip: bool = False
    """Whether white space around messages is left out."""
    control_tokens: tuple[str, ...] = ()
    """What of the fields above are names of control tokens."""
    if_missing: Literal["error", "text"] = "error"
    """What to do where a vocabulary has not got one of them: refuse, or write it as text."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("stop", "control_tokens"):
                if isinstance(value, str) or not all(isinstance(text, str) for text in value):
                    raise FormatError(f"{field.name} is {value!r}, not a tuple of texts")
                if not all(value):
                    raise FormatError(f"{field.name} has an empty text, which would be everywhere")
                object.__setattr__(self, field.name, tuple(value))
            elif field.type is str and not isinstance(value, str):
                raise FormatError(f"{field.name} is {type(value).__name__}, not text")
        if self.name_prefix is not None and not isinstance(self.name_prefix, str):
            raise FormatError(f"name_prefix is {type(self.name_prefix).__name__}, not text or None")
        if self.system_placement not in ("own", "first", "last"):
            raise FormatError(
                f'system_placement is {self.system_placement!r}: "own", "first", "last"'
            )
        if self.if_missing not in ("error", "text"):
            raise FormatError(f'if_missing is {self.if_missing!r}: "error" or "text"')

    @property
    def text_delimiters(self) -> bool:
        """Whether text, rather than control tokens, delimits a user's message.

        A message can then imitate its own end and the start of another: only another format helps
        against that.
        """
        around = self.user_prefix + self.user_suffix
        return not any(token in around for token in self.control_tokens)

    def validate(self, messages: Iterable[Any], *, continue_final_message: bool = False) -> None:
        """Raise `ConversationError`, with index and role, for an invalid conversation.

        A conversation is `[system]? (user assistant)* user`, each with text that is not empty;
        with `continue_final_message` an assistant's message is last. A `name` is refused where the
        format has no place for it. Roles are "system" (or
        "developer"), "user" and "assistant".
        """
        last = "assistant" if continue_final_message else "user"
        read_conversation(messages, strip=self.strip, last=(last,), names=self._takes_names)

    def render_text(
        self,
        messages: Iterable[Any],
        *,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
    ) -> str:
        """Return the prompt as text, with control tokens by name and not marked as such."""
        segments = self._segments(messages, add_generation_prompt, continue_final_message)
        return "".join(segment.text for segment in segments)

    def render(
        self,
        messages: Iterable[Any],
        *,
        tokenizer: FormatTokenizer,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
    ) -> Prompt:
        """Return the prompt.

        `add_generation_prompt`: whether it ends with the start of an answer; None is the format's
        default. Without it, the last message may be an assistant's. `continue_final_message`:
        continue the last message, which is an assistant's.

        Raises `ConversationError` as `validate` does, and `MissingControlTokensError` if the
        vocabulary lacks the format's control tokens.
        """
        segments = self._segments(messages, add_generation_prompt, continue_final_message)
        parts: list[Part] = []
        if self.bos_of_tokenizer and not self.bos:
            prefix = tokenizer.prefix_ids
            parts += [ControlPart(i, tokenizer.id_to_token(i) or "") for i in prefix]
        parts += control_parts(segments, self._controls(tokenizer))
        ends = {name: control_id(tokenizer, name) for name in self.stop}
        return Prompt(
            parts=tuple(parts),
            tokenizer=tokenizer,
            end_token_ids=tuple(
                sorted({i for i in ends.values() if i is not None} | {*tokenizer.eos_token_ids})
            ),
            stop=tuple(name for name, token_id in ends.items() if token_id is None),
            prefill=segments[-1].text if continue_final_message else "",
            generation_start=continue_final_message or self._generates(add_generation_prompt),
            num_messages=1
            + max((s.message for s in segments if s.message is not None), default=-1),
        )

    def count_tokens(
        self,
        messages: Iterable[Any],
        *,
        tokenizer: FormatTokenizer,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
    ) -> int:
        """Return how many ids the prompt has: exactly, with this tokenizer."""
        prompt = self.render(
            messages,
            tokenizer=tokenizer,
            add_generation_prompt=add_generation_prompt,
            continue_final_message=continue_final_message,
        )
        return len(prompt)

    def truncate(
        self,
        messages: Iterable[Any],
        *,
        max_tokens: int,
        tokenizer: FormatTokenizer,
        add_generation_prompt: bool | None = None,
        continue_final_message: bool = False,
    ) -> Truncated:
        """Return the conversation without its oldest turns, in at most `max_tokens` tokens.

        A turn is a user's message and the answer to it, and is dropped as a whole. The system
        prompt and the last message of the user stay; raises `PromptLengthError` where they alone
        are too long, and `ConversationError` as `validate` does.
        """

        def count(kept: list[Any]) -> int:
            return self.count_tokens(
                kept,
                tokenizer=tokenizer,
                add_generation_prompt=add_generation_prompt,
                continue_final_message=continue_final_message,
            )

        return truncate(messages, max_tokens=max_tokens, count=count)

    @property
    def _takes_names(self) -> bool:
        return self.name_prefix is not None

    def _generates(self, add_generation_prompt: bool | None) -> bool:
        if add_generation_prompt is None:
            return self.add_generation_prompt
        return add_generation_prompt

    def _segments(
        self,
        messages: Iterable[Any],
        add_generation_prompt: bool | None,
        continue_final_message: bool,
    ) -> list[Segment]:
        generates = self._generates(add_generation_prompt)
        if continue_final_message:
            # As in transformers: one excludes the other.
            if add_generation_prompt:
                raise FormatError(
                    "continue_final_message continues a message, add_generation_prompt begins one: "
                    "ask for one of them"
                )
            generates = False
        allowed: tuple[str, ...] = ("user",) if generates else ("user", "assistant")
        spoken = read_conversation(
            messages,
            strip=self.strip,
            last=("assistant",) if continue_final_message else allowed,
            names=self._takes_names,
        )
        if self.default_system and spoken[0].role != "system":
            spoken = [SpokenMessage("system", self.default_system, None), *spoken]
        return write(
            self, spoken, generation_prompt=generates, continue_final_message=continue_final_message
        )

    def _controls(self, tokenizer: FormatTokenizer) -> dict[str, int]:
        """Return the ids of the control tokens that the format writes."""
        written = self.bos + self.eos + self.separator + (self.generation_prompt or "")
        written += self.system_prefix + self.system_suffix + self.user_prefix + self.user_suffix
        written += self.assistant_prefix + self.assistant_suffix
        found: dict[str, int] = {}
        missing: list[str] = []
        for name in self.control_tokens:
            token_id = control_id(tokenizer, name)
            if token_id is not None:
                found[name] = token_id
            elif name in written:
                missing.append(name)
        if missing and self.if_missing == "error":
            raise MissingControlTokensError(
                f"the vocabulary has no {', '.join(missing)}, which prompts of the format "
                f"{self.name} need. Use the model's own template, `ChatTemplate`, or "
                'dataclasses.replace(…, if_missing="text", stop=…) with a text that ends answers',
                tokens=tuple(missing),
            )
        return found
