"""Templates by name and file, their errors, their bounds, and what a caller may give."""

import dataclasses
import enum
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from conversations import HELLO, HI, TOOLS
from llamacpp import templates
from templatetokenizers import tokenizer
from transformers.utils.chat_template_utils import render_jinja_template
from versions import needs_new_transformers

import ffwd
from ffwd.chat import (
    ChatError,
    ChatTemplate,
    ConversationError,
    MissingTemplateError,
    TemplateError,
    TemplateLimitError,
    TemplateLimits,
    TemplateRefusedError,
    TemplateSecurityError,
    TemplateSyntaxError,
    UndefinedVariableError,
)
from ffwd.tokenizer.roles import SpecialToken, SpecialTokens

ROOT = Path(__file__).parents[2]
TWO = {"default": "plain", "tool_use": "tools: {{ tools|length }}", "rag": "{{ documents }}"}


def text(source: str, messages: Any = (HELLO,), **options: Any) -> str:
    return ChatTemplate(source).render_text(messages, **options)


# --------------------------------------------------------------------------------- which template


def test_named_templates() -> None:
    """`tool_use` where tools are given, a name always."""
    assert ChatTemplate(TWO).render_text([HELLO]) == "plain"
    assert ChatTemplate(TWO).render_text([HELLO], tools=TOOLS) == "tools: 2"
    assert ChatTemplate(TWO).render_text([HELLO], tools=[]) == "tools: 0"
    named = ChatTemplate(TWO, name="rag")
    assert named.render_text([HELLO], documents=[{"a": 1}], tools=TOOLS) == "[{'a': 1}]"
    with pytest.raises(MissingTemplateError, match=r"'other'.*\['default', 'rag', 'tool_use'\]"):
        ChatTemplate(TWO, name="other")
    with pytest.raises(MissingTemplateError):
        ChatTemplate({"x": "1", "y": "2"})
    with pytest.raises(MissingTemplateError):
        ChatTemplate({})


class Known:
    """As much of a tokenizer as is asked for here."""

    def __init__(self, templates: dict[str, str]) -> None:
        self.chat_templates = templates
        self.special_tokens = SpecialTokens(eos=SpecialToken(2, "</s>"))


PATHS = templates()


def test_the_tokenizers_own() -> None:
    """With its special tokens; without a template the formats are listed."""
    made = ChatTemplate.for_tokenizer(Known({"default": "{{ eos_token }}{{ bos_token }}"}))  # type: ignore[arg-type]
    assert made.render_text([HELLO]) == "</s>"
    with pytest.raises(MissingTemplateError, match="chatml"):
        ChatTemplate.for_tokenizer(tokenizer(PATHS[0]))
    with pytest.raises(MissingTemplateError, match="'x'"):
        ChatTemplate.for_tokenizer(Known(TWO), "x")  # type: ignore[arg-type]


def test_files(tmp_path: Path) -> None:
    """UTF-8, with the path in errors."""
    path = tmp_path / "mine.jinja"
    path.write_text("ü{{ messages[0].role }}", encoding="utf-8")
    assert ChatTemplate.from_file(path).render_text([HELLO]) == "üuser"
    with pytest.raises(MissingTemplateError, match="nowhere"):
        ChatTemplate.from_file(tmp_path / "nowhere.jinja")
    path.write_bytes(b"\xff")
    with pytest.raises(MissingTemplateError, match=r"mine\.jinja"):
        ChatTemplate.from_file(path)


# ------------------------------------------------------------------------------------------ errors


def test_what_a_template_says() -> None:
    """`raise_exception`, with its own words."""
    with pytest.raises(TemplateRefusedError, match=r"^Roles must alternate, user!$") as error:
        text("{{ raise_exception('Roles must alternate, ' ~ messages[0].role ~ '!') }}")
    assert isinstance(error.value, ffwd.FfwdError)
    assert error.value.line == 1


def test_undefined_variables() -> None:
    """Writing one is nothing, as in transformers; using it is an error with name and line."""
    assert text("[{{ nothing }}{{ messages[0].nothing }}]{% if nothing %}x{% endif %}") == "[]"
    with pytest.raises(UndefinedVariableError, match="line 3") as error:
        text("a\n\n{{ nothing.at_all }}")
    assert (error.value.variable, error.value.line) == ("nothing", 3)
    with pytest.raises(UndefinedVariableError) as error:
        text("{% for m in messages %}\n{{ m.missing + 'x' }}{% endfor %}")
    assert (error.value.variable, error.value.line) == ("missing", 2)


@pytest.mark.parametrize(
    ("source", "line"),
    [("a\n{% if %}", 2), ("{{ a", 1), ("\n\n{% for x in y %}", 3), ("{% unknown %}", 1)],
)
def test_syntax_errors(source: str, line: int) -> None:
    """When the template is made, with the line."""
    with pytest.raises(TemplateSyntaxError, match=f"line {line} ") as error:
        ChatTemplate(source)
    assert error.value.line == line


def test_other_errors_have_a_line() -> None:
    """Whatever Python raises within a template."""
    with pytest.raises(TemplateError, match=r"line 2 .*TypeError") as error:
        text("x\n{{ 'a' + 1 }}")
    assert error.value.line == 2


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}{{ ''.__class__.__mro__[1]() }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'system'}) }}",
        "{{ namespace(_x=1) }}",
        "{{ cycler.__init__.__globals__ }}{{ cycler.__init__.__globals__.os }}",
        "{{ '{0.__class__.__mro__}'.format(1) }}{{ ('{0.__class__}'|format)(1) }}",
        "{{ raise_exception.__globals__['x'] }}",
        "{{ dict.mro() }}{{ dict.__class__() }}",
    ],
)
def test_the_sandbox(source: str) -> None:
    """Nothing leads out of it, or changes what is not the template's."""
    with pytest.raises((TemplateSecurityError, UndefinedVariableError, TemplateError)):
        text(source)


# ------------------------------------------------------------------------------------------ bounds


@pytest.mark.parametrize(
    "source",
    [
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
        "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}"
        "{{ f(40) }}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
        "{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
        "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
        "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}"
        "{% set ns.x = ns.x + ns.x %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
        "{% set ns.x = ns.x|replace('a', ns.x) %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
        "{% set ns.x = ns.x.replace('a', ns.x) %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
        "{% set ns.x = [ns.x, ns.x]|join(ns.x) %}{% endfor %}",
        "{% set ns = namespace(x='ab') %}{% for i in range(99) %}"
        "{% set ns.x = '%s%s'|format(ns.x, ns.x) %}{% endfor %}",
        "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
        "{{ 'x' * 999999999999 }}",
        "{{ [0] * 999999999999 }}",
        "{{ 999999999 * [0] }}",
        "{{ 'x'|center(999999999999) }}",
        "{{ 'x'.ljust(999999999999) }}",
        "{{ 'x\ny'|indent(999999999999) }}",
        "{{ '%999999999999d' % 1 }}",
        "{{ '%*d' % (999999999999, 1) }}",
        "{{ '{:999999999999}'.format(1) }}",
        "{{ '{:{}}'.format(1, 999999999999) }}",
        "{{ 9999 ** 9999 ** 9999 }}",
        "{{ range(999999999999)|list }}",
        "{{ lipsum(n=999999999) }}",
        "{% for i in range(99999) %}{% set x = range(99999)|list %}{% endfor %}",
        "{{ strftime_now('%999999999d') }}",
    ],
)
def test_hostile_templates_stop(source: str) -> None:
    """Endless loops and giant strings are errors of their own; they end soon."""
    # The default, but for the time that these would take until it is reached.
    limits = TemplateLimits(work=200_000)
    with pytest.raises(TemplateLimitError):
        ChatTemplate(source, limits=limits).render_text([HELLO])


def test_limits_are_the_callers() -> None:
    """Each can be set."""
    with pytest.raises(TemplateLimitError, match="source_characters"):
        ChatTemplate("x" * 11, limits=TemplateLimits(source_characters=10))
    limited = ChatTemplate(
        "{{ 'x' * 8 }}{{ messages[0].content }}", limits=TemplateLimits(characters=10)
    )
    assert limited.render_text([{"role": "user", "content": "ab"}]) == "xxxxxxxxab"
    with pytest.raises(TemplateLimitError, match="characters"):
        limited.render_text([{"role": "user", "content": "abc"}])
    loops = ChatTemplate("{% for m in range(50) %}{% endfor %}", limits=TemplateLimits(work=40))
    with pytest.raises(TemplateLimitError, match="work"):
        loops.render_text([HELLO])


def test_templates_nested_too_deeply() -> None:
    """Refused when they are made."""
    for source in (
        "{% if 1 %}" * 500 + "{% endif %}" * 500,
        "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    ):
        with pytest.raises(TemplateError):
            ChatTemplate(source)


def test_long_conversations_are_no_hostile_templates() -> None:
    """A thousand turns, and a long document, on every template that takes them."""
    messages = [{**HELLO, "content": "word " * 200}, HI] * 400 + [HELLO]
    long = [{"role": "user", "content": "x" * 3_000_000}]
    for path in PATHS[::5]:
        template = ChatTemplate.from_file(path, special_tokens=reference.SPECIAL)
        options = {"functions": "[]", "datetime": "now", "tools": TOOLS}
        assert len(template.render_text(messages, **options)) > 200_000
        assert len(template.render_text(long, **options)) > 3_000_000


# ------------------------------------------------------------------------------ what may be given


class Role(enum.Enum):
    USER = "user"


class Text(str):
    def upper(self) -> str:
        raise AssertionError("a template called a method of the caller's")


@dataclasses.dataclass
class Message:
    role: str
    content: str


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"role": "user", "content": "dumped"}


class Holder:
    def __init__(self, messages: list[Any]) -> None:
        self.messages = messages


PLAIN = "{% for m in messages %}{{ m.role }}:{{ m.content }};{{ m.content|string }}{% endfor %}"


@needs_new_transformers
@pytest.mark.parametrize(
    "messages",
    [
        [Message("user", "x")],
        [Model()],
        [{"role": "user", "content": Text("x")}],
        Holder([HELLO]),
        [
            {"role": "user", "content": np.float32(1.5)},
            {"role": "user", "content": np.bool_(False)},
        ],
        [{"role": "user", "content": [{"type": "image", "image": np.zeros(3)}]}],
        [{"role": "user", "content": object}],
        [{"role": "user", "content": (1, 2), 3: None}],
    ],
    ids=lambda value: type(value[0] if isinstance(value, list) else value).__name__,
)
def test_rich_values_are_made_plain(messages: Any) -> None:
    """As transformers does it; what has no plain form is named by its type."""
    (expected,), _ = render_jinja_template([messages], chat_template=PLAIN)
    assert text(PLAIN, messages) == expected


def test_the_callers_messages_are_not_changed() -> None:
    """Also where a reasoning field gets other names, or a message is continued."""
    message = {"role": "assistant", "content": "x", "reasoning": "y", "tool_calls": None}
    before = dict(message)
    assert text("{{ messages[0].reasoning_content }}{{ messages[0].content }}", [message]) == "yx"
    text("{{ messages[0].content }}", [message], continue_final_message=True)
    assert message == before


@pytest.mark.parametrize(
    ("messages", "index"),
    [
        ([], None),
        ("text", None),
        ({"role": "user"}, None),
        ([HELLO, "text"], 1),
        ([HELLO, 3], 1),
        (3, None),
    ],
)
def test_what_is_no_conversation(messages: Any, index: int | None) -> None:
    """With the index of what is no message."""
    with pytest.raises(ConversationError) as error:
        text("", messages)
    assert error.value.index == index


def test_values_that_hold_themselves() -> None:
    """No endless recursion."""
    content: list[Any] = []
    content.append(content)
    with pytest.raises(ConversationError, match="message 1 is circular") as error:
        text("", [HELLO, {"role": "user", "content": content}])
    assert error.value.index == 1


def test_options_that_exclude_each_other() -> None:
    """And documents that are none."""
    with pytest.raises(ChatError, match="add_generation_prompt"):
        text("content", continue_final_message=True, add_generation_prompt=True)
    with pytest.raises(ChatError, match="document 1"):
        text("", documents=[{}, "text"])
    with pytest.raises(ChatError, match="messages"):
        ChatTemplate("", special_tokens={"messages": "x"}).render_text([HELLO])


def test_several_conversations() -> None:
    """Each on its own; one that is given as several is refused."""
    path = next(path for path in PATHS if path.stem == "Qwen-Qwen2.5-7B-Instruct")
    template = ChatTemplate.from_file(path)
    chats = [[HELLO], [HELLO, HI, HELLO]]
    with reference.fixed_time():
        expected = reference.tokenizer().apply_chat_template(
            chats, chat_template=template.source(), tokenize=False, add_generation_prompt=True
        )
    assert template.render_texts(chats, add_generation_prompt=True) == expected
    prompts = template.render_many(chats, tokenizer=tokenizer(path), add_generation_prompt=True)
    assert [prompt.text for prompt in prompts] == expected
    with pytest.raises(ConversationError, match="render_texts"):
        template.render_text(chats)


GENERATION = """{% for m in messages %}<s>{% if m.role == 'assistant' %}
{% generation %}{{ m.content }}</s>{% endgeneration %}
{% else %}{{ m.content }}</s>{% endif %}{% endfor %}"""


def test_generation_blocks() -> None:
    """The same spans as transformers', which the text between them shows."""
    messages = [HELLO, HI, HELLO, {"role": "assistant", "content": "Well, <s>"}]
    (expected,), (spans,) = render_jinja_template(
        [messages], chat_template=GENERATION, return_assistant_tokens_mask=True
    )
    prompt = ChatTemplate(GENERATION).render(messages, tokenizer=tokenizer(PATHS[0]))
    assert prompt.text == expected
    assert list(prompt.generation_spans) == spans
    assert [expected[start:stop] for start, stop in spans] == [
        f"{HI['content']}</s>",
        "Well, <s></s>",
    ]


def test_threads() -> None:
    """One template, many threads: budgets and spans are each rendering's own."""
    template = ChatTemplate(GENERATION)
    failures: list[object] = []

    def work(number: int) -> None:
        messages = [HELLO, {"role": "assistant", "content": "x" * number}] * 5
        for _ in range(20):
            prompt = template.render(messages, tokenizer=tokenizer(PATHS[0]))
            lengths = {stop - start for start, stop in prompt.generation_spans}
            if lengths != {number + 4} or len(prompt.generation_spans) != 5:
                failures.append(prompt.generation_spans)

    tokenizer(PATHS[0])
    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


WITHOUT_TRANSFORMERS = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"transformers", "torch", "tokenizers", "huggingface_hub"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import ffwd.chat
assert "jinja2" not in sys.modules
from datetime import datetime
template = ffwd.chat.ChatTemplate.from_file(sys.argv[1], special_tokens={"bos_token": "<s>"})
def add(x: int) -> int:
    '''Adds one.

    Args:
        x: A number
    '''
    return x + 1
messages = [{"role": "user", "content": "Hello"}]
text = template.render_text(messages, tools=[add], now=datetime(2026, 3, 7, 9, 5, 1))
sys.stdout.buffer.write(text.encode())
"""


def test_without_transformers() -> None:
    """Neither it nor its tokenizers can be imported; jinja2 is, when a template is made."""
    path = next(path for path in PATHS if path.stem == "meta-llama-Llama-3.1-8B-Instruct")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TRANSFORMERS, str(path)],
        cwd=path.parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()

    def add(x: int) -> int:
        """Adds one.

        Args:
            x: A number
        """
        return x + 1

    expected = reference.render(
        path.read_text(encoding="utf-8"), [{"role": "user", "content": "Hello"}], tools=[add]
    )
    assert done.stdout.decode() == expected
