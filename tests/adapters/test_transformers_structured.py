"""`Structured`: what an answer is to be, as arguments of `generate` and of pipelines."""

import copy
import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import torch
from tinymodels import COLOUR_SCHEMA, EOS, ORDER_SCHEMA, PAD
from transformers import GenerationConfig, pipeline

import ffwd
from ffwd.adapters.transformers import (
    FastForward,
    GenerationReport,
    GrammarLogitsProcessor,
    Structured,
    UnsupportedGenerationError,
    fast_forward_generate,
)

GREEDY: dict[str, Any] = {"do_sample": False}
WAYS = [True, False]


@pytest.fixture(scope="module")
def structured(model, tokenizer):
    return Structured(model, tokenizer)


@pytest.fixture
def generated(model, encode, answers):
    """The answers of `generate`."""

    def generated(*prompts, **arguments):
        inputs = encode(*prompts)
        return answers(model.generate(**inputs, **(GREEDY | arguments)), inputs)

    return generated


@pytest.mark.parametrize("fast_forward", WAYS)
def test_json_schemas(fast_forward, structured, generated, assert_valid):
    options = {"whitespace": "compact", "max_new_tokens": 150, "fast_forward": fast_forward}
    for schema in (ORDER_SCHEMA, json.dumps(ORDER_SCHEMA)):
        (text,) = generated("Ada bought", **structured(json_schema=schema, **options))
        assert_valid(text)
    formats = {"type": "json_schema", "json_schema": {"name": "order", "schema": ORDER_SCHEMA}}
    assert generated("Ada bought", **structured(response_format=formats, **options)) == [text]


@pytest.mark.parametrize("fast_forward", WAYS)
def test_expressions_choices_and_grammars(fast_forward, structured, generated):
    options = {"max_new_tokens": 40, "fast_forward": fast_forward}
    (text,) = generated("x", **structured(regex=r"\d{4}-\d\d", **options))
    assert re.fullmatch(r"\d{4}-\d\d", text)
    (text,) = generated("x", **structured(choice=["shipped", "pending"], **options))
    assert text in ("shipped", "pending")
    for grammar in (
        'start: "a" | "b" "c"+ "d"',
        'root ::= "a" | "b" "c"+ "d"',
        ffwd.lit("a") | ffwd.regex("bc+d"),
        ffwd.compile(ffwd.regex("a|bc+d"), structured.vocabulary),
    ):
        (text,) = generated("x", **structured(grammar=grammar, **options))
        assert re.fullmatch("a|bc+d", text)


@pytest.mark.parametrize("fast_forward", WAYS)
def test_a_grammar_for_each_prompt(fast_forward, structured, generated):
    kinds = ["root ::= [0-9]+", ffwd.choice(["yes", "no"])]
    options = {"max_new_tokens": 10, "fast_forward": fast_forward}
    texts = generated("Ada bought", "x", **structured(grammar=kinds, **options))
    assert re.fullmatch("[0-9]+", texts[0])
    assert texts[1] in ("yes", "no")


def test_pydantic(structured, generated):
    pydantic = pytest.importorskip("pydantic")

    class Order(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")
        express: bool
        status: str = pydantic.Field(pattern="^(pending|shipped)$")

    options = {"whitespace": "compact", "max_new_tokens": 60}
    for given in ({"json_schema": Order}, {"response_format": Order}):
        (text,) = generated("Ada bought", **structured(**given, **options))
        assert Order.model_validate_json(text).status in ("pending", "shipped")
    many = pydantic.TypeAdapter(list[Order])
    (text,) = generated("Ada bought", **structured(json_schema=many, **options))
    assert isinstance(many.validate_json(text), list)


def test_max_new_tokens_leaves_room_for_the_end(structured, generated):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    for fast_forward in WAYS:
        for limit in (12, 20, 33):
            options = {"whitespace": "compact", "fast_forward": fast_forward}
            (text,) = generated(
                "Ada bought", **structured(json_schema=schema, max_new_tokens=limit, **options)
            )
            jsonschema_rs.validate(schema, json.loads(text))
    with pytest.raises(ffwd.BudgetError):
        generated("x", **structured(json_schema=ORDER_SCHEMA, max_new_tokens=5))


def test_a_generation_config_beside_it(structured, generated, assert_valid):
    config = GenerationConfig(max_new_tokens=150, do_sample=True, temperature=1.3, top_k=20)
    torch.manual_seed(1)
    arguments = structured(json_schema=ORDER_SCHEMA, whitespace="compact")
    (text,) = generated("Ada bought", generation_config=config, **arguments)
    assert_valid(text)


def test_beams_and_assistants_with_a_processor(structured, generated, assistant, assert_valid):
    arguments = {"json_schema": COLOUR_SCHEMA, "whitespace": "compact", "max_new_tokens": 60}
    with pytest.raises(UnsupportedGenerationError, match="num_beams"):
        generated("Ada bought", num_beams=3, **structured(**arguments))
    arguments["fast_forward"] = False
    (text,) = generated("Ada bought", num_beams=3, **structured(**arguments))
    assert_valid(text, COLOUR_SCHEMA)
    (alone,) = generated("Ada bought", **structured(**arguments))
    (assisted,) = generated("Ada bought", assistant_model=assistant, **structured(**arguments))
    (looked_up,) = generated("Ada bought", prompt_lookup_num_tokens=3, **structured(**arguments))
    assert alone == assisted == looked_up
    assert_valid(alone, COLOUR_SCHEMA)


def test_what_it_returns(structured):
    report = GenerationReport()
    given = structured(choice=["a", "b"], max_new_tokens=7, report=report, canonical=True)
    grammar = given.pop("grammar")
    assert given == {
        "custom_generate": fast_forward_generate,
        "max_new_tokens": 7,
        "complete": True,
        "canonical": True,
        "report": report,
    }
    assert structured(choice=["a", "b"])["grammar"] is grammar
    assert structured(choice=["a", "c"])["grammar"] is not grammar
    limited = FastForward(max_tokens=2)
    assert structured(choice=["a", "b"], fast_forward=limited)["fast_forward"] is limited
    (processor,) = structured(choice=["a", "b"], fast_forward=False)["logits_processor"]
    assert isinstance(processor, GrammarLogitsProcessor)


def test_few_grammars_are_kept(model, vocabulary):
    small = Structured(model, vocabulary=vocabulary, max_grammars=1)
    first = small(regex="a")["grammar"]
    assert small(regex="a")["grammar"] is first
    small(regex="b")
    assert small(regex="a")["grammar"] is not first


def test_end_tokens_of_the_grammar_stop_the_model(tokenizer, model, encode):
    """Where the model's own configuration has another one."""
    other = copy.deepcopy(model)
    other.generation_config.eos_token_id = PAD
    structured = Structured(other, tokenizer)
    assert structured.vocabulary.eos_token_ids == [PAD, EOS]
    inputs = encode("Ada bought")
    for fast_forward in WAYS:
        arguments = structured(choice=["yes"], fast_forward=fast_forward, max_new_tokens=9)
        output = other.generate(**inputs, **GREEDY, **arguments)
        new = output[0, inputs["input_ids"].shape[1] :].tolist()
        assert new[-1] in (PAD, EOS)
        assert tokenizer.decode(new[:-1]) == "yes"


def test_a_typo_in_a_keyword_is_told_once(structured):
    schema = {"type": "string", "maxlength": 3}
    with pytest.warns(ffwd.UnknownKeywordWarning, match="did you mean 'maxLength'") as found:
        assert len([structured(json_schema=schema) for _ in range(2)]) == 2
    assert [Path(one.filename) for one in found] == [Path(__file__)]


@pytest.mark.parametrize("given", [{}, {"regex": "a", "choice": ["b"]}])
def test_just_one_thing_is_said(given, structured):
    with pytest.raises(TypeError, match="by one of"):
        structured(**given)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"json_schema": 7}, TypeError, "or a type"),
        ({"json_schema": range}, ffwd.UnsupportedTypeError, "range"),
        ({"json_schema": {"type": "strin"}}, ffwd.InvalidSchemaError, "strin"),
        ({"json_schema": '{"type":'}, ffwd.InvalidSchemaError, "not JSON"),
        ({"json_schema": False}, ffwd.UnsatisfiableSchemaError, "no valid value"),
        ({"regex": "("}, ffwd.GrammarError, "not closed"),
        ({"regex": 5}, TypeError, "regex must be text"),
        ({"choice": "yes"}, TypeError, "list of texts"),
        ({"choice": [1]}, ffwd.FfwdError, "strings"),
        ({"choice": []}, ffwd.GrammarError, "at least one"),
        ({"grammar": 'start: "a" b'}, ffwd.GrammarError, "b"),
        ({"grammar": 5}, TypeError, "grammar must be text"),
        ({"response_format": "json"}, TypeError, "object"),
        ({"response_format": {"type": "xml"}}, ValueError, "xml"),
        ({"regex": "a", "fast_forward": False, "report": GenerationReport()}, TypeError, "report"),
    ],
)
def test_bad_input(given, error, text, structured):
    with pytest.raises(error, match=text):
        structured(**given)


def test_bad_models_and_tokenizers(model):
    with pytest.raises(TypeError, match="needs a tokenizer"):
        Structured(model)
    with pytest.raises(ffwd.VocabularyError, match="object"):
        Structured(model, object())


# --------------------------------------------------------------------------------------- pipelines


@pytest.fixture(scope="module")
def pipe(model, tokenizer):
    talking = copy.deepcopy(tokenizer)
    talking.chat_template = (
        "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}"
        "{% if not loop.last or m.role != 'assistant' %}</s>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<s>assistant: {% endif %}"
    )
    return pipeline("text-generation", model=model, tokenizer=talking)


@pytest.mark.parametrize("fast_forward", WAYS)
def test_a_pipeline(fast_forward, pipe, assert_valid):
    structured = Structured(pipe)
    arguments = structured(
        json_schema=ORDER_SCHEMA,
        whitespace="compact",
        max_new_tokens=150,
        fast_forward=fast_forward,
    )
    torch.manual_seed(2)
    # Pipelines sample by default.
    (one,) = pipe("Ada bought", return_full_text=False, **arguments)
    assert_valid(one["generated_text"])
    prompts = ["Ada bought", "Grace: 3 cherry", "x"]
    for found in pipe(prompts, batch_size=2, return_full_text=False, **arguments):
        assert_valid(found[0]["generated_text"])
    several = pipe(
        "Ada bought",
        return_full_text=False,
        num_return_sequences=2,
        **structured(choice=["shipped", "pending"], fast_forward=fast_forward),
    )
    assert {one["generated_text"] for one in several} <= {"shipped", "pending"}
    assert len(several) == 2


@pytest.mark.parametrize("fast_forward", WAYS)
def test_a_pipeline_with_messages(fast_forward, pipe, assert_valid):
    structured = Structured(pipe)
    messages = [
        {"role": "system", "content": "Answer in JSON."},
        {"role": "user", "content": "Ada bought a banana."},
    ]
    arguments = structured(
        response_format={"type": "json_schema", "json_schema": {"schema": COLOUR_SCHEMA}},
        whitespace="compact",
        max_new_tokens=60,
        fast_forward=fast_forward,
    )
    (answer,) = pipe(messages, **GREEDY, **arguments)
    assert answer["generated_text"][:2] == messages
    last = answer["generated_text"][2]
    assert last["role"] == "assistant"
    assert_valid(last["content"], COLOUR_SCHEMA)
    answers = pipe([messages, messages[1:]], **GREEDY, **arguments)
    for (answer,) in answers:
        assert_valid(answer["generated_text"][-1]["content"], COLOUR_SCHEMA)


def test_the_arguments_without_the_shortcut(pipe, order_grammar, assert_valid):
    """What `Structured` returns is nothing special."""
    for arguments in (
        {"custom_generate": fast_forward_generate, "grammar": order_grammar},
        {"logits_processor": [GrammarLogitsProcessor(order_grammar)]},
    ):
        (answer,) = pipe("Ada", return_full_text=False, max_new_tokens=150, **GREEDY, **arguments)
        assert_valid(answer["generated_text"])


def test_a_pipelines_streamer(pipe):
    class Streamer:
        def __init__(self):
            self.tokens, self.ended = [], False

        def put(self, value):
            self.tokens += value.flatten().tolist()

        def end(self):
            self.ended = True

    structured = Structured(pipe)
    for fast_forward in WAYS:
        streamer = Streamer()
        arguments = structured(
            choice=["pending"], fast_forward=fast_forward, streamer=streamer, max_new_tokens=12
        )
        (answer,) = pipe("x", return_full_text=False, **GREEDY, **arguments)
        assert answer["generated_text"] == "pending"
        assert streamer.ended
        assert pipe.tokenizer.decode(streamer.tokens, skip_special_tokens=True) == "xpending"
