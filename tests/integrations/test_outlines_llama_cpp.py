"""outlines' generators with models of llama-cpp-python."""

import re

import pytest

outlines = pytest.importorskip("outlines", reason="needs the environment llama-cpp")
pytest.importorskip("llama_cpp", reason="needs the environment llama-cpp")

import numpy as np
from llama_cpp import LogitsProcessorList
from llamamodels import PROMPTS, assert_order, load, order_grammar, tiny
from outlines.types import CFG, JsonSchema, Regex
from tinygguf import SCHEMA

from ffwd.adapters.outlines import (
    GrammarLogitsProcessor,
    UnsupportedModelError,
    vocabulary_of,
)

pytestmark = pytest.mark.engine

DATE = r"[0-9]{4}-[01][0-9]-[0-3][0-9]"
SUM = r"[0-9]{1,2}(\+[0-9]{1,2})*"
CASES = {
    "schema": (JsonSchema(SCHEMA), assert_order),
    "regex": (Regex(DATE), lambda text: re.fullmatch(DATE, text)[0]),
    "lark": (
        CFG('start: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]{1,2}/\n'),
        lambda text: re.fullmatch(SUM, text)[0],
    ),
}
SAMPLING = {"max_tokens": 200, "temperature": 0.0}


@pytest.fixture(scope="module", params=["bpe", "spm"])
def model(request, tmp_path_factory):
    llama = load(tiny(tmp_path_factory.mktemp("gguf"), request.param))
    # Prompts as they stand; otherwise it makes a chat of them.
    return outlines.from_llamacpp(llama, chat_mode=False)


@pytest.fixture
def vocabulary(model):
    return vocabulary_of(model)


@pytest.mark.parametrize("name", CASES)
def test_outputs_are_valid_whole_and_streamed(name, model, vocabulary):
    given, check = CASES[name]
    options = {"max_tokens": 200, "vocabulary": vocabulary, "whitespace": "compact"}
    processor = GrammarLogitsProcessor(model, given, **options)
    generator = outlines.Generator(model, processor=processor)
    for prompt in PROMPTS:
        text = generator(prompt, **SAMPLING)
        processor.check()
        check(text)
        assert "".join(generator.stream(prompt, **SAMPLING)) == text
        processor.check()


def test_outputs_are_those_of_the_masks_alone(model, vocabulary):
    options = {"vocabulary": vocabulary, "whitespace": "compact"}
    processor = GrammarLogitsProcessor(model, JsonSchema(SCHEMA), **options)
    text = outlines.Generator(model, processor=processor)(PROMPTS[0], **SAMPLING)
    matcher = order_grammar(vocabulary).matcher()
    taken = []

    def masked(ids, scores):
        if taken:
            assert matcher.accept_token(int(ids[-1]))
        allowed = matcher.allowed_token_ids()
        taken.append(allowed)
        only = np.full_like(scores, -np.inf)
        only[allowed] = scores[allowed]
        return only

    masks = LogitsProcessorList([masked])
    answer = model.model.create_completion(PROMPTS[0], logits_processor=masks, **SAMPLING)
    assert answer["choices"][0]["text"] == text


def test_batches_are_refused(model):
    with pytest.raises(UnsupportedModelError, match="no batches"):
        GrammarLogitsProcessor(model, [Regex("a"), Regex("b")])
