"""`ffwd.generate`, `ffwd.stream` and their asynchronous forms: from messages to values."""

import asyncio
import copy
import gc
import itertools
import json
import re
import subprocess
import sys
import threading
from typing import Annotated, Any, Literal

import jsonschema_rs
import pytest
import torch
from pydantic import BaseModel, Field, field_validator
from tinymodels import COLOUR_SCHEMA, EOS, ORDER_SCHEMA, PAD, random_llama
from transformers import GenerationConfig, StoppingCriteria

import ffwd
from ffwd.adapters.transformers import (
    ChatModel,
    FastForward,
    GenerationReport,
    Stream,
    UnsupportedGenerationError,
)

TEMPLATE = (
    "{% for m in messages %}<s>{{ m.role }}: {{ m.content }}"
    "{% if not loop.last or m.role != 'assistant' %}</s>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<s>assistant: {% endif %}"
)
THINKING = TEMPLATE.replace("assistant: {% endif %}", "assistant: <think>\n{% endif %}")
MESSAGES = [{"role": "user", "content": "Ada bought a </s> banana."}]
SAMPLED: dict[str, Any] = {"do_sample": True, "whitespace": "compact"}


class Order(BaseModel):
    status: Literal["pending", "shipped"]
    items: list[Literal["apple", "banana"]] = Field(max_length=3)


@pytest.fixture(scope="module")
def talking(tokenizer):
    made = copy.deepcopy(tokenizer)
    made.chat_template = TEMPLATE
    return made


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def test_messages_and_a_type(model, talking):
    made = ffwd.generate(model, talking, MESSAGES, Order, max_new_tokens=80, **SAMPLED)
    assert isinstance(made.value, Order)
    assert made.value is made.value
    assert Order.model_validate_json(made.text) == made.value
    assert (made.finish_reason, made.complete, made.reasoning) == ("stop", True, "")
    # The prompt is that of transformers, except that what a user writes is text.
    safe = [{"role": "user", "content": "Ada bought a banana."}]
    made = ffwd.generate(model, talking, safe, Order, max_new_tokens=80, **SAMPLED)
    expected = talking.apply_chat_template(safe, add_generation_prompt=True, return_dict=False)
    assert list(made.prompt_tokens) == expected
    assert made.tokens[-1] == EOS
    assert talking.decode(made.tokens[:-1]) == made.text
    assert made.stats.tokens == len(made.tokens)
    assert 0 < made.stats.forward_passes < made.stats.tokens
    assert made.stats.forced_tokens > 0


def test_what_a_user_writes_is_text(model, talking):
    made = ffwd.generate(model, talking, MESSAGES, ffwd.choice(["yes", "no"]))
    # The template's own one, and not the one in the message.
    assert made.prompt_tokens.count(EOS) == 1
    assert made.value in ("yes", "no")


@pytest.mark.parametrize("fast_forward", [True, False, FastForward(max_tokens=2)])
def test_every_kind_of_schema(fast_forward, model, talking, vocabulary):
    def value(schema, **options):
        options = {"max_new_tokens": 120, "fast_forward": fast_forward, **options}
        return ffwd.generate(model, talking, MESSAGES, schema, **options).value

    for schema in (COLOUR_SCHEMA, json.dumps(COLOUR_SCHEMA)):
        jsonschema_rs.validate(COLOUR_SCHEMA, value(schema, **SAMPLED))
    jsonschema_rs.validate(COLOUR_SCHEMA, value(ffwd.json_schema(COLOUR_SCHEMA)))
    assert set(value(dict[Literal["a"], bool])) <= {"a"}
    assert isinstance(value(ffwd.schema_of(Order, whitespace="compact")), Order)
    assert value(Literal["red", "blue"]) in ("red", "blue")
    assert re.fullmatch("[0-9]{2}", value(ffwd.regex("[0-9]{2}")))
    assert value(ffwd.lark('start: "a" | "b"')) in ("a", "b")
    compiled = ffwd.compile(ffwd.choice(["x", "y"]), vocabulary)
    assert value(compiled) in ("x", "y")

    def book(title: str, year: Annotated[int, Field(ge=0, le=3000)]) -> tuple[str, int]:
        return title, year

    bound = value(book, **SAMPLED)
    assert set(bound.arguments) == {"title", "year"}


@pytest.mark.parametrize("fast_forward", [True, False])
def test_a_batch(fast_forward, model, talking):
    """Conversations of different lengths, each with the answer that it has alone."""
    conversations = [
        MESSAGES,
        "Ada",
        [{"role": "system", "content": "Be brief."}, *MESSAGES, *MESSAGES],
    ]
    options = {"max_new_tokens": 60, "whitespace": "compact", "fast_forward": fast_forward}
    made = ffwd.generate(model, talking, conversations, Order, **options)
    assert [type(one.value) for one in made] == [Order] * 3
    for one, conversation in zip(made, conversations, strict=True):
        alone = ffwd.generate(model, talking, conversation, Order, **options)
        assert (alone.text, alone.tokens) == (one.text, one.tokens)
        assert alone.prompt_tokens == one.prompt_tokens
    (only,) = ffwd.generate(model, talking, [MESSAGES], Order, **options)
    assert only.text == made[0].text


def test_an_answer_that_was_begun(model, talking):
    begun = [*MESSAGES, {"role": "assistant", "content": '{"status":"ship'}]
    made = ffwd.generate(model, talking, begun, Order, max_new_tokens=60, **SAMPLED)
    assert made.value.status == "shipped"
    assert made.text.startswith('{"status":"shipped"')
    begun[-1]["content"] = '{"status":"sold'
    with pytest.raises(ffwd.chat.PrefillError):
        ffwd.generate(model, talking, begun, Order, max_new_tokens=60, **SAMPLED)


def test_the_generation_config_counts(model, talking):
    """Its limit, how it chooses, and what ends an answer."""
    own = copy.deepcopy(model)
    own.generation_config = GenerationConfig(max_new_tokens=9, do_sample=True, eos_token_id=PAD)
    made = [ffwd.generate(own, talking, MESSAGES, ffwd.regex("[a-z]{1,40}")) for _ in range(8)]
    assert max(len(one.tokens) for one in made) <= 9
    assert all(one.complete for one in made)
    assert {one.tokens[-1] for one in made} <= {PAD, EOS}
    assert len({one.text for one in made}) > 1
    # What is given in the call comes before it.
    other = GenerationConfig(max_new_tokens=3, do_sample=False)
    made = [
        ffwd.generate(own, talking, MESSAGES, ffwd.regex("[a-z]*"), generation_config=other)
        for _ in range(2)
    ]
    assert len(made[0].tokens) <= 3
    assert made[0].text == made[1].text
    made = ffwd.generate(
        model, talking, MESSAGES, ffwd.regex("[a-z]*"), max_length=len(made[0].prompt_tokens) + 5
    )
    assert len(made.tokens) <= 5
    # Without any limit the context is one.
    made = ffwd.generate(model, talking, "Ada " * 300, ffwd.regex("a+"))
    assert len(made.prompt_tokens) + len(made.tokens) <= 1024


def test_an_answer_that_is_cut_off(model, talking):
    options = {"whitespace": "compact", "max_new_tokens": 6}
    made = ffwd.generate(model, talking, MESSAGES, Order, complete=False, **options)
    assert (made.finish_reason, made.complete, len(made.tokens)) == ("length", False, 6)
    with pytest.raises(ffwd.TruncatedError, match="raise max_new_tokens") as caught:
        _ = made.value
    assert caught.value.text == made.text
    with pytest.raises(ffwd.BudgetError) as refused:
        ffwd.generate(model, talking, MESSAGES, Order, **options)
    options["max_new_tokens"] = refused.value.needed
    made = ffwd.generate(model, talking, MESSAGES, Order, **options)
    assert made.complete
    assert isinstance(made.value, Order)
    # A text that is whole without its end token has a value.
    digits = ffwd.regex("[0-9]+")
    made = ffwd.generate(model, talking, MESSAGES, digits, max_new_tokens=1, complete=False)
    assert made.finish_reason == "length"
    assert made.value.isdigit()


def test_a_validator_has_the_last_word(model, talking):
    class Never(BaseModel):
        a: bool

        @field_validator("a")
        @classmethod
        def refuse(cls, a: bool) -> bool:
            raise ValueError("never")

    made = ffwd.generate(model, talking, MESSAGES, Never, whitespace="compact")
    with pytest.raises(ffwd.ParseError, match="never") as caught:
        _ = made.value
    assert caught.value.text == made.text


def test_reasoning(model, talking):
    # A random model never closes its reasoning by itself, but the budget does.
    made = [
        ffwd.generate(
            model, talking, MESSAGES, Order, reasoning=True, max_new_tokens=60,
            do_sample=True, temperature=3.0, whitespace="compact",
        )
        for _ in range(12)
    ]  # fmt: skip
    assert all(isinstance(one.value, Order) for one in made)
    assert any(one.reasoning for one in made)
    for one in made:
        written = talking.decode(one.tokens, skip_special_tokens=True)
        if one.reasoning:
            assert written.startswith(f"<think>{one.reasoning}</think>")
        assert written.endswith(one.text)
    opened = copy.deepcopy(talking)
    opened.chat_template = THINKING + "{# <think> </think> #}"
    made = ffwd.generate(model, opened, MESSAGES, Order, max_new_tokens=60, **SAMPLED)
    assert isinstance(made.value, Order)
    assert made.tokens[-1] == EOS


def test_other_options_of_generate(model, talking):
    with pytest.raises(UnsupportedGenerationError, match="num_beams"):
        ffwd.generate(model, talking, MESSAGES, Order, num_beams=2)
    made = ffwd.generate(
        model, talking, MESSAGES, Order, num_beams=2, fast_forward=False, whitespace="compact",
        max_new_tokens=60,
    )  # fmt: skip
    assert isinstance(made.value, Order)
    report = GenerationReport(trace=True)
    made = ffwd.generate(
        model, talking, MESSAGES, Order, report=report, return_dict_in_generate=True, **SAMPLED
    )
    assert [one.token for one in report.tokens] == list(made.tokens)
    made = ffwd.generate(model, talking, MESSAGES, Order, tools=[], template_variables={"x": 1})
    assert made.complete
    made = ffwd.generate(model, talking, "Ada", Order, canonical=True, **SAMPLED)
    assert isinstance(made.value, Order)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"model": "path/of/a/model"}, TypeError, "from_pretrained"),
        ({"tokenizer": "no/such/file.json"}, ffwd.VocabularyError, "no/such/file.json"),
        ({"tokenizer": object()}, ffwd.VocabularyError, "object"),
        ({"messages": []}, ValueError, "no messages"),
        ({"messages": 5}, TypeError, "messages must be"),
        ({"messages": ""}, ValueError, "empty"),
        ({"messages": "a", "tools": [{}]}, TypeError, "need messages"),
        ({"schema": "[0-9]+"}, TypeError, r"ffwd\.regex"),
        ({"schema": ["yes", "no"]}, TypeError, r"ffwd\.choice"),
        ({"schema": {"type": "strin"}}, ffwd.InvalidSchemaError, "strin"),
        ({"schema": 5}, TypeError, "or a type"),
        ({"schema": range}, ffwd.UnsupportedTypeError, "range"),
        ({"schema": ffwd.regex("a"), "whitespace": "compact"}, TypeError, "whitespace is for"),
        ({"max_new_tokens": 0}, ValueError, "no room"),
        ({"messages": "Ada " * 2000}, ValueError, "no room"),
        ({"num_return_sequences": 2}, TypeError, "as often"),
        ({"max_tokens": 9}, TypeError, "no option 'max_tokens': did you mean 'max_new_tokens'"),
        ({"temprature": 0.1}, TypeError, "did you mean 'temperature'"),
        # Like nothing that there is: transformers says so.
        ({"zebra": 1}, ValueError, "zebra"),
    ],
)
def test_bad_input(change, error, text, model, talking):
    given = {"model": model, "tokenizer": talking, "messages": MESSAGES, "schema": Order}
    with pytest.raises(error, match=text):
        ffwd.generate(**(given | change))


def test_a_tokenizer_of_another_model(model, talking, tokenizer):
    larger = copy.deepcopy(talking)
    larger.add_tokens([f"<extra{i}>" for i in range(200)])
    with pytest.raises(ffwd.VocabularyError, match="different models"):
        ffwd.generate(model, larger, MESSAGES, Order)
    with pytest.raises(ffwd.chat.MissingTemplateError, match="no chat template"):
        ffwd.generate(model, tokenizer, MESSAGES, Order)
    # What the model's configuration says ends an answer is a word of this tokenizer.
    other = copy.deepcopy(model)
    word = talking.encode("Ada", add_special_tokens=False)[0]
    other.generation_config.eos_token_id = word
    with pytest.raises(ffwd.VocabularyError, match=str(word)):
        ffwd.generate(other, talking, MESSAGES, Order)


def test_a_typo_in_a_keyword_is_told_where_it_is(model, talking):
    schema = {"type": "string", "maxLength": 3, "minlength": 2}
    calls = [
        lambda: ffwd.generate(model, talking, MESSAGES, schema),
        lambda: ChatModel(model, talking).generate(MESSAGES, schema),
    ]
    for call in calls:
        with pytest.warns(ffwd.UnknownKeywordWarning, match="'minlength' at '/minlength'") as found:
            call()
        assert [one.filename for one in found] == [__file__]


def test_a_tokenizer_is_read_once_and_let_go(model, talking):
    own = copy.deepcopy(talking)
    first, second = ChatModel(model, own), ChatModel(model, own)
    assert first._texts is second._texts
    own.chat_template = THINKING
    assert ChatModel(model, own)._texts is not first._texts
    small = random_llama(seed=1, layers=1, hidden=32)
    ffwd.generate(small, own, MESSAGES, ffwd.choice(["a"]))
    seen = [small]
    del small
    gc.collect()
    # Nothing but this list holds the model.
    assert len(gc.get_referrers(seen[0])) <= 2


# ---------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("fast_forward", [True, False])
def test_a_stream(fast_forward, model, talking):
    options = {"max_new_tokens": 120, "whitespace": "compact", "fast_forward": fast_forward}
    with ffwd.stream(model, talking, MESSAGES, ORDER_SCHEMA, **options) as stream:
        chunks = list(stream)
    made = stream.result()
    assert "".join(chunk.text for chunk in chunks) == made.text
    assert [token for chunk in chunks for token in chunk.tokens] == list(made.tokens)
    jsonschema_rs.validate(ORDER_SCHEMA, made.value)
    # What the events say of the values is what they are.
    text = made.text.encode()
    ended = {
        event.pointer: json.loads(text[event.start : event.end])
        for chunk in chunks
        for event in chunk.events
        if event.action == "end" and event.kind == "value"
    }
    assert ended[""] == made.value
    assert ended["/express_delivery_was_paid_for"] is made.value["express_delivery_was_paid_for"]
    assert made.text == ffwd.generate(model, talking, MESSAGES, ORDER_SCHEMA, **options).text
    assert list(stream) == []


def test_characters_come_whole(model, talking):
    texts = ffwd.regex("[äöü🙂]{6}")
    with ffwd.stream(model, talking, MESSAGES, texts, do_sample=True) as stream:
        pieces = [chunk.text for chunk in stream]
    assert "\ufffd" not in "".join(pieces)
    assert "".join(pieces) == stream.result().text
    assert len(stream.result().text) == 6


def test_reasoning_is_streamed_apart(model, talking):
    for seed in range(6):
        torch.manual_seed(seed)
        stream = ffwd.stream(
            model, talking, MESSAGES, Order, reasoning=True, max_new_tokens=60,
            do_sample=True, temperature=3.0, whitespace="compact",
        )  # fmt: skip
        chunks = list(stream)
        made = stream.result()
        assert "".join(chunk.text for chunk in chunks) == made.text
        assert "".join(chunk.reasoning for chunk in chunks) == made.reasoning


def test_a_stream_that_is_left_stops_the_model(model, talking):
    # Hundreds of tokens from its end, and held until it is left, so that it cannot end by itself.
    endless = ffwd.regex("[a-z]{3000,}[0-9]")
    passes, left = itertools.count(), threading.Event()

    def held() -> bool:
        if next(passes) == 5:
            assert left.wait(timeout=600)
        return False

    with ffwd.stream(
        model, talking, MESSAGES, endless, max_new_tokens=3500, should_stop=held
    ) as stream:
        next(iter(stream))
        left.set()
    assert not stream._thread.is_alive()
    made = stream.result()
    assert made.finish_reason == "cancelled"
    assert len(made.tokens) < 3000
    with pytest.raises(ffwd.TruncatedError):
        _ = made.value
    # Also one that is only forgotten.
    stream = ffwd.stream(model, talking, MESSAGES, endless, max_new_tokens=3500)
    thread = stream._thread
    next(iter(stream))
    del stream
    gc.collect()
    thread.join(timeout=600)
    assert not thread.is_alive()


def test_errors_come_where_chunks_are_taken(model, talking):
    class Fails(StoppingCriteria):
        def __call__(self, input_ids, scores, **kwargs):
            raise OSError("no more")

    stream = ffwd.stream(model, talking, MESSAGES, Order, stopping_criteria=[Fails()])
    with pytest.raises(OSError, match="no more"):
        list(stream)
    with pytest.raises(OSError, match="no more"):
        stream.result()
    with pytest.raises(ffwd.BudgetError):
        ffwd.stream(model, talking, MESSAGES, Order, max_new_tokens=2).result()
    with pytest.raises(TypeError, match="one conversation"):
        ffwd.stream(model, talking, [MESSAGES], Order)


# ----------------------------------------------------------------------------------- event loops


def test_asynchronously(model, talking):
    """The loop goes on while models write."""

    async def main():
        ticked = threading.Event()

        async def tick():
            while True:
                ticked.set()
                await asyncio.sleep(0.001)

        def waits() -> bool:
            # The model goes on once the loop has.
            ticked.clear()
            assert ticked.wait(600)
            return False

        ticking = asyncio.create_task(tick())
        options = {"max_new_tokens": 60, "whitespace": "compact", "should_stop": waits}
        several = await asyncio.gather(
            *(ffwd.generate_async(model, talking, MESSAGES, Order, **options) for _ in range(2))
        )
        stream: Stream[Any] = ffwd.stream(model, talking, MESSAGES, Order, **options)
        text = "".join([chunk.text async for chunk in stream])
        made = await stream.result_async()
        ticking.cancel()
        assert text == made.text
        assert {one.text for one in several} == {text}
        assert isinstance(several[0].value, Order)

    asyncio.run(main())


def test_cancelling_stops_the_model(model, talking):
    """And the task ends once the model has stopped, not before."""
    asked = 0
    began, go_on = threading.Event(), threading.Event()

    def should_stop() -> bool:
        nonlocal asked
        asked += 1
        began.set()
        assert go_on.wait(600)
        return False

    async def main():
        endless = ffwd.regex("[a-z]*[0-9]")
        task = asyncio.create_task(
            ffwd.generate_async(
                model, talking, MESSAGES, endless, max_new_tokens=900, should_stop=should_stop
            )
        )
        await asyncio.to_thread(began.wait, 60)
        task.cancel()
        for _ in range(10):
            await asyncio.sleep(0)
        # The model is held in its first pass.
        assert not task.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asked <= 2

    asyncio.run(main())


def test_compiling_asynchronously(vocabulary):
    async def main():
        grammar = await ffwd.compile_async(ffwd.choice(["a"]), vocabulary)
        assert isinstance(grammar, ffwd.CompiledGrammar)
        with pytest.raises(ffwd.GrammarError):
            await ffwd.compile_async(ffwd.regex("("), vocabulary)

    asyncio.run(main())


def test_should_stop(model, talking):
    count = iter(range(100))
    made = ffwd.generate(
        model, talking, MESSAGES, ffwd.regex("[a-z]{90}"), should_stop=lambda: next(count) >= 4
    )
    assert made.finish_reason == "cancelled"
    assert len(made.tokens) <= 6


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_without_a_package_the_message_says_what_to_install(package):
    program = f"""
import asyncio, sys
import ffwd

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ImportError(f"No module named {{name!r}}", name=name)

assert {package!r} not in sys.modules
sys.meta_path.insert(0, Hidden())
given = (None, None, "x", {{}})

def adapter():
    import ffwd.adapters.transformers

for call in (
    lambda: ffwd.generate(*given),
    lambda: ffwd.stream(*given),
    lambda: asyncio.run(ffwd.generate_async(*given)),
    adapter,
):
    try:
        call()
    except ImportError as error:
        assert error.name == {package!r}
        assert "{package}" in str(error) and "pip install 'ffwd[transformers]'" in str(error), error
    else:
        raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_tokenizer_in_the_place_of_the_model_is_not_spelled_out(model, talking):
    with pytest.raises(TypeError, match="cannot generate: give a model") as caught:
        ffwd.generate(talking, model, MESSAGES, Order)
    assert len(str(caught.value)) < 300


def test_reasoning_comes_first_and_is_bounded(model, talking, vocabulary):
    def tokens_of(made, begin):
        """How many tokens have a byte of the reasoning, which begins there."""
        place, found, end = 0, 0, begin + len(made.reasoning.encode())
        for token in made.tokens:
            before, place = place, place + len(vocabulary.token_bytes(token) or b"")
            found += before < end and place > begin
        return found

    options = {"max_new_tokens": 80, "do_sample": True, "temperature": 3.0}
    for bound in (1, 7):
        made = ffwd.generate(
            model, talking, MESSAGES, Order, reasoning_tokens=bound, whitespace="compact", **options
        )
        assert isinstance(made.value, Order)
        written = talking.decode(made.tokens, skip_special_tokens=True)
        assert written.startswith(f"<think>{made.reasoning}</think>")
        assert written.endswith(made.text)
        assert 0 < tokens_of(made, len("<think>")) <= bound
    # Two prompts of different kinds: as text, and of a template that opens the reasoning.
    made = ffwd.generate(model, talking, "Ada", Order, reasoning_tokens=3, **options)
    assert isinstance(made.value, Order)
    opened = copy.deepcopy(talking)
    opened.chat_template = THINKING + "{# <think> </think> #}"
    made = ffwd.generate(model, opened, MESSAGES, Order, reasoning_tokens=4, **options)
    assert isinstance(made.value, Order)
    written = opened.decode(made.tokens, skip_special_tokens=True)
    assert written.startswith(f"{made.reasoning}</think>")
    assert 0 < tokens_of(made, 0) <= 4
    with ffwd.stream(model, talking, MESSAGES, Order, reasoning_tokens=5, **options) as stream:
        reasoning = "".join(chunk.reasoning for chunk in stream)
    assert stream.result().reasoning == reasoning


def test_a_draft_is_in_the_conversation(model, talking):
    conversations = [MESSAGES, [{"role": "system", "content": "Be brief."}, *MESSAGES]]
    options = {"max_new_tokens": 60, "whitespace": "compact"}
    made = ffwd.generate(model, talking, conversations, Order, draft_tokens=9, **options)
    for one, conversation in zip(made, conversations, strict=True):
        assert isinstance(one.value, Order)
        assert one.draft
        free = ffwd.generate(
            model, talking, conversation, ffwd.any_text(), max_new_tokens=9, complete=False
        )
        assert free.text == one.draft
        again = [*conversation, {"role": "assistant", "content": one.draft}, conversation[-1]]
        plain = ffwd.generate(model, talking, again, Order, **options)
        assert (plain.tokens, plain.prompt_tokens) == (one.tokens, one.prompt_tokens)
        assert plain.draft is None
    report = GenerationReport()
    one = ffwd.generate(
        model, talking, MESSAGES, Order, draft_tokens=9, report=report, masses=True, **options
    )
    assert one.stats == report.stats
    assert len(one.log_masses) == len(one.tokens) < one.stats.tokens
    both = ffwd.generate(
        model, talking, MESSAGES, Order, draft_tokens=3, reasoning_tokens=3, sampling="smc",
        particles=2, **options,
    )  # fmt: skip
    assert both.reasoning
    assert both.draft
    assert len(both.particles) == 2


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"reasoning_tokens": 0}, ValueError, "reasoning_tokens is 0"),
        ({"reasoning_tokens": 2.0}, TypeError, "reasoning_tokens is 2.0"),
        ({"draft_tokens": True}, TypeError, "draft_tokens is True"),
        ({"draft_tokens": -1}, ValueError, "at least 1"),
        ({"draft_tokens": 3, "messages": "Ada"}, TypeError, "the last one of the user"),
        ({"draft_tokens": 3, "messages": [[]]}, TypeError, "the last one of the user"),
        (
            {"draft_tokens": 3, "messages": [*MESSAGES, {"role": "assistant", "content": "x"}]},
            TypeError,
            "the last one of the user",
        ),
    ],
)
def test_bad_bounds_of_reasoning_and_drafts(options, error, text, model, talking):
    messages = options.pop("messages", MESSAGES)
    with pytest.raises(error, match=text):
        ffwd.generate(model, talking, messages, Order, **options)


def test_what_has_no_reasoning_and_no_draft(model, talking, vocabulary):
    compiled = ffwd.compile(ffwd.choice(["x", "y"]), vocabulary)
    with pytest.raises(TypeError, match="reasoning_tokens needs a grammar"):
        ffwd.generate(model, talking, MESSAGES, compiled, reasoning_tokens=4)
    with pytest.raises(TypeError, match="a draft is not streamed"):
        ffwd.stream(model, talking, MESSAGES, Order, draft_tokens=4)
