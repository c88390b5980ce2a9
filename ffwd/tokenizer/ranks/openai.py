"""The encodings of tiktoken by their names and by those of OpenAI's models."""

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ffwd.tokenizer.errors import TokenizerNotFoundError

if TYPE_CHECKING:
    from tiktoken import Encoding


def encoding_name(name: str, encodings: Mapping[str, str] | None = None) -> str | None:
    """Return the encoding of a name; None for an unknown one.

    `name`: of an encoding, or of a model, as tiktoken knows them. `encodings`: further models, or
    others for the same: a model's name, or the beginning of one and `*`, and its encoding. The
    whole name counts before a beginning, a longer beginning before a shorter one.
    """
    chosen = _looked_up(name, encodings or {})
    if chosen is not None:
        return chosen
    if importlib.util.find_spec("tiktoken") is None:
        return None
    import tiktoken
    from tiktoken.model import encoding_name_for_model

    if name in tiktoken.list_encoding_names():
        return name
    try:
        return encoding_name_for_model(name)
    except KeyError:
        return None


def read_encoding(name: str) -> "Encoding":
    """Return an encoding of tiktoken, which downloads it or has it in its cache.

    Raises `TokenizerNotFoundError` if neither is possible.
    """
    try:
        import tiktoken
    except ImportError as error:
        raise TokenizerNotFoundError(
            f"the encoding {name} is tiktoken's, which is not installed: pip install tiktoken"
        ) from error
    try:
        return tiktoken.get_encoding(name)
    except ValueError as error:
        known = ", ".join(tiktoken.list_encoding_names())
        raise TokenizerNotFoundError(
            f"tiktoken has no encoding {name!r}; it has {known} ({error})"
        ) from error
    except Exception as error:
        # Any failure of the network or the file system.
        raise TokenizerNotFoundError(
            f"tiktoken could neither download the encoding {name} nor find it in its cache "
            f"(TIKTOKEN_CACHE_DIR): {type(error).__name__}: {error}. A file of its ranks can be "
            "passed by its path"
        ) from error


def _looked_up(name: str, encodings: Mapping[str, str]) -> str | None:
    if name in encodings:
        return encodings[name]
    beginnings = [key for key in encodings if key.endswith("*") and name.startswith(key[:-1])]
    return encodings[max(beginnings, key=len)] if beginnings else None
