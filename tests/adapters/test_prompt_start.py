"""A prompt of ffwd.chat through `generate()`: prefilled answers, reasoning, a wrong prompt."""

import json

import pytest
import torch
from tinymodels import COLOUR_SCHEMA, EOS, LOGITS_WIDTH

import ffwd
import ffwd.tokenizer
from ffwd.adapters.transformers import GrammarLogitsProcessor, fast_forward_generate
from ffwd.chat import ControlPart, Prompt, TextPart, ThinkingSection

GREEDY = {"do_sample": False, "max_new_tokens": 60}


@pytest.fixture(scope="module")
def reader(tokenizer):
    return ffwd.tokenizer.load(tokenizer)


def prompt_of(reader, prefill="", **extra):
    parts = [ControlPart(1, "<s>"), TextPart("What colour?")]
    if prefill:
        parts.append(TextPart(prefill))
    return Prompt(
        parts=tuple(parts),
        tokenizer=reader,
        end_token_ids=(EOS,),
        prefill=prefill,
        generation_start=True,
        **extra,
    )


def both_ways(model, start):
    """The generated ids under masks, and with fast-forward."""
    inputs = torch.tensor([start.prompt_ids])
    arguments = {"input_ids": inputs, "attention_mask": torch.ones_like(inputs), **GREEDY}
    masked = model.generate(logits_processor=[GrammarLogitsProcessor(start)], **arguments)
    forwarded = model.generate(custom_generate=fast_forward_generate, grammar=start, **arguments)
    return [output[0, inputs.shape[1] :].tolist() for output in (masked, forwarded)]


@pytest.mark.parametrize("prefill", ["", '{"colour":', '{"colour":"re', '{"colour":"green","sh'])
def test_an_answer_goes_on_from_its_prefill(model, reader, colour_grammar, prefill):
    start = prompt_of(reader, prefill).start(colour_grammar)
    for ids in both_ways(model, start):
        answer = start.answer(ids)
        assert answer.complete
        assert answer.text.startswith(prefill)
        value = json.loads(answer.text)
        assert set(value) == set(COLOUR_SCHEMA["required"])


def test_reasoning_comes_first(model, reader, vocabulary):
    """A model with random weights may think for ever, so what it thinks is bounded here."""
    grammar = ffwd.compile(ffwd.choice(["red", "blue"]), vocabulary)
    thinking = ThinkingSection("<think>", "e", None, answer_prefix="!")
    start = prompt_of(reader, thinking=thinking).start(grammar)
    matcher = start.matcher()
    for ids in both_ways(model, start):
        assert matcher.validate_tokens(ids) == len(ids)
        answer = start.answer(ids)
        assert "e" not in answer.reasoning
        assert answer.text in ("red", "blue") or not answer.complete


def test_ids_of_another_prompt_are_refused(model, reader, colour_grammar):
    start = prompt_of(reader, '{"colour":"re').start(colour_grammar)
    other = torch.tensor([[1, 5, 6]])
    with pytest.raises(ValueError, match="prompt_ids"):
        model.generate(
            input_ids=other,
            attention_mask=torch.ones_like(other),
            logits_processor=[GrammarLogitsProcessor(start)],
            **GREEDY,
        )
    scores = torch.zeros(1, LOGITS_WIDTH)
    assert GrammarLogitsProcessor(start)(torch.tensor([start.prompt_ids]), scores) is not None
