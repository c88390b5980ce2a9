"""mlx-vlm's own loop with the processor of mlx-lm; a language model stands for one with vision."""

import pytest

pytest.importorskip("mlx_vlm", reason="needs the environment mlx-lm")

import mlx.core as mx
import mlx_lm
from hostcases import CASES, MAX_TOKENS, PROMPTS, write_host_model
from mlx_vlm.generate.ar import _clone_or_share_logits_processor, generate_step
from mlx_vlm.models.base import InputEmbeddingsFeatures, LanguageModelOutput

import ffwd
from ffwd.adapters.mlx_lm import GrammarLogitsProcessor, vocabulary_of

pytestmark = pytest.mark.engine


class Language:
    def __init__(self, model):
        self.model = model
        self.layers = model.layers

    def __call__(self, inputs, inputs_embeds=None, cache=None, **options):
        return LanguageModelOutput(logits=self.model(inputs, cache=cache))


class Vision:
    """A model with the interface of mlx-vlm, and no pictures."""

    def __init__(self, model):
        self.language_model = Language(model)
        self.embed = model.model.embed_tokens

    def get_input_embeddings(self, ids, pixel_values, **options):
        return InputEmbeddingsFeatures(inputs_embeds=self.embed(ids))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return mlx_lm.load(str(write_host_model(tmp_path_factory.mktemp("model"))))


@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: f"{case.kind}-{case.name}")
def test_outputs_are_valid(loaded, case):
    model, tokenizer = loaded
    vocabulary = vocabulary_of(model, tokenizer)
    grammar = ffwd.compile(case.grammar(), vocabulary)
    processor = GrammarLogitsProcessor(grammar, max_tokens=MAX_TOKENS)
    prompt = mx.array([tokenizer.encode(PROMPTS[0])])
    ids = []
    steps = generate_step(
        prompt, Vision(model), None, None, max_tokens=MAX_TOKENS, logits_processors=[processor]
    )
    for token, _ in steps:
        token = int(token)
        if token in vocabulary.eos_token_ids:
            break
        ids.append(token)
    text = tokenizer.decode(ids)
    case.check(text)
    # The text is that of mlx-lm.
    processor.reset()
    options = {"max_tokens": MAX_TOKENS, "logits_processors": [processor]}
    assert mlx_lm.generate(model, tokenizer, PROMPTS[0], **options) == text


def test_each_sequence_of_a_batch_gets_its_own(loaded):
    grammar = ffwd.compile(ffwd.regex("a+"), vocabulary_of(*loaded))
    processor = GrammarLogitsProcessor(grammar)
    copy = _clone_or_share_logits_processor(processor)
    assert isinstance(copy, GrammarLogitsProcessor)
    assert copy is not processor
