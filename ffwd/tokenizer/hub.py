"""The files of a tokenizer on a hub, through huggingface_hub and its cache."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ffwd.tokenizer.errors import TokenizerNotFoundError

_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "config.json",
    "generation_config.json",
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates/*.jinja",
    "tekken.json",
    "*.model",
    "*.model.v*",
    "*.tiktoken",
)
"""No weights, and so no GGUF either."""


def hub_options(
    revision: str | None,
    token: str | bool | None,
    cache_dir: str | os.PathLike[str] | None,
    *,
    local_files_only: bool,
) -> dict[str, Any]:
    """Return the options that are given, by their names in `fetch`."""
    given = {
        "revision": revision,
        "token": token,
        "cache_dir": cache_dir,
        "local_files_only": local_files_only or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def fetch(name: str, *, options: Mapping[str, Any]) -> Path:
    """Return the folder in the cache with the tokenizer of a model.

    `options`: of `huggingface_hub.snapshot_download`: revision, token, cache_dir, endpoint,
    local_files_only. Its environment variables hold: HF_TOKEN, HF_HOME, HF_ENDPOINT,
    HF_HUB_OFFLINE.

    Raises `TokenizerNotFoundError`, which lists the attempts.
    """
    try:
        import huggingface_hub
        from huggingface_hub.errors import GatedRepoError, HFValidationError
    except ImportError as error:
        raise TokenizerNotFoundError(
            f"{name}: there is no such file or directory, and looking for a model of that name on "
            "a hub needs huggingface_hub: pip install huggingface_hub"
        ) from error
    try:
        folder = huggingface_hub.snapshot_download(
            name, allow_patterns=list(_FILES), ignore_patterns=["original/*"], **options
        )
    except HFValidationError as error:
        raise TokenizerNotFoundError(
            f"{name}: there is no such file or directory, and no model can have that name: {error}"
        ) from error
    except Exception as error:
        # Missing, gated and misspelt models, an unknown revision, no network, a full disk.
        hint = ""
        if isinstance(error, GatedRepoError):
            hint = ". The model is gated: ask for access on its page and set HF_TOKEN"
        raise TokenizerNotFoundError(
            f"{name}: there is no such file or directory, and no model of that name could be had: "
            f"{_tried(options)}: {type(error).__name__}: {_first_line(error)}{hint}"
        ) from error
    return Path(folder)


def _tried(options: Mapping[str, Any]) -> str:
    """Return a description of the places that were searched for a model."""
    from huggingface_hub import constants, get_token

    endpoint = options.get("endpoint") or constants.ENDPOINT
    cache = options.get("cache_dir") or constants.HF_HUB_CACHE
    offline = options.get("local_files_only") or constants.HF_HUB_OFFLINE
    has_token = bool(options.get("token") or get_token())
    where = (
        "not asked (offline)" if offline else f"with{'' if has_token else 'out'} a token (HF_TOKEN)"
    )
    revision = f", revision {options['revision']}" if options.get("revision") else ""
    return f"cache {os.fspath(cache)}, {endpoint} {where}{revision}"


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), "no message")
