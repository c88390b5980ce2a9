"""SGLang: the grammar backend `ffwd`, for `--grammar-backend ffwd`, and forced tokens as drafts.

SGLang loads `register` in every process of its own, by the entry point of the group
`sglang.srt.plugins` that ffwd's distribution has. Nothing else of SGLang is touched, and nothing
of ffwd is used before the backend is named. `--speculative-algorithm FFWD` adds the drafts.
"""

import logging
from importlib import import_module, metadata
from typing import Any

from ffwd import FfwdError

SUPPORTED_VERSION = "0.5.23"
"""The version of SGLang whose interfaces this follows; its post-releases count as well."""

BACKEND_NAME = "ffwd"

ALGORITHM_NAME = "FFWD"
"""The speculative algorithm whose drafts are forced tokens."""

_logger = logging.getLogger(__name__)

# The locations of the needed functions in SGLang's versions, the newest first.
_CHOICES = ("sglang.srt.arg_groups.choices", "sglang.srt.server_args")
_BACKENDS = "sglang.srt.constrained.base_grammar_backend"


class UnsupportedSglangError(FfwdError):
    """The grammar backend `ffwd` was asked for in a version of SGLang that it does not support.

    Attributes:
        version: The version that is installed; None where nothing says which.

    """

    def __init__(self, version: str | None) -> None:
        super().__init__(
            f"the grammar backend {BACKEND_NAME!r} supports SGLang {SUPPORTED_VERSION}, and this is"
            f" {version or 'a copy without a version'}: install sglang=={SUPPORTED_VERSION}, or"
            " choose another --grammar-backend"
        )
        self.version = version


def register() -> None:
    """Make `ffwd` a choice of `--grammar-backend`; repeated calls do nothing.

    It raises nothing. An unsupported version of SGLang causes a log message, and using the
    backend's name, if SGLang accepts it at all, raises `UnsupportedSglangError`.
    """
    version = installed_version()
    supported = is_supported(version)
    if not supported:
        _logger.warning("%s", UnsupportedSglangError(version))
    try:
        choices, register_backend = _hooks()
        if BACKEND_NAME not in choices.GRAMMAR_BACKEND_CHOICES:
            choices.add_grammar_backend_choices([BACKEND_NAME])
        register_backend(BACKEND_NAME, create_grammar_backend if supported else _refuse)
        if supported:
            import_module("ffwd.adapters.sglang.speculation").register_algorithm()
    # SGLang itself continues after any error of another version.
    except Exception as error:
        _logger.warning(
            "SGLang %s has no grammar backend %r: %s: %s",
            version,
            BACKEND_NAME,
            type(error).__name__,
            error,
        )


def registered() -> bool:
    """Return whether SGLang knows the backend's name."""
    try:
        choices, _ = _hooks()
    except ImportError:
        return False
    return BACKEND_NAME in choices.GRAMMAR_BACKEND_CHOICES


def installed_version() -> str | None:
    """Return the version of SGLang's distribution, or None."""
    try:
        return metadata.version("sglang")
    except metadata.PackageNotFoundError:
        return None


def is_supported(version: str | None) -> bool:
    """Return whether this is `SUPPORTED_VERSION` or a post-release of it."""
    if version is None:
        return False
    public = version.partition("+")[0]
    return public == SUPPORTED_VERSION or public.startswith(f"{SUPPORTED_VERSION}.post")


def create_grammar_backend(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any = None
) -> Any:
    """Return the grammar backend for a tokenizer, as SGLang's registry requests it.

    Args:
        server_args: SGLang's arguments. What they were resolved to is asked of SGLang itself.
        tokenizer: SGLang's tokenizer.
        vocab_size: The width of the model's logits.
        eos_token_ids: The tokens that end an output by the model's configuration.

    Raises:
        VocabularyError: ffwd cannot read the tokenizer, or nothing says what ends an output.
        UnsupportedSglangError: Another version of SGLang than `SUPPORTED_VERSION`.

    """
    version = installed_version()
    if not is_supported(version):
        raise UnsupportedSglangError(version)
    # Needs SGLang, which this module does not.
    from ffwd.adapters.sglang.backend import create

    return create(server_args, tokenizer, vocab_size, eos_token_ids)


def _refuse(*_: Any, **__: Any) -> Any:
    raise UnsupportedSglangError(installed_version())


def _hooks() -> tuple[Any, Any]:
    """Return the module with the choices, and the function that registers a backend."""
    for name in _CHOICES:
        try:
            choices = import_module(name)
        except ImportError:
            continue
        if hasattr(choices, "add_grammar_backend_choices"):
            return choices, import_module(_BACKENDS).register_grammar_backend
    raise ImportError(f"none of {', '.join(_CHOICES)} has add_grammar_backend_choices")
