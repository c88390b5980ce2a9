"""The tokenizer of the model in the box: byte-level BPE, trained on generated texts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from ffwd.model.texts import Words, conversation
from ffwd.model.texts.words import CITIES, COLORS, FIRST_NAMES, THINGS

PAD, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
# Text that a model writes, and a parser looks for: tokens, but not hidden when text is decoded.
TAGS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>")
VOCABULARY_SIZE = 2048
CONTEXT = 1024

# Qwen's: words with one other character before them, single digits, punctuation, whitespace.
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

CHAT_TEMPLATE = """\
{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- '<tools>' }}
    {%- for tool in tools %}
        {{- '\\n' }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- '\\n</tools>\\nTo call a function, write <tool_call>\\n' }}
    {{- '{"name": <function-name>, "arguments": <args-json-object>}' }}
    {{- '\\n</tool_call><|im_end|>\\n' }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\\n<tool_response>\\n' + message.content }}
        {{- '\\n</tool_response><|im_end|>\\n' }}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\\n' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {%- set call = call.function or call %}
            {{- '\\n' if message.content or not loop.first }}
            {{- '<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}
            {{- call.arguments if call.arguments is string else call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == 'user' or not loop.first %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""


class _NoNames(Words):
    """Words with few names, so that what names are cut into does not depend on what is before."""

    def invented(self) -> str:
        return "Ada"

    def first_name(self) -> str:
        return self.source.choice(("Ada", "Bob"))

    def city(self) -> str:
        return "Rome"


def texts(seed: int) -> Iterator[str]:
    """Return the texts from which the tokenizer learns its merges.

    Names stand by themselves, and more often than anything else. So their syllables are merged
    before a space could be merged with a capital letter, and a name has the same tokens after a
    space as after a quotation mark: the model can copy it.
    """
    words = Words(random.Random(seed))
    for _ in range(300):
        yield "\n".join(words.invented() for _ in range(500))
    for name in (*FIRST_NAMES, *CITIES):
        yield "\n".join([name] * 3000)
    for word in (*COLORS, *THINGS):
        yield "\n".join([word] * 100)
    plain = _NoNames(words.source)
    for _ in range(4000):
        example = conversation(plain)
        yield from (message["content"] for message in example.messages)
        yield example.answer
        yield str(example.tools)


def train_tokenizer(seed: int, size: int = VOCABULARY_SIZE) -> Any:
    """Return the tokenizer as an object of transformers."""
    core = Tokenizer(models.BPE(byte_fallback=False))
    core.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(TAGS),
        special_tokens=[PAD, START, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    core.train_from_iterator(texts(seed), trainer)
    core.add_tokens([AddedToken(tag, normalized=False, special=False) for tag in TAGS])
    # Any: the classes of transformers are typed in part only.
    fast: Any = PreTrainedTokenizerFast
    tokenizer = fast(
        tokenizer_object=core,
        eos_token=END,
        pad_token=PAD,
        additional_special_tokens=[START],
        clean_up_tokenization_spaces=False,
        padding_side="left",
        model_max_length=CONTEXT,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
