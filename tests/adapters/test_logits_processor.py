"""GrammarLogitsProcessor in every decoding mode of generate()."""

import random

import pytest
import torch
from tinymodels import COLOUR_SCHEMA
from transformers import LogitsProcessor

import ffwd
from ffwd import VocabularyError
from ffwd.adapters.transformers import (
    GrammarLogitsProcessor,
    NoTokenLeftError,
    RefusedTokenError,
)
from ffwd.tokenizer import from_huggingface

EOS, WIDTH = 2, 768
GREEDY = {"do_sample": False, "max_new_tokens": 150}


@pytest.mark.parametrize("which", ["model", "bfloat16_model"])
def test_greedy(which, request, encode, answers, assert_valid, order_grammar):
    model = request.getfixturevalue(which)
    inputs = encode("Ada bought")
    processor = GrammarLogitsProcessor(order_grammar)
    output = model.generate(**inputs, **GREEDY, logits_processor=[processor])
    assert_valid(*answers(output, inputs))
    assert output[0, -1] == EOS
    new = output.shape[1] - inputs["input_ids"].shape[1]
    assert processor.stats.forward_passes == processor.stats.masks == new
    # The end token was chosen, not shown.
    assert processor.stats.tokens == new - 1
    assert processor.stats.mask_nanoseconds > 0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("which", ["model", "bfloat16_model"])
def test_sampling(which, seed, request, encode, answers, assert_valid, order_grammar):
    model = request.getfixturevalue(which)
    inputs = encode("Grace bought", "cherry")
    torch.manual_seed(seed)
    output = model.generate(
        **inputs,
        do_sample=True,
        temperature=1.3,
        top_k=20,
        top_p=0.9,
        max_new_tokens=150,
        num_return_sequences=2,
        logits_processor=[GrammarLogitsProcessor(order_grammar)],
    )
    texts = answers(output, inputs)
    assert len(texts) == 4
    for text in texts:
        assert_valid(text)


@pytest.mark.parametrize("do_sample", [False, True])
@pytest.mark.parametrize("returned", [1, 3])
def test_beam_search(returned, do_sample, model, encode, answers, assert_valid, order_grammar):
    inputs = encode("Alan bought 3", "banana")
    torch.manual_seed(0)
    output = model.generate(
        **inputs,
        do_sample=do_sample,
        num_beams=3,
        num_return_sequences=returned,
        max_new_tokens=150,
        logits_processor=[GrammarLogitsProcessor(order_grammar)],
    )
    texts = answers(output, inputs)
    assert len(texts) == 2 * returned
    for text in texts:
        assert_valid(text)


def test_beam_search_finds_the_best_beams(model, encode, colour_grammar):
    """The score of the returned beam is that of its own tokens under the masks."""
    inputs = encode("colour")
    best = model.generate(
        **inputs,
        do_sample=False,
        num_beams=3,
        max_new_tokens=40,
        return_dict_in_generate=True,
        output_scores=True,
        length_penalty=0.0,
        logits_processor=[GrammarLogitsProcessor(colour_grammar)],
    )
    sequence = best.sequences[0]
    prompt = inputs["input_ids"].shape[1]
    log_probs = torch.log_softmax(model(sequence[None]).logits[0], dim=-1)
    total = sum(log_probs[i - 1, sequence[i]].item() for i in range(prompt, len(sequence)))
    assert best.sequences_scores[0].item() == pytest.approx(total, abs=1e-3)


def test_more_beams_than_documents(model, encode, answers, vocabulary):
    """Beams that the grammar leaves nothing are filled with something, not with an error."""
    grammar = ffwd.compile(ffwd.grammar.choice(["yes", "no"]), vocabulary)
    inputs = encode("well")
    output = model.generate(
        **inputs,
        do_sample=False,
        num_beams=4,
        num_return_sequences=2,
        max_new_tokens=12,
        logits_processor=[GrammarLogitsProcessor(grammar)],
    )
    assert set(answers(output, inputs)) <= {"yes", "no"}


def test_batch_with_padding_and_a_grammar_for_each_row(
    model, encode, answers, assert_valid, order_grammar, colour_grammar
):
    inputs = encode("Ada bought 12 cherry express, shipped.", "red")
    assert inputs["attention_mask"][1, 0] == 0
    processor = GrammarLogitsProcessor([order_grammar, colour_grammar])
    output = model.generate(**inputs, **GREEDY, logits_processor=[processor])
    first, second = answers(output, inputs)
    assert_valid(first)
    assert_valid(second, COLOUR_SCHEMA)
    alone = encode("red")
    single = model.generate(
        **alone, **GREEDY, logits_processor=[GrammarLogitsProcessor(colour_grammar)]
    )
    assert answers(single, alone) == [second]


def test_prompt_lookup_equals_greedy(model, tokenizer, encode, answers, order_grammar):
    # The prompt holds a whole answer, so that there is something to look up.
    prompt = (
        '{"full_name_of_the_customer":"Ada","current_status_of_the_order":"shipped","number_of_ordered_items":"7",'
        '"express_delivery_was_paid_for":true,"items_in_the_order":["apple"]} and now '
    )
    inputs = encode(prompt)
    plain = model.generate(
        **inputs, **GREEDY, logits_processor=[GrammarLogitsProcessor(order_grammar)]
    )
    processor = GrammarLogitsProcessor(order_grammar)
    looked_up = model.generate(
        **inputs, **GREEDY, prompt_lookup_num_tokens=6, logits_processor=[processor]
    )
    assert looked_up.tolist() == plain.tolist()


@pytest.mark.parametrize("schedule", ["constant", "heuristic"])
def test_assistant_model_equals_greedy(schedule, model, assistant, encode, order_grammar):
    inputs = encode("Barbara bought")
    plain = model.generate(
        **inputs, **GREEDY, logits_processor=[GrammarLogitsProcessor(order_grammar)]
    )
    assistant.generation_config.num_assistant_tokens = 7
    assistant.generation_config.num_assistant_tokens_schedule = schedule
    assisted = model.generate(
        **inputs,
        **GREEDY,
        assistant_model=assistant,
        logits_processor=[GrammarLogitsProcessor(order_grammar)],
    )
    assert assisted.tolist() == plain.tolist()


def test_assistant_model_with_sampling(
    model, assistant, encode, answers, assert_valid, order_grammar
):
    inputs = encode("Barbara bought")
    torch.manual_seed(1)
    output = model.generate(
        **inputs,
        do_sample=True,
        max_new_tokens=150,
        assistant_model=assistant,
        logits_processor=[GrammarLogitsProcessor(order_grammar)],
    )
    assert_valid(*answers(output, inputs))


def test_a_processor_is_used_for_several_prompts(model, encode, answers, order_grammar):
    processor = GrammarLogitsProcessor(order_grammar)
    prompts = ["Ada", "Ada", "Ada bought 3 apple", "cherry"]
    for prompt in prompts:
        inputs = encode(prompt)
        reused = model.generate(**inputs, **GREEDY, logits_processor=[processor])
        fresh = model.generate(
            **inputs, **GREEDY, logits_processor=[GrammarLogitsProcessor(order_grammar)]
        )
        assert reused.tolist() == fresh.tolist()
    # A second turn: the first one, answer included, with a question after it.
    turn = torch.cat([reused, encode(" and another one")["input_ids"]], dim=1)
    second = model.generate(turn, **GREEDY, logits_processor=[processor])
    fresh = model.generate(turn, **GREEDY, logits_processor=[GrammarLogitsProcessor(order_grammar)])
    assert second.tolist() == fresh.tolist()


def test_generation_is_continued_after_a_limit(model, encode, order_grammar):
    inputs = encode("Donald")
    whole = model.generate(
        **inputs, **GREEDY, logits_processor=[GrammarLogitsProcessor(order_grammar)]
    )
    processor = GrammarLogitsProcessor(order_grammar)
    part = model.generate(**inputs, do_sample=False, max_new_tokens=9, logits_processor=[processor])
    rest = model.generate(part, **GREEDY, logits_processor=[processor])
    assert rest.tolist() == whole.tolist()
    # After reset() the same ids are a prompt, and the answer starts from the beginning.
    processor.reset()
    scores = processor(part, torch.zeros(1, WIDTH))
    allowed = (scores[0] == 0).nonzero().flatten().tolist()
    assert allowed == order_grammar.matcher().allowed_token_ids()


@pytest.mark.parametrize("seed", range(8))
def test_masks_of_any_history_equal_those_of_fresh_matchers(seed, order_grammar, colour_grammar):
    """Rows grow, are copied over each other, lose drafts and begin anew, in random order."""
    rng = random.Random(seed)
    grammars = [order_grammar, colour_grammar]
    per_prompt = rng.choice([1, 3])
    processor = GrammarLogitsProcessor(grammars)

    def prompts():
        length = rng.randint(1, 5)
        return [[rng.randint(3, 700) for _ in range(length)] for _ in grammars]

    def check():
        ids = [
            prompt + tokens for prompt, group in zip(base, rows, strict=True) for tokens in group
        ]
        masked = processor(torch.tensor(ids), torch.zeros(len(ids), WIDTH))
        flat = [(g, t) for g, group in zip(grammars, rows, strict=True) for t in group]
        for row, (grammar, tokens) in enumerate(flat):
            matcher = grammar.matcher()
            for token in tokens:
                if not matcher.is_terminated():
                    assert matcher.accept_token(token)
            expected = [EOS] if matcher.is_terminated() else matcher.allowed_token_ids()
            assert (masked[row] == 0).nonzero().flatten().tolist() == expected

    def choose(grammar, tokens):
        matcher = grammar.matcher()
        for token in tokens:
            if matcher.is_terminated():
                return EOS
            matcher.accept_token(token)
        return EOS if matcher.is_terminated() else rng.choice(matcher.allowed_token_ids())

    base = prompts()
    rows = [[[] for _ in range(per_prompt)] for _ in grammars]
    check()
    for _ in range(60):
        event = rng.random()
        if event < 0.03:
            base, rows = prompts(), [[[] for _ in range(per_prompt)] for _ in grammars]
        elif event < 0.25 and rows[0][0]:
            length = rng.randrange(len(rows[0][0]))
            rows = [[tokens[:length] for tokens in group] for group in rows]
        elif event < 0.6:
            rows = [[list(rng.choice(group)) for _ in group] for group in rows]
        if event >= 0.03:
            rows = [
                [[*tokens, choose(grammar, tokens)] for tokens in group]
                for grammar, group in zip(grammars, rows, strict=True)
            ]
        check()
        assert len(processor._rows.rows) == 2 * per_prompt


class Force(LogitsProcessor):
    """A processor that pushes one token at one length, against any mask."""

    def __init__(self, token, length):
        self.token, self.length = token, length

    def __call__(self, input_ids, scores):
        if input_ids.shape[1] == self.length:
            scores = scores.clone()
            scores[:, self.token] = 1e9
        return scores


def test_a_token_against_the_grammar_is_an_error(model, tokenizer, encode, order_grammar):
    inputs = encode("Ada")
    length = inputs["input_ids"].shape[1]
    wrong = tokenizer.convert_tokens_to_ids("x")
    with pytest.raises(RefusedTokenError, match=r"row 0.*refuses token") as caught:
        model.generate(
            **inputs,
            **GREEDY,
            logits_processor=[GrammarLogitsProcessor(order_grammar), Force(wrong, length + 3)],
        )
    assert (caught.value.row, caught.value.token, caught.value.position) == (0, wrong, 3)


@pytest.mark.parametrize("in_place", [False, True])
def test_scores_are_written_only_where_that_is_asked_for(model, encode, order_grammar, in_place):
    """What `generate` keeps as the model's logits shows it."""
    inputs = encode("Ada")
    processor = GrammarLogitsProcessor(order_grammar, in_place=in_place)
    output = model.generate(
        **inputs,
        **GREEDY,
        logits_processor=[processor],
        output_logits=True,
        output_scores=True,
        return_dict_in_generate=True,
    )
    for raw, masked in zip(output.logits, output.scores, strict=True):
        assert bool(torch.isfinite(raw).all()) is not in_place
        assert not torch.isfinite(masked).all()


def test_the_row_of_a_batch_is_named(order_grammar):
    processor = GrammarLogitsProcessor(order_grammar)
    prompt = torch.tensor([[5], [6]])
    processor(prompt, torch.zeros(2, WIDTH))
    good = order_grammar.matcher().allowed_token_ids()[0]
    ids = torch.tensor([[5, good], [6, WIDTH + 12]])
    with pytest.raises(RefusedTokenError) as caught:
        processor(ids, torch.zeros(2, WIDTH))
    assert (caught.value.row, caught.value.token, caught.value.position) == (1, WIDTH + 12, 0)


def test_refused_drafts_are_borne_and_withdrawn(order_grammar):
    matcher = order_grammar.matcher()
    first = matcher.allowed_token_ids()[0]
    wrong = next(t for t in range(3, 600) if t not in matcher.allowed_token_ids())
    processor = GrammarLogitsProcessor(order_grammar, max_draft_tokens=2)
    zeros = torch.zeros(1, WIDTH)
    processor(torch.tensor([[9]]), zeros)
    # After a refused draft there is nothing to say, and the scores are left alone.
    assert torch.equal(processor(torch.tensor([[9, wrong]]), zeros), zeros)
    assert torch.equal(processor(torch.tensor([[9, wrong, wrong]]), zeros), zeros)
    with pytest.raises(RefusedTokenError):
        processor(torch.tensor([[9, wrong, wrong, wrong]]), zeros)
    matcher.accept_token(first)
    masked = processor(torch.tensor([[9, first]]), zeros)
    assert (masked[0] == 0).nonzero().flatten().tolist() == matcher.allowed_token_ids()


def test_a_row_that_another_criterion_stopped_is_padded(
    model, encode, answers, assert_valid, order_grammar
):
    """Padding after a row's end is not taken for text that the grammar refuses."""
    inputs = encode("Ada", "Grace bought 12")
    length = inputs["input_ids"].shape[1]

    def stop_first(input_ids, scores, **kwargs):
        done = torch.zeros(input_ids.shape[0], dtype=torch.bool)
        done[0] = input_ids.shape[1] >= length + 4
        return done

    output = model.generate(
        **inputs,
        **GREEDY,
        stopping_criteria=[stop_first],
        logits_processor=[GrammarLogitsProcessor(order_grammar)],
    )
    assert (output[0, length + 4 :] == 0).all()
    assert_valid(answers(output, inputs)[1])


def test_contradicting_processors_are_an_error(model, tokenizer, encode, order_grammar):
    inputs = encode("Ada")
    banned = [[token] for token in order_grammar.matcher().allowed_token_ids()]
    with pytest.raises(NoTokenLeftError, match="row 0") as caught:
        model.generate(
            **inputs,
            **GREEDY,
            bad_words_ids=banned,
            logits_processor=[GrammarLogitsProcessor(order_grammar)],
        )
    assert caught.value.row == 0


def test_bad_arguments(order_grammar, colour_grammar, tokenizer):
    with pytest.raises(ValueError, match="no grammar"):
        GrammarLogitsProcessor([])
    with pytest.raises(ValueError, match="max_draft_tokens is -1"):
        GrammarLogitsProcessor(order_grammar, max_draft_tokens=-1)
    three_rows = torch.ones(3, 2, dtype=torch.long)
    with pytest.raises(ValueError, match="2 grammars for a batch of 3 rows"):
        GrammarLogitsProcessor([order_grammar, colour_grammar])(three_rows, torch.zeros(3, WIDTH))
    with pytest.raises(VocabularyError, match="logits only 100"):
        GrammarLogitsProcessor(order_grammar)(three_rows, torch.zeros(3, 100))
    wider = from_huggingface(tokenizer, vocab_size=WIDTH + 32, eos_token_ids=[EOS])
    other = ffwd.compile(ffwd.grammar.choice(["a"]), wider)
    with pytest.raises(VocabularyError, match="grammar 1 was compiled for another vocabulary"):
        GrammarLogitsProcessor([order_grammar, other])
