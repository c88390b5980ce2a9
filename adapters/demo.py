"""One prompt, written in four ways: without a grammar, under masks, and with forced tokens.

`ffwd demo` shows what comes out. The model is `ffwd.model`; its prompts are drawn from the texts of
`ffwd.model.texts`, with a seed that it was not trained on.
"""

import json
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

import ffwd
import ffwd.model
from ffwd.adapters.transformers import (
    FastForward,
    GenerationReport,
    GrammarLogitsProcessor,
    TokenTrace,
    fast_forward_generate,
)
from ffwd.model.texts import SIMPLE_KINDS, Words, simple_extraction
from ffwd.tokenizer import from_huggingface

MAX_TOKENS = 96

_NAIVE = FastForward(method="backoff", backoff_tokens=0)
_CANONICAL = FastForward()


@dataclass(frozen=True)
class Task:
    """A prompt, the schema of its answer, and the answer that is right, where that is known."""

    messages: list[dict[str, Any]]
    schema: Any
    right: str | None


@dataclass(frozen=True)
class Outcome:
    """What one way of writing made of one task.

    Attributes:
        way: One of `WAYS`.
        text: The answer, without its end token.
        valid: Whether it is a whole JSON text that follows the schema.
        right: Whether all fields have the right values; None where these are not known.
        tokens: Of the answer, its end token included.
        forced: Those of them that the model was not asked for.
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

    @property
    def perplexity(self) -> float:
        """Per byte of the answer; the end token counts for one byte."""
        return math.exp(-self.likelihood / (len(self.text.encode()) + 1))


WAYS = ("unconstrained", "masks", "naive forcing", "canonical forcing")
"""The ways of writing, as they are shown in turn. Both ways of forcing have masks, too."""


def tasks(count: int, *, seed: int) -> list[Task]:
    """Prompts that ask for a record of a short text, of five kinds in turn.

    Most kinds have a first key that is one of two with the same beginning, as `orderId` and
    `orderName`.
    """
    words = Words(random.Random(f"demo {seed}"))
    made = []
    for index in range(count):
        example = simple_extraction(words, SIMPLE_KINDS[index % len(SIMPLE_KINDS)])
        made.append(Task(example.messages, example.schema, example.answer))
    return made


class Demo:
    """A model, its tokenizer and the vocabulary that grammars are compiled for.

    Args:
        model: A folder with a model of transformers that has a chat template.

    Raises:
        OSError: The folder holds no such model, or it has no chat template.
        VocabularyError: Its tokenizer cannot be read.

    """

    def __init__(self, model: str | None = None) -> None:
        folder = str(ffwd.model.path()) if model is None else model
        # Loading takes no time that a bar could show.
        disable_progress_bar()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        if self.tokenizer.chat_template is None:
            raise OSError(f"the tokenizer in {folder} has no chat template")
        # Any: the classes of transformers are typed in part only.
        self.model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.vocabulary = from_huggingface(
            self.tokenizer,
            vocab_size=self.model.config.vocab_size,
            eos_token_ids=[self.tokenizer.eos_token_id],
        )

    def prompt(self, task: Task) -> dict[str, torch.Tensor]:
        """The prompt of a task as `generate` takes it: ids and attention mask [1, length]."""
        prompt: dict[str, torch.Tensor] = self.tokenizer.apply_chat_template(
            task.messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        return prompt

    def grammar(self, task: Task) -> ffwd.CompiledGrammar:
        """The grammar of a task.

        Raises:
            FfwdError: The schema is none, or has what is not supported.

        """
        schema = ffwd.json_schema(json.dumps(task.schema), whitespace="compact")
        return ffwd.compile(schema, self.vocabulary)

    def write(self, task: Task) -> tuple[list[Outcome], list[TokenTrace]]:
        """Write one answer in each of `WAYS`, greedily.

        Returns:
            What came out, and the tokens of the last way.

        Raises:
            FfwdError: As `grammar`.

        """
        grammar = self.grammar(task)
        report = GenerationReport(trace=True)
        naive = GenerationReport()
        # However little a model knows, its answers come to an end.
        processor = GrammarLogitsProcessor(grammar, max_tokens=MAX_TOKENS)
        forward = {
            "custom_generate": fast_forward_generate,
            "grammar": grammar,
            "complete": True,
        }
        outcomes = [
            self._outcome(WAYS[0], task, {}, lambda: None),
            self._outcome(
                WAYS[1],
                task,
                {"logits_processor": [processor]},
                lambda: (0, processor.stats.forward_passes),
            ),
        ]
        for way, options, into in ((WAYS[2], _NAIVE, naive), (WAYS[3], _CANONICAL, report)):
            outcomes.append(
                self._outcome(
                    way,
                    task,
                    {**forward, "fast_forward": options, "report": into},
                    lambda into=into: (into.stats.forced_tokens, into.stats.forward_passes),
                )
            )
        return outcomes, report.tokens

    def _outcome(
        self,
        way: str,
        task: Task,
        extra: dict[str, Any],
        cost: Callable[[], tuple[int, int] | None],
    ) -> Outcome:
        prompt = self.prompt(task)
        length = prompt["input_ids"].shape[1]
        begun = time.perf_counter()
        output = self.model.generate(**prompt, do_sample=False, max_new_tokens=MAX_TOKENS, **extra)
        seconds = time.perf_counter() - begun
        tokens = output[0, length:].tolist()
        text = self.tokenizer.decode(tokens, skip_special_tokens=True)
        forced, passes = cost() or (0, len(tokens))
        return Outcome(
            way=way,
            text=text,
            valid=_is_valid(text, task.schema),
            right=None if task.right is None else _is_right(text, task.right),
            tokens=len(tokens),
            forced=forced,
            passes=passes,
            seconds=seconds,
            likelihood=self.likelihood(prompt["input_ids"][0].tolist(), tokens),
        )

    @torch.no_grad()
    def likelihood(self, prompt: Sequence[int], tokens: Sequence[int]) -> float:
        """The log-likelihood in nats of tokens after a prompt, among all tokens."""
        logits = self.model(input_ids=torch.tensor([[*prompt, *tokens]])).logits[0].float()
        after = logits[len(prompt) - 1 : -1].log_softmax(-1)
        return float(after[range(len(tokens)), list(tokens)].sum())

    def cut(self, task: Task, text: str, *, naive: bool) -> list[int]:
        """A given answer as the tokens that it has where all that is forced is appended.

        Where nothing is forced, it goes on with the first of the tokens that the tokenizer has for
        what is left of the text.

        Args:
            task: Whose grammar forces.
            text: What follows that grammar.
            naive: Whether forced text is tokenized by itself, or canonically.

        """
        matcher = self.grammar(task).matcher()
        options = _NAIVE if naive else _CANONICAL
        tokens: list[int] = []
        left = text.encode()
        while not matcher.is_terminated():
            step = options.tokens(matcher)
            if not step:
                own = self.tokenizer.encode(left.decode(), add_special_tokens=False)
                step = own[:1] or [self.tokenizer.eos_token_id]
            if not matcher.accept_tokens(step):
                raise ValueError(f"the text does not follow the schema: {text}")
            tokens += step
            written = b"".join(self.vocabulary.token_bytes(token) or b"" for token in step)
            left = left[len(written) :] if left else left
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
