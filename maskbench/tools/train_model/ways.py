"""How often the model is right in the ways in which ffwd lets it answer."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

import ffwd
from ffwd.adapters.transformers import GrammarLogitsProcessor
from ffwd.chat import ChatTemplate, Start
from ffwd.model.texts import TASKS, Example, Words, simple_extraction

NARROW = "narrow"
"""The option of a way that `ffwd.generate` does not have: that of `GrammarLogitsProcessor`."""

PLAIN, PLAIN_SAMPLED = "fast_forward=False", "sampled, fast_forward=False"
"""The baselines of the others: plain masks, greedy and sampled."""

_SAMPLED: Mapping[str, Any] = {"do_sample": True, "top_k": 0}
_WITHOUT_FORCING: Mapping[str, Any] = {"fast_forward": False}
_CANONICAL: Mapping[str, Any] = {"fast_forward": False, "canonical": True}

WAYS: Mapping[str, Mapping[str, Any]] = {
    "masks": {},
    PLAIN: _WITHOUT_FORCING,
    "canonical=True": _CANONICAL,
    "narrow=True": {NARROW: True},
    "reasoning=True": {"reasoning": True},
    "reasoning_tokens=48": {"reasoning_tokens": 48},
    "draft_tokens=64": {"draft_tokens": 64},
    "sampled": _SAMPLED,
    PLAIN_SAMPLED: {**_SAMPLED, **_WITHOUT_FORCING},
    "sampled, canonical=True": {**_SAMPLED, **_CANONICAL},
    "sampled, narrow=True": {**_SAMPLED, NARROW: True},
    'sampled, sampling="smc"': {"sampling": "smc", "particles": 8},
}
"""Each way's options. Greedy where they do not say that tokens are sampled, at temperature 1."""

ASKED: Mapping[str, Callable[[Words], Example]] = {
    "extraction": TASKS["extraction"][1],
    "question": TASKS["question"][1],
    "reasoning": TASKS["reasoning"][1],
    "simple": simple_extraction,
}
"""The tasks whose answers are JSON, and what makes a conversation of each."""

USUAL = ("extraction", "question", "reasoning")
"""The tasks that are asked for by default."""

MAX_TOKENS = 160


@dataclass(frozen=True)
class Way:
    """The answers of one task in one way.

    Attributes:
        task: What was asked for.
        way: A key of `WAYS`.
        right: Whether each has the right value.
        passes: Forward passes of all of them.
        log_likelihoods: For each answer the log probability that the way samples the right one, in
            nats; empty where it is no product over the tokens.

    """

    task: str
    way: str
    right: tuple[bool, ...]
    passes: int
    log_likelihoods: tuple[float, ...] = ()

    @property
    def plain(self) -> str:
        """Its baseline: plain masks, sampled if this way samples."""
        options = WAYS[self.way]
        return PLAIN_SAMPLED if "sampling" in options or "do_sample" in options else PLAIN


class _Chat:
    """A model and its tokenizer, and what is made of them once."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self._loaded = ffwd.tokenizer.load(tokenizer)
        self._template = ChatTemplate.for_tokenizer(self._loaded)
        self._vocabulary = self._loaded.vocabulary(
            vocab_size=model.config.vocab_size, eos_token_ids=[tokenizer.eos_token_id]
        )

    def start(self, example: Example) -> Start:
        """Return the prompt, and the grammar after it."""
        prompt = self._template.render(
            example.messages, tokenizer=self._loaded, add_generation_prompt=True
        )
        schema = ffwd.json_schema(json.dumps(example.schema), whitespace="compact")
        return prompt.start(ffwd.compile(schema, self._vocabulary))


@dataclass(frozen=True)
class _Question:
    """A conversation, as a loop outside `ffwd.generate` needs it."""

    chat: _Chat
    example: Example

    @cached_property
    def start(self) -> Start:
        """The prompt, and the grammar after it."""
        return self.chat.start(self.example)

    def narrow(self, options: Mapping[str, Any]) -> tuple[Any, int]:
        """Answer under narrow masks; return the value, and the number of forward passes."""
        processor = GrammarLogitsProcessor(self.start, narrow=True, max_tokens=MAX_TOKENS)
        prompt = torch.tensor([self.start.prompt_ids])
        output = self.chat.model.generate(
            input_ids=prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=MAX_TOKENS,
            logits_processor=[processor],
            **options,
        )
        answer = self.start.answer(output[0, prompt.shape[1] :].tolist())
        return json.loads(answer.text), processor.stats.forward_passes

    @cached_property
    def right(self) -> tuple[int, ...]:
        """The tokens of the right answer, without reasoning, and the end token."""
        text = self.example.answer.rpartition("</think>")[2].strip()
        ids = self.chat.tokenizer.encode(text, add_special_tokens=False)
        return (*ids, self.chat.tokenizer.eos_token_id)

    @cached_property
    def log_p(self) -> torch.Tensor:
        """Log probabilities before each token of the right answer: [tokens, width], float64."""
        ids = torch.tensor([[*self.start.prompt_ids, *self.right]])
        with torch.no_grad():
            logits = self.chat.model(ids).logits[0, -len(self.right) - 1 : -1]
        found: torch.Tensor = logits.double().log_softmax(dim=-1)
        return found

    def log_likelihood(self, *, canonical: bool, narrow: bool) -> float:
        """Return the log probability that masks at temperature 1 sample the right tokens.

        Raises:
            ValueError: The masks do not allow them.

        """
        matcher = self.start.matcher(canonical=canonical)
        total = 0.0
        for place, token in enumerate(self.right):
            forced = matcher.fast_forward_tokens(max_tokens=1) if narrow else []
            allowed = forced or matcher.allowed_token_ids()
            if token not in allowed:
                raise ValueError(
                    f"token {place} of {self.example.answer!r} is not allowed: is the tokenizer"
                    " that of the model?"
                )
            found = self.log_p[place]
            total += float(found[token] - found[allowed].logsumexp(dim=0))
            matcher.accept_token(token)
        return total


def evaluate_ways(
    model: Any,
    tokenizer: Any,
    count: int,
    *,
    seed: int,
    tasks: Sequence[str] = USUAL,
    ways: Sequence[str] = tuple(WAYS),
) -> list[Way]:
    """Answer `count` conversations of each task in each way.

    All ways get the same conversations. Each conversation has a seed of its own for sampling.

    Args:
        model: The model.
        tokenizer: Its tokenizer, of transformers.
        count: How many conversations.
        seed: Of the conversations and of sampling.
        tasks: Keys of `ASKED`.
        ways: Keys of `WAYS`.

    """
    chat = _Chat(model, tokenizer)
    found = []
    for task in tasks:
        words = Words(random.Random(f"ways {task} {seed}"))
        questions = [_Question(chat, ASKED[task](words)) for _ in range(count)]
        for way in ways:
            passes = 0
            right, likelihoods = [], []
            for place, question in enumerate(questions):
                torch.manual_seed(1000 * seed + place)
                value, own = _answer(question, WAYS[way])
                right.append(value == _wanted(question.example))
                passes += own
                if (masks := _masks(WAYS[way])) is not None:
                    likelihoods.append(question.log_likelihood(**masks))
            found.append(Way(task, way, tuple(right), passes, tuple(likelihoods)))
    return found


def _answer(question: _Question, options: Mapping[str, Any]) -> tuple[Any, int]:
    """Return the value of an answer, and the number of forward passes."""
    given = {**options} if "sampling" in options else {"do_sample": False, **options}
    if given.pop(NARROW, False):
        return question.narrow(given)
    made = ffwd.generate(
        question.chat.model,
        question.chat.tokenizer,
        question.example.messages,
        question.example.schema,
        whitespace="compact",
        max_new_tokens=MAX_TOKENS,
        **given,
    )
    return made.value, made.stats.forward_passes


def _masks(options: Mapping[str, Any]) -> dict[str, bool] | None:
    """Return the masks by which a way samples, if it samples token by token."""
    if not options.get("do_sample", False):
        return None
    forces = options.get("fast_forward", True)
    return {"canonical": options.get("canonical", False), "narrow": forces}


def _wanted(example: Example) -> Any:
    """Return the right value; reasoning may stand before it."""
    return json.loads(example.answer.rpartition("</think>")[2])
