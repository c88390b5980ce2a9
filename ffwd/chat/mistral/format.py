"""Mistral's prompts: the ids that mistral-common returns for a conversation, version by version.

    mistral = MistralFormat.for_tokenizer(tokenizer)
    prompt = mistral.render(messages, tokenizer=tokenizer, tools=tools)
    prompt.ids

A message's text never becomes a control token: each text is encoded separately, without a search
for control tokens, and the ids are concatenated. Only V1 has text delimiters, `[INST]` and
`[/INST]`, which a user can write as well (`text_delimiters`).
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ffwd.chat.errors import ConversationError
from ffwd.chat.formats.tokenizer import FormatTokenizer, control_id
from ffwd.chat.formats.truncate import Truncated, truncate
from ffwd.chat.mistral.builder import Builder
from ffwd.chat.mistral.checks import Mode, check, check_tools
from ffwd.chat.mistral.join import SystemPlacement, join
from ffwd.chat.mistral.messages import read, read_settings, read_tools
from ffwd.chat.mistral.parts import is_open, write_conversation, write_infilling
from ffwd.chat.mistral.version import MistralVersion, detect_version
from ffwd.chat.prompt import ControlPart, Prompt, TextPart, ThinkingSection


@dataclass(frozen=True, kw_only=True)
class MistralFormat:
    """The prompt format of a version of Mistral's models. Immutable, without state.

    `system_placement`: the user's turn that system prompts go to, "first", "last", or its number
    from 0 (negative: from the end); None is the version's own. Up to V3 the prompt is written
    before that turn's text. From V7 on it stands before that turn, in its own control tokens, and
    None leaves system prompts where they are given.
    `mode`: as in mistral-common; "serving" also refuses calls of tools that no result follows.
    """

    version: MistralVersion
    system_placement: SystemPlacement | None = None
    mode: Mode = "test"

    def __post_init__(self) -> None:
        if not isinstance(self.version, MistralVersion):
            raise ConversationError(f"version is {self.version!r}, not a MistralVersion")
        placement = self.system_placement
        named = placement in (None, "first", "last")
        if not named and (isinstance(placement, bool) or not isinstance(placement, int)):
            raise ConversationError(
                f'system_placement is {placement!r}: "first", "last", the number of a turn of the '
                "user, or None"
            )
        if self.mode not in ("test", "serving"):
            raise ConversationError(f'mode is {self.mode!r}: "test" or "serving"')

    @classmethod
    def for_tokenizer(
        cls,
        tokenizer: FormatTokenizer,
        *,
        file: str | os.PathLike[str] | None = None,
        model: str | None = None,
    ) -> "MistralFormat":
        """Return the format of a tokenizer's version, as `detect_version` finds it."""
        return cls(version=detect_version(tokenizer, file=file, model=model).version)

    @property
    def name(self) -> str:
        """Its name, such as `mistral-v3`."""
        return f"mistral-{self.version.value}"

    @property
    def text_delimiters(self) -> bool:
        """Whether turns are delimited by text, so that a message can imitate them: only in V1."""
        return self.version is MistralVersion.V1

    @property
    def stop(self) -> tuple[str, ...]:
        """The tokens that end an answer, by name: the end token, and the next turn's."""
        return ("</s>", "[/INST]")

    def validate(self, messages: Iterable[Any], *, continue_final_message: bool = False) -> None:
        """Raise `ConversationError`, with index and role, for an invalid conversation.

        `render` also rejects what depends on the joining of messages (V1 has no tools, for
        example).
        """
        check(
            read(messages, continue_final_message=continue_final_message), self.version, self.mode
        )

    def render(
        self,
        messages: Iterable[Any],
        *,
        tokenizer: FormatTokenizer,
        tools: Iterable[Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        continue_final_message: bool = False,
    ) -> Prompt:
        """Return the prompt, with the ids of mistral-common.

        `messages` are dicts with `role` (system, developer, user, assistant, tool) and
        `content`; an assistant's may have `tool_calls` and `prefix`, a tool's `tool_call_id` and
        `name`. `tools` are dicts as in OpenAI's interface; V1 has none, and leaves them out as
        mistral-common does. `settings` of the model, such as `{"reasoning_effort": "high"}`, are
        for V15, whose tekken.json says which there are. `continue_final_message` is the same as
        `prefix=True` in the last message.

        Raises `ConversationError` for what mistral-common refuses, and
        `MissingControlTokensError` where the vocabulary is not of this version.
        """
        turns = read(messages, continue_final_message=continue_final_message)
        check(turns, self.version, self.mode)
        described = read_tools(tools)
        check_tools(described)
        if settings and self.version.number < 15:
            raise ConversationError(f"{self.version.value} has no settings of the model")
        made = join(turns, self.version, self.system_placement)
        builder = Builder(tokenizer, self.version)
        start = write_conversation(builder, made, described, read_settings(settings))
        thinking = None
        if is_open(made):
            thinking = ThinkingSection("[THINK]", "[/THINK]", control_id(tokenizer, "[/THINK]"))
        return Prompt(
            parts=tuple(builder.parts),
            part_ids=tuple(builder.ids),
            tokenizer=tokenizer,
            end_token_ids=_end_token_ids(tokenizer),
            stop=("[/INST]",) if self.text_delimiters else (),
            prefill=_prefill(builder, start) if made.turns[-1].prefix else "",
            thinking=thinking,
            generation_start=True,
            num_messages=len(turns),
        )

    def fill_in_the_middle(
        self, prefix: str, suffix: str | None = None, *, tokenizer: FormatTokenizer
    ) -> Prompt:
        """Return the prompt for the text between `prefix` and `suffix`.

        In `Prompt.spans` the prefix is 0 and the suffix 1.

        V1 has no fill in the middle, and V2's vocabulary no tokens for it, which mistral-common
        turns into the unknown token. V1 is refused by a `ConversationError`, a vocabulary without
        the tokens by a `MissingControlTokensError`.
        """
        for name, text in (("prefix", prefix), ("suffix", suffix)):
            if not isinstance(text, str) and (text is not None or name == "prefix"):
                raise ConversationError(f"the {name} is {type(text).__name__}, not text")
        if self.version is MistralVersion.V1:
            raise ConversationError("v1 has no fill in the middle")
        builder = Builder(tokenizer, self.version)
        builder.require(("[PREFIX]", "[SUFFIX]"))
        write_infilling(builder, prefix, suffix)
        return Prompt(
            parts=tuple(builder.parts),
            part_ids=tuple(builder.ids),
            tokenizer=tokenizer,
            end_token_ids=_end_token_ids(tokenizer),
            generation_start=True,
            num_messages=2,
        )

    def count_tokens(
        self,
        messages: Iterable[Any],
        *,
        tokenizer: FormatTokenizer,
        tools: Iterable[Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        continue_final_message: bool = False,
    ) -> int:
        """Return how many ids the prompt has."""
        prompt = self.render(
            messages,
            tokenizer=tokenizer,
            tools=tools,
            settings=settings,
            continue_final_message=continue_final_message,
        )
        return len(prompt)

    def truncate(
        self,
        messages: Iterable[Any],
        *,
        max_tokens: int,
        tokenizer: FormatTokenizer,
        tools: Iterable[Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        continue_final_message: bool = False,
    ) -> Truncated:
        """Return the conversation without its oldest turns, in at most `max_tokens` tokens.

        A turn is what the user says and all that follows until the user speaks again. System
        prompts and the last turn stay; raises `PromptLengthError` where they alone are too long,
        and what `render` raises.
        """
        listed = read_tools(tools)

        def count(kept: list[Any]) -> int:
            return self.count_tokens(
                kept,
                tokenizer=tokenizer,
                tools=listed,
                settings=settings,
                continue_final_message=continue_final_message,
            )

        return truncate(messages, max_tokens=max_tokens, count=count)


def _end_token_ids(tokenizer: FormatTokenizer) -> tuple[int, ...]:
    end = control_id(tokenizer, "</s>")
    own = () if end is None else (end,)
    return tuple(sorted({*own, *tokenizer.eos_token_ids}))


def _prefill(builder: Builder, start: int) -> str:
    """Return the last turn's text after its last control token, without the added space."""
    texts: list[TextPart] = []
    for part in builder.parts[start:]:
        if isinstance(part, ControlPart):
            texts.clear()
        elif texts or part.message is not None:
            texts.append(part)
    return "".join(part.text for part in texts)
