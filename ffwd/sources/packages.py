"""The extra that installs a missing package."""

from __future__ import annotations

EXTRAS = {
    "anywidget": "notebook",
    "jinja2": "chat",
    "jsonschema": "chat",
    "torch": "transformers",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "tiktoken": "tokenizers",
    "sentencepiece": "tokenizers",
    "mistral_common": "tokenizers",
    "rich": "cli",
}
"""The extra of each package that is imported where it is used."""


def missing_package(error: ImportError) -> str | None:
    """Return a message with the command that installs a package; None for another error."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    message = str(error)
    if "pip install" not in message:
        message = f"{package} is not installed: pip install 'ffwd[{EXTRAS[package]}]'"
    return message
