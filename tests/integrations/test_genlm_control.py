"""genlm-control's own checks and samplers with a grammar as a potential."""

import asyncio

import numpy as np
import pytest

pytest.importorskip("genlm.control", reason="needs the environment genlm-control")

from genlm.backend.llm import AsyncTransformer
from genlm.control import EOS, PromptedLLM, direct_token_sampler
from hostcases import CASES, NAMES, PROMPTS, write_host_model
from transformers import AutoModelForCausalLM, AutoTokenizer

import ffwd
from ffwd.adapters.genlm_control import (
    GrammarPotential,
    UnsupportedTokensError,
    vocabulary_of,
)

pytestmark = pytest.mark.engine

STEPS = 150


@pytest.fixture(scope="module")
def llm(tmp_path_factory):
    folder = write_host_model(tmp_path_factory.mktemp("model"))
    model = AutoModelForCausalLM.from_pretrained(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    llm = PromptedLLM(AsyncTransformer(model, tokenizer))
    llm.set_prompt_from_str(PROMPTS[0])
    return llm


@pytest.fixture(scope="module")
def vocabulary(llm):
    return vocabulary_of(llm)


def contexts_of(llm, vocabulary, grammar):
    """Contexts that the shortest text of a grammar has, and its tokens."""
    ids = [
        token for token in grammar.shortest_completion() if token not in vocabulary.eos_token_ids
    ]
    tokens = llm.decode_tokens(ids)
    return [tokens[:count] for count in range(len(tokens) + 1)]


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_weights_are_masks(llm, vocabulary, case):
    """By genlm's own checks of a potential, and the matcher's tokens."""
    grammar = ffwd.compile(case.grammar(), vocabulary)
    potential = GrammarPotential(grammar, llm)
    ends = set(vocabulary.eos_token_ids)

    async def check():
        for context in contexts_of(llm, vocabulary, grammar):
            matcher = grammar.matcher()
            assert matcher.accept_tokens([token.token_id for token in context])
            weights = (await potential.logw_next(context)).weights
            allowed = {potential.vocab_eos[at].token_id for at in np.flatnonzero(weights[:-1] == 0)}
            assert allowed == set(matcher.allowed_token_ids()) - ends
            assert (weights[-1] == 0) == matcher.is_accepting()
            assert await potential.prefix(context) == 0
            assert await potential.complete(context) == (0 if matcher.is_accepting() else -np.inf)
        batch = contexts_of(llm, vocabulary, grammar)[:3]
        await potential.assert_logw_next_consistency(batch[-1], top=5, verbosity=0)
        await potential.assert_autoreg_fact(batch[-1], verbosity=0)
        await potential.assert_batch_consistency(batch, verbosity=0)

    asyncio.run(check())


@pytest.mark.parametrize("case", CASES[::3], ids=NAMES[::3])
def test_samples_are_valid(llm, vocabulary, case):
    """Of the product with a language model; a sample that is cut off is a prefix."""
    potential = GrammarPotential(ffwd.compile(case.grammar(), vocabulary), llm)
    sampler = direct_token_sampler(llm * potential)

    async def sample(seed):
        np.random.seed(seed)
        context = []
        for _ in range(STEPS):
            token, _, _ = await sampler.sample(context)
            if token is EOS:
                return b"".join(context).decode(), True
            context.append(token)
        return b"".join(context), await potential.prefix(context) == 0

    complete = 0
    for seed in range(3):
        text, valid = asyncio.run(sample(seed))
        assert valid
        if isinstance(text, str):
            case.check(text)
            complete += 1
    assert complete or case.name in ("nested", "calls")


def test_contexts_in_any_order(llm, vocabulary):
    """More than the potential keeps; refused ones too."""
    grammar = ffwd.compile(ffwd.regex("[a-z]{0,40}"), vocabulary)
    potential = GrammarPotential(grammar, llm).spawn()
    tokens = llm.decode_tokens(vocabulary.encode(b"statusorderof"))
    wrong = llm.decode_tokens(vocabulary.encode(b"7"))

    async def check():
        for _ in range(2):
            for count in reversed(range(len(tokens) + 1)):
                assert await potential.prefix(tokens[:count]) == 0
                assert await potential.prefix(tokens[:count] + wrong) == -np.inf
                assert await potential.complete(tokens[:count] + wrong + tokens) == -np.inf
        with pytest.raises(ValueError, match="weight zero"):
            await potential.logw_next(wrong)

    asyncio.run(check())


def test_errors(llm, vocabulary):
    grammar = ffwd.compile(ffwd.regex("a"), vocabulary)
    with pytest.raises(TypeError, match=r"ffwd\.compile"):
        GrammarPotential(ffwd.regex("a"), llm)
    other = ffwd.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
    with pytest.raises(UnsupportedTokensError, match="257 tokens"):
        GrammarPotential(ffwd.compile(ffwd.regex("a"), other), llm)

    class Bytes:
        vocab = range(256)

    with pytest.raises(UnsupportedTokensError, match="Bytes"):
        GrammarPotential(grammar, Bytes())
    with pytest.raises(UnsupportedTokensError, match="no PromptedLLM"):
        vocabulary_of(Bytes())
