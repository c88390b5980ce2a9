"""outlines' generators with models of mlx-lm."""

import pytest

outlines = pytest.importorskip("outlines", reason="needs the environment mlx-lm")
pytest.importorskip("mlx_lm", reason="needs the environment mlx-lm")

import mlx_lm
from hostcases import CASES, MAX_TOKENS, PROMPTS, write_host_model
from outlines.types import CFG, JsonSchema, Regex

import ffwd
from ffwd.adapters.mlx_lm import GrammarLogitsProcessor as MlxProcessor
from ffwd.adapters.outlines import (
    GrammarLogitsProcessor,
    UnsupportedModelError,
    vocabulary_of,
)

pytestmark = pytest.mark.engine

TYPES = {"json": JsonSchema, "regex": Regex, "lark": CFG}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    loaded = mlx_lm.load(str(write_host_model(tmp_path_factory.mktemp("model"))))
    return outlines.from_mlxlm(*loaded)


@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: f"{case.kind}-{case.name}")
def test_outputs_are_valid(model, case):
    """Whole and streamed, and the same as without outlines."""
    vocabulary = vocabulary_of(model)
    given = TYPES[case.kind](case.source)
    options = {"max_tokens": MAX_TOKENS, "vocabulary": vocabulary, "whitespace": "compact"}
    processor = GrammarLogitsProcessor(model, given, **options)
    generator = outlines.Generator(model, processor=processor)
    text = generator(PROMPTS[0], max_tokens=MAX_TOKENS)
    case.check(text)
    assert "".join(generator.stream(PROMPTS[0], max_tokens=MAX_TOKENS)) == text
    own = MlxProcessor(ffwd.compile(case.grammar(), vocabulary), max_tokens=MAX_TOKENS)
    prompt = model.type_adapter.format_input(PROMPTS[0])
    options = {"max_tokens": MAX_TOKENS, "logits_processors": [own]}
    assert mlx_lm.generate(model.model, model.mlx_tokenizer, prompt, **options) == text


def test_batches_are_refused(model):
    with pytest.raises(UnsupportedModelError, match="no batches"):
        GrammarLogitsProcessor(model, [Regex("a"), Regex("b")])
