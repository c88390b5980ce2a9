"""outlines' own generators and output types, with tiny random models of transformers."""

import enum
import json
import logging
from dataclasses import dataclass
from typing import Literal

import jsonschema
import numpy as np
import pytest
import torch

outlines = pytest.importorskip("outlines", reason="needs the environment outlines")

from hostcases import CASES, MAX_TOKENS, NAMES, PROMPTS, write_host_model
from outlines.types import CFG, Choice, JsonSchema, Regex
from pydantic import BaseModel, Field
from transformers import AutoModelForCausalLM, AutoTokenizer
from typing_extensions import TypedDict

import ffwd
from ffwd.adapters import transformers as masks
from ffwd.adapters.outlines import (
    GrammarLogitsProcessor,
    NoTokenLeftError,
    RefusedTokenError,
    UnsupportedModelError,
    UnsupportedOutputTypeError,
    grammar_of,
    vocabulary_of,
)
from ffwd.chat import Prompt, TextPart

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = write_host_model(tmp_path_factory.mktemp("model"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return outlines.from_transformers(AutoModelForCausalLM.from_pretrained(folder), tokenizer)


@pytest.fixture(scope="module")
def vocabulary(model):
    return vocabulary_of(model)


def types_of(case):
    """The same grammar as outlines writes it."""
    return {"json": JsonSchema, "regex": Regex, "lark": CFG}[case.kind](case.source)


def generator_of(model, vocabulary, given, **options):
    options = {"vocabulary": vocabulary, "max_tokens": MAX_TOKENS, **options}
    return outlines.Generator(model, processor=GrammarLogitsProcessor(model, given, **options))


def generate(generator, prompt=PROMPTS[0], **options):
    options = {"max_new_tokens": MAX_TOKENS, "do_sample": False, **options}
    return generator(prompt, **options)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_outputs_are_valid(model, vocabulary, case):
    """By the libraries of others, greedy and sampled, alone and in a batch."""
    generator = generator_of(model, vocabulary, types_of(case), whitespace="compact")
    text = generate(generator)
    case.check(text)
    assert generate(generator) == text, "the generator resets its processor"
    texts = generator.batch(PROMPTS, max_new_tokens=MAX_TOKENS, do_sample=True, temperature=1.5)
    for one in texts:
        case.check(one)
    # A grammar of ffwd is the same one.
    assert generate(generator_of(model, vocabulary, case.grammar())) == text


def test_the_text_is_that_of_the_processor_of_transformers(model, vocabulary):
    grammar = ffwd.compile(CASES[0].grammar(), vocabulary)
    text = generate(generator_of(model, None, grammar, narrow=True))
    prompt = model.type_adapter.format_input(PROMPTS[0])
    inputs = model.hf_tokenizer(prompt, return_tensors="pt")
    processor = masks.GrammarLogitsProcessor(grammar, narrow=True, max_tokens=MAX_TOKENS)
    options = {"max_new_tokens": MAX_TOKENS, "do_sample": False}
    ids = model.model.generate(**inputs, logits_processor=[processor], **options)
    answer = ids[0, inputs["input_ids"].shape[1] :]
    assert model.hf_tokenizer.decode(answer, skip_special_tokens=True) == text


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    item: str = Field(max_length=6)
    colour: Colour
    express: bool


@dataclass
class Point:
    x: Literal[1, 2]
    y: bool


class Options(TypedDict):
    paid: bool


def add(left: bool, right: bool):
    return left or right


@pytest.mark.parametrize(
    ("output_type", "read"),
    [
        (Order, Order.model_validate_json),
        (JsonSchema(Order), Order.model_validate_json),
        (Point, lambda text: Point(**json.loads(text))),
        (Options, lambda text: json.loads(text)["paid"]),
        (add, lambda text: add(**json.loads(text))),
        (Literal["yes", "no"], ["yes", "no"].index),
        (Colour, Colour),
        (Choice(["left", "right", 5]), ["left", "right", "5"].index),
        (int, int),
        (float, float),
        (bool, ["True", "False"].index),
        (dict, json.loads),
        (list[Literal["a", "b"]], json.loads),
        (Regex("[a-c]") + "-" + Regex("[0-9]{2}"), lambda text: int(text.split("-")[1])),
        (Regex("ab").exactly(2) | "x", ["abab", "x"].index),
        ("answer: " + JsonSchema(Options), lambda text: json.loads(text.removeprefix("answer: "))),
        (JsonSchema(Options).between(1, 2), lambda text: json.loads(text[: text.index("}") + 1])),
        (Choice([CFG('start: "a" start "b" | "c"'), "d"]), lambda text: text),
        (CFG('root ::= "yes" | "no"'), ["yes", "no"].index),
    ],
    ids=str,
)
def test_output_types(model, vocabulary, output_type, read):
    """Types that outlines takes, and terms that no regular expression has."""
    text = generate(generator_of(model, vocabulary, output_type, whitespace="compact"))
    read(text)


def test_one_type_for_each_prompt(model, vocabulary):
    generator = generator_of(model, vocabulary, [Colour, Regex("[0-9]{3}"), CASES[0].grammar()])
    first, second, third = generator.batch(PROMPTS, max_new_tokens=MAX_TOKENS, do_sample=False)
    assert first in ("red", "blue")
    assert len(second) == 3
    CASES[0].check(third)


def test_beams_and_several_samples(model, vocabulary):
    generator = generator_of(model, vocabulary, types_of(CASES[0]), whitespace="compact")
    CASES[0].check(generate(generator, num_beams=4))
    texts = generate(generator, num_return_sequences=4, do_sample=True, temperature=2.0)
    assert len(texts) == 4
    for text in texts:
        CASES[0].check(text)


def test_the_start_of_a_chat(model, vocabulary):
    """The answer continues its prefill."""
    prompt = Prompt(
        parts=(TextPart(PROMPTS[0]), TextPart('{"status":')),
        tokenizer=ffwd.tokenizer.load(model.hf_tokenizer),
        end_token_ids=tuple(vocabulary.eos_token_ids),
        prefill='{"status":',
        generation_start=True,
    )
    schema = {"properties": {"status": {"enum": ["pending", "shipped"]}}, "required": ["status"]}
    schema |= {"type": "object", "additionalProperties": False}
    start = prompt.start(ffwd.compile(ffwd.json_schema(schema), vocabulary))
    inputs = torch.tensor([start.prompt_ids])
    processor = GrammarLogitsProcessor(model, start)
    ids = model.model.generate(inputs, logits_processor=[processor], max_new_tokens=50)
    answer = start.answer(ids[0, inputs.shape[1] :].tolist())
    assert answer.complete
    jsonschema.validate(json.loads(answer.text), schema)


def test_errors_come_before_generation(model, vocabulary):
    def made(given, **options):
        return GrammarLogitsProcessor(model, given, vocabulary=vocabulary, **options)

    with pytest.raises(ffwd.UnsatisfiableSchemaError):
        made(JsonSchema({"type": "integer", "minimum": 2, "maximum": 1}))
    with pytest.raises(ffwd.GrammarError):
        made(Regex("(a"))
    with pytest.raises(ffwd.GrammarError):
        made(CFG("start: other"))
    with pytest.raises(ffwd.BudgetError):
        made(Regex("a{200}"), max_tokens=5)
    with pytest.raises(UnsupportedOutputTypeError, match="whitespace_pattern"):
        made(JsonSchema({"type": "object"}, whitespace_pattern=" ?"))
    with pytest.raises(UnsupportedOutputTypeError, match="currently not supported"):
        made(object())
    with pytest.raises(ValueError, match="whitespace must be one of"):
        made(Order, whitespace="none")
    with pytest.raises(UnsupportedModelError, match="jax"):
        GrammarLogitsProcessor(type("Jax", (), {"tensor_library_name": "jax"})(), Order)
    with pytest.warns(ffwd.UnknownKeywordWarning):
        made(JsonSchema({"type": "string", "maxlength": 3}))


def test_a_refused_token_is_an_error(model, vocabulary):
    """Another processor chose it."""

    class Other:
        def __call__(self, input_ids, scores):
            chosen = torch.zeros_like(scores)
            chosen[:, vocabulary.encode(b"z")[0]] = 1
            return chosen

    processor = GrammarLogitsProcessor(model, Regex("~{30}"), vocabulary=vocabulary)
    inputs = model.hf_tokenizer(PROMPTS[0], return_tensors="pt")
    with pytest.raises(RefusedTokenError, match="position 0"):
        model.model.generate(
            **inputs, logits_processor=[processor, Other()], max_new_tokens=5, do_sample=False
        )
    assert issubclass(masks.NoTokenLeftError, NoTokenLeftError)


class Llama:
    """What the adapter reads of outlines' `LlamaCpp`."""

    tensor_library_name = "numpy"


def numpy_text(processor, vocabulary, *, width, seed, prompt=(5, 6), steps=MAX_TOKENS):
    """Generate as llama-cpp-python does: ids [length] and scores [width], float32."""
    rng = np.random.default_rng(seed)
    ids = list(prompt)
    processor.reset()
    for _ in range(steps):
        scores = rng.normal(size=width).astype(np.single)
        before = scores.copy()
        masked = processor(np.array(ids, dtype=np.intc), scores)
        assert masked.shape == (width,)
        assert np.array_equal(scores, before), "llama.cpp's own scores are left as they are"
        token = int(masked.argmax())
        if token in vocabulary.eos_token_ids:
            break
        ids.append(token)
    return b"".join(vocabulary.token_bytes(token) or b"" for token in ids[len(prompt) :])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_numpy(vocabulary, case):
    """The path of llama.cpp: outlines' base class and its tensors, without llama.cpp."""
    processor = GrammarLogitsProcessor(
        Llama(), types_of(case), vocabulary=vocabulary, max_tokens=MAX_TOKENS, whitespace="compact"
    )
    width = vocabulary.vocab_size + 7
    for seed in range(2):
        text = numpy_text(processor, vocabulary, width=width, seed=seed)
        case.check(text.decode())
        assert numpy_text(processor, vocabulary, width=width, seed=seed) == text
    processor.check()


def test_an_error_under_llama_cpp_ends_the_text(vocabulary, caplog):
    """There, exceptions of processors are lost."""
    grammar = ffwd.compile(ffwd.regex("ab"), vocabulary)
    processor = GrammarLogitsProcessor(Llama(), grammar)
    width = vocabulary.vocab_size
    processor(np.array([5], dtype=np.intc), np.zeros(width, np.single))
    wrong = vocabulary.encode(b"z")[0]
    with caplog.at_level(logging.ERROR):
        masked = processor(np.array([5, wrong], dtype=np.intc), np.ones(width, np.single))
    assert np.flatnonzero(masked > -np.inf).tolist() == vocabulary.eos_token_ids
    assert "the text ends here" in caplog.text
    with pytest.raises(RefusedTokenError, match="position 0"):
        processor.check()
    processor.reset()
    processor.check()
    processor(np.array([5], dtype=np.intc), np.full(width, -np.inf, np.single))
    assert isinstance(processor.error, NoTokenLeftError)
    with pytest.raises(UnsupportedModelError, match="no batches"):
        GrammarLogitsProcessor(Llama(), [grammar, grammar])


def test_the_grammar_of_a_type():
    assert isinstance(grammar_of(Order), ffwd.JsonSchema)
    assert isinstance(grammar_of(Colour), ffwd.Regex)
    jsonschema.Draft202012Validator.check_schema(json.loads(grammar_of(Order).schema))
