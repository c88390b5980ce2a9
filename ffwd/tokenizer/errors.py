"""Why a tokenizer cannot be had from what was given. All are `VocabularyError`s."""

from ffwd._native import VocabularyError

FORMATS = (
    "a Hugging Face tokenizer (tokenizer.json, a directory with one, or an object)",
    "tiktoken (an encoding, its name, the name of a model of OpenAI, or a file of ranks)",
    "SentencePiece (a .model file, its bytes, or a processor)",
    "Mistral's tekken.json",
    "GGUF",
)
"""The formats that `load` reads, as messages list them."""


class TokenizerNotFoundError(VocabularyError):
    """There is nothing under this path or name; the message says where it was looked for."""


class UnsupportedTokenizerError(VocabularyError):
    """Something else than a tokenizer, or one of a kind that is not supported.

    The message says what was found and what is supported.
    """


class CorruptTokenizerError(VocabularyError):
    """A tokenizer of a known format that is cut off, contradicts itself or cannot be read."""
