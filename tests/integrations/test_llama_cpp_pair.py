"""The logits processor and the draft model of llama-cpp-python, on tiny models."""

import json
import logging
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llama_cpp")
pytest.importorskip("gguf")

from llama_cpp import LlamaRAMCache, LogitsProcessorList
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding
from llamamodels import PROMPTS, Evaluations, assert_order, load, order_grammar, tiny
from tinygguf import SCHEMA

import ffwd
from ffwd.adapters.llama_cpp import (
    GrammarPair,
    NoTokenLeftError,
    RefusedTokenError,
    UnsupportedLlamaError,
    tokenizer_of,
    vocabulary_of,
)
from ffwd.chat import ChatTemplate

pytestmark = pytest.mark.engine

KINDS = ["bpe", "spm"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gguf")


@pytest.fixture(scope="module", params=KINDS)
def llama(request, folder):
    return load(tiny(folder, request.param))


@pytest.fixture
def vocabulary(llama):
    return vocabulary_of(llama)


@pytest.fixture
def grammar(vocabulary):
    return order_grammar(vocabulary)


@pytest.fixture(autouse=True)
def without_drafts(llama):
    """Every test begins with a model that has no draft model, and no ids in its context."""
    llama.draft_model = None
    llama.reset()


def complete(llama, prompt, processors, **options):
    options = {"temperature": 0.0, "max_tokens": 150, "seed": 5, **options}
    answer = llama.create_completion(prompt, logits_processor=processors, **options)
    return answer["choices"][0]["text"], answer["choices"][0]["finish_reason"]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_drafts_change_the_evaluations_and_not_the_text(llama, grammar, prompt):
    pair = GrammarPair()
    evaluations = Evaluations(llama)
    with pair.constrain(grammar) as processors:
        expected, reason = complete(llama, prompt, processors)
    assert_order(expected)
    assert reason == "stop"
    assert processors.stats.drafted == 0
    masks, alone = processors.stats.masks, evaluations.count
    assert alone == masks  # the prompt, and each token but the last one

    pair.attach(llama)
    evaluations.reset()
    llama.reset()
    with pair.constrain(grammar) as processors:
        text, _ = complete(llama, prompt, processors)
    assert text == expected
    stats = processors.stats
    assert stats.masks == masks
    assert stats.confirmed == stats.drafted > 4
    assert evaluations.count == alone - stats.drafted


@pytest.mark.parametrize("seed", range(12))
def test_sampling(llama, grammar, seed):
    pair = GrammarPair()
    options = {"temperature": 1.5, "top_p": 0.95, "top_k": 30, "repeat_penalty": 1.2, "seed": seed}
    expected, _ = complete(llama, "Alan", pair.constrain(grammar), **options)
    assert_order(expected)
    pair.attach(llama)
    llama.reset()
    # The sampler draws once for each token, drafts included.
    text, _ = complete(llama, "Alan", pair.constrain(grammar), **options)
    assert text == expected


@pytest.mark.parametrize("mirostat", [1, 2])
def test_mirostat(llama, grammar, mirostat):
    pair = GrammarPair()
    pair.attach(llama)
    options = {"temperature": 1.0, "mirostat_mode": mirostat}
    text, _ = complete(llama, "Alan", pair.constrain(grammar), **options)
    assert_order(text)


def test_max_draft_tokens(llama, grammar):
    pair = GrammarPair(max_draft_tokens=1)
    expected, _ = complete(llama, "Ada", pair.constrain(grammar))
    pair.attach(llama)
    drafts = []
    model = pair.draft_model

    def seen(ids, **kwargs):
        drafts.append(model(ids, **kwargs))
        return drafts[-1]

    llama.draft_model = seen
    with pair.constrain(grammar) as processors:
        assert complete(llama, "Ada", processors)[0] == expected
    assert {len(draft) for draft in drafts} == {0, 1}
    assert all(draft.dtype == np.intc for draft in drafts)
    assert processors.stats.confirmed == processors.stats.drafted == sum(map(len, drafts))


def test_requests_of_all_kinds_with_one_pair(llama, vocabulary, grammar):
    """A grammar for each call, and calls without one in between."""
    plain = llama.create_completion("Ada bought", temperature=0.0, max_tokens=12)
    pair = GrammarPair()
    pair.attach(llama)
    choice = ffwd.compile(ffwd.choice(["delivered", "cancelled"]), vocabulary)
    date = ffwd.compile(ffwd.regex("[0-9]{4}-[0-9]{2}-[0-9]{2}", dialect="python"), vocabulary)
    for prompt in PROMPTS:
        assert_order(complete(llama, prompt, pair.constrain(grammar))[0])
        assert complete(llama, prompt, pair.constrain(choice))[0] in ("delivered", "cancelled")
        again = llama.create_completion("Ada bought", temperature=0.0, max_tokens=12)
        assert again["choices"][0]["text"] == plain["choices"][0]["text"]
        text, _ = complete(llama, prompt, pair.constrain(date))
        assert re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text)


def test_the_pairs_own_processor_in_one_request_after_the_other(llama, grammar):
    pair = GrammarPair(grammar)
    pair.attach(llama)
    processors = LogitsProcessorList([pair.processor])
    texts = [complete(llama, prompt, processors)[0] for prompt in PROMPTS * 2]
    for text in texts:
        assert_order(text)
    assert texts[:3] == texts[3:]
    # The old prompt, its answer and more: a prompt of its own.
    ids = llama.tokenize(PROMPTS[2].encode())
    first = llama.create_completion(ids, temperature=0, max_tokens=150, logits_processor=processors)
    answered = ids + llama.tokenize(first["choices"][0]["text"].encode(), add_bos=False)
    assert_order(complete(llama, [*answered, *ids], processors)[0])
    # Just the answer's beginning: taken for its continuation, unless it is said.
    cut = llama.create_completion(ids, temperature=0, max_tokens=3, logits_processor=processors)
    assert cut["choices"][0]["finish_reason"] == "length"
    begun = llama.input_ids[: len(ids) + 2].tolist()
    rest, _ = complete(llama, begun, processors)
    assert not rest.startswith("{")
    llama.create_completion(ids, temperature=0, max_tokens=3, logits_processor=processors)
    pair.reset()
    assert_order(complete(llama, begun, processors)[0])


def test_a_prompt_that_is_asked_again_after_one_token(llama, grammar):
    pair = GrammarPair(grammar)
    pair.attach(llama)
    processors = LogitsProcessorList([pair.processor])
    expected, _ = complete(llama, "Ada", processors)
    for tokens in (1, 2, 3):
        complete(llama, "Ada", processors, max_tokens=tokens)
        assert complete(llama, "Ada", processors)[0] == expected


def test_chat(llama, grammar):
    pair = GrammarPair()
    pair.attach(llama)
    messages = [{"role": "user", "content": "Ada bought a banana."}]
    options = {"temperature": 0.0, "max_tokens": 150}
    with pair.constrain(grammar) as processors:
        answer = llama.create_chat_completion(messages, logits_processor=processors, **options)
    text = answer["choices"][0]["message"]["content"]
    assert_order(text)
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert processors.stats.confirmed == processors.stats.drafted > 4
    with pair.constrain(grammar) as processors:
        chunks = llama.create_chat_completion(
            messages, logits_processor=processors, stream=True, **options
        )
        deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert "".join(deltas) == text
    assert len(deltas) > 8


def test_a_start_of_a_chat(llama, vocabulary, grammar):
    """With ffwd's own prompt, whose answer goes on from a prefilled beginning."""
    tokenizer = tokenizer_of(llama)
    template = ChatTemplate.for_tokenizer(tokenizer)
    begun = '{"customer_name":"Ada","order_stat'
    messages = [
        {"role": "user", "content": "Ada bought a banana."},
        {"role": "assistant", "content": begun},
    ]
    prompt = template.render(messages, tokenizer=tokenizer, continue_final_message=True)
    start = prompt.start(grammar)
    pair = GrammarPair()
    pair.attach(llama)
    with pair.constrain(start) as processors:
        answer = llama.create_completion(
            list(start.prompt_ids), temperature=0.0, max_tokens=150, logits_processor=processors
        )
    # What was taken back of the prompt is written again.
    kept = start.prefill[: len(start.prefill) - len(start.prefix)].decode()
    assert_order(kept + answer["choices"][0]["text"])
    assert processors.stats.confirmed == processors.stats.drafted > 4
    with pytest.raises(ValueError, match="prompt_ids"), pair.constrain(start) as processors:
        complete(llama, "another prompt", processors)


def test_whitespace_and_canonical_tokens(llama, vocabulary):
    flexible = ffwd.compile(
        ffwd.json_schema(SCHEMA, whitespace="flexible", max_whitespace=2), vocabulary
    )
    pair = GrammarPair(canonical=True)
    expected, _ = complete(llama, "Ada", pair.constrain(flexible), max_tokens=400)
    assert_order(expected)
    pair.attach(llama)
    with pair.constrain(flexible) as processors:
        assert complete(llama, "Ada", processors, max_tokens=400)[0] == expected
    assert processors.stats.confirmed == processors.stats.drafted


def test_a_budget(llama, vocabulary):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), vocabulary)
    needed = len(grammar.shortest_completion())
    pair = GrammarPair()
    pair.attach(llama)
    for limit in range(needed, needed + 12):
        with pair.constrain(grammar, max_tokens=limit) as processors:
            text, _ = complete(llama, "Ada", processors, max_tokens=limit)
        assert list(json.loads(text)) == ["a"]
    with pytest.raises(ffwd.BudgetError):
        pair.constrain(grammar, max_tokens=2)


def test_the_context_ends_within_a_draft(llama, vocabulary):
    """The rest of a draft that has no room is cut off."""
    grammar = ffwd.compile(ffwd.lit("pending, shipped, delivered" * 200), vocabulary)
    pair = GrammarPair()
    pair.attach(llama)
    prompt = llama.tokenize(b"x" * 60)
    with pair.constrain(grammar) as processors:
        text, reason = complete(llama, prompt, processors, max_tokens=None)
    assert ("pending, shipped, delivered" * 200).startswith(text)
    assert reason == "length"
    assert processors.stats.confirmed > 300


def test_logit_bias_leaves_the_grammar(llama, grammar):
    """llama-cpp-python loses a plain list of processors then."""
    pair = GrammarPair()
    bias = {str(token): 100.0 for token in llama.tokenize(b"x", add_bos=False)}
    with pair.constrain(grammar) as processors:
        assert_order(complete(llama, "Ada", processors, logit_bias=bias)[0])


def test_other_drafts(llama, grammar):
    """Drafts of another model are confirmed or refused under the masks."""
    pair = GrammarPair()
    expected, _ = complete(llama, "Ada", pair.constrain(grammar))
    llama.draft_model = LlamaPromptLookupDecoding(num_pred_tokens=4)
    repeated = llama.tokenize(f"{expected} {expected} Ada".encode())
    without, _ = complete(llama, repeated, pair.constrain(grammar))
    llama.draft_model = None
    llama.reset()
    assert complete(llama, repeated, pair.constrain(grammar))[0] == without
    assert_order(without)
    # The pair's own drafts, in the same place.
    llama.reset()
    pair.attach(llama)
    assert complete(llama, repeated, pair.constrain(grammar))[0] == without


def test_a_cache_of_states(llama, grammar):
    pair = GrammarPair()
    pair.attach(llama)
    llama.set_cache(LlamaRAMCache())
    try:
        texts = [complete(llama, p, pair.constrain(grammar))[0] for p in [*PROMPTS, *PROMPTS]]
    finally:
        llama.set_cache(None)
    assert texts[:3] == texts[3:]
    for text in texts:
        assert_order(text)


def test_a_token_that_another_processor_chose(llama, grammar, caplog):
    pair = GrammarPair()

    def meddle(ids, scores):
        changed = np.full_like(scores, -np.inf)
        changed[llama.tokenize(b"]", add_bos=False)[-1]] = 0.0
        return changed

    caplog.set_level(logging.CRITICAL, logger="ffwd")
    processors = pair.constrain(grammar)
    assert processors.extend([Once(meddle)]) is processors
    _, reason = complete(llama, "Ada", processors)
    assert reason == "stop"
    with pytest.raises(RefusedTokenError, match="position 0") as raised:
        processors.check()
    assert raised.value.position == 0
    assert processors.error is raised.value


class Once:
    """A processor that works for the first token only."""

    def __init__(self, processor):
        self._processor = processor

    def __call__(self, ids, scores):
        processor, self._processor = self._processor, lambda ids, scores: scores
        return processor(ids, scores)


def test_no_token_left(llama, grammar, caplog):
    caplog.set_level(logging.CRITICAL, logger="ffwd")
    pair = GrammarPair()
    pair.attach(llama)
    processors = pair.constrain(grammar)

    def ruin(ids, scores):
        return np.full_like(scores, -np.inf)

    processors.insert(0, ruin)
    _, reason = complete(llama, "Ada", processors)
    assert reason == "stop"
    with pytest.raises(NoTokenLeftError):
        processors.check()
    # The pair goes on.
    assert_order(complete(llama, "Ada", pair.constrain(grammar))[0])


def test_another_models_vocabulary(llama, caplog):
    caplog.set_level(logging.CRITICAL, logger="ffwd")
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab%d" % i for i in range(1000)] + [None]
    other = ffwd.Vocabulary(tokens, eos_token_ids=[len(tokens) - 1])
    pair = GrammarPair()
    with (
        pytest.raises(ffwd.VocabularyError, match="another model's"),
        pair.constrain(ffwd.compile(ffwd.lit("yes"), other)) as processors,
    ):
        complete(llama, "Ada", processors, max_tokens=3)


def test_models_that_cannot_have_drafts(llama, folder):
    path = llama.model_path
    with pytest.raises(UnsupportedLlamaError, match="logits_all") as raised:
        GrammarPair().attach(load(path, logits_all=False))
    assert raised.value.option == "logits_all=True"
    # As many rows of logits as the context has, but only the last one of a batch is computed.
    with pytest.raises(UnsupportedLlamaError, match="logits_all"):
        GrammarPair().attach(load(path, logits_all=False, n_batch=512, n_ctx=512))
    with pytest.raises(UnsupportedLlamaError, match="n_batch is 64"):
        GrammarPair().attach(load(path, n_batch=64))
    GrammarPair(max_draft_tokens=63).attach(load(path, n_batch=64))


def test_a_model_that_is_made_with_the_draft_model(llama, vocabulary, grammar):
    pair = GrammarPair()
    other = load(llama.model_path, draft_model=pair.draft_model, n_batch=66)
    expected, _ = complete(llama, "Ada", pair.constrain(grammar))
    with pair.constrain(grammar) as processors:
        assert complete(other, "Ada", processors)[0] == expected
    assert processors.stats.confirmed > 4


def test_bad_arguments(grammar):
    with pytest.raises(ValueError, match="max_draft_tokens is 0"):
        GrammarPair(max_draft_tokens=0)
    with pytest.raises(ValueError, match="no grammar"):
        _ = GrammarPair().processor


def test_the_page_of_engines_runs(llama, tmp_path, monkeypatch):
    """The block of docs/engines/llama_cpp.md, with a model where it says."""
    path = Path(__file__).parents[2] / "docs/engines/llama_cpp.md"
    page = path.read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    model = tmp_path / "path" / "of" / "a" / "model.gguf"
    model.parent.mkdir(parents=True)
    model.symlink_to(llama.model_path)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(block, str(path), "exec"), names)
    assert set(json.loads(names["text"])) == {"city", "express"}
