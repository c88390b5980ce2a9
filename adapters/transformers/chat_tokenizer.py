"""The part of `ffwd.generate` that depends only on the tokenizer: prompts and grammars."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import ffwd
from ffwd import CompiledGrammar, Grammar
from ffwd.chat import ChatTemplate, Prompt, Start
from ffwd.tokenizer import Tokenizer, load

Conversation = str | Sequence[Mapping[str, Any]]
"""A prompt as it stands, or messages."""


class ChatTokenizer:
    """A tokenizer with its chat template, for a model of some width.

    Args:
        tokenizer: What `ffwd.tokenizer.load` takes, or has returned.
        width: How many tokens the model gives logits for.
        max_grammars: How many compiled grammars are kept.

    Raises:
        VocabularyError: It cannot be read.

    """

    def __init__(self, tokenizer: Any, *, width: int, max_grammars: int = 64) -> None:
        self.tokenizer = tokenizer if isinstance(tokenizer, Tokenizer) else load(tokenizer)
        self._width = width
        self._template: ChatTemplate | None = None
        self._vocabularies: dict[tuple[int, ...], ffwd.Vocabulary] = {}
        self.compile: Callable[[Grammar, tuple[int, ...]], CompiledGrammar] = lru_cache(
            max_grammars
        )(self._compile)

    def prompt(
        self,
        conversation: Conversation,
        *,
        tools: Sequence[Any] | None,
        variables: Mapping[str, Any],
    ) -> "Prompt | tuple[int, ...]":
        """Return the prompt of a conversation, or the ids of a text.

        If the last message is the assistant's, the answer continues it.

        Raises:
            ChatError: The chat template is missing or rejects the messages.
            TypeError: The conversation is neither text nor messages.

        """
        if isinstance(conversation, str):
            if tools or variables:
                raise TypeError("tools and template variables need messages, not a prompt as text")
            ids = [*self.tokenizer.prefix_ids, *self.tokenizer.encode(conversation)]
            if not ids:
                raise ValueError("the prompt is empty: a model needs at least one token")
            return tuple(ids)
        if self._template is None:
            self._template = ChatTemplate.for_tokenizer(self.tokenizer)
        messages = list(conversation)
        going_on = bool(messages) and messages[-1].get("role") == "assistant"
        return self._template.render(
            messages,
            tokenizer=self.tokenizer,
            tools=list(tools) if tools else None,
            add_generation_prompt=not going_on,
            continue_final_message=going_on,
            **variables,
        )

    def start(
        self,
        prompt: "Prompt | tuple[int, ...]",
        grammar: CompiledGrammar,
        *,
        reasoning_in_grammar: bool = False,
    ) -> Start:
        """Return the start of the grammar's text after a prompt.

        `reasoning_in_grammar`: see `Prompt.start`.

        Raises:
            ChatError: The grammar refuses what the answer was begun with, or does not know what
                ends it.

        """
        if isinstance(prompt, Prompt):
            return prompt.start(grammar, reasoning_in_grammar=reasoning_in_grammar)
        return Start(grammar=grammar, prompt_ids=prompt)

    def _compile(self, grammar: Grammar, ends: tuple[int, ...]) -> CompiledGrammar:
        return ffwd.compile(grammar, self._vocabulary(ends))

    def _vocabulary(self, ends: tuple[int, ...]) -> ffwd.Vocabulary:
        if ends not in self._vocabularies:
            self._vocabularies[ends] = self.tokenizer.vocabulary(
                vocab_size=self._width, eos_token_ids=ends or None
            )
        return self._vocabularies[ends]


# So that `ffwd.generate` reads a tokenizer once, however often it is called; it goes with the
# tokenizer that it was made of, and holds no model.
_READ: WeakKeyDictionary[Any, tuple[Any, ChatTokenizer]] = WeakKeyDictionary()


def chat_tokenizer(tokenizer: Any, *, width: int) -> ChatTokenizer:
    """Return the cached `ChatTokenizer` of a tokenizer object in its current state."""
    # Tokens may be added to the objects of transformers, and their templates exchanged.
    state = (width, _size(tokenizer), str(getattr(tokenizer, "chat_template", None)))
    try:
        known = _READ.get(tokenizer)
    except TypeError:  # it cannot be referred to weakly, such as a path
        return ChatTokenizer(tokenizer, width=width)
    if known is not None and known[0] == state:
        return known[1]
    made = ChatTokenizer(tokenizer, width=width)
    _READ[tokenizer] = (state, made)
    return made


def _size(tokenizer: Any) -> int | None:
    return len(tokenizer) if hasattr(tokenizer, "__len__") else None
