"""A model with its tokenizer and chat template: from messages and a schema to a value."""

import asyncio
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from transformers import StoppingCriteria, StoppingCriteriaList
from transformers.generation.streamers import BaseStreamer

import ffwd
from ffwd import CompiledGrammar, Grammar, Vocabulary, VocabularyError
from ffwd.adapters.transformers.answer import ANSWER, Reading
from ffwd.adapters.transformers.chat_options import ChatOptions, Stop
from ffwd.adapters.transformers.chat_tokenizer import ChatTokenizer, Conversation, chat_tokenizer
from ffwd.adapters.transformers.fit import end_tokens, misfit, model_width
from ffwd.adapters.transformers.generation import FinishReason, Generation, as_schema, reader_of
from ffwd.adapters.transformers.particles import (
    NEUTRAL,
    Particle,
    Particles,
    particle_generate,
)
from ffwd.adapters.transformers.report import GenerationReport, GenerationStats
from ffwd.adapters.transformers.stream import Stream
from ffwd.adapters.transformers.structured import Structured
from ffwd.chat import Prompt, Start
from ffwd.grammar import WritingOptions, warn_of_unknown_keywords

_DEFAULT_MAX_NEW_TOKENS = 1024


class ChatModel:
    """A model of transformers and its tokenizer.

        chat = ChatModel(model, tokenizer)
        person = chat.generate([{"role": "user", "content": "Who was Ada?"}], Person).value

    `ffwd.generate(model, tokenizer, …)` is this for one call. It may be shared between threads.

    Args:
        model: A decoder-only model of transformers.
        tokenizer: Its tokenizer: transformers' object, or whatever `ffwd.tokenizer.load` reads.

    Raises:
        TypeError: `model` is no model.
        VocabularyError: The tokenizer cannot be read, or does not fit the model.

    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        if not hasattr(model, "generate") or not hasattr(model, "generation_config"):
            shown = repr(model)
            raise TypeError(
                f"the model is {shown if len(shown) < 100 else type(model)}, which cannot "
                "generate: give a model of transformers, such as "
                "AutoModelForCausalLM.from_pretrained(path)"
            )
        self.model = model
        self._texts: ChatTokenizer = (
            tokenizer
            if isinstance(tokenizer, ChatTokenizer)
            else chat_tokenizer(tokenizer, width=model_width(model))
        )
        if (reason := misfit(model, self._texts.tokenizer)) is not None:
            raise VocabularyError(reason)

    def __repr__(self) -> str:
        return f"ChatModel({type(self.model).__name__}, {self._texts.tokenizer!r})"

    def generate(
        self, messages: Conversation | Sequence[Conversation], schema: Any, **options: Any
    ) -> Any:
        """Return the model's answer; the options are those of `ffwd.generate`."""
        conversations, several = _conversations(messages)
        asked = ChatOptions.of(options, self.model)
        if asked.draft_tokens is None:
            made = self._answers(self._job(conversations, schema, asked), asked)
        else:
            made = self._after_drafts(conversations, schema, asked)
        return made if several else made[0]

    def stream(self, messages: Conversation, schema: Any, **options: Any) -> Stream[Any]:
        """Return the model's answer as a stream; see `ffwd.stream`."""
        conversations, several = _conversations(messages)
        if several:
            raise TypeError("a stream is of one conversation; ffwd.generate takes several")
        asked = ChatOptions.of(options, self.model)
        if asked.sampling != "masks":
            raise TypeError(
                f"sampling={asked.sampling!r} chooses one of several whole texts, so there is "
                "nothing to stream; call ffwd.generate"
            )
        if asked.draft_tokens is not None:
            raise TypeError("draft_tokens: a draft is not streamed; call ffwd.generate")
        job = self._job(conversations, schema, asked)

        def answer(streamer: BaseStreamer, stopped: Stop) -> Generation[Any]:
            def stop() -> bool:
                return stopped() or (asked.should_stop is not None and asked.should_stop())

            (made,) = self._answers(
                job,
                replace(
                    asked,
                    should_stop=stop,
                    generate_options={**asked.generate_options, "streamer": streamer},
                ),
            )
            return made

        return Stream(Reading(job.starts[0], wrapped=job.wrapped), answer)

    async def generate_async(
        self, messages: Conversation | Sequence[Conversation], schema: Any, **options: Any
    ) -> Any:
        """Run `generate` on a thread; see `ffwd.generate_async`."""
        cancelled = threading.Event()
        own: Stop = options.pop("should_stop", None) or (lambda: False)
        running = asyncio.ensure_future(
            asyncio.to_thread(
                self.generate,
                messages,
                schema,
                should_stop=lambda: cancelled.is_set() or own(),
                **options,
            )
        )
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            cancelled.set()
            # When the caller continues, the model is idle.
            with suppress(Exception):
                await running
            raise

    def _grammar(self, schema: Any, writing: WritingOptions) -> Grammar | CompiledGrammar:
        if isinstance(schema, CompiledGrammar):
            return schema
        grammar = as_schema(schema, writing)
        if isinstance(grammar, ffwd.JsonSchema) and not isinstance(grammar, ffwd.TypedSchema):
            warn_of_unknown_keywords([grammar])
        return grammar

    def _job(
        self, conversations: Sequence[Conversation], schema: Any, asked: ChatOptions
    ) -> "_Job":
        """Return the start of each answer, and its form."""
        grammar = self._grammar(schema, asked.writing)
        prompts = [
            self._texts.prompt(
                conversation, tools=asked.tools, variables=asked.template_variables or {}
            )
            for conversation in conversations
        ]
        read = reader_of(grammar)
        if asked.reasoning_tokens is not None:
            return self._reasoning_job(prompts, grammar, asked.reasoning_tokens)
        # If a prompt ends within the reasoning, the start itself waits for its close.
        wrapped = asked.reasoning and not any(
            isinstance(prompt, Prompt) and prompt.thinking is not None for prompt in prompts
        )
        if isinstance(grammar, CompiledGrammar):
            if wrapped:
                raise TypeError(
                    "reasoning=True needs a grammar that is not compiled, or ffwd.reasoning(…)"
                )
            return _Job([self._texts.start(prompt, grammar) for prompt in prompts], read, False)
        if wrapped:
            grammar = ffwd.reasoning(ffwd.capture(ANSWER, grammar), optional=True)
        compiled = self._texts.compile(grammar, self._ends(prompts))
        return _Job([self._texts.start(prompt, compiled) for prompt in prompts], read, wrapped)

    def _reasoning_job(
        self,
        prompts: Sequence[Prompt | tuple[int, ...]],
        grammar: Grammar | CompiledGrammar,
        most: int,
    ) -> "_Job":
        """Return answers that begin with bounded reasoning."""
        if isinstance(grammar, CompiledGrammar):
            raise TypeError(
                "reasoning_tokens needs a grammar that is not compiled, or ffwd.reasoning(…)"
            )
        ends = self._ends(prompts)
        answer = ffwd.capture(ANSWER, grammar)
        starts = []
        for prompt in prompts:
            thinking = prompt.thinking if isinstance(prompt, Prompt) else None
            if thinking is None:
                whole = ffwd.reasoning(answer, max_tokens=most)
            else:
                close = thinking.closed_by.strip()
                whole = ffwd.reasoning(answer, max_tokens=most, opened=True, close=close)
            compiled = self._texts.compile(whole, ends)
            starts.append(self._texts.start(prompt, compiled, reasoning_in_grammar=True))
        return _Job(starts, reader_of(grammar), True)

    def _ends(self, prompts: Sequence[Prompt | tuple[int, ...]]) -> tuple[int, ...]:
        """Return the tokens that may end an answer to these prompts."""
        ends = {*self._texts.tokenizer.eos_token_ids, *end_tokens(self.model.generation_config)}
        for prompt in prompts:
            ends |= set(prompt.end_token_ids) if isinstance(prompt, Prompt) else set()
        return tuple(sorted(ends))

    def _after_drafts(
        self, conversations: Sequence[Conversation], schema: Any, asked: ChatOptions
    ) -> list[Generation[Any]]:
        """Return answers to conversations that have a free answer to the same question."""
        free = asked.of_draft
        asking = [_last_of_user(conversation) for conversation in conversations]
        drafts = self._answers(self._job(conversations, ffwd.any_text(), free), free)
        extended: list[Conversation] = [
            [*before, last, {"role": "assistant", "content": draft.text}, last]
            for (before, last), draft in zip(asking, drafts, strict=True)
        ]
        made = self._answers(self._job(extended, schema, asked), asked)
        if asked.report is not None:
            asked.report.stats += drafts[0].stats
        return [
            replace(one, draft=draft.text, stats=one.stats + draft.stats)
            for one, draft in zip(made, drafts, strict=True)
        ]

    def _answers(self, job: "_Job", asked: ChatOptions) -> list[Generation[Any]]:
        report = GenerationReport() if asked.report is None else asked.report
        report.masses |= asked.masses
        if asked.sampling != "masks":
            return self._drawn(job, asked, report)
        limit, rows = self._run(job.starts, asked, report)
        stopped = asked.should_stop is not None and asked.should_stop()
        masses = report.log_masses if report.masses else [None] * len(rows)
        return [
            _generation(job, start, ids, report.stats, one, limit=limit, stopped=stopped)
            for start, ids, one in zip(job.starts, rows, masses, strict=True)
        ]

    def _drawn(
        self, job: "_Job", asked: ChatOptions, report: GenerationReport
    ) -> list[Generation[Any]]:
        """Return answers that are drawn by weight, one after the other."""
        drawn = [Particles() for _ in job.starts]
        total = GenerationStats()
        limit = 0
        for start, found in zip(job.starts, drawn, strict=True):
            limit, _ = self._run([start], asked, report, found)
            total += report.stats
        report.stats = total
        report.log_masses[:] = [found.log_masses[found.chosen] for found in drawn]
        stopped = asked.should_stop is not None and asked.should_stop()
        made = []
        for start, found, masses in zip(job.starts, drawn, report.log_masses, strict=True):
            ids = found.tokens[found.chosen]
            one = _generation(job, start, ids, total, masses, limit=limit, stopped=stopped)
            text = partial(_text_of, start, job.wrapped)
            particles = tuple(
                Particle(tokens=tokens, log_weight=weight, probability=share, _text=text)
                for tokens, weight, share in zip(
                    found.tokens, found.log_weights, found.shares, strict=True
                )
            )
            made.append(replace(one, particles=particles, log_evidence=found.log_evidence))
        return made

    def _run(
        self,
        starts: list[Start],
        asked: ChatOptions,
        report: GenerationReport,
        found: Particles | None = None,
    ) -> tuple[int, list[list[int]]]:
        """Generate; return the token limit, and the ids of each row after its prompt.

        With `found` there is one row, and it is drawn from the texts that are put there.
        """
        options = dict(asked.generate_options)
        if options.get("num_return_sequences", 1) > 1:
            raise TypeError(
                "num_return_sequences: one answer comes for each conversation; give the "
                "conversation as often as answers are wanted"
            )
        config = options.get("generation_config") or self.model.generation_config
        if report.masses and (options.get("num_beams") or config.num_beams or 1) > 1:
            raise TypeError(
                "masses: num_beams is larger than 1, and the text that beam search returns may "
                "have ended before its last step; leave one of them out"
            )
        width = max(len(start.prompt_ids) for start in starts)
        limit = self._limit(asked.max_new_tokens, width, options)
        vocabulary: Vocabulary = starts[0].vocabulary
        with_report = report if asked.fast_forward is not False else None
        arguments = Structured(self.model, vocabulary=vocabulary)(
            grammar=starts,
            max_new_tokens=limit if asked.complete else None,
            fast_forward=asked.fast_forward,
            canonical=asked.canonical,
            streamer=options.pop("streamer", None),
            report=with_report,
            masses=report.masses and with_report is None,
        )
        arguments["max_new_tokens"] = limit
        if found is not None:
            arguments = {
                **NEUTRAL,
                **{name: one for name, one in arguments.items() if name != "complete"},
                "custom_generate": particle_generate,
                "do_sample": True,
                "grammar": starts[0],
                "number": asked.number,
                "sampling": asked.sampling,
                "found": found,
            }
        if asked.should_stop is not None:
            criteria = options.pop("stopping_criteria", None) or []
            options["stopping_criteria"] = StoppingCriteriaList(
                [*criteria, _Told(asked.should_stop)]
            )
        pad = self._pad_token(vocabulary)
        ids = [[pad] * (width - len(start.prompt_ids)) + [*start.prompt_ids] for start in starts]
        seen = [
            [0] * (width - len(start.prompt_ids)) + [1] * len(start.prompt_ids) for start in starts
        ]
        device = self.model.device
        output = self.model.generate(
            input_ids=torch.tensor(ids, device=device),
            attention_mask=torch.tensor(seen, device=device),
            **{"pad_token_id": pad, **arguments, **options},
        )
        sequences = getattr(output, "sequences", output)
        if with_report is None:
            (processor,) = arguments["logits_processor"]
            report.stats = processor.stats
            report.log_masses[:] = processor.log_masses if report.masses else []
        return limit, [row[width:].tolist() for row in sequences]

    def _limit(self, given: int | None, prompt_tokens: int, options: dict[str, Any]) -> int:
        config = options.get("generation_config") or self.model.generation_config
        if given is None:
            given = config.max_new_tokens
        # Releases before 5 have a default that the user did not set.
        longest = options.pop("max_length", None) or config.to_diff_dict().get("max_length")
        if given is None and longest is not None:
            given = longest - prompt_tokens
        context = getattr(
            self.model.config.get_text_config(decoder=True), "max_position_embeddings", None
        )
        if given is None:
            room = _DEFAULT_MAX_NEW_TOKENS if context is None else context - prompt_tokens
            given = min(_DEFAULT_MAX_NEW_TOKENS, room)
        if given < 1:
            raise ValueError(
                f"the prompt has {prompt_tokens} tokens, which leaves no room for an answer: "
                f"shorten it, or raise max_new_tokens (the model was made for {context} tokens)"
            )
        return int(given)

    def _pad_token(self, vocabulary: Vocabulary) -> int:
        pad = self.model.generation_config.pad_token_id
        return int(pad) if pad is not None else vocabulary.eos_token_ids[0]


@dataclass(frozen=True)
class _Job:
    """The starts of answers, and the parser of their values."""

    starts: list[Start]
    read: Callable[[str], Any]
    wrapped: bool
    """Whether the grammar is one of reasoning, and of the answer as a capture."""


class _Told(StoppingCriteria):
    """Ends all rows when the caller says so."""

    def __init__(self, should_stop: Stop) -> None:
        self._should_stop = should_stop

    def __call__(self, input_ids: Any, scores: Any, **kwargs: Any) -> Any:
        rows = input_ids.shape[0]
        return torch.full((rows,), self._should_stop(), dtype=torch.bool, device=input_ids.device)


def _conversations(
    messages: Conversation | Sequence[Conversation],
) -> tuple[list[Conversation], bool]:
    """Return each conversation, and whether there may be several."""
    if isinstance(messages, str):
        return [messages], False
    if not isinstance(messages, Sequence):
        raise TypeError(
            "messages must be a prompt, a list of messages, or a list of these, not "
            f"{type(messages).__name__}"
        )
    if not messages:
        raise ValueError("there are no messages: a conversation has at least one")
    if isinstance(messages[0], str) or not isinstance(messages[0], Mapping):
        several: Any = list(messages)
        return several, True
    one: Any = list(messages)
    return [one], False


def _last_of_user(
    conversation: Conversation,
) -> tuple[Sequence[Mapping[str, Any]], Mapping[str, Any]]:
    """Return the messages before the user's last one, and that one."""
    if isinstance(conversation, str) or not conversation or conversation[-1].get("role") != "user":
        raise TypeError(
            "draft_tokens: the draft answers the user's last message; give messages, the last one "
            "of the user"
        )
    return conversation[:-1], conversation[-1]


def _text_of(start: Start, wrapped: bool, tokens: Sequence[int]) -> str:
    reading = Reading(start, wrapped=wrapped)
    reading.add(tokens, finish=True)
    return reading.text


def _generation(
    job: _Job,
    start: Start,
    ids: Sequence[int],
    stats: GenerationStats,
    log_masses: Sequence[float] | None,
    *,
    limit: int,
    stopped: bool,
) -> Generation[Any]:
    """Return the answer of one row."""
    reading = Reading(start, wrapped=job.wrapped)
    reading.add(ids, finish=True)
    reason: FinishReason = "stop"
    if not reading.matcher.is_terminated():
        if stopped:
            reason = "cancelled"
        elif len(reading.tokens) >= limit:
            reason = "length"
    return Generation(
        text=reading.text,
        complete=reading.complete,
        finish_reason=reason,
        reasoning=reading.reasoning,
        tokens=tuple(reading.tokens),
        prompt_tokens=start.prompt_ids,
        stats=stats,
        log_masses=None if log_masses is None else tuple(log_masses[: len(reading.tokens)]),
        _read=job.read,
    )
