"""One prompt, written in four ways: without a grammar, under masks, and with forced tokens.

`ffwd demo` shows what comes out. The model is `ffwd.model`; its prompts are drawn from the texts of
`ffwd.model.texts`, with a seed that it was not trained on.
"""

import json
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema
import torch
from transformers.utils.logging import disable_progress_bar

import ffwd
import ffwd.model
from ffwd.adapters.transformers import (
    FastForward,
    GenerationReport,
    GrammarLogitsProcessor,
    ModelError,
    TokenTrace,
    fast_forward_generate,
    load_local,
)
from ffwd.chat import ChatTemplate, Start
from ffwd.model.texts import KINDS, SIMPLE_KINDS, Example, Words, extraction, simple_extraction

MAX_TOKENS = 96

_NAIVE = FastForward(method="backoff", backoff_tokens=0)
_CANONICAL = FastForward()


@dataclass(frozen=True)
class Task:
    """A text, and the record to write from it.

    Attributes:
        messages: The prompt, as chat templates take it.
        schema: The JSON Schema of its answer.
        right: The answer that is right, where that is known.
        named: Whether the prompt says which keys are wanted, or the schema alone does.

    """

    messages: list[dict[str, Any]]
    schema: Any
    right: str | None = None
    named: bool = True


@dataclass(frozen=True)
class Outcome:
    """The outcome of one way of writing for one task.

    Attributes:
        way: One of `WAYS`.
        text: The answer, without its end token.
        valid: Whether it is a whole JSON text that follows the schema.
        right: Whether all fields have the right values; None where these are not known.
        tokens: Of the answer, its end token included.
        forced: Those of them that took no forward pass.
        passes: Forward passes, that over the prompt included.
        seconds: Of the whole call of `generate`.
        likelihood: The log-likelihood in nats of these tokens, given the prompt, by one plain
            forward pass over both.

    """

    way: str
    text: str
    valid: bool
    right: bool | None
    tokens: int
    forced: int
    passes: int
    seconds: float
    likelihood: float


WAYS = ("unconstrained", "masks", "naive forcing", "canonical forcing")
"""The ways of writing, as they are shown in turn. Both ways of forcing have masks, too."""


def tasks(count: int, *, seed: int) -> list[Task]:
    """Return prompts that ask for a record of a short text, of six sorts in turn.

    The first five are of five kinds of records, and say which keys are wanted. Most of these have a
    first key that is one of two with the same beginning, as `orderId` and `orderName`. The sixth is
    about a person, and only its schema says which keys are wanted: none of them is the usual one.
    """
    words = Words(random.Random(f"demo {seed}"))
    sorts = (*SIMPLE_KINDS, None)
    made = []
    for index in range(count):
        kind = sorts[index % len(sorts)]
        example = _not_named(words) if kind is None else simple_extraction(words, kind)
        made.append(Task(example.messages, example.schema, example.answer, kind is not None))
    return made


def _not_named(words: Words) -> Example:
    record = KINDS["person"](words)
    usual = {fact.keys[0] for fact in record.facts}
    while True:
        example = extraction(words, record, named=False)
        if usual.isdisjoint(json.loads(example.answer)):
            return example


class Demo:
    """A model, its tokenizer and the vocabulary for its grammars.

    Args:
        model: A folder with a model of transformers that has a chat template; None for the one in
            the box.

    Raises:
        ModelError: The folder holds no model, or its tokenizer is not that of the model.
        MissingTemplateError: It has no chat template.
        VocabularyError: Its tokenizer cannot be read.

    """

    def __init__(self, model: str | None = None) -> None:
        # Loading is too quick for a progress bar.
        disable_progress_bar()
        # A model as small as that in the box is slower on an accelerator.
        loaded = load_local(ffwd.model.path() if model is None else model, device="cpu")
        self.model = loaded.model
        self.tokenizer = loaded.tokenizer
        self._template = ChatTemplate.for_tokenizer(self.tokenizer)
        self._loaded = loaded
        self._vocabularies: dict[tuple[int, ...], ffwd.Vocabulary] = {}
        # The first call of generate() loads code, which should count for no way of writing.
        ids = torch.zeros((1, 1), dtype=torch.long)
        self._generate(ids, max_new_tokens=1)

    def start(self, task: Task) -> Start:
        """Return the prompt of a task, and the grammar of its schema, freshly compiled.

        Raises:
            FfwdError: The schema is none, or has what is not supported.
            ModelError: The prompt and an answer are longer than the model's context.

        """
        prompt = self._template.render(
            task.messages, tokenizer=self.tokenizer, add_generation_prompt=True
        )
        ends = prompt.end_token_ids
        if ends not in self._vocabularies:
            self._vocabularies[ends] = self._loaded.vocabulary(ends)
        vocabulary = self._vocabularies[ends]
        schema = ffwd.json_schema(json.dumps(task.schema), whitespace="compact")
        start = prompt.start(ffwd.compile(schema, vocabulary))
        length, most = len(start.prompt_ids) + MAX_TOKENS, self._loaded.max_length
        if most is not None and length > most:
            raise ModelError(
                f"the prompt has {len(start.prompt_ids)} tokens, and with an answer of up to"
                f" {MAX_TOKENS} it is longer than the {most} that the model was made for: give a"
                " shorter text"
            )
        return start

    def write(self, task: Task) -> tuple[list[Outcome], list[TokenTrace]]:
        """Write one answer in each of `WAYS`, greedily.

        Returns:
            What came out, and the tokens of the last way.

        Raises:
            FfwdError: As `start`.

        """
        # A separate one for each way, because built states would save another way's time.
        free, masked, naive, canonical = (self.start(task) for _ in WAYS)
        # Even a weak model's answers come to an end.
        processor = GrammarLogitsProcessor(masked, max_tokens=MAX_TOKENS)
        reports = [GenerationReport(), GenerationReport(trace=True)]
        outcomes = [
            self._outcome(WAYS[0], task, free, {}, None),
            self._outcome(WAYS[1], task, masked, {"logits_processor": [processor]}, processor),
        ]
        for way, start, options, report in zip(
            WAYS[2:], (naive, canonical), (_NAIVE, _CANONICAL), reports, strict=True
        ):
            forward = {
                "custom_generate": fast_forward_generate,
                "grammar": start,
                "complete": True,
                "fast_forward": options,
                "report": report,
            }
            outcomes.append(self._outcome(way, task, start, forward, report))
        return outcomes, reports[-1].tokens

    def _generate(self, ids: torch.Tensor, **options: Any) -> torch.Tensor:
        """Return the ids [1, length] followed by those of `generate`, greedily."""
        chosen = {"do_sample": False, "num_beams": 1, "max_new_tokens": MAX_TOKENS, **options}
        output: torch.Tensor = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            # Nothing is padded; set, so that transformers does not warn about a guess.
            pad_token_id=0,
            **chosen,
        )
        return output

    def _outcome(
        self,
        way: str,
        task: Task,
        start: Start,
        options: dict[str, Any],
        counter: GrammarLogitsProcessor | GenerationReport | None,
    ) -> Outcome:
        ids = torch.tensor([start.prompt_ids])
        ends = start.vocabulary.eos_token_ids
        begun = time.perf_counter()
        output = self._generate(ids, eos_token_id=list(ends), **options)
        seconds = time.perf_counter() - begun
        tokens = output[0, ids.shape[1] :].tolist()
        text = start.answer(tokens).text
        return Outcome(
            way=way,
            text=text,
            valid=_is_valid(text, task.schema),
            right=None if task.right is None else _is_right(text, task.right),
            tokens=len(tokens),
            forced=0 if counter is None else counter.stats.forced_tokens,
            passes=len(tokens) if counter is None else counter.stats.forward_passes,
            seconds=seconds,
            likelihood=sum(self.likelihoods(start.prompt_ids, tokens)),
        )

    @torch.no_grad()
    def likelihoods(self, prompt: Sequence[int], tokens: Sequence[int]) -> list[float]:
        """Return the log-likelihood in nats of each token, after the prompt and those before it.

        Among all tokens, without a mask.
        """
        logits = self.model(input_ids=torch.tensor([[*prompt, *tokens]])).logits[0].float()
        after = logits[len(prompt) - 1 : -1].log_softmax(-1)
        each: list[float] = after[range(len(tokens)), list(tokens)].tolist()
        return each

    def cut(self, task: Task, text: str, *, naive: bool) -> list[int]:
        """Return the tokens of a given answer if forced tokens are appended.

        If nothing is forced, the next token is the first that the tokenizer has for the rest.

        Args:
            task: The task, whose grammar forces tokens.
            text: A text that the grammar accepts.
            naive: Whether forced text is tokenized alone, or canonically.

        Raises:
            ValueError: The grammar rejects the text.

        """
        start = self.start(task)
        matcher, spelled = start.matcher(), start.vocabulary.token_bytes
        options = _NAIVE if naive else _CANONICAL
        tokens: list[int] = []
        left = text.encode()
        while not matcher.is_terminated():
            step = options.tokens(matcher)
            if not step:
                own = self.tokenizer.encode(left.decode(), prefix_space=False)
                step = own[:1] or list(start.vocabulary.eos_token_ids[:1])
            if not matcher.accept_tokens(step):
                raise ValueError(f"the text does not follow the schema: {text}")
            tokens += step
            left = left[sum(len(spelled(token) or b"") for token in step) :]
        return tokens


def _is_valid(text: str, schema: Any) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return bool(jsonschema.validators.validator_for(schema)(schema).is_valid(value))


def _is_right(text: str, right: str) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return bool(value == json.loads(right))
