"""ExLlamaV3's own filter class and journal, without its engine, which needs CUDA.

Importing the whole package compiles kernels, so its folders are packages here without their
`__init__`; the code of filters is the package's own.
"""

import importlib.machinery
import importlib.util
import random
import sys
import types

import numpy as np
import pytest

_SPEC = importlib.machinery.PathFinder.find_spec("exllamav3")
if _SPEC is None:
    pytest.skip("needs the environment exllamav3", allow_module_level=True)


def _bare(name, folder):
    module = types.ModuleType(name)
    module.__path__ = [folder]
    sys.modules[name] = module
    return module


_ROOT = _SPEC.submodule_search_locations[0]
_bare("exllamav3", _ROOT)
_bare("exllamav3.generator", f"{_ROOT}/generator")
_bare("exllamav3.tokenizer", f"{_ROOT}/tokenizer").Tokenizer = object

from hostcases import CASES, MAX_TOKENS, NAMES, PROMPTS, write_host_model
from tokenizers import Tokenizer

import ffwd
from ffwd.adapters.exllamav3 import GrammarFilter, RefusedTokenError, vocabulary_of
from ffwd.chat import Prompt, TextPart

pytestmark = pytest.mark.engine


class Config:
    eos_token_id_list = None


class ExllamaTokenizer:
    """What the adapter reads of the tokenizer of ExLlamaV3."""

    def __init__(self, folder):
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.config = Config()
        self.eos_token_id = 2


class Job:
    """The steps of `exllamav3.generator.Job` that concern filters."""

    def __init__(self, filters, width, seed):
        self.generator = types.SimpleNamespace(padded_vocab_size=width)
        self.filters, self.width, self.rng = filters, width, np.random.default_rng(seed)
        self.tokens = []
        for one in filters:
            one.attach(self)
            one.reset()
            one.is_active = one.trigger_token is None

    def step(self):
        logits = self.rng.normal(size=self.width)
        for one in self.filters:
            if one.is_active:
                words = one.get_next_logit_mask().numpy()[0].view(np.uint8)
                allowed = np.unpackbits(words, bitorder="little").astype(bool)
                allowed = np.pad(allowed, (0, max(0, self.width - len(allowed))))[: self.width]
                logits[~allowed] = -np.inf
        return int(logits.argmax())

    def take(self, token):
        self.tokens.append(token)
        completed = [one.feed(token) for one in self.filters]
        return any(completed)

    def run(self, ends):
        for _ in range(MAX_TOKENS):
            token = self.step()
            if token in ends or self.take(token):
                break
        return self.tokens


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return ExllamaTokenizer(write_host_model(tmp_path_factory.mktemp("model")))


@pytest.fixture(scope="module")
def vocabulary(tokenizer):
    return vocabulary_of(tokenizer)


def text_of(vocabulary, tokens):
    return b"".join(vocabulary.token_bytes(token) or b"" for token in tokens)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_outputs_are_valid(tokenizer, vocabulary, case):
    """By the libraries of others; with `eos_after_completed` no end token is needed."""
    grammar = ffwd.compile(case.grammar(), vocabulary)
    width = vocabulary.vocab_size + 61
    for seed in range(3):
        for at_once in (False, True):
            one = GrammarFilter(
                tokenizer, grammar, eos_after_completed=at_once, max_tokens=MAX_TOKENS
            )
            job = Job([one], width, seed)
            if not at_once:
                # A completed filter leaves the job alone, so the job ends there.
                while one.is_active and (token := job.step()) not in vocabulary.eos_token_ids:
                    job.take(token)
                tokens = job.tokens
            else:
                tokens = job.run(vocabulary.eos_token_ids)
            case.check(text_of(vocabulary, tokens).decode())


@pytest.mark.parametrize("seed", range(10))
def test_rewinding_is_as_a_new_filter(tokenizer, vocabulary, seed):
    """Through the journal, completed filters and triggers included."""
    rng = random.Random(seed)
    grammar = ffwd.compile(CASES[seed].grammar(), vocabulary)
    trigger = vocabulary.encode(b"~")[0] if seed % 2 else None
    one = GrammarFilter(tokenizer, grammar, trigger, max_tokens=MAX_TOKENS)
    job = Job([one], vocabulary.vocab_size, seed)
    fed = []
    for _ in range(80):
        if fed and rng.random() < 0.25:
            back = rng.randint(1, len(fed))
            one.rewind(back)
            del fed[-back:]
        other = GrammarFilter(tokenizer, grammar, trigger, max_tokens=MAX_TOKENS)
        replay = Job([other], vocabulary.vocab_size, seed)
        for token in fed:
            replay.take(token)
        assert one.is_active == other.is_active
        if one.is_active:
            assert one.get_next_logit_mask().equal(other.get_next_logit_mask())
            token = job.step()
            if token in vocabulary.eos_token_ids:
                continue
        else:
            token = trigger if trigger is not None and rng.random() < 0.5 else 40
        job.take(token)
        fed.append(token)


def test_the_start_of_a_chat(tokenizer, vocabulary):
    prompt = Prompt(
        parts=(TextPart(PROMPTS[0]), TextPart('"a')),
        tokenizer=ffwd.tokenizer.load(tokenizer.tokenizer, eos_token_ids=[2]),
        end_token_ids=(2,),
        prefill='"a',
        generation_start=True,
    )
    grammar = ffwd.compile(ffwd.json_schema({"enum": ["ab", "ac"]}), vocabulary)
    start = prompt.start(grammar)
    one = GrammarFilter(tokenizer, start, eos_after_completed=True)
    tokens = Job([one], vocabulary.vocab_size, 1).run(vocabulary.eos_token_ids)
    assert start.answer(tokens).text in ('"ab"', '"ac"')


def test_errors(tokenizer, vocabulary):
    grammar = ffwd.compile(ffwd.regex("a{40}"), vocabulary)
    with pytest.raises(ffwd.BudgetError):
        GrammarFilter(tokenizer, grammar, max_tokens=3)
    with pytest.raises(TypeError, match=r"ffwd\.compile"):
        GrammarFilter(tokenizer, ffwd.regex("a"))
    one = GrammarFilter(tokenizer, grammar)
    with pytest.raises(RefusedTokenError, match="position 0"):
        one.accept_token(vocabulary.encode(b"z")[0])
    assert not one.rollback_tokens(1)
    Config.eos_token_id_list = [2, 1]
    try:
        assert vocabulary_of(tokenizer).eos_token_ids == [1, 2]
    finally:
        Config.eos_token_id_list = None
