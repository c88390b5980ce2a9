"""What is fuzzed of the Python front ends: functions of any bytes.

Each raises nothing but what its documentation says, which it swallows; whatever else it raises, a
failed `assert` included, is a finding. `docs/fuzzing.md` says what each asserts.
"""

import json
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import ffwd
import ffwd.chat
import ffwd.openai
import ffwd.tokenizer

END, CALL, THINK = 256, 257, 258
NAMES = {"<end>": END, "<tool_call>": CALL, "</think>": THINK}
TEXTS = ("", "a", " ab  c", "é▁€😀", "<s>[INST] x</s>\n", "'s 12\t\r\n")


@cache
def vocabulary() -> ffwd.Vocabulary:
    """The bytes, some longer tokens, and control tokens with names."""
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    tokens += [None] * len(NAMES)
    tokens += [b'{"', b'":', b'",', b'"}', b"</", b"<tool", b"ab", b"\xc3\xa9", b"\n\n", b'"a']
    return ffwd.Vocabulary(tokens, eos_token_ids=[END], token_names=NAMES)


def mask(matcher: ffwd.Matcher) -> npt.NDArray[np.bool_]:
    """Which tokens may come."""
    size = matcher.grammar.vocabulary.vocab_size
    bitmask = ffwd.allocate_bitmask(1, size)
    matcher.fill_bitmask(bitmask, 0)
    return np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")[:size].astype(bool)


def walk(grammar: ffwd.CompiledGrammar, steps: bytes, most: int = 12) -> None:
    """Follows a text: what is offered is taken, what is not is refused, and it can always end."""
    matcher = grammar.matcher()
    for step in steps[:most].ljust(4, b"\x07"):
        offered = mask(matcher)
        allowed = np.flatnonzero(offered)
        assert len(allowed), "a dead end"
        for token in range(0, len(offered), 1 + step % 7):
            assert (matcher.validate_tokens([token]) == 1) == offered[token], token
        assert matcher.accept_token(int(allowed[step % len(allowed)]))
        if matcher.is_terminated():
            matcher.rollback(1)
            assert (mask(matcher) == offered).all()
            break
        if step % 5 == 0:
            again = ffwd.Matcher.from_bytes(matcher.to_bytes(), grammar)
            assert again.tokens == matcher.tokens
            assert (mask(again) == mask(matcher)).all()
    assert matcher.accept_tokens(matcher.shortest_completion())
    assert matcher.is_terminated()


def says(error: Exception) -> None:
    """An error of a kind that is documented must say something."""
    if not str(error):
        raise AssertionError(f"{type(error).__name__} says nothing") from error


def split(data: bytes) -> tuple[bytes, bytes]:
    """The text, and after the first byte 0xFF, which no UTF-8 has, what drives the walk."""
    text, _, steps = data.partition(b"\xff")
    return text, steps


def parsed(data: bytes) -> tuple[Any, bytes]:
    """A JSON value of the input, or None."""
    text, steps = split(data)
    try:
        return json.loads(text), steps
    except (ValueError, RecursionError):
        return None, steps


def compiled(make: Callable[[], ffwd.Grammar], steps: bytes) -> None:
    """Makes a grammar, compiles it and walks through it."""
    try:
        grammar = ffwd.compile(make(), vocabulary())
        walk(grammar, steps)
    except ffwd.LimitExceededError as error:
        says(error)


# --------------------------------------------------------------------------------------- requests


def structural_tag(data: bytes) -> None:
    """XGrammar's structural tags, as JSON text."""
    text, steps = split(data)
    try:
        given = text.decode()
    except UnicodeDecodeError:
        return
    options = steps[0] if steps else 0
    try:
        compiled(
            lambda: ffwd.structural_tag(
                given,
                closed_objects=options % 2 == 0,
                policy="lenient" if options % 3 == 1 else "strict",
                property_order="any" if options % 5 == 1 else "declared",
            ),
            steps[1:],
        )
    except ffwd.FfwdError as error:
        says(error)


def response_format(data: bytes) -> None:
    """A request's `response_format`, which errors of type and value are documented of."""
    value, steps = parsed(data)
    try:
        compiled(lambda: ffwd.openai.response_format(value), steps)
    except (ffwd.FfwdError, TypeError, ValueError) as error:
        says(error)


FORMATS = ("hermes", "llama3", "mistral", "deepseek_v3", "qwen3_coder")


def tools(data: bytes) -> None:
    """A request's `tools` and `tool_choice`."""
    value, steps = parsed(data)
    if not isinstance(value, dict) or not isinstance(value.get("tools"), list):
        return
    style = FORMATS[(steps[0] if steps else 0) % len(FORMATS)]
    choice = value.get("tool_choice", "auto")
    try:
        compiled(lambda: ffwd.openai.tools(value["tools"], choice, format=style), steps[1:])
    except (ffwd.FfwdError, TypeError) as error:
        says(error)


# ------------------------------------------------------------------------------------- tokenizers


def loaded(data: bytes, **options: Any) -> None:
    """Loads the contents of a file, and where that goes, encodes, decodes and compiles."""
    try:
        tokenizer = ffwd.tokenizer.load(data, **options)
    except ffwd.FfwdError as error:
        says(error)
        return
    for text in TEXTS:
        encoded(tokenizer, text)
    try:
        made = tokenizer.vocabulary()
        grammar = ffwd.compile(ffwd.regex("[ab]*"), made)
        assert mask(grammar.matcher()).any()
    except ffwd.FfwdError as error:
        says(error)


def encoded(tokenizer: ffwd.tokenizer.Tokenizer, text: str) -> None:
    """A text to ids and back."""
    try:
        ids = tokenizer.encode(text)
    except ffwd.FfwdError as error:
        says(error)
        return
    assert all(0 <= token < tokenizer.vocab_size for token in ids), (text, ids)
    assert isinstance(tokenizer.decode(ids), str)


def gguf(data: bytes) -> None:
    """A GGUF file."""
    loaded(b"GGUF" + data[4:], kind="gguf")


def ranks(data: bytes) -> None:
    """A file of ranks as tiktoken has them."""
    loaded(data, kind="tiktoken", pattern=r"\p{L}+|\s+|[^\p{L}\s]", special_tokens={"<s>": 300})


def tekken(data: bytes) -> None:
    """A tekken.json."""
    loaded(data, kind="tekken")


def sentencepiece(data: bytes) -> None:
    """A SentencePiece model."""
    loaded(data, kind="sentencepiece")


def tokenizer_json(data: bytes) -> None:
    """A tokenizer.json."""
    loaded(data, kind="huggingface")


def any_tokenizer(data: bytes) -> None:
    """A file whose format is to be found out."""
    loaded(data)


# ------------------------------------------------------------------------------------------- chat

MESSAGES: tuple[Sequence[dict[str, Any]], ...] = (
    [{"role": "user", "content": "Hi"}],
    [
        {"role": "system", "content": "Be <s>."},
        {"role": "user", "content": "{{ x }}"},
        {"role": "assistant", "content": "é"},
        {"role": "user", "content": ""},
    ],
    [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {
            "role": "assistant",
            "tool_calls": [
                {"type": "function", "function": {"name": "f", "arguments": {"a": [1, None]}}}
            ],
        },
        {"role": "tool", "name": "f", "content": "1"},
    ],
)
LIMITS = ffwd.chat.TemplateLimits(source_characters=1 << 14, characters=1 << 16, work=20_000)


def chat_template(data: bytes) -> None:
    """A chat template, which is a program by somebody else."""
    text, steps = split(data)
    try:
        source = text.decode()
    except UnicodeDecodeError:
        return
    try:
        template = ffwd.chat.ChatTemplate(source, limits=LIMITS)
    except ffwd.FfwdError as error:
        says(error)
        return
    for messages in MESSAGES:
        rendered(template, messages, prompt=bool(steps))


def rendered(
    template: ffwd.chat.ChatTemplate, messages: Sequence[dict[str, Any]], *, prompt: bool
) -> None:
    """A template on a conversation."""
    try:
        shown = template.render_text(messages, add_generation_prompt=prompt)
    except ffwd.FfwdError as error:
        says(error)
    else:
        assert len(shown) <= LIMITS.characters


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (
        structural_tag,
        response_format,
        tools,
        gguf,
        ranks,
        tekken,
        sentencepiece,
        tokenizer_json,
        any_tokenizer,
        chat_template,
    )
}
