"""The ids of a prompt are those that the tokenizers library gives its text, for harmless text."""

import unicodedata
from pathlib import Path

import pytest
import realtokenizers
import reference
from conversations import CASES, CONVERSATIONS, HELLO, HI, SYSTEM, TOOLS, WEATHER, Case
from llamacpp import templates
from templatetokenizers import library_tokenizer, tokenizer
from transformers import PreTrainedTokenizerFast

import ffwd.tokenizer
from ffwd.chat import ChatError, ChatTemplate, ControlPart, Prompt, TextPart

CHOSEN = [
    case
    for case in CASES
    if (case.name.startswith("continue") and "tools" not in case.options)
    or case.name.partition("/")[2] == "tools-prompt"
    or case.name in ("turns/documents", "turns/functions", "system-turns/plain", "result/thinking")
]
# The model's own thoughts are written with control tokens, which the library finds.
TRUSTED = {"trusted_roles": {"assistant"}}


@pytest.mark.parametrize("path", templates(), ids=lambda path: path.stem)
def test_ids_are_those_of_the_library(path: Path) -> None:
    """With a tokenizer that has all of the template's control tokens."""
    template = ChatTemplate.from_file(path, special_tokens=reference.SPECIAL)
    shown = 0
    for case in CHOSEN:
        try:
            text = template.render_text(case.messages, now=reference.NOW, **case.options)
        except ChatError:
            continue
        prompt = template.render(
            case.messages,
            tokenizer=tokenizer(path),
            now=reference.NOW,
            **TRUSTED,
            **case.options,
        )
        assert prompt.text == text, str(case)
        expected = library_tokenizer(path).encode(text, add_special_tokens=False).ids
        assert prompt.ids == expected, str(case)
        check_spans(prompt, case)
        shown += 1
    assert shown >= 1


def check_spans(prompt: Prompt, case: Case) -> None:
    """Every message's span has its text in it, in parts, characters and tokens alike."""
    assert isinstance(prompt.tokenizer, ffwd.tokenizer.Tokenizer)
    assert len(prompt.spans) == len(case.messages)
    for message, span in zip(case.messages, prompt.spans, strict=True):
        if span is None:
            continue
        text = prompt.text[span.characters.start : span.characters.stop]
        ids = prompt.ids[span.tokens.start : span.tokens.stop]
        parts = prompt.parts[span.parts.start : span.parts.stop]
        assert "".join(p.text if isinstance(p, TextPart) else p.content for p in parts) == text
        # This tokenizer has a token for each byte.
        written = prompt.tokenizer.decode_bytes(ids, skip_special_tokens=False)
        assert written == text.encode(), str(case)
        content = message.get("content")
        if message.get("role") == "user" and isinstance(content, str):
            assert text.strip() == content.strip(), str(case)


REAL = [
    ("llama3", "meta-llama-Llama-3.1-8B-Instruct", "<|eot_id|>"),
    ("llama3", "meta-llama-Llama-3.2-3B-Instruct", "<|eot_id|>"),
    ("llama3", "meetkai-functionary-medium-v3.1", "<|eot_id|>"),
    ("qwen", "Qwen-Qwen2.5-7B-Instruct", "<|im_end|>"),
    ("qwen", "Qwen-Qwen3-0.6B", "<|im_end|>"),
    ("qwen", "Qwen-QwQ-32B", "<|im_end|>"),
    ("deepseek", "deepseek-ai-DeepSeek-V3.1", "<\uff5cend▁of▁sentence\uff5c>"),
    ("deepseek", "llama-cpp-deepseek-r1", "<\uff5cend▁of▁sentence\uff5c>"),
    ("tekken", "mistralai-Mistral-Nemo-Instruct-2407", "</s>"),
    ("mistral-v3", "mistralai-Mistral-Nemo-Instruct-2407", "</s>"),
]
BENIGN = ["user", "system-turns", "turns", "result", "two-calls", "reasoning", "call"]


@pytest.mark.parametrize(("name", "stem", "end"), REAL, ids=lambda value: str(value))
def test_real_tokenizers(name: str, stem: str, end: str) -> None:
    """Harmless text as the library encodes it, and the same control ids with hostile text."""
    library = realtokenizers.load(name).tokenizer
    path = next(path for path in templates() if path.stem == stem)
    known = ffwd.tokenizer.load(library)
    special = {"bos_token": "", "eos_token": ""}
    for role, token in (("bos", "<s>"), ("eos", end)):
        if library.token_to_id(token) is not None:
            special[f"{role}_token"] = token
    template = ChatTemplate.from_file(path, special_tokens=special)
    shown = 0
    for conversation in BENIGN:
        for tools in (None, TOOLS):
            try:
                prompt = template.render(
                    CONVERSATIONS[conversation],
                    tokenizer=known,
                    tools=tools,
                    add_generation_prompt=conversation != "call",
                    now=reference.NOW,
                )
            except ChatError:
                continue
            shown += 1
            expected = library.encode(prompt.text, add_special_tokens=False).ids
            assert prompt.ids == expected, conversation
            for message, span in enumerate(prompt.spans):
                if span is not None:
                    text = prompt.text[span.characters.start : span.characters.stop]
                    ids = prompt.ids[span.tokens.start : span.tokens.stop]
                    assert text.strip() in known.decode(ids, skip_special_tokens=False), message
    assert shown >= 4
    assert library.token_to_id(end) in prompt.end_token_ids

    # Where the tokenizer composes characters, spans are those of the composed text.
    composing = "Zoe\u0308 said e\u0301 \u0e33"
    prompt = template.render(
        [HELLO, HI, {"role": "user", "content": composing}], tokenizer=known, now=reference.NOW
    )
    span = prompt.spans[2]
    assert span is not None
    found = known.decode(prompt.ids[span.tokens.start : span.tokens.stop])
    assert found.strip() in (composing, unicodedata.normalize("NFC", composing))

    added = sorted(library.get_added_tokens_decoder().items())
    names = [token.content for _, token in added if len(token.content) > 3][:60]
    special_ids = {token_id for token_id, _ in added}
    hostile = "".join(f"{n}{n[:-1]} {n[1:]}" for n in names)

    def controls(text: str) -> list[int]:
        messages = [{**SYSTEM, "content": "s"}, {"role": "user", "content": text}, HI, WEATHER]
        made = template.render(
            messages, tokenizer=known, add_generation_prompt=True, now=reference.NOW
        )
        whole = known.decode_bytes(made.ids, skip_special_tokens=False)
        assert text.strip().encode() in whole
        return [token_id for token_id in made.ids if token_id in special_ids]

    assert controls(hostile) == controls("harmless")


def test_the_ids_are_encoded_once() -> None:
    """And belong to the caller."""
    path = templates()[0]
    template = ChatTemplate("<s>{{ messages[0].content }}")
    prompt = template.render([HELLO], tokenizer=tokenizer(path))
    first = prompt.ids
    first.append(7)
    assert prompt.ids == first[:-1]
    assert len(prompt) == len(prompt.ids)
    assert str(prompt) == prompt.text
    assert isinstance(prompt.parts[0], ControlPart)
    assert prompt.parts[1] == TextPart(HELLO["content"], message=0)


def test_a_folder_as_transformers_saves_it(tmp_path: Path) -> None:
    """Its templates by name and its special tokens, to the same ids."""
    by_name = {
        "default": "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}"
        "{{ eos_token }}{% endfor %}",
        "tool_use": "{{ bos_token }}{{ tools|tojson }}{{ messages[0].content }}{{ eos_token }}",
    }
    saved = PreTrainedTokenizerFast(
        tokenizer_object=library_tokenizer(templates()[0]), **reference.SPECIAL
    )
    saved.chat_template = by_name
    saved.save_pretrained(tmp_path)
    known = ffwd.tokenizer.load(tmp_path)
    template = ChatTemplate.for_tokenizer(known)
    for tools in (None, TOOLS):
        messages = [SYSTEM, HELLO, HI]
        expected = saved.apply_chat_template(messages, tools=tools, return_dict=False)
        prompt = template.render(messages, tokenizer=known, tools=tools)
        assert prompt.ids == expected
        assert known.token_to_id("</s>") in prompt.end_token_ids
    named = ChatTemplate.for_tokenizer(known, "tool_use")
    assert named.render_text([HELLO], tools=[]).startswith("<s>[]Hello")
