"""fast_forward_generate: the same answers in fewer forward passes."""

import random
import re

import pytest
import torch
from tinymodels import COLOUR_SCHEMA, ORDER_SCHEMA, orders, random_llama
from transformers import (
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    LogitsProcessor,
    MistralConfig,
    MistralForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    StopStringCriteria,
)
from transformers.generation.streamers import BaseStreamer

import ffwd
from ffwd import VocabularyError
from ffwd.adapters.transformers import (
    FastForward,
    GenerationReport,
    GrammarLogitsProcessor,
    NoTokenLeftError,
    UnsupportedGenerationError,
    fast_forward_generate,
)
from ffwd.adapters.transformers.model import CACHE

EOS, PAD, WIDTH = 2, 0, 768
GREEDY = {"do_sample": False, "max_new_tokens": 150}


def fast(model, inputs, grammar, **options):
    return model.generate(
        **inputs, custom_generate=fast_forward_generate, grammar=grammar, **options
    )


@torch.no_grad()
def by_hand(model, prompt, grammar, limit=150):
    """The slow twin: one row, no cache, one forward pass over everything per sampled token."""
    ids, matcher, passes = list(prompt), grammar.matcher(), 0
    while len(ids) < len(prompt) + limit:
        forced = matcher.fast_forward_tokens()
        allowed = matcher.allowed_token_ids()
        token = allowed[0]
        if not forced and len(allowed) > 1:
            logits = model(torch.tensor([ids])).logits[0, -1].float()
            token = max(allowed, key=lambda t: logits[t].item())
            passes += 1
        for taken in forced or [token]:
            assert matcher.accept_token(taken)
            ids.append(taken)
        if matcher.is_terminated():
            break
    return ids[: len(prompt) + limit], passes


@pytest.mark.parametrize("prompt", ["Ada bought", "cherry", "Grace bought 12 apple express."])
def test_equals_the_slow_twin(prompt, model, encode, answers, assert_valid, order_grammar):
    inputs = encode(prompt)
    report = GenerationReport()
    output = fast(model, inputs, order_grammar, report=report, **GREEDY)
    expected, passes = by_hand(model, inputs["input_ids"][0].tolist(), order_grammar)
    assert output[0].tolist() == expected
    assert report.stats.forward_passes == passes
    assert_valid(*answers(output, inputs))


SMALL = {
    "vocab_size": WIDTH,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "initializer_range": 0.2,
    "pad_token_id": PAD,
    "bos_token_id": 1,
    "eos_token_id": EOS,
}


def gpt2():
    """Learned positions."""
    options = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 512}
    return GPT2LMHeadModel(GPT2Config(**SMALL | options))


def qwen3():
    return Qwen3ForCausalLM(Qwen3Config(**SMALL))


def mistral():
    """A window shorter than the text."""
    return MistralForCausalLM(MistralConfig(**SMALL, sliding_window=16))


@pytest.mark.parametrize("make", [gpt2, qwen3, mistral])
def test_other_architectures_equal_the_slow_twin(
    make, encode, answers, assert_valid, order_grammar
):
    torch.manual_seed(11)
    model = make().eval()
    prompts = ["Ada bought 12 cherry and 3 apple", "cherry"]
    expected = []
    for prompt in prompts:
        inputs = encode(prompt)
        output = fast(model, inputs, order_grammar, **GREEDY)
        ids, _ = by_hand(model, inputs["input_ids"][0].tolist(), order_grammar)
        assert output[0].tolist() == ids
        expected += answers(output, inputs)
        assert_valid(expected[-1])
    both = encode(*prompts)
    if make is mistral:
        with pytest.raises(UnsupportedGenerationError, match="sliding-window"):
            fast(model, both, order_grammar, **GREEDY)
    else:
        assert answers(fast(model, both, order_grammar, **GREEDY), both) == expected


def test_the_text_is_that_of_masks_alone_in_half_the_passes(
    trained_model, tokenizer, encode, answers, assert_valid, order_grammar
):
    """On a model that cuts text as its tokenizer does; over half of each document is forced."""
    for order in orders(6, seed=77):
        inputs = encode(order.prompt)
        processor = GrammarLogitsProcessor(order_grammar)
        masked = trained_model.generate(**inputs, **GREEDY, logits_processor=[processor])
        report = GenerationReport()
        output = fast(trained_model, inputs, order_grammar, report=report, **GREEDY)
        [text] = answers(output, inputs)
        assert_valid(text)
        assert [text] == answers(masked, inputs)
        stats = report.stats
        assert stats.tokens == output.shape[1] - inputs["input_ids"].shape[1]
        assert stats.forced_tokens > stats.tokens / 2
        assert stats.forward_passes <= processor.stats.forward_passes / 2
        assert stats.forward_passes + stats.forced_tokens == stats.tokens


def masked(model, inputs, grammar, narrow=True, **options):
    """Masks alone, and the processor."""
    processor = GrammarLogitsProcessor(grammar, narrow=narrow, **options)
    return model.generate(**inputs, **GREEDY, logits_processor=[processor]), processor


BRANCHING_SCHEMA = {
    "type": "object",
    "properties": {
        "state": {"enum": ["number_of_ordered_items", "number_of_items", "naïve 日", "naïve 曜"]},
        "items": {"type": "array", "items": {"enum": ["delivered", "delayed"]}, "maxItems": 2},
        "note": {"type": "string", "maxLength": 6},
    },
    "required": ["state", "note"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("schema", [ORDER_SCHEMA, COLOUR_SCHEMA, BRANCHING_SCHEMA])
def test_narrow_masks_give_the_same_tokens(schema, canonical, encode, vocabulary):
    """Whatever a model prefers: random ones cut nothing as their tokenizer does."""
    differing = 0
    for seed, separators in enumerate(((",", ":"), (",", ": "), (", ", ": "))):
        text = ffwd.json_schema(schema, separators=separators)
        grammar = ffwd.compile(text, vocabulary)
        model = random_llama(seed=20 + seed)
        inputs = encode("Ada bought 12 cherry", "banana", "Grace")
        forced = fast(model, inputs, grammar, canonical=canonical, **GREEDY)
        narrow, _ = masked(model, inputs, grammar, canonical=canonical)
        assert narrow.tolist() == forced.tolist()
        wide, _ = masked(model, inputs, grammar, narrow=False)
        differing += wide.tolist() != forced.tolist()
    assert differing


def test_what_is_forced_goes_on_where_a_forced_token_forces_more(vocabulary, compile_schema):
    """Forced tokens, one by one or all at once, are the same."""
    grammar = compile_schema(BRANCHING_SCHEMA)
    rng = random.Random(5)
    further = 0
    for _ in range(60):
        matcher = grammar.matcher()
        while not matcher.is_terminated():
            forced = matcher.fast_forward_tokens()
            for token in forced:
                assert matcher.fast_forward_tokens(max_tokens=1) == [token]
                assert matcher.accept_token(token)
            more = bool(forced) and bool(matcher.fast_forward_tokens())
            further += more
            if not more and not matcher.is_terminated():
                assert matcher.accept_token(rng.choice(matcher.allowed_token_ids()))
    assert further


def test_narrow_masks_and_a_budget_give_the_same_tokens(model, encode, order_grammar):
    for budget in (60, 75, 90, 110):
        inputs = encode("Ada bought 12")
        options = {"do_sample": False, "max_new_tokens": budget}
        forced = fast(model, inputs, order_grammar, complete=True, **options)
        processor = GrammarLogitsProcessor(order_grammar, narrow=True, max_tokens=budget)
        narrow = model.generate(**inputs, **options, logits_processor=[processor])
        assert narrow.tolist() == forced.tolist()


def test_narrow_masks_need_an_exact_tokenizer():
    tokens = [*(bytes((byte,)) for byte in range(256)), None]
    vocabulary = ffwd.Vocabulary(tokens, eos_token_ids=[256])
    grammar = ffwd.compile(ffwd.choice(["ab"]), vocabulary)
    with pytest.raises(VocabularyError, match="narrow masks need"):
        GrammarLogitsProcessor(grammar, narrow=True)


def test_ragged_batch_equals_the_rows_alone(
    model, encode, answers, assert_valid, order_grammar, colour_grammar
):
    prompts = ["Ada bought 12 cherry express, shipped.", "red", "Alan"]
    grammars = [order_grammar, colour_grammar, order_grammar]
    schemas = [ORDER_SCHEMA, COLOUR_SCHEMA, ORDER_SCHEMA]
    inputs = encode(*prompts)
    report = GenerationReport()
    output = fast(model, inputs, grammars, report=report, **GREEDY)
    alone_passes, longest = [], 0
    texts = answers(output, inputs)
    for row, (prompt, grammar) in enumerate(zip(prompts, grammars, strict=True)):
        alone = encode(prompt)
        own = GenerationReport()
        single = fast(model, alone, grammar, report=own, **GREEDY)
        new = single[0, alone["input_ids"].shape[1] :].tolist()
        got = output[row, inputs["input_ids"].shape[1] :].tolist()
        assert got == new + [PAD] * (len(got) - len(new))
        assert_valid(texts[row], schemas[row])
        alone_passes.append(own.stats.forward_passes)
        longest = max(longest, len(new))
    assert report.stats.forward_passes == max(alone_passes)
    assert output.shape[1] == inputs["input_ids"].shape[1] + longest
    assert torch.equal(output[:, : inputs["input_ids"].shape[1]], inputs["input_ids"])


def test_holes_leave_no_trace_in_the_cache(trained_model, encode, order_grammar):
    """The logits after a ragged generation are those of a pass over the finished text."""
    inputs = encode(*(order.prompt for order in orders(4, seed=5)))
    reference = {}
    for row in range(4):
        length = int(inputs["attention_mask"][row].sum())
        prompt = inputs["input_ids"][row, -length:]
        reference[row] = by_hand(trained_model, prompt.tolist(), order_grammar)[0][length:]
    output = fast(trained_model, inputs, order_grammar, **GREEDY)
    for row in range(4):
        got = [t for t in output[row, inputs["input_ids"].shape[1] :].tolist() if t != PAD]
        assert got == reference[row]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("which", ["model", "bfloat16_model"])
def test_sampling(which, seed, request, encode, answers, assert_valid, order_grammar):
    model = request.getfixturevalue(which)
    inputs = encode("Ada bought 12", "cherry")
    torch.manual_seed(seed)
    output = fast(
        model,
        inputs,
        order_grammar,
        do_sample=True,
        temperature=1.2,
        top_k=10,
        top_p=0.8,
        num_return_sequences=2,
        max_new_tokens=150,
    )
    texts = answers(output, inputs)
    assert len(texts) == 4
    for text in texts:
        assert_valid(text)


def test_top_k_sees_the_mask(model, encode, answers, assert_valid, order_grammar):
    """Top-1 sampling is greedy decoding, also where the model's own favourite is not allowed."""
    inputs = encode("Ada bought 12", "cherry")
    sampled = fast(model, inputs, order_grammar, do_sample=True, top_k=1, max_new_tokens=150)
    greedy = fast(model, inputs, order_grammar, **GREEDY)
    assert sampled.tolist() == greedy.tolist()


class Whim(LogitsProcessor):
    """Biases that depend on how many tokens a row has, and on its last one."""

    def __call__(self, input_ids, scores):
        tokens = (input_ids != PAD).sum(dim=1, keepdim=True)
        assert (tokens >= 2).any()
        wave = torch.sin(torch.arange(scores.shape[1]) * (tokens + input_ids[:, -1:]))
        return scores + 20 * wave


def test_processors_see_each_row_at_its_own_length(model, encode, order_grammar):
    prompts = ["Ada bought 12 cherry", "banana"]
    options = {"repetition_penalty": 1.7, "logits_processor": [Whim()], **GREEDY}
    inputs = encode(*prompts)
    together = fast(model, inputs, order_grammar, **options)
    plain = fast(model, inputs, order_grammar, **GREEDY)
    for row, prompt in enumerate(prompts):
        new = together[row, inputs["input_ids"].shape[1] :].tolist()
        assert new != plain[row, inputs["input_ids"].shape[1] :].tolist()
        alone = encode(prompt)
        single = fast(model, alone, order_grammar, **options)[0, alone["input_ids"].shape[1] :]
        assert [t for t in new if t != PAD] == single.tolist()


def test_a_decided_document_needs_no_model(model, tokenizer, encode, answers, vocabulary):
    grammar = ffwd.compile(ffwd.grammar.choice(["shipped"]), vocabulary)
    inputs = encode("Ada")
    report = GenerationReport()
    output = fast(model, inputs, grammar, report=report, **GREEDY)
    # The end of the text may be held back, since it could be cut differently were more to come.
    assert answers(output, inputs) == ["shipped"]
    assert report.stats.forward_passes <= 1


def test_fast_forward_options(model, encode, answers, assert_valid, order_grammar):
    inputs = encode("Ada bought")
    forced = []
    for limit in (0, 1, None):
        report = GenerationReport(trace=True)
        options = FastForward(max_tokens=limit)
        output = fast(model, inputs, order_grammar, fast_forward=options, report=report, **GREEDY)
        assert_valid(*answers(output, inputs))
        # What a mask of one token forces is not counted here.
        forced.append(sum(t.forced and t.allowed is None for t in report.tokens))
    assert forced[0] == 0 < forced[1]
    assert forced[1] <= forced[2]


class Collector(BaseStreamer):
    def __init__(self):
        self.parts, self.ended = [], 0

    def put(self, value):
        assert not self.ended
        self.parts.append(value)

    def end(self):
        self.ended += 1


def test_streamers_get_every_token_once(model, encode, order_grammar):
    inputs = encode("Ada bought")
    streamer = Collector()
    output = fast(model, inputs, order_grammar, token_streamer=streamer, **GREEDY)
    prompt, *tokens = streamer.parts
    assert torch.equal(prompt, inputs["input_ids"])
    assert all(token.shape == (1,) for token in tokens)
    assert torch.cat([prompt[0], *tokens]).tolist() == output[0].tolist()
    assert streamer.ended == 1


def test_the_masked_mode_streams_by_transformers(model, encode, order_grammar):
    inputs = encode("Ada bought")
    streamer = Collector()
    output = model.generate(
        **inputs,
        **GREEDY,
        streamer=streamer,
        logits_processor=[GrammarLogitsProcessor(order_grammar)],
    )
    streamed = torch.cat([part.flatten() for part in streamer.parts])
    assert streamed.tolist() == output[0].tolist()


def test_a_length_limit_holds_inside_forced_tokens(model, encode, order_grammar):
    inputs = encode("Ada bought")
    whole = fast(model, inputs, order_grammar, **GREEDY)
    length = inputs["input_ids"].shape[1]
    for limit in range(1, whole.shape[1] - length + 1):
        part = fast(model, inputs, order_grammar, do_sample=False, max_new_tokens=limit)
        assert part.tolist() == whole[:, : length + limit].tolist()


def test_stopping_criteria_see_forced_tokens(model, tokenizer, encode, order_grammar):
    inputs = encode("Ada bought")
    report = GenerationReport(trace=True)
    whole = fast(model, inputs, order_grammar, report=report, **GREEDY)
    length = inputs["input_ids"].shape[1]
    place = next(i for i, token in enumerate(report.tokens) if i > 4 and token.forced)
    shown = []

    def stop_there(input_ids, scores, **kwargs):
        assert input_ids.shape[0] == 1
        shown.append(input_ids[0].tolist())
        return torch.tensor([input_ids.shape[1] == length + place + 1])

    stopped = fast(model, inputs, order_grammar, stopping_criteria=[stop_there], **GREEDY)
    expected = whole[0, : length + place + 1].tolist()
    assert stopped[0].tolist() == expected
    # Once for every token, with all ids up to it.
    assert shown == [expected[: length + i] for i in range(1, place + 2)]


def test_stop_strings(model, tokenizer, encode, answers, order_grammar):
    inputs = encode("Ada bought")
    criterion = StopStringCriteria(tokenizer, ["current_status_of_the_order"])
    output = fast(model, inputs, order_grammar, stopping_criteria=[criterion], **GREEDY)
    [text] = answers(output, inputs)
    # The token that completes the stop string may go on after it, but no token follows.
    assert re.fullmatch(
        r'\{"full_name_of_the_customer":"\w+","current_status_of_the_order\W*', text
    )


def test_one_row_of_a_batch_stops_earlier(model, encode, answers, assert_valid, order_grammar):
    inputs = encode("Ada", "Grace bought 12")
    length = inputs["input_ids"].shape[1]
    first = inputs["input_ids"][0].tolist()

    def stop_first(input_ids, scores, **kwargs):
        own = input_ids[0, :length].tolist() == first
        return torch.tensor([own and input_ids.shape[1] >= length + 5])

    output = fast(model, inputs, order_grammar, stopping_criteria=[stop_first], **GREEDY)
    assert (output[0, length + 5 :] == PAD).all()
    assert (output[0, length : length + 5] != PAD).all()
    assert_valid(answers(output, inputs)[1])


def test_return_dict(model, encode, order_grammar):
    inputs = encode("Ada")
    plain = fast(model, inputs, order_grammar, **GREEDY)
    result = fast(model, inputs, order_grammar, return_dict_in_generate=True, **GREEDY)
    assert result.sequences.tolist() == plain.tolist()
    assert isinstance(getattr(result, CACHE), DynamicCache)
    assert getattr(result, CACHE).get_seq_length() < plain.shape[1]


def test_a_cache_of_the_prompt_is_continued(model, encode, order_grammar):
    inputs = encode("Ada bought 12 cherry", "banana")
    plain = fast(model, inputs, order_grammar, **GREEDY)
    cache = DynamicCache(config=model.config)
    keep = inputs["input_ids"].shape[1] - 2
    with torch.no_grad():
        model(
            inputs["input_ids"][:, :keep],
            attention_mask=inputs["attention_mask"][:, :keep],
            position_ids=(inputs["attention_mask"].cumsum(1) - 1).clamp(min=0)[:, :keep],
            **{CACHE: cache},
        )
    continued = fast(model, inputs, order_grammar, **{CACHE: cache}, **GREEDY)
    assert continued.tolist() == plain.tolist()


def test_the_report_adds_up(model, encode, order_grammar):
    inputs = encode("Ada", "banana")
    report = GenerationReport(trace=True)
    for _ in range(2):  # A report is used again.
        output = fast(model, inputs, order_grammar, report=report, **GREEDY)
    new = output[:, inputs["input_ids"].shape[1] :]
    assert len(report.tokens) == report.stats.tokens == int((new != PAD).sum())
    for row in range(2):
        tokens = [entry.token for entry in report.tokens if entry.row == row]
        assert tokens == [t for t in new[row].tolist() if t != PAD]
    sampled = [entry for entry in report.tokens if not entry.forced]
    assert all(entry.allowed > 1 for entry in sampled)
    assert len(report.tokens) - len(sampled) == report.stats.forced_tokens
    assert report.stats.mask_nanoseconds > 0
    assert report.stats.masks >= len(sampled)


@pytest.mark.parametrize(
    ("option", "options"),
    [
        ("num_beams", {"num_beams": 3}),
        ("prompt_lookup_num_tokens", {"prompt_lookup_num_tokens": 4}),
        ("guidance_scale", {"guidance_scale": 1.5}),
        ("prefill_chunk_size", {"prefill_chunk_size": 4}),
        ("use_cache=False", {"use_cache": False}),
        ("cache_implementation", {"cache_implementation": "static"}),
        ("output_scores", {"output_scores": True, "return_dict_in_generate": True}),
        ("output_logits", {"output_logits": True, "return_dict_in_generate": True}),
    ],
)
def test_options_that_cannot_be_honoured_are_refused_by_name(
    option, options, model, encode, order_grammar
):
    with pytest.raises(UnsupportedGenerationError) as caught:
        fast(model, encode("Ada bought 3"), order_grammar, **GREEDY, **options)
    assert caught.value.option == option
    assert option in str(caught.value)


def test_bad_arguments(model, encode, order_grammar, colour_grammar, tokenizer):
    one, three = encode("Ada"), encode("Ada", "Alan", "Grace")
    with pytest.raises(ValueError, match="needs grammar="):
        model.generate(**one, custom_generate=fast_forward_generate, max_new_tokens=3)
    with pytest.raises(ValueError, match="2 grammars for a batch of 3 rows"):
        fast(model, three, [order_grammar, colour_grammar], **GREEDY)
    with pytest.raises(UnsupportedGenerationError, match="3 rows"):
        fast(model, three, order_grammar, token_streamer=Collector(), **GREEDY)
    with pytest.raises(UnsupportedGenerationError, match="GrammarLogitsProcessor"):
        fast(
            model,
            one,
            order_grammar,
            logits_processor=[GrammarLogitsProcessor(order_grammar)],
            **GREEDY,
        )
    cache = DynamicCache(config=model.config)
    with torch.no_grad():
        model(one["input_ids"], **{CACHE: cache})
    with pytest.raises(UnsupportedGenerationError, match=CACHE):
        fast(model, one, order_grammar, **{CACHE: cache}, **GREEDY)
    wide = ffwd.tokenizer.from_huggingface(tokenizer, vocab_size=WIDTH + 1, eos_token_ids=[EOS])
    grammar = ffwd.compile(ffwd.grammar.choice(["apple", "banana"]), wide)
    with pytest.raises(VocabularyError, match="logits only 768"):
        fast(model, one, grammar, **GREEDY)


def test_contradicting_processors_are_an_error_and_reported(model, encode, order_grammar):
    allowed = order_grammar.matcher()
    for token in allowed.fast_forward_tokens():
        allowed.accept_token(token)
    banned = [[token] for token in allowed.allowed_token_ids()]
    report = GenerationReport()
    with pytest.raises(NoTokenLeftError):
        fast(model, encode("Ada"), order_grammar, bad_words_ids=banned, report=report, **GREEDY)
    assert report.stats.forward_passes == 1
    assert report.stats.tokens == report.stats.forced_tokens > 0


def test_a_prompt_of_one_token(model, answers, assert_valid, order_grammar):
    inputs = {"input_ids": torch.tensor([[1]])}
    output = fast(model, inputs, order_grammar, **GREEDY)
    [text] = answers(output, inputs)
    assert_valid(text)
