"""Errors of loading a tokenizer; all are `VocabularyError`s."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ffwd._native import FfwdError, TextError, VocabularyError

FORMATS = (
    "a Hugging Face tokenizer (tokenizer.json, a directory with one, or an object)",
    "tiktoken (an encoding, its name, the name of a model of OpenAI, or a file of ranks)",
    "SentencePiece (a .model file, its bytes, or a processor)",
    "Mistral's tekken.json",
    "GGUF",
)
"""The formats that `load` reads, as messages list them."""


class TokenizerNotFoundError(VocabularyError):
    """A path or name without a tokenizer; the message says where it was searched."""


class UnsupportedTokenizerError(VocabularyError):
    """An object that is no tokenizer, or one of an unsupported kind.

    The message names what was found and what is supported.
    """


class CorruptTokenizerError(VocabularyError):
    """A tokenizer of a known format that is truncated, contradictory or unreadable."""


def check_encodable(text: str) -> None:
    """Raise `TextError` for a lone surrogate, as the native tokenizer does."""
    if not isinstance(text, str):
        raise TypeError(f"a text must be str, not {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise lone_surrogate(text, error.start) from error


def lone_surrogate(text: str, index: int) -> TextError:
    """Return the error for the lone surrogate at an index of a text, with its byte offset."""
    byte = len(text[:index].encode())
    error = TextError(
        f"the text's character at index {index} (byte {byte}) is the lone surrogate "
        f"U+{ord(text[index]):04X}, which UTF-8 cannot represent: replace it, for instance by "
        "U+FFFD"
    )
    error.byte = byte
    return error


@contextmanager
def as_error(make: Callable[[str], FfwdError]) -> Iterator[None]:
    """Convert exceptions and panics of a library written in Rust to an error of this package.

    Such a library raises bare exceptions, and panics, which no `except Exception` catches.
    """
    try:
        yield
    except FfwdError:
        raise
    except Exception as error:
        raise make(f"{error}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise make(f"{error}") from error
