"""The experiment: a tokenizer and a model are trained, then records are written in each way."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from time import monotonic
from typing import Any, Literal

import tokenizers
import torch

import ffwd
import ffwd.tokenizer
from maskbench.canonical_demo.decoding import Decoder, Way, Written
from maskbench.canonical_demo.model import Example, ModelSize, Transformer, train
from maskbench.canonical_demo.records import STATES, Record, draw_record, schema, tokenizer_texts

VOCABULARY_SIZE = 600
END = "<|end|>"
WHITESPACE: tuple[Literal["compact", "flexible"], ...] = ("compact", "flexible")
WORDS = ("orderId", "orderName", "order", *STATES)

Encode = Callable[[str], list[int]]

# Runs of letters with one other character before them, numbers, punctuation, whitespace.
_PATTERN = r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"


@dataclass(frozen=True)
class Settings:
    """How large the experiment is."""

    size: ModelSize = field(default_factory=ModelSize)
    steps: int = 1000
    batch: int = 64
    training_records: int = 20_000
    test_records: int = 300
    seed: int = 0
    cut_share: float = 0.1
    """How many records the second model sees cut at random; 0 for no second model."""


@dataclass(frozen=True)
class Result:
    """One way of forcing over the test records. Shares are of 1, likelihoods in nats a record."""

    way: str
    records: int
    key_right: dict[str, float]
    """Whether the first key is the right one, by the right one."""
    state_right: float
    record_right: float
    """The whole record, written greedily."""
    sampled_right: float
    """The whole record, sampled: the mean likelihood of the truth, however it is tokenized."""
    unfinished: int
    choices: float
    """Mean log-likelihood of the truth, of the tokens that the model has to choose."""
    tokens: float
    """The same of all its tokens, forced ones as well, and without masks."""
    chosen_tokens: float
    """How many tokens of a record the model had to choose."""
    all_tokens: float


@dataclass(frozen=True)
class Trained:
    """A model, and its results by the whitespace that the schema allows."""

    cut_share: float
    loss: float
    seconds: float
    results: dict[str, list[Result]]


@dataclass(frozen=True)
class Outcome:
    """The whole experiment, with a model that has seen only the tokenizer's tokens, and another."""

    parameters: int
    vocabulary: int
    encodings: dict[str, list[str]]
    """How the tokenizer writes the words that matter."""
    models: list[Trained]


def run(
    ways: Sequence[Way], settings: Settings, say: Callable[[str], None] = lambda line: None
) -> Outcome:
    """Trains and measures; `say` gets a line at each stage.

    On one thread: the model is too small to gain much from more, and where other work goes on
    beside it, threads that wait for each other make it many times slower.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _run(ways, settings, say)
    finally:
        torch.set_num_threads(threads)


def _run(ways: Sequence[Way], settings: Settings, say: Callable[[str], None]) -> Outcome:
    source = random.Random(settings.seed)
    tokenizer = train_tokenizer(source)
    encode: Encode = lambda text: tokenizer.encode(text).ids  # noqa: E731
    (end,) = tokenizer.encode(END).ids
    vocabulary = ffwd.tokenizer.from_huggingface(tokenizer, eos_token_ids=[end])
    held_out = _distinct(source, settings.test_records)
    sentences = {record.sentence for record in held_out}
    drawn = (draw_record(source) for _ in range(2 * settings.training_records))
    records = [record for record in drawn if record.sentence not in sentences]
    models = []
    for share in dict.fromkeys((0.0, settings.cut_share)):
        torch.manual_seed(settings.seed)
        model = Transformer(tokenizer.get_vocab_size(), settings.size)
        say(f"training {model.parameter_count:,} parameters, {share:.0%} of records cut at random")
        started = monotonic()
        examples = [
            _example(record, encode, end, source if source.random() < share else None)
            for record in records[: settings.training_records]
        ]
        loss = train(model, examples, steps=settings.steps, batch=settings.batch)
        seconds = monotonic() - started
        say(f"trained in {seconds:.0f} s, loss {loss:.4f} nats a token")
        results: dict[str, list[Result]] = {}
        for whitespace in WHITESPACE:
            grammar = ffwd.compile(
                ffwd.grammar.json_schema(json.dumps(schema()), whitespace=whitespace), vocabulary
            )
            decoder = Decoder(model, grammar, encode)
            results[whitespace] = []
            for way in ways:
                say(f"whitespace {whitespace}: {way.name}")
                results[whitespace].append(_measure(way, decoder, held_out, settings.seed))
        models.append(Trained(share, loss, seconds, results))
    return Outcome(
        parameters=model.parameter_count,
        vocabulary=tokenizer.get_vocab_size(),
        encodings={word: tokenizer.encode(word).tokens for word in WORDS},
        models=models,
    )


def train_tokenizer(source: random.Random) -> tokenizers.Tokenizer:
    """A byte-level BPE tokenizer, trained on texts that are not the model's."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(_PATTERN), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[END],
        show_progress=False,
    )
    tokenizer.train_from_iterator(tokenizer_texts(source), trainer)
    return tokenizer


def _distinct(source: random.Random, count: int) -> list[Record]:
    """Records with different sentences."""
    found: dict[str, Record] = {}
    while len(found) < count:
        record = draw_record(source)
        found[record.sentence] = record
    return list(found.values())


def _example(record: Record, encode: Encode, end: int, cuts: random.Random | None) -> Example:
    """A record to learn; with `cuts`, up to four parts of its text are encoded apart."""
    sentence, text = encode(record.sentence), record.text
    places = [0, len(text)]
    if cuts is not None:
        places += (cuts.randrange(1, len(text)) for _ in range(3))
    parts = [encode(text[start:stop]) for start, stop in pairwise(sorted(places))]
    return Example((*sentence, *(token for part in parts for token in part), end), len(sentence))


def _measure(
    way: Way,
    decoder: Decoder,
    records: Sequence[Record],
    seed: int,
) -> Result:
    torch.manual_seed(seed)
    keys: dict[str, list[bool]] = {}
    states, greedy, sampled, choices, tokens = [], [], [], [], []
    chosen = length = unfinished = 0
    for record in records:
        sentence = decoder.encode(record.sentence)
        written = decoder.write(sentence, way)
        value = _value(written)
        key = next(iter(record.value))
        keys.setdefault(key, []).append(key in value)
        states.append(value.get("state") == record.value["state"])
        greedy.append(value == record.value)
        unfinished += not written.finished
        chosen += written.chosen
        length += written.tokens
        sampled.append(_value(decoder.write(sentence, way, sampled=True)) == record.value)
        score = decoder.score(sentence, record.text, way)
        choices.append(score.choices)
        tokens.append(score.tokens)
    return Result(
        way=way.name,
        records=len(records),
        key_right={key: _mean(right) for key, right in sorted(keys.items())},
        state_right=_mean(states),
        record_right=_mean(greedy),
        sampled_right=_mean(sampled),
        unfinished=unfinished,
        choices=_mean(choices),
        tokens=_mean(tokens),
        chosen_tokens=chosen / len(records),
        all_tokens=length / len(records),
    )


def _value(written: Written) -> dict[str, Any]:
    """The record that was written, {} if it is not finished."""
    if not written.finished:
        return {}
    value = json.loads(written.text)
    assert isinstance(value, dict)
    return value


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
