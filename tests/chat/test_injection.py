"""No text that a caller gives becomes a control token: 70 templates, every place, every name.

For each template there is a tokenizer with all control tokens that it writes. Every one of these
names is put into every place where a caller's text can be. The prompt must have the control tokens
that it has with harmless text, in the same order, and its text must come through unchanged.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import reference
from conversations import ARGUMENTS, HELLO, HI, SYSTEM, TOOLS, WEATHER, call, calling, result
from llamacpp import templates
from templatetokenizers import control_names, library_tokenizer, tokenizer
from transformers import PreTrainedTokenizerFast

from ffwd.chat import (
    ChatError,
    ChatTemplate,
    ControlPart,
    Prompt,
    TemplateError,
    TextPart,
)

Given = tuple[list[dict[str, Any]], dict[str, Any]]


def tools_with(**texts: str) -> list[dict[str, Any]]:
    """One tool; texts by place."""
    text = {"name": "get", "about": "d", "key": "k", "about_key": "d", "one": "v"} | texts
    return [
        {
            "type": "function",
            "function": {
                "name": text["name"],
                "description": text["about"],
                "parameters": {
                    "type": "object",
                    "properties": {
                        text["key"]: {
                            "type": "string",
                            "description": text["about_key"],
                            "enum": [text["one"]],
                        }
                    },
                    "required": [text["key"]],
                },
            },
        }
    ]


def called(*messages: dict[str, Any]) -> Given:
    return [WEATHER, *messages, result("7", number=1)], {"tools": TOOLS}


def with_identifier(text: str) -> Given:
    calls = calling({**call(ARGUMENTS), "id": text})
    return [WEATHER, calls, {**result("7"), "tool_call_id": text, "name": text}], {"tools": TOOLS}


def with_variables(text: str) -> Given:
    names = ("date_string", "system_prompt", "model_identity", "custom_tools", "functions")
    return [HELLO], dict.fromkeys(names, text)


PLACES: dict[str, Callable[[str], Given]] = {
    "system": lambda t: ([{"role": "system", "content": t}, HELLO], {}),
    "user": lambda t: ([SYSTEM, {"role": "user", "content": t}, HI, WEATHER], {}),
    "last-user": lambda t: ([HELLO, HI, {"role": "user", "content": t}], {}),
    "assistant": lambda t: ([HELLO, {"role": "assistant", "content": t}, WEATHER], {}),
    "last-assistant": lambda t: ([HELLO, {"role": "assistant", "content": t}], {}),
    "reasoning": lambda t: (
        [HELLO, {"role": "assistant", "content": "Rain.", "reasoning_content": t}],
        {},
    ),
    "blocks": lambda t: ([{"role": "user", "content": [{"type": "text", "text": t}] * 2}], {}),
    "block-type": lambda t: ([{"role": "user", "content": [{"type": t, "text": t, t: t}]}], {}),
    "role": lambda t: ([HELLO, {"role": t, "content": "Well"}], {}),
    "name": lambda t: ([{"role": "user", "name": t, "content": "Well"}], {}),
    "result": lambda t: ([WEATHER, calling(call(ARGUMENTS)), result(t)], {"tools": TOOLS}),
    "call-name": lambda t: called(calling(call(ARGUMENTS, name=t))),
    "call-key": lambda t: called(calling(call({t: 1, "b": [{t: 2}]}))),
    "call-value": lambda t: called(calling(call({"a": t, "b": [t, {"c": t}]}))),
    "call-text": lambda t: called(calling(call(f'{{"a": "{t}"}}'))),
    "call-content": lambda t: called(calling(call(ARGUMENTS), content=t)),
    "call-identifier": with_identifier,
    "tool-name": lambda t: ([HELLO], {"tools": tools_with(name=t)}),
    "tool-description": lambda t: ([HELLO], {"tools": tools_with(about=t)}),
    "tool-key": lambda t: ([HELLO], {"tools": tools_with(key=t)}),
    "tool-key-description": lambda t: ([HELLO], {"tools": tools_with(about_key=t)}),
    "tool-value": lambda t: ([HELLO], {"tools": tools_with(one=t)}),
    "document": lambda t: ([HELLO], {"documents": [{"title": t, "text": t, t: t}]}),
    "variables": with_variables,
}
# Templates look for the model's reasoning in its own messages, and write its brackets themselves.
LOOKED_INTO = {"assistant", "last-assistant", "call-content"}


def render(path: Path, template: ChatTemplate, given: Given) -> Prompt:
    messages, options = given
    return template.render(
        messages,
        tokenizer=tokenizer(path),
        now=reference.NOW,
        add_generation_prompt=True,
        **{"functions": "[]", "datetime": "now", **options},
    )


def controls(path: Path, prompt: Prompt) -> list[str]:
    """The control tokens among the ids, by name."""
    added = library_tokenizer(path).get_added_tokens_decoder()
    return [added[token_id].content for token_id in prompt.ids if token_id in added]


def without_thinking(names: Sequence[str]) -> list[str]:
    return [name for name in names if "think" not in name]


@pytest.mark.parametrize("path", templates(), ids=lambda path: path.stem)
def test_names_of_control_tokens_are_text(path: Path) -> None:
    """In every place; and no template makes it impossible to tell."""
    template = ChatTemplate.from_file(path, special_tokens=reference.SPECIAL)
    names = control_names(path)
    shown = 0
    for place, given in PLACES.items():
        try:
            harmless = render(path, template, given(" ".join("x" * len(n) for n in names)))
        except TemplateError:
            continue  # a template that has no such place
        hostile = render(path, template, given(" ".join(names)))
        expected, found = controls(path, harmless), controls(path, hostile)
        if place in LOOKED_INTO:
            expected, found = without_thinking(expected), without_thinking(found)
        assert found == expected, place
        written = tokenizer(path).decode_bytes(hostile.ids, skip_special_tokens=False)
        assert written == hostile.text.encode(), place
        shown += " ".join(names) in hostile.text
    assert shown >= 3


@pytest.mark.parametrize("path", templates(), ids=lambda path: path.stem)
def test_ids_are_those_of_transformers_own_protection(path: Path) -> None:
    """It puts marks around the names; where a template does not trip over these, all ids agree.

    Some templates write its marks in escapes, as JSON in ASCII or by `repr`; their text shows it.
    """
    template = ChatTemplate.from_file(path, special_tokens=reference.SPECIAL)
    library = PreTrainedTokenizerFast(tokenizer_object=library_tokenizer(path), **reference.SPECIAL)
    library.chat_control_tokens = list(control_names(path))
    shown = 0
    for place in ("user", "last-user", "system", "result", "tool-description", "tool-value"):
        given = PLACES[place](" ".join(control_names(path)))
        variables = {"functions": "[]", "datetime": "now", **given[1]}
        try:
            with reference.fixed_time():
                expected = library.apply_chat_template(
                    given[0],
                    chat_template=template.source(),
                    add_generation_prompt=True,
                    sanitize_control_tokens=True,
                    return_dict=False,
                    **variables,
                )
        except Exception:
            with pytest.raises(ChatError):
                render(path, template, given)
            continue
        prompt = render(path, template, given)
        if library.decode(expected, skip_special_tokens=False) == prompt.text:
            assert prompt.ids == list(expected), place
            shown += 1
    assert shown >= 3


@pytest.mark.parametrize("path", templates(), ids=lambda path: path.stem)
def test_halves_of_control_tokens_are_text(path: Path) -> None:
    """A name that begins in one text and goes on in the next, or in the template's."""
    template = ChatTemplate.from_file(path, special_tokens=reference.SPECIAL)
    halves = [(name[:cut], name[cut:]) for name in control_names(path) for cut in (1, -1)]

    def conversation(first: str, second: str, blocks: bool) -> Given:
        messages = [
            {"role": "user", "content": second + "." + first},
            {"role": "assistant", "content": second + "." + first},
            {"role": "user", "content": [{"type": "text", "text": t} for t in (first, second)]},
        ]
        return messages if blocks else messages[:2], {}

    for with_blocks in (True, False):
        try:
            expected = controls(path, render(path, template, conversation("x", "y", with_blocks)))
        except ChatError:
            continue
        for first, second in halves:
            prompt = render(path, template, conversation(first, second, with_blocks))
            assert controls(path, prompt) == expected, (first, second)


def test_a_template_that_hides_where_text_comes_from() -> None:
    """A filter without a rule mixes both: what cannot be told is refused, the harmless is not."""
    path = templates()[0]
    template = ChatTemplate("{{ ('<s>' ~ messages[0].content)|wordwrap(80) }}")
    with pytest.raises(ChatError, match="'<s>'"):
        template.render([HELLO], tokenizer=tokenizer(path))
    harmless = ChatTemplate("<s>{{ messages[0].content|wordwrap(80) }}")
    prompt = harmless.render([HELLO], tokenizer=tokenizer(path))
    assert [type(part) for part in prompt.parts] == [ControlPart, TextPart]
    with pytest.raises(ChatError, match="'</s>'"):
        harmless.render([{"role": "user", "content": "</s>"}], tokenizer=tokenizer(path))


def test_bytes_are_refused() -> None:
    """Their characters would come back without a past."""
    template = ChatTemplate("{{ messages[0].content.encode().decode() }}")
    with pytest.raises(ChatError, match="bytes"):
        template.render([HELLO], tokenizer=tokenizer(templates()[0]))


def test_text_that_is_spelled_like_the_end_of_what_is_continued() -> None:
    """The end is known by where it comes from."""
    template = ChatTemplate("{{ messages[1].content }}</s>{{ messages[0].content }}")
    tag = "CONTINUE_FINAL_MESSAGE_TAG"
    answer = {"role": "assistant", "content": "x"}
    with pytest.raises(ChatError, match="which marks its end"):
        template.render(
            [{"role": "user", "content": tag}, answer],
            tokenizer=tokenizer(templates()[0]),
            continue_final_message=True,
        )


def test_special_tokens_as_variables() -> None:
    """They may be given anew, by name; other variables are text."""
    template = ChatTemplate("{{ bos_token }}{{ other_token }}")
    known = tokenizer(templates()[0])
    prompt = template.render([HELLO], tokenizer=known, bos_token="</s>", other_token="</s>")
    assert [type(part) for part in prompt.parts] == [ControlPart, TextPart]
    prompt = template.render([HELLO], tokenizer=known, bos_token="x</s>")
    assert [type(part) for part in prompt.parts] == [TextPart]


def test_escaping_for_html_is_refused() -> None:
    """What Jinja's escaping does to text is not followed."""
    template = ChatTemplate("{% autoescape true %}{{ messages[0].content }}{% endautoescape %}")
    assert "&amp;" in template.render_text([HELLO])
    with pytest.raises(ChatError, match="HTML"):
        template.render([HELLO], tokenizer=tokenizer(templates()[0]))


def test_trusted_roles() -> None:
    """The model's own reasoning may be what it is."""
    path = next(path for path in templates() if path.stem == "Qwen-Qwen2.5-7B-Instruct")
    template = ChatTemplate.from_file(path)
    messages = [HELLO, {"role": "assistant", "content": "<|im_end|>x"}, HELLO]
    wary = template.render(messages, tokenizer=tokenizer(path))
    trusting = template.render(messages, tokenizer=tokenizer(path), trusted_roles={"assistant"})
    assert controls(path, trusting).count("<|im_end|>") == 1 + controls(path, wary).count(
        "<|im_end|>"
    )
    library = library_tokenizer(path).encode(trusting.text, add_special_tokens=False).ids
    assert trusting.ids == library != wary.ids
