"""The findings of `ffwd doctor`, and the checks that engines share."""

import os
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any, Literal

from ffwd import FfwdError
from ffwd.adapters.shared.surface import Symbol
from ffwd.adapters.shared.vocabulary import engine_vocabulary

Status = Literal["ok", "note", "bad"]


@dataclass(frozen=True)
class Finding:
    """One fact about an engine in this environment.

    Attributes:
        status: `ok`; `note` if something works otherwise than one may expect; `bad` if ffwd does
            not work there.
        topic: What it is about, in a word or two.
        text: The fact.
        advice: What to do about it; empty where nothing is to be done.

    """

    status: Status
    topic: str
    text: str
    advice: str = ""


def import_finding(module: str, supported: str) -> Finding | None:
    """Return the reason that an engine cannot be imported, or None.

    Args:
        module: The engine's package.
        supported: The versions that ffwd supports.

    """
    try:
        import_module(module)
    # Of a broken installation: libraries that are missing raise OSError, versions RuntimeError.
    except (ImportError, OSError, RuntimeError) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == module
        what = "is not installed" if absent else f"cannot be imported: {error}"
        return Finding("bad", "version", f"{module} {what}", f"ffwd supports {supported}")
    return None


def plugin_finding(group: str, *, allowed_by: str | None = None) -> Finding:
    """Say whether an engine finds ffwd's plugin.

    Args:
        group: The entry points that the engine loads.
        allowed_by: The environment variable with the names of the plugins to load.

    """
    found = metadata.entry_points(group=group, name="ffwd")
    if not found:
        return Finding(
            "bad",
            "plugin",
            f"no entry point ffwd in the group {group}",
            "install ffwd into this environment: a folder on PYTHONPATH has no entry points",
        )
    allowed = None if allowed_by is None else os.environ.get(allowed_by)
    if allowed is not None and "ffwd" not in allowed.split(","):
        return Finding(
            "bad",
            "plugin",
            f"{allowed_by}={allowed} leaves ffwd out",
            f"add ffwd to {allowed_by}, or unset it",
        )
    return Finding("ok", "plugin", f"found in the group {group}")


def tokenizer_findings(tokenizer: Any) -> list[Finding]:
    """Say whether ffwd reads a tokenizer, and whether it knows how the tokenizer writes a text."""
    try:
        vocabulary = engine_vocabulary(tokenizer)
    except (FfwdError, ValueError) as error:
        advice = "ffwd needs a token for every byte: docs/tokenizer.md"
        return [Finding("bad", "tokenizer", f"{type(error).__name__}: {error}", advice)]
    ends = ", ".join(map(str, vocabulary.eos_token_ids))
    read = Finding(
        "ok", "tokenizer", f"{vocabulary.vocab_size:,} tokens; end of the output: {ends}"
    )
    if vocabulary.bpe is not None and vocabulary.bpe.exact:
        return [read, Finding("ok", "forcing", "exact: forced tokens are the tokenizer's own")]
    return [
        read,
        Finding(
            "note",
            "forcing",
            "not exact: masks are not narrow, and few tokens are forced",
            "BPE tokenizers are exact: docs/canonical.md",
        ),
    ]


def source_findings(symbols: list[Symbol], release: str) -> list[Finding]:
    """Return the doctor's findings about the sources of an engine.

    Args:
        symbols: Those that differ from the release.
        release: What ffwd was tested with.

    """
    if not symbols:
        return [Finding("ok", "sources", f"what ffwd uses is as in {release}")]
    return [
        Finding(
            "note",
            "sources",
            f"{symbol} ({symbol.use}) is not as in {release}",
            "it may work: the tests of docs/engines.md tell",
        )
        for symbol in symbols
    ]
