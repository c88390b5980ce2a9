"""The named formats: their texts and ids, what they refuse, counts, and the budget of tokens."""

import itertools
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
import realtokenizers
import sentencepiece
from formatvocabularies import VOCABULARY, vocabulary
from hypothesis import given, seed, settings
from hypothesis import strategies as st
from llamacpp import models_folder
from mistralvocabularies import file
from mistralvocabularies import tokenizer as mistral_tokenizer
from tokenizers import processors
from transformers.utils.chat_template_utils import render_jinja_template

import ffwd.tokenizer
from ffwd import FfwdError
from ffwd.chat import (
    CHATML,
    CUSTOM,
    FORMATS,
    GPT4,
    LLAMA2,
    LLAMA3,
    MISTRAL,
    VICUNA,
    ChatFormat,
    ControlPart,
    ConversationError,
    FormatError,
    MissingControlTokensError,
    MistralFormat,
    PromptLengthError,
    TextPart,
    detect,
)

SYSTEM = {"role": "system", "content": "Be helpful"}
H = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi!"},
    {"role": "user", "content": "How are you?"},
]


# --------------------------------------------------------------------------------- texts and ids

LLAMA_2_TEXT = (
    "<s>[INST] <<SYS>>\nBe helpful\n<</SYS>>\n\nHello [/INST] Hi! </s>"
    "<s>[INST] How are you? [/INST]"
)
CHATML_TEXT = (
    "<|im_start|>system\nBe helpful<|im_end|>\n<|im_start|>user\nHello<|im_end|>\n"
    "<|im_start|>assistant\nHi!<|im_end|>\n<|im_start|>user\nHow are you?<|im_end|>\n"
    "<|im_start|>assistant\n"
)
TEXTS = {
    "llama2": LLAMA_2_TEXT,
    "codellama": LLAMA_2_TEXT,
    "llama3": (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe helpful<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHello<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nHi!<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHow are you?<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    "mistral": "<s>[INST] Hello[/INST] Hi!</s>[INST] Be helpful\n\nHow are you?[/INST]",
    "chatml": CHATML_TEXT,
    "alpaca": (
        "Be helpful\n\n### Instruction:\nHello\n\n### Response:\nHi!\n\n"
        "### Instruction:\nHow are you?\n\n### Response:\n"
    ),
    "vicuna": "Be helpful USER: Hello ASSISTANT: Hi!</s>USER: How are you? ASSISTANT:",
    "orca": "System: Be helpful\nUser: Hello\nAssistant: Hi!\nUser: How are you?\nAssistant:",
    "gpt4": CHATML_TEXT,
    "claude": "Be helpful\n\nHuman: Hello\n\nAssistant: Hi!\n\nHuman: How are you?\n\nAssistant:",
    "custom": "Be helpfulHelloHi!How are you?",
}


def test_each_has_a_text_and_a_vocabulary() -> None:
    assert set(FORMATS) == set(TEXTS) == set(VOCABULARY)
    assert all(known.name == name for name, known in FORMATS.items())


@pytest.mark.parametrize("name", FORMATS)
def test_texts(name: str) -> None:
    assert FORMATS[name].render_text([SYSTEM, *H]) == TEXTS[name]


@pytest.mark.parametrize("name", FORMATS)
def test_a_prompt_has_the_text_and_its_count(name: str) -> None:
    """The ids stand for the text, and are counted exactly, whatever is between them."""
    known, own = FORMATS[name], vocabulary(VOCABULARY[name])
    for messages in (H, [SYSTEM, *H], H[:1]):
        prompt = known.render(messages, tokenizer=own)
        text = known.render_text(messages)
        if name == "mistral":
            text = MistralFormat.for_tokenizer(own).render(messages, tokenizer=own).text
        assert not known.bos_of_tokenizer or own.prefix_ids == ()
        assert prompt.text == text
        written = own.decode(prompt.ids, skip_special_tokens=False)
        # SentencePiece puts a space before each text that follows a control token.
        assert written.replace(" ", "") == text.replace(" ", "")
        assert known.count_tokens(messages, tokenizer=own) == len(prompt.ids)
        assert set(own.eos_token_ids) <= set(prompt.end_token_ids)
        for message, span in zip(messages, prompt.spans, strict=True):
            assert span is not None
            assert prompt.text[span.characters.start : span.characters.stop] == message["content"]


def test_llama_3_ids() -> None:
    prompt = LLAMA3.render([SYSTEM, *H], tokenizer=vocabulary("llama3"))
    assert prompt.ids == [
        *(128000, 128006, 9125, 128007, 271, 3513, 11190, 128009),
        *(128006, 882, 128007, 271, 9906, 128009, 128006, 78191, 128007, 271, 13347, 0, 128009),
        *(128006, 882, 128007, 271, 4438, 527, 499, 30, 128009, 128006, 78191, 128007, 271),
    ]
    assert prompt.stop == ()
    assert {128001, 128008, 128009} <= set(prompt.end_token_ids)


@settings(max_examples=60)
@seed(1)
@given(st.lists(st.text(max_size=8).map(lambda text: f"a{text}b"), min_size=3, max_size=3))
def test_llama_2_ids(texts: list[str]) -> None:
    """Each exchange is a text of its own to SentencePiece, between `<s>` and `</s>`."""
    question, answer, last = texts
    library = sentencepiece.SentencePieceProcessor(model_file=str(file("v1")))
    ids = [1, *library.encode(f"[INST] {question} [/INST] {answer} "), 2]
    ids += [1, *library.encode(f"[INST] {last} [/INST]")]
    roles = ("user", "assistant", "user")
    messages = [{"role": role, "content": t} for role, t in zip(roles, texts, strict=True)]
    assert LLAMA2.render(messages, tokenizer=vocabulary("v1")).ids == ids


def test_mistral_is_of_the_vocabulary_version() -> None:
    for version in ("v1", "v2", "v3", "v3-tekken", "v7"):
        own = mistral_tokenizer(version)
        own_format = MistralFormat.for_tokenizer(own)
        prompt = MISTRAL.render([SYSTEM, *H], tokenizer=own)
        assert prompt.ids == own_format.render([SYSTEM, *H], tokenizer=own).ids
        with pytest.raises(FormatError, match="add_generation_prompt"):
            MISTRAL.render(H, tokenizer=vocabulary, add_generation_prompt=False)
    assert MISTRAL.render([SYSTEM, *H], tokenizer=mistral_tokenizer("v3")).text == TEXTS["mistral"]


# ------------------------------------------------------------------------------- real templates


def real(template: str, messages: Any, **variables: Any) -> str:
    source = (models_folder() / "templates" / f"{template}.jinja").read_text(encoding="utf-8")
    rendered, _ = render_jinja_template([messages], chat_template=source, **variables)
    return str(rendered[0])


ODD = [
    {"role": "user", "content": "A question\n"},
    {"role": "assistant", "content": "An  answer"},
    {"role": "user", "content": "你好 <b>\t& 'more'\""},
]


@pytest.mark.parametrize("template", ["Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "MiMo-VL"])
@pytest.mark.parametrize("add_generation_prompt", [True, False])
def test_chatml_is_that_of_qwen(template: str, add_generation_prompt: bool) -> None:
    for messages in ([SYSTEM, *H], [SYSTEM, *ODD]):
        text = real(template, messages, add_generation_prompt=add_generation_prompt)
        options = {"add_generation_prompt": add_generation_prompt}
        assert CHATML.render_text(messages, **options) == text


@pytest.mark.parametrize(
    "template", ["Bielik-11B-v3.0-Instruct", "LFM2-8B-A1B", "openbmb-MiniCPM5-1B"]
)
def test_chatml_with_a_beginning_of_the_tokenizer(template: str) -> None:
    text = real(template, [SYSTEM, *H], add_generation_prompt=True, bos_token="<s>")
    with_bos = replace(CHATML, bos="<s>")
    assert with_bos.render_text([SYSTEM, *H]) == text


@pytest.mark.parametrize(
    "template", ["Llama-3.1-8B-Instruct", "Llama-3.2-3B-Instruct", "Llama-3.3-70B-Instruct"]
)
@pytest.mark.parametrize("messages", [H, [*ODD[:2], {"role": "user", "content": " padded \n"}]])
def test_llama_3_is_that_of_meta(template: str, messages: Any) -> None:
    """Later versions begin the system prompt with two dates; white space is left out by both."""
    dates = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"
    text = real(
        f"meta-llama-{template}",
        [SYSTEM, *messages],
        add_generation_prompt=True,
        bos_token="<|begin_of_text|>",
        date_string="26 Jul 2024",
    )
    system = {"role": "system", "content": dates + SYSTEM["content"]}
    assert LLAMA3.render_text([system, *messages]) == text


WEATHER = {"name": "get_weather", "arguments": {"city": "Köln", "days": [1, 2]}}
CALLED: list[dict[str, Any]] = [
    {"role": "user", "content": "And the weather?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "abcdefghi", "type": "function", "function": WEATHER}],
    },
    {"role": "tool", "content": "Rain.", "tool_call_id": "abcdefghi"},
]
TOOL = {"name": "get_weather", "description": "", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("template", "version", "calls"),
    [
        # Nemo's template writes arguments that are no text otherwise.
        ("mistralai-Mistral-Nemo-Instruct-2407", "v3-tekken", False),
        ("Mistral-Small-3.2-24B-Instruct-2506", "v11", True),
        ("unsloth-mistral-Devstral-Small-2507", "v13", True),
        ("mistralai-Ministral-3-14B-Reasoning-2512", "v13", True),
    ],
)
def test_mistral_is_that_of_its_models(template: str, version: str, calls: bool) -> None:
    """Texts, and lists of tools, calls and results, as the models' own templates write them."""
    conversations: list[tuple[Any, Any]] = [([SYSTEM, *H], None)]
    if calls:
        more = [{"role": "assistant", "content": "It rains."}, {"role": "user", "content": "Oh"}]
        tools = [{"type": "function", "function": TOOL}]
        conversations += [
            ([SYSTEM, *H[:2], *CALLED], tools),
            ([SYSTEM, *CALLED, *more], tools),
        ]
    for messages, tools in conversations:
        text = real(template, messages, tools=tools, bos_token="<s>", eos_token="</s>")
        own = mistral_tokenizer(version)
        prompt = MistralFormat.for_tokenizer(own).render(messages, tokenizer=own, tools=tools)
        assert prompt.text == text


# ------------------------------------------------------------------------------------ parts, ends


def test_the_beginning_is_that_of_the_tokenizer() -> None:
    """Where the format has none, and the tokenizer puts one before texts."""
    made = realtokenizers.load("mistral-v1").tokenizer
    copy = type(made).from_str(made.to_str())
    copy.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", copy.token_to_id("<s>"))]
    )
    own = ffwd.tokenizer.load(copy)
    assert own.prefix_ids == (1,)
    first, *rest = VICUNA.render(H, tokenizer=own).parts
    assert first == ControlPart(1, "<s>")
    assert not any(part == first for part in rest)
    assert isinstance(FORMATS["alpaca"].render(H, tokenizer=vocabulary("gpt2")).parts[0], TextPart)


def test_ends_and_stops() -> None:
    prompt = VICUNA.render(H, tokenizer=vocabulary("v1"))
    assert (prompt.end_token_ids, prompt.stop) == ((2,), ())
    prompt = FORMATS["codellama"].render(H, tokenizer=vocabulary("v1"))
    assert (prompt.end_token_ids, prompt.stop) == ((2,), ("[/INST]", "```"))
    own = vocabulary("llama3")
    assert own.token_to_id("<|start_header_id|>") in LLAMA3.render(H, tokenizer=own).end_token_ids
    prompt = FORMATS["claude"].render(H, tokenizer=vocabulary("gpt2"))
    assert prompt.stop == ("\n\nHuman:", "\n\nAssistant:")
    prompt = CHATML.render(H, tokenizer=vocabulary("chatml"))
    ends = [vocabulary("chatml").token_to_id(name) for name in CHATML.stop]
    assert set(ends) <= set(prompt.end_token_ids)


def test_continuing() -> None:
    answer = {"role": "assistant", "content": " The answer "}
    for name, known in FORMATS.items():
        if name == "mistral":
            continue
        prompt = known.render(
            [*H, answer], tokenizer=vocabulary(VOCABULARY[name]), continue_final_message=True
        )
        text = "The answer" if known.strip else " The answer "
        assert prompt.prefill == text
        assert prompt.text.endswith(known.assistant_prefix + text)
        assert prompt.generation_start
    with pytest.raises(FormatError, match="ask for one"):
        CHATML.render_text([*H, answer], continue_final_message=True, add_generation_prompt=True)
    without = CHATML.render(
        [*H, answer], tokenizer=vocabulary("chatml"), add_generation_prompt=False
    )
    assert without.text.endswith("The answer <|im_end|>\n")
    assert not without.generation_start


def test_control_tokens_that_a_vocabulary_lacks() -> None:
    with pytest.raises(MissingControlTokensError) as caught:
        LLAMA3.render(H, tokenizer=vocabulary("gpt2"))
    assert "<|start_header_id|>" in caught.value.tokens
    for name in ("llama2", "chatml", "gpt4", "vicuna"):
        with pytest.raises(MissingControlTokensError):
            FORMATS[name].render(H, tokenizer=vocabulary("gpt2"))
    as_text = replace(CHATML, if_missing="text").render(H, tokenizer=vocabulary("gpt2"))
    assert all(isinstance(part, TextPart) for part in as_text.parts)
    for name in ("alpaca", "orca", "claude"):
        prompt = FORMATS[name].render(H, tokenizer=vocabulary("gpt2"))
        assert vocabulary("gpt2").decode(prompt.ids) == prompt.text


def test_a_token_of_text_is_no_control_token() -> None:
    """GPT-2 has tokens such as ` the`: a format cannot declare one to be a control token."""
    form = ChatFormat(user_prefix="user", control_tokens=("user",))
    assert vocabulary("gpt2").token_to_id("user") is not None
    with pytest.raises(MissingControlTokensError):
        form.render(H, tokenizer=vocabulary("gpt2"))


def test_text_delimiters() -> None:
    with_text = {name for name, known in FORMATS.items() if known.text_delimiters}
    assert with_text == {"llama2", "codellama", "alpaca", "vicuna", "orca", "claude", "custom"}


# ------------------------------------------------------------------------------------- validation

USER, ANSWER = H[0], H[1]
REFUSED: dict[str, tuple[list[Any], int | None, str | None]] = {
    "nothing": ([], None, None),
    "only a system prompt": ([SYSTEM], 0, "system"),
    "the assistant begins": ([ANSWER, USER], 0, "assistant"),
    "two of the user": ([USER, USER], 1, "user"),
    "two of the assistant": ([USER, ANSWER, ANSWER, USER], 2, "assistant"),
    "a second system prompt": ([SYSTEM, SYSTEM, USER], 1, "system"),
    "a late system prompt": ([USER, ANSWER, SYSTEM, USER], 2, "system"),
    "the assistant is last": ([USER, ANSWER], 1, "assistant"),
    "an unknown role": ([{"role": "tool", "content": "x"}], 0, "tool"),
    "no role": ([{"content": "x"}], 0, None),
    "no content": ([{"role": "user"}], 0, "user"),
    "empty content": ([USER, {"role": "assistant", "content": ""}, USER], 1, "assistant"),
    "content that is a list": ([{"role": "user", "content": [{"type": "text"}]}], 0, "user"),
    "content that is a number": ([SYSTEM, {"role": "user", "content": 3}], 1, "user"),
    "half a character": ([{"role": "user", "content": "\ud83d"}], 0, "user"),
    "no dict": ([3], 0, None),
}


@pytest.mark.parametrize("which", REFUSED)
@pytest.mark.parametrize("name", FORMATS)
def test_refusals(name: str, which: str) -> None:
    messages, index, role = REFUSED[which]
    known, own = FORMATS[name], vocabulary(VOCABULARY[name])
    for call in (
        lambda: known.validate(messages),
        lambda: known.render_text(messages),
        lambda: known.render(messages, tokenizer=own),
        lambda: known.count_tokens(messages, tokenizer=own),
        lambda: known.truncate(messages, max_tokens=10, tokenizer=own),
    ):
        with pytest.raises(ConversationError) as caught:
            call()
        assert (caught.value.index, caught.value.role) == (index, role)


def test_white_space_is_no_text_where_it_is_left_out() -> None:
    blank = [{"role": "user", "content": " \n"}]
    with pytest.raises(ConversationError, match="no text"):
        LLAMA3.validate(blank)
    CHATML.validate(blank)


def test_valid_conversations() -> None:
    for known in FORMATS.values():
        known.validate(H)
        known.validate([SYSTEM, *H])
        known.validate([{**SYSTEM, "role": "developer"}, *H])
        known.validate(H[:2], continue_final_message=True)
        with pytest.raises(ConversationError, match="assistant"):
            known.validate(H, continue_final_message=True)


@pytest.mark.parametrize(
    "fields",
    [
        {"stop": ("",)},
        {"stop": "</s>"},
        {"stop": (3,)},
        {"control_tokens": ("",)},
        {"user_prefix": None},
        {"separator": b"\n"},
        {"system_placement": "middle"},
        {"if_missing": "ignore"},
    ],
)
def test_fields_that_cannot_be(fields: Any) -> None:
    with pytest.raises(FormatError, match=next(iter(fields))):
        ChatFormat(**fields)


def test_formats_are_frozen_and_can_be_changed_by_copy() -> None:
    with pytest.raises(FrozenInstanceError):
        CHATML.name = "other"  # type: ignore[misc]
    mine = replace(CUSTOM, name="mine", user_prefix="Q: ", user_suffix="\n", assistant_prefix="A: ")
    assert mine.render_text(H) == "Q: Hello\nA: Hi!Q: How are you?\nA: "
    assert ChatFormat() == CUSTOM


# ------------------------------------------------------------------------------------- truncation


@pytest.mark.parametrize("name", FORMATS)
def test_truncation(name: str) -> None:
    """The same as trying each number of turns, for every budget that makes a difference."""
    known, own = FORMATS[name], vocabulary(VOCABULARY[name])
    turns = [
        {"role": role, "content": f"{role} says {'a few words ' * (number % 3)}{number}"}
        for number in range(8)
        for role in ("user", "assistant")
    ]
    for first in ([], [SYSTEM]):
        last = {"role": "user", "content": "And now?"}
        messages = [*first, *turns, last]
        kept = [[*first, *turns[2 * n :], last] for n in range(9)]
        counts = [known.count_tokens(some, tokenizer=own) for some in kept]
        assert all(a > b for a, b in itertools.pairwise(counts))
        for limit in {count + more for count in counts for more in (0, 1, 3)}:
            made = known.truncate(messages, max_tokens=limit, tokenizer=own)
            best = next(n for n, count in enumerate(counts) if count <= limit)
            assert (made.messages, made.num_tokens) == (kept[best], counts[best])
            assert made.dropped == tuple(range(len(first), len(first) + 2 * best))
        with pytest.raises(PromptLengthError) as caught:
            known.truncate(messages, max_tokens=counts[-1] - 1, tokenizer=own)
        assert (caught.value.num_tokens, caught.value.limit) == (counts[-1], counts[-1] - 1)


@pytest.mark.parametrize("limit", [-1, 1.5, True, "10", None])
def test_a_budget_that_is_none(limit: Any) -> None:
    with pytest.raises(FfwdError, match="max_tokens"):
        CHATML.truncate(H, max_tokens=limit, tokenizer=vocabulary("chatml"))


# -------------------------------------------------------------------------------------- detection


@pytest.mark.parametrize(
    ("model", "name", "matched"),
    [
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama3", "llama-3"),
        ("LLAMA3.1:8b", "llama3", "llama3"),
        ("codellama/CodeLlama-7b-Instruct-hf", "codellama", "codellama"),
        ("code-llama-13b", "codellama", "code-llama"),
        ("meta-llama/Llama-2-7b-chat-hf", "llama2", "llama-2"),
        ("llama2:latest", "llama2", "llama2"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral", "mistral"),
        ("Mixtral-8x7B", "mistral", "mixtral"),
        ("gpt-4o-mini", "gpt4", "gpt-4"),
        ("GPT4All", "gpt4", "gpt4"),
        ("tatsu-lab/alpaca-7b", "alpaca", "alpaca"),
        ("lmsys/vicuna-7b-v1.5", "vicuna", "vicuna"),
        ("microsoft/Orca-2-7b", "orca", "orca"),
        ("claude-2.1", "claude", "claude"),
        ("Qwen/Qwen2.5-7B-Instruct", "chatml", None),
        ("", "chatml", None),
        # In the order of the list, and so wrong: a guess.
        ("TinyLlama/TinyLlama-1.1B-Chat-v1.0", "llama2", "llama"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama2", "llama"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama2", "llama"),
        ("mistral-orca", "mistral", "mistral"),
    ],
)
def test_detection(model: str, name: str, matched: str | None) -> None:
    found = detect(model)
    assert (found.format, found.matched, found.guessed) == (FORMATS[name], matched, True)


def test_gpt_4_has_the_shape_of_chatml() -> None:
    assert replace(GPT4, name="chatml", stop=CHATML.stop) == CHATML
    assert GPT4.stop == ("<|endoftext|>",)


@pytest.mark.parametrize("name", FORMATS)
def test_every_answer_can_end(name: str) -> None:
    """By a token, or by a text that the format itself would go on with; or there is an error."""
    if name in ("custom", "mistral"):
        pytest.skip("its ends are whatever it is given, or those of its version")
    known = FORMATS[name]
    for own in map(vocabulary, ("v1", "gpt2", "llama3", "chatml")):
        try:
            prompt = known.render(H, tokenizer=own)
        except MissingControlTokensError:
            continue
        names = {own.token_to_id(stop) for stop in known.stop} - {None}
        # Names of control tokens that a vocabulary lacks are texts no model writes.
        texts = [stop for stop in prompt.stop if stop not in known.control_tokens]
        assert names & {*prompt.end_token_ids} or texts


def test_names() -> None:
    """Rendered in the line of the role, or refused; never dropped."""
    named = [{**message, "name": f"{message['role']}_1"} for message in [SYSTEM, *H]]
    for name, known in FORMATS.items():
        own = vocabulary(VOCABULARY[name])
        if known.name_prefix is None:
            for conversation, index in ((named, 0), ([SYSTEM, named[1]], 1)):
                with pytest.raises(ConversationError, match="no place for names") as caught:
                    known.render(conversation, tokenizer=own)
                assert caught.value.index == index
            continue
        text = known.render_text([SYSTEM, *H], add_generation_prompt=False)
        for role in ("system", "user", "assistant"):
            text = text.replace(f"<|im_start|>{role}\n", f"<|im_start|>{role} name={role}_1\n")
        assert known.render_text(named, add_generation_prompt=False) == text
        prompt = known.render(named, tokenizer=own)
        for span, message in zip(prompt.spans, named, strict=True):
            assert prompt.text[span.characters.start : span.characters.stop] == message["content"]
        for wrong in ("", "a b", "x" * 65, "<|im_end|>", "a\n", 3):
            with pytest.raises(ConversationError, match="name"):
                known.render([{**H[0], "name": wrong}], tokenizer=own)
    with pytest.raises(FormatError, match="name_prefix"):
        replace(CHATML, name_prefix=3)
