"""mlx-lm's own loops on its build for processors, with tiny random models."""

import json

import numpy as np
import pytest

pytest.importorskip("mlx_lm", reason="needs the environment mlx-lm")

import mlx.core as mx
import mlx_lm
from hostcases import CASES, MAX_TOKENS, NAMES, PROMPTS, write_host_model
from mlx_lm.generate import BatchGenerator, batch_generate
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.sample_utils import make_sampler

import ffwd
from ffwd.adapters.mlx_lm import (
    ForcedDrafts,
    GrammarLogitsProcessor,
    NoTokenLeftError,
    RefusedTokenError,
    SharedProcessorError,
    vocabulary_of,
)
from ffwd.chat import Prompt, TextPart

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    return mlx_lm.load(str(write_host_model(tmp_path_factory.mktemp("model"))))


@pytest.fixture(scope="module")
def vocabulary(loaded):
    return vocabulary_of(*loaded)


def generate(loaded, processor, prompt=PROMPTS[0], **options):
    options = {"max_tokens": MAX_TOKENS, **options}
    return mlx_lm.generate(*loaded, prompt, logits_processors=[processor], **options)


def counted(model):
    """The model, and the list of how many positions each of its passes had."""

    class Counted:
        layers = model.layers

        def __init__(self):
            self.passes = []

        def __call__(self, inputs, **options):
            self.passes.append(inputs.shape[1])
            return model(inputs, **options)

    return Counted()


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_outputs_are_valid(loaded, vocabulary, case):
    """By the libraries of others: greedy, sampled, and with drafts."""
    grammar = ffwd.compile(case.grammar(), vocabulary)
    processor = GrammarLogitsProcessor(grammar, max_tokens=MAX_TOKENS)
    text = generate(loaded, processor)
    case.check(text)
    assert generate(loaded, processor) == text, "the same prompt begins anew"
    mx.random.seed(3)
    processor.reset()
    case.check(generate(loaded, processor, PROMPTS[1], sampler=make_sampler(1.5)))

    narrow = GrammarLogitsProcessor(grammar, max_tokens=MAX_TOKENS, narrow=True)
    text = generate(loaded, narrow)
    case.check(text)
    narrow.reset()
    drafted = generate(loaded, narrow, draft_model=ForcedDrafts(loaded[0]), num_draft_tokens=4)
    assert drafted == text


def test_drafts_save_passes(loaded, vocabulary):
    """The text is the same, and forced tokens share a pass."""
    grammar = ffwd.compile(CASES[0].grammar(), vocabulary)
    texts, passes = [], []
    for drafts in (0, 2, 8):
        model = counted(loaded[0])
        processor = GrammarLogitsProcessor(grammar, narrow=True, max_tokens=MAX_TOKENS)
        options = {"draft_model": ForcedDrafts(loaded[0]), "num_draft_tokens": drafts}
        texts.append(generate((model, loaded[1]), processor, **(options if drafts else {})))
        passes.append(len(model.passes))
    assert len(set(texts)) == 1
    assert passes[2] < passes[1] < passes[0]


def test_drafts_with_temperature_are_valid(loaded, vocabulary):
    grammar = ffwd.compile(CASES[0].grammar(), vocabulary)
    for seed in range(4):
        mx.random.seed(seed)
        processor = GrammarLogitsProcessor(grammar, narrow=True, max_tokens=MAX_TOKENS)
        options = {"draft_model": ForcedDrafts(loaded[0]), "num_draft_tokens": 3}
        CASES[0].check(generate(loaded, processor, sampler=make_sampler(2.0), **options))


def test_streams_and_prompt_caches(loaded, vocabulary):
    """With a cache, mlx-lm shows the end of the prompt only."""
    grammar = ffwd.compile(CASES[0].grammar(), vocabulary)
    processor = GrammarLogitsProcessor(grammar, max_tokens=MAX_TOKENS)
    ids = loaded[1].encode(PROMPTS[0])
    whole = generate(loaded, processor, ids)
    cache = make_prompt_cache(loaded[0])
    loaded[0](mx.array([ids[:-1]]), cache=cache)
    processor.reset()
    pieces = mlx_lm.stream_generate(
        *loaded, ids[-1:], max_tokens=MAX_TOKENS, logits_processors=[processor], prompt_cache=cache
    )
    assert "".join(piece.text for piece in pieces) == whole
    # With drafts, the cache has a part for the draft model.
    narrow = GrammarLogitsProcessor(grammar, max_tokens=MAX_TOKENS, narrow=True)
    drafts = ForcedDrafts(loaded[0])
    options = {"draft_model": drafts, "num_draft_tokens": 4}
    expected = generate(loaded, narrow, ids, **options)
    caches = make_prompt_cache(loaded[0]) + make_prompt_cache(drafts)
    narrow.reset()
    assert generate(loaded, narrow, ids, prompt_cache=caches, **options) == expected


def test_batches(loaded, vocabulary):
    """A processor for each sequence; sequences with and without one, of different lengths."""
    model, tokenizer = loaded
    cases = [CASES[0], CASES[10], CASES[20], CASES[3]]
    prompts = [tokenizer.encode(prompt) for prompt in [*PROMPTS, "red", "green"]]
    processors = [
        [GrammarLogitsProcessor(ffwd.compile(case.grammar(), vocabulary), max_tokens=MAX_TOKENS)]
        for case in cases
    ]
    generator = BatchGenerator(model, stop_tokens=[[token] for token in tokenizer.eos_token_ids])
    uids = generator.insert(prompts, [MAX_TOKENS] * 5, logits_processors=[*processors, []])
    outputs = {uid: [] for uid in uids}
    while responses := generator.next_generated():
        for response in responses:
            if response.finish_reason != "stop":
                outputs[response.uid].append(response.token)
    for case, uid in zip(cases, uids, strict=False):
        case.check(tokenizer.decode(outputs[uid]))


def test_a_shared_processor_is_refused(loaded, vocabulary):
    """`batch_generate` gives one list of processors to all sequences."""
    grammar = ffwd.compile(CASES[0].grammar(), vocabulary)
    processor = GrammarLogitsProcessor(grammar)
    prompts = [loaded[1].encode(prompt) for prompt in PROMPTS]
    with pytest.raises(SharedProcessorError, match="a processor of its own"):
        batch_generate(*loaded, prompts, max_tokens=20, logits_processors=[processor])
    # One sequence is its own.
    alone = GrammarLogitsProcessor(grammar, max_tokens=MAX_TOKENS)
    answer = batch_generate(*loaded, prompts[:1], max_tokens=MAX_TOKENS, logits_processors=[alone])
    CASES[0].check(answer.texts[0])
    assert alone.clone().masks == 0


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
def test_masks_are_exact(loaded, vocabulary, dtype):
    """Each column, the model's padding included."""
    grammar = ffwd.compile(ffwd.regex("[a-c]+x?"), vocabulary)
    processor = GrammarLogitsProcessor(grammar)
    matcher = grammar.matcher()
    width = vocabulary.vocab_size + 40
    ids = [4, 5]
    for token in [None, *vocabulary.encode(b"ab")]:
        if token is not None:
            assert matcher.accept_token(token)
            ids.append(token)
        masked = processor(mx.array(ids), mx.ones((1, width), dtype))
        assert masked.dtype == dtype
        allowed = np.flatnonzero(np.array(masked[0].astype(mx.float32)) > -np.inf)
        assert allowed.tolist() == matcher.allowed_token_ids()


def test_errors(loaded, vocabulary):
    grammar = ffwd.compile(ffwd.regex("a{40}"), vocabulary)
    with pytest.raises(ffwd.BudgetError):
        GrammarLogitsProcessor(grammar, max_tokens=3)
    with pytest.raises(TypeError, match=r"ffwd\.compile"):
        GrammarLogitsProcessor(ffwd.regex("a"))
    with pytest.raises(ffwd.VocabularyError, match="only 5"):
        GrammarLogitsProcessor(grammar)(mx.array([1]), mx.zeros((1, 5)))
    with pytest.raises(ValueError, match="several sequences"):
        GrammarLogitsProcessor(grammar)(mx.array([[1], [2]]), mx.zeros((2, 600)))

    wrong = vocabulary.encode(b"z")[0]
    forced = mx.zeros(vocabulary.vocab_size)
    forced[wrong] = 100.0
    with pytest.raises(RefusedTokenError, match="position 0"):
        mlx_lm.generate(
            *loaded,
            "x",
            max_tokens=9,
            logits_processors=[GrammarLogitsProcessor(grammar), lambda ids, scores: forced[None]],
        )
    with pytest.raises(NoTokenLeftError):
        mlx_lm.generate(
            *loaded,
            "x",
            max_tokens=9,
            logits_processors=[
                lambda ids, scores: scores - mx.inf,
                GrammarLogitsProcessor(grammar),
            ],
        )


def test_the_start_of_a_chat(loaded, vocabulary):
    """The answer continues its prefill; another prompt is refused."""
    schema = {"properties": {"paid": {"type": "boolean"}}, "required": ["paid"], "type": "object"}
    schema["additionalProperties"] = False
    prompt = Prompt(
        parts=(TextPart(PROMPTS[0]), TextPart('{"paid":')),
        tokenizer=ffwd.tokenizer.load(loaded[1]._tokenizer),
        end_token_ids=tuple(vocabulary.eos_token_ids),
        prefill='{"paid":',
        generation_start=True,
    )
    start = prompt.start(ffwd.compile(ffwd.json_schema(schema), vocabulary))
    processor = GrammarLogitsProcessor(start, max_tokens=MAX_TOKENS)
    pieces = mlx_lm.stream_generate(
        *loaded, list(start.prompt_ids), max_tokens=MAX_TOKENS, logits_processors=[processor]
    )
    answer = start.answer([piece.token for piece in pieces])
    assert set(json.loads(answer.text)) == {"paid"}
    processor.reset()
    with pytest.raises(ValueError, match="prompt_ids"):
        generate(loaded, processor, [3, 4, 5])
