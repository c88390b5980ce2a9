"""A model with its tokenizer, chat template and vocabulary, as the server uses them."""

import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import ffwd
from ffwd.adapters.server.slots import SlotModel, UnsupportedModelError, check_against_itself
from ffwd.adapters.transformers import load_local
from ffwd.chat import ChatError, ChatTemplate
from ffwd.tokenizer import Tokenizer
from ffwd.tools import ToolFormat, ToolFormatError, detect_format

_EXAMPLE = [{"role": "user", "content": "a"}]
_EXAMPLE_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "description": "",
            "parameters": {"type": "object", "properties": {}},
        },
    }
]


@dataclass(frozen=True, kw_only=True, eq=False)
class LoadedModel:
    """A model and its parts.

    Attributes:
        name: What clients call it.
        slots: The model.
        tokenizer: Its tokenizer.
        vocabulary: What grammars are compiled for; it ends with all that ends an answer.
        template: Its chat template; None where it has none.
        no_template: Why it has none.
        tool_format: How it writes calls; None where that is not known.
        no_tool_format: Why it is not known.
        max_model_len: How many tokens a prompt and its answer have at most.
        max_cached_tokens: How many tokens the cache has room for.
        temperature: What the model's own configuration says of sampling.
        top_p: Likewise.
        top_k: Likewise.
        created: When it was loaded, in seconds since 1970.

    """

    name: str
    slots: SlotModel
    tokenizer: Tokenizer
    vocabulary: ffwd.Vocabulary
    template: ChatTemplate | None
    no_template: str = ""
    tool_format: ToolFormat | None = None
    no_tool_format: str = ""
    max_model_len: int
    max_cached_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    created: int = field(default_factory=lambda: int(time.time()))


def load_model(
    path: str | Path,
    *,
    name: str | None = None,
    device: str = "auto",
    dtype: str = "auto",
    max_model_len: int | None = None,
    max_cached_tokens: int | None = None,
    chat_template: str | Path | None = None,
    tool_format: str | None = None,
) -> LoadedModel:
    """Load a model of transformers from a directory.

    Args:
        path: The directory: weights, configuration, tokenizer, chat template.
        name: What clients call it; the directory's name by default.
        device: As torch names it; "auto" for an accelerator where there is one.
        dtype: As torch names it; "auto" for what the weights are in.
        max_model_len: How many tokens a prompt and its answer have at most; by default what the
            model was made for.
        max_cached_tokens: How many tokens the KV cache has room for, over all answers in progress;
            by default 131,072 or `max_model_len`, whichever is more.
        chat_template: A `.jinja` file instead of the model's own template.
        tool_format: The name of one of `ffwd.tools.FORMATS`, instead of what the template shows.

    Raises:
        ModelError: The directory is no model, cannot be loaded, or its tokenizer is that of another
            model.
        UnsupportedModelError: The model cannot run here.
        TokenizerError: Its tokenizer cannot be read.
        VocabularyError: Nothing says what ends an answer.
        ChatError: The given template is none.
        ToolFormatError: There is no format of that name.

    """
    local = load_local(path, device=device, dtype=dtype, chat_template=chat_template)
    model, tokenizer = local.model, local.tokenizer
    slots = SlotModel(model)
    check_against_itself(model, slots, vocab_size=tokenizer.vocab_size)
    template, no_template, ends = _template(tokenizer)
    style, no_style = _tool_format(tool_format, template, no_template)
    made_for = local.max_length
    length = int(max_model_len or made_for or 4096)
    if made_for is not None and length > made_for:
        raise UnsupportedModelError(
            f"max_model_len is {length}, and the model was made for {made_for} tokens"
        )
    cached = max_cached_tokens or max(131_072, length)
    if cached < length:
        raise UnsupportedModelError(
            f"max_cached_tokens is {cached}, which one text of max_model_len {length} does not fit"
        )
    sampling = _sampling(model)
    return LoadedModel(
        name=name or Path(path).resolve().name,
        slots=slots,
        tokenizer=tokenizer,
        vocabulary=tokenizer.vocabulary(vocab_size=local.width, eos_token_ids=ends),
        template=template,
        no_template=no_template,
        tool_format=style,
        no_tool_format=no_style,
        max_model_len=length,
        max_cached_tokens=cached,
        temperature=sampling.get("temperature", 1.0),
        top_p=sampling.get("top_p", 1.0),
        top_k=int(sampling.get("top_k", 0)),
    )


def _sampling(model: Any) -> dict[str, float]:
    """Return the sampling options in generation_config.json; others are missing."""
    stated = getattr(model, "generation_config", None)
    given = {} if stated is None else stated.to_diff_dict()
    return {
        name: given[name]
        for name in ("temperature", "top_p", "top_k")
        if given.get(name) is not None
    }


def _template(tokenizer: Tokenizer) -> tuple[ChatTemplate | None, str, list[int]]:
    """Return the template, or the reason why it is missing; and all end tokens."""
    ends = set(tokenizer.eos_token_ids)
    try:
        template = ChatTemplate.for_tokenizer(tokenizer)
        ends |= _ends(template, tokenizer, None)
    except ChatError as error:
        return None, str(error), sorted(ends)
    # A template for tools may be another one. Some refuse them.
    with suppress(ChatError):
        ends |= _ends(template, tokenizer, _EXAMPLE_TOOLS)
    return template, "", sorted(ends)


def _ends(
    template: ChatTemplate, tokenizer: Tokenizer, tools: list[dict[str, Any]] | None
) -> set[int]:
    prompt = template.render(
        _EXAMPLE,
        tokenizer=tokenizer,
        tools=tools,
        add_generation_prompt=True,
        now=datetime(2026, 1, 1),
    )
    return set(prompt.end_token_ids)


def _tool_format(
    name: str | None, template: ChatTemplate | None, no_template: str
) -> tuple[ToolFormat | None, str]:
    if name is not None:
        return detect_format(name), ""
    if template is None:
        return None, no_template
    try:
        return detect_format(template), ""
    except ToolFormatError as error:
        return None, str(error)
