"""What a prompt says of the answer: what ends it, what it continues, where thinking is open."""

from pathlib import Path
from typing import Any

import pytest
import reference
from conversations import HELLO
from llamacpp import templates
from templatetokenizers import library_tokenizer, tokenizer

import ffwd
from ffwd.chat import (
    ChatTemplate,
    ConversationError,
    MissingControlTokensError,
    Prompt,
    TemplateError,
)


def path_of(stem: str) -> Path:
    return next(path for path in templates() if path.stem == stem)


def prompt_of(stem: str, messages: list[dict[str, Any]] | None = None, **options: Any) -> Prompt:
    template = ChatTemplate.from_file(path_of(stem), special_tokens=reference.SPECIAL)
    return template.render(
        messages or [HELLO],
        tokenizer=tokenizer(path_of(stem)),
        now=reference.NOW,
        **({"add_generation_prompt": True} if messages is None else {}),
        **options,
    )


ENDS = {
    "meta-llama-Llama-3.1-8B-Instruct": {"<|eot_id|>", "<|eom_id|>"},
    "Qwen-Qwen2.5-7B-Instruct": {"<|im_end|>"},
    "google-gemma-2-2b-it": {"<end_of_turn>"},
    "deepseek-ai-DeepSeek-V3.1": {"<\uff5cend▁of▁sentence\uff5c>"},
    "GLM-4.6": {"<|user|>"},
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": {"<|END_RESPONSE|>"},
    "microsoft-Phi-3.5-mini-instruct": {"<|end|>"},
    "openai-gpt-oss-120b": {"<|return|>", "<|call|>"},
    "ibm-granite-granite-4.0": {"<|end_of_text|>"},
    "Kimi-K3": {"<|close|>", "<|end_of_msg|>"},
    "ByteDance-Seed-OSS": {"<seed:eos>"},
    "tencent-Hy3": {"<\uff5chy_eos:opensource\uff5c>"},
}


@pytest.mark.parametrize("stem", ENDS)
def test_end_tokens(stem: str) -> None:
    """The template's terminators, and with them what the tokenizer says."""
    known = tokenizer(path_of(stem))
    prompt = prompt_of(stem)
    found = {known.id_to_token(token_id) for token_id in prompt.end_token_ids}
    tokenizers_own = {known.id_to_token(token_id) for token_id in known.eos_token_ids}
    assert found == ENDS[stem] | tokenizers_own
    assert prompt.stop == ()


def test_text_that_ends_answers() -> None:
    """A template without a token for it."""
    assert prompt_of("llama-cpp-rwkv-world").stop == ("\n\nUser:",)


THINKING: dict[str, tuple[str, str] | None] = {
    "Qwen-Qwen2.5-7B-Instruct": None,
    "Qwen-QwQ-32B": ("<think>", "</think>"),
    "deepseek-ai-DeepSeek-V3.1": ("<think>", "</think>"),
    "Cohere2MoE": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "Kimi-K3": ("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
    "openai-gpt-oss-120b": ("<|start|>assistant", "<|channel|>final<|message|>"),
    "upstage-Solar-Open-100B": ("<|begin|>assistant", "<|content|>"),
    "Apriel-1.6-15b-Thinker-fixed": ("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"),
}


@pytest.mark.parametrize("stem", THINKING)
def test_open_thinking_sections(stem: str) -> None:
    """Seen where the prompt ends; its close is given in ids where it begins with a token."""
    thinking = prompt_of(stem, enable_thinking=True, thinking=True).thinking
    if THINKING[stem] is None:
        assert thinking is None
        return
    assert thinking is not None
    assert (thinking.opened_by, thinking.closed_by) == THINKING[stem]
    ids = library_tokenizer(path_of(stem)).encode(thinking.closed_by).ids
    if thinking.close_token_id is not None:
        assert [thinking.close_token_id] == ids
    if thinking.closed_by.startswith("<"):
        assert list(thinking.close_token_ids) == ids
    else:
        assert thinking.close_token_ids == ()


def test_closed_thinking_sections() -> None:
    """Opened and closed by the template, or not begun."""
    assert prompt_of("Qwen-Qwen3-0.6B", enable_thinking=False).thinking is None
    assert prompt_of("deepseek-ai-DeepSeek-V3.1", thinking=False).thinking is None
    assert prompt_of("Qwen-QwQ-32B", [HELLO]).thinking is None  # nothing is to be written


@pytest.mark.parametrize("trusted", [(), ("assistant",)])
def test_thinking_that_the_caller_began(trusted: tuple[str, ...]) -> None:
    """In the text that is to be continued, whoever writes the bracket."""
    begun = [HELLO, {"role": "assistant", "content": "<think>\nHm, "}]
    options = {"continue_final_message": True, "trusted_roles": trusted}
    prompt = prompt_of("deepseek-ai-DeepSeek-V3.1", begun, **options)
    assert prompt.thinking is not None
    assert prompt.thinking.closed_by == "</think>"
    assert prompt.prefill == ("\nHm, " if trusted else "<think>\nHm, ")


@pytest.mark.parametrize("path", templates(), ids=lambda path: path.stem)
def test_prefill_is_the_end_of_the_text(path: Path) -> None:
    """As rendered: some templates trim what the caller gave."""
    given = '  Sure: {"name": '
    try:
        prompt = prompt_of(
            path.stem,
            [HELLO, {"role": "assistant", "content": given}],
            continue_final_message=True,
            tools=[],
            functions="[]",
            datetime="now",
        )
    except ConversationError:
        return  # it leaves out some of what is to be continued
    except TemplateError:
        return  # it refuses a conversation without a tool
    assert prompt.generation_start
    assert prompt.text.endswith(prompt.prefill)
    assert prompt.prefill.strip() == given.strip()
    known = tokenizer(path)
    data = known.decode_bytes(prompt.ids, skip_special_tokens=False)
    assert data.endswith(prompt.prefill.encode())


def test_templates_trim_what_is_continued() -> None:
    """So the grammar must be told the rendered text, not the given one."""
    given = [HELLO, {"role": "assistant", "content": "Sure: "}]
    kept = prompt_of("Qwen-Qwen2.5-7B-Instruct", given, continue_final_message=True)
    trimmed = prompt_of("meta-llama-Llama-3.1-8B-Instruct", given, continue_final_message=True)
    assert (kept.prefill, trimmed.prefill) == ("Sure: ", "Sure:")


def test_a_template_for_another_vocabulary() -> None:
    """Its control tokens would be spelled in letters."""
    template = ChatTemplate.from_file(path_of("Qwen-Qwen2.5-7B-Instruct"))
    other = tokenizer(path_of("google-gemma-2-2b-it"))
    with pytest.raises(MissingControlTokensError) as error:
        template.render([HELLO], tokenizer=other)
    assert error.value.tokens == ("<|im_start|>", "<|im_end|>")
    assert "<|im_start|>" in str(error.value)
    prompt = template.render([HELLO], tokenizer=other, missing_control_tokens="spell")
    assert prompt.missing_control_tokens == ("<|im_start|>", "<|im_end|>")
    assert prompt.text.startswith("<|im_start|>")
    # What a user writes is not missed.
    name = [{"role": "user", "content": "<|im_start|>"}]
    plain = ChatTemplate("<s>{{ messages[0].content }}").render(name, tokenizer=other)
    assert plain.missing_control_tokens == ()


@pytest.mark.parametrize(
    ("stem", "prefix"),
    [
        ("Qwen3.5-4B", "\n\n"),
        ("MiniMax-M2", "\n\n"),
        ("Bielik-11B-v3.0-Instruct", "\n"),
        ("Cohere2MoE", ""),
        # It leaves the reasoning of earlier messages out, so nothing is known.
        ("Qwen-QwQ-32B", ""),
    ],
)
def test_what_is_between_the_reasoning_and_the_answer(stem: str, prefix: str) -> None:
    """As the template writes a message that has both."""
    thinking = prompt_of(stem, enable_thinking=True, thinking=True).thinking
    assert thinking is not None
    assert thinking.answer_prefix == prefix


def test_channels_may_have_their_own_control_tokens() -> None:
    """In gpt-oss's reasoning messages begin and end."""
    thinking = prompt_of("openai-gpt-oss-120b").thinking
    assert thinking is not None
    names = [
        tokenizer(path_of("openai-gpt-oss-120b")).id_to_token(i) for i in thinking.control_token_ids
    ]
    assert names == ["<|start|>", "<|end|>"]


def test_a_grammar_waits_for_the_answer_of_a_real_template() -> None:
    """From messages to the first forced tokens of the answer."""
    own = tokenizer(path_of("Qwen3.5-4B"))
    prompt = prompt_of("Qwen3.5-4B", enable_thinking=True)
    assert prompt.thinking is not None
    vocabulary = own.vocabulary(eos_token_ids=prompt.end_token_ids)
    grammar = ffwd.compile(ffwd.json_schema('{"const": "ab"}', whitespace="compact"), vocabulary)
    start = prompt.start(grammar)
    matcher = start.matcher()
    thought = own.encode("Twelve?\n")
    assert matcher.accept_tokens([*thought, *prompt.thinking.close_token_ids])
    assert matcher.forced_bytes() == b'\n\n"ab"'
    generated = [*thought, *prompt.thinking.close_token_ids, *matcher.fast_forward_tokens()]
    answer = start.answer([*generated, prompt.end_token_ids[0]])
    assert (answer.reasoning, answer.text, answer.complete) == ("Twelve?\n", '"ab"', True)


def test_what_ends_an_answer_depends_on_the_values_of_variables() -> None:
    """Also where the template has been rendered with other values of the same variables."""
    source = (
        "{% for message in messages %}{{ message.content }}"
        "{{ '<|im_end|>' if short else '<|im_start|>' }}{% endfor %}"
    )
    own = tokenizer(path_of("Qwen-Qwen2.5-7B-Instruct"))
    template = ChatTemplate(source)
    for short in (True, False, [], True, 0):
        prompt = template.render([HELLO], tokenizer=own, short=short)
        assert (own.token_to_id("<|im_start|>") in prompt.end_token_ids) is not bool(short)
