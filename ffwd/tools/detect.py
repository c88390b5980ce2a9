"""Which format a model writes calls in."""

import json
import re
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

from ffwd.chat.errors import ChatError
from ffwd.chat.mistral import MistralFormat
from ffwd.chat.prompt import Prompt
from ffwd.chat.template import ChatTemplate, TemplateTokenizer
from ffwd.tokenizer import load
from ffwd.tools.derive import PROBES, derive_format, json_pattern, rendered_call
from ffwd.tools.errors import ToolFormatError
from ffwd.tools.families import (
    FORMATS,
    MISTRAL_V2,
    MISTRAL_V3,
    MISTRAL_V11,
)
from ffwd.tools.format import (
    NAME,
    JsonArguments,
    OneOf,
    Pattern,
    Piece,
    PythonArguments,
    TaggedArguments,
    ToolFormat,
)

# Texts of a template, beside tags, that show how a call is written.
_MARK = re.compile(r"<[^<>\s]+>|\[[A-Z_]+\]")
_TEXTS = ("```json", '"arguments"', '"parameters"', "functions.")


class TransformersTokenizer(Protocol):
    """A tokenizer object of transformers, as far as a format is found in it."""

    chat_template: Any


FormatSource: TypeAlias = (
    ToolFormat
    | str
    | ChatTemplate
    | MistralFormat
    | Prompt
    | TemplateTokenizer
    | TransformersTokenizer
)
"""What a format is given by, or is found in."""


def detect_format(source: FormatSource) -> ToolFormat:
    """Return the format in which a model writes calls.

    Args:
        source: A `ToolFormat`, which is it; the name of one of `FORMATS`; a chat template, or a
            tokenizer (ffwd's or transformers') or prompt with one: a call is rendered with it, and
            the format is the one in which this is a call, or what `derive_format` reads from it.

    Raises:
        ToolFormatError: There is no format of that name, or the template writes no calls.
        VocabularyError: The tokenizer cannot be read.
        TypeError: `source` is something else.

    """
    if isinstance(source, ToolFormat):
        return source
    if isinstance(source, str):
        if source not in FORMATS:
            raise ToolFormatError(f"there is no format {source!r}; there are {', '.join(FORMATS)}")
        return FORMATS[source]
    if isinstance(source, MistralFormat):
        return _of_mistral(source)
    if isinstance(source, ChatTemplate):
        return _of_template(source)
    tokenizer: Any = source.tokenizer if isinstance(source, Prompt) else source
    if hasattr(tokenizer, "chat_template"):
        tokenizer = load(tokenizer)
    if not hasattr(tokenizer, "chat_templates"):
        raise TypeError(
            "format must be a ToolFormat, its name, a tokenizer, a chat template or a prompt, not "
            f"{type(source).__name__}"
        )
    try:
        return _of_template(ChatTemplate.for_tokenizer(tokenizer))
    except ChatError as error:
        raise ToolFormatError(
            f"no format can be found: {error}; give one of {', '.join(FORMATS)}"
        ) from error


def _of_mistral(source: MistralFormat) -> ToolFormat:
    number = source.version.number
    for least, found in ((11, MISTRAL_V11), (3, MISTRAL_V3), (2, MISTRAL_V2)):
        if number >= least:
            return found
    raise ToolFormatError("models of Mistral's version 1 call no tools")


def _of_template(template: ChatTemplate) -> ToolFormat:
    try:
        text = rendered_call(template)
    except ToolFormatError:
        if (named := _named_in(template.source(tools=True))) is None:
            raise
        return named
    for style in FORMATS.values():
        if any(re.search(pattern, text) for pattern in _probe_patterns(style)):
            return style
    return derive_format(template)


def _named_in(source: str) -> ToolFormat | None:
    """Return the format whose tags a template has that rejects the sample calls."""
    for style in FORMATS.values():
        texts = [p for p in (*style.begin, *style.call, *style.end) if isinstance(p, str)]
        marks = {mark for text in texts for mark in _MARK.findall(text)}
        fences = {mark for text in texts for mark in _TEXTS if mark in text}
        if len(marks) > 1 and all(mark in source for mark in marks | fences):
            return style
    return None


def _probe_patterns(style: ToolFormat) -> list[str]:
    """Return regular expressions that find the sample call written in a format.

    A call without a mark of its own must be at the start of the answer.
    """
    call = _expression((*style.begin, *(style.shown or style.call)), style)
    return [call if style.text_start is None else rf"\A\s*{call}"]


def _expression(pieces: Sequence[Piece], style: ToolFormat) -> str:
    written = ""
    for piece in pieces:
        if isinstance(piece, str):
            written += re.escape(piece)
        elif isinstance(piece, Pattern):
            written += f"(?:{piece.pattern})"
        elif isinstance(piece, OneOf):
            options = (_expression(option, style) for option in piece.options)
            written += f"(?:{'|'.join(options)})"
        else:
            written += re.escape(PROBES[0].name) if piece is NAME else _arguments(style)
    return written


def _arguments(style: ToolFormat) -> str:
    given = PROBES[0].arguments
    arguments = style.arguments
    if isinstance(arguments, JsonArguments):
        return json_pattern(given)
    if isinstance(arguments, PythonArguments):
        return ", ".join(f"{key}={re.escape(json.dumps(value))}" for key, value in given.items())
    if isinstance(arguments, TaggedArguments):
        parts = (
            arguments.before_name
            + key
            + (arguments.before_string if isinstance(value, str) else arguments.before_value)
            + str(value)
            + arguments.after_value
            for key, value in given.items()
        )
        return re.escape("".join(parts))
    return r"(?!)"
