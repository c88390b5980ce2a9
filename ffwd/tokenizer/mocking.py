"""A small tokenizer for tests that need one and no model."""

import base64

from ffwd.tokenizer.loading import load
from ffwd.tokenizer.tokenizer import Tokenizer

WORDS = (
    *("Hello", " world", " the", " a", " is", " name", " true", " false", " null"),
    *('{"', '":', '"}'),
)
"""The words of `mock`; their beginnings of two bytes and more are tokens as well."""

_PATTERN = r"""[^\w\s]+| ?\w+|\s+"""
_CONTROLS = ("<|im_start|>", "<|im_end|>")
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def mock() -> Tokenizer:
    """Return a tokenizer with a dozen words, for tests; it needs no file, network or package.

        tokenizer = ffwd.tokenizer.mock()
        assert tokenizer.decode(tokenizer.encode("Hello world")) == "Hello world"

    It is a complete byte-pair encoding and encodes every text: id b is byte b. After these come the
    words (`"Hello"`, `" world"`, `" true"`, `'{"'`, …) and their merges, then `<|im_start|>` and
    `<|im_end|>`, which ends an output. Its chat template is that of ChatML.
    """
    beginnings = [word[:end].encode() for word in WORDS for end in range(2, len(word) + 1)]
    tokens = [*(bytes([byte]) for byte in range(256)), *dict.fromkeys(beginnings)]
    ranks = b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens))
    return load(
        ranks,
        kind="tiktoken",
        pattern=_PATTERN,
        special_tokens={name: len(tokens) + i for i, name in enumerate(_CONTROLS)},
        eos_token_ids=(len(tokens) + _CONTROLS.index("<|im_end|>"),),
        chat_template=_TEMPLATE,
    )
