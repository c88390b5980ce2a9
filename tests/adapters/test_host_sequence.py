"""The sequence of hosts that show ids: steps, tokens taken back, other prompts, errors."""

import random

import numpy as np
import pytest

import ffwd
from ffwd.adapters.shared.sequence import (
    GrammarSequence,
    NoTokenLeftError,
    RefusedTokenError,
    SharedProcessorError,
)
from ffwd.chat import Prompt, TextPart

PROMPT = [5, 6, 7]


@pytest.fixture(scope="module")
def grammar(order_grammar):
    return order_grammar


def allowed(bits, vocabulary):
    flags = np.unpackbits(bits.view(np.uint8), bitorder="little")
    return np.flatnonzero(flags[: vocabulary.vocab_size]).tolist()


@pytest.mark.parametrize("seed", range(20))
def test_random_steps_and_steps_back(grammar, vocabulary, seed):
    """The mask is that of a new matcher after the same tokens."""
    rng = random.Random(seed)
    sequence = GrammarSequence(grammar)
    tokens = []
    for _ in range(60):
        sequence.follow(np.array([*PROMPT, *tokens], dtype=np.uint32))
        oracle = grammar.matcher()
        assert oracle.accept_tokens(tokens)
        expected = vocabulary.eos_token_ids if sequence.ended else oracle.allowed_token_ids()
        assert sequence.ended == oracle.is_terminated()
        assert allowed(sequence.mask(), vocabulary) == expected
        if tokens and (sequence.ended or rng.random() < 0.3):
            del tokens[rng.randrange(len(tokens)) :]
        tokens.append(rng.choice(grammar_tokens(grammar, tokens)))


def grammar_tokens(grammar, tokens):
    matcher = grammar.matcher()
    assert matcher.accept_tokens(tokens)
    return matcher.allowed_token_ids()


def test_narrow_masks_are_the_forced_token(grammar, vocabulary):
    sequence = GrammarSequence(grammar, narrow=True)
    matcher = grammar.matcher()
    sequence.begin(PROMPT)
    narrowed = 0
    while not sequence.ended:
        forced = matcher.fast_forward_tokens(max_tokens=1)
        found = allowed(sequence.mask(), vocabulary)
        assert found == (forced or matcher.allowed_token_ids())
        narrowed += bool(forced)
        sequence.accept(found[0])
        assert matcher.accept_token(found[0])
    assert narrowed > 10
    assert sequence.forced() == []
    sequence.accept(3)  # padding


def test_another_prompt_begins_anew(grammar, vocabulary):
    sequence = GrammarSequence(grammar)
    first = grammar.matcher().allowed_token_ids()
    for prompt in ([1, 2], [3], [1, 2, 9, 9], [1, 2]):
        sequence.follow(np.array(prompt))
        assert allowed(sequence.mask(), vocabulary) == first
        assert sequence.masks == 1
        sequence.follow(np.array([*prompt, first[0]]))
    # A prompt that is the old one and a token is a step; reset() makes it a prompt.
    sequence.reset()
    sequence.follow(np.array([1, 2, first[0]]))
    assert allowed(sequence.mask(), vocabulary) == first


def test_two_sequences_in_turn_are_refused(grammar):
    sequence = GrammarSequence(grammar)
    token = grammar.matcher().allowed_token_ids()[0]
    for prompt in ([1, 2], [3, 4], [5]):
        sequence.follow(np.array(prompt))
    with pytest.raises(SharedProcessorError, match="of its own"):
        sequence.follow(np.array([1, 2, token]))
    sequence.reset()
    sequence.follow(np.array([1, 2, token]))


def test_errors(grammar, vocabulary):
    with pytest.raises(TypeError, match=r"ffwd\.compile"):
        GrammarSequence(ffwd.regex("a"))
    with pytest.raises(ffwd.BudgetError):
        GrammarSequence(grammar, max_tokens=2)
    bare = ffwd.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=[256])
    with pytest.raises(ffwd.VocabularyError, match="narrow"):
        GrammarSequence(ffwd.compile(ffwd.regex("a"), bare), narrow=True)
    sequence = GrammarSequence(grammar)
    sequence.begin(PROMPT)
    wrong = vocabulary.encode(b"z")[0]
    for token in (wrong, -1, vocabulary.vocab_size):
        with pytest.raises(RefusedTokenError, match="position 0") as caught:
            sequence.accept(token)
        assert (caught.value.token, caught.value.position) == (token, 0)
    with pytest.raises(ffwd.VocabularyError, match="only 9"):
        sequence.apply(np.zeros(9, np.float32))
    with pytest.raises(NoTokenLeftError):
        sequence.apply(np.full(vocabulary.vocab_size, -np.inf, np.float32))
    scores = np.zeros(vocabulary.vocab_size, np.float32)
    sequence.only_ends(scores)
    assert np.flatnonzero(scores == 0).tolist() == vocabulary.eos_token_ids


def test_the_start_of_a_prompt(grammar, tokenizer):
    """With a prompt cache, hosts show its last ids only."""
    prefill = '{"full_name_of_the_customer":"A'
    prompt = Prompt(
        parts=(TextPart("Who?"), TextPart(prefill)),
        tokenizer=ffwd.tokenizer.load(tokenizer),
        end_token_ids=(2,),
        prefill=prefill,
        generation_start=True,
    )
    start = prompt.start(grammar)
    sequence = GrammarSequence(start)
    expected = start.matcher().allowed_token_ids()
    for ids in (start.prompt_ids, start.prompt_ids[-1:], (9, *start.prompt_ids)):
        sequence.reset()
        sequence.follow(np.array(ids))
        assert sequence.matcher.allowed_token_ids() == expected
    for ids in ([9], [], [*start.prompt_ids, 9]):
        sequence.reset()
        with pytest.raises(ValueError, match="prompt_ids"):
            sequence.follow(np.array(ids))
