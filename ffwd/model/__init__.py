"""The bundled model: a very small Llama with its own tokenizer, for demonstrations and tests.

`path()` is a folder that transformers, vLLM and `ffwd.tokenizer` can read. Its training texts are
in `ffwd.model.texts`; `README.md` in the folder is its model card.
"""

from pathlib import Path


def path() -> Path:
    """Return the folder with `config.json`, `model.safetensors` and `tokenizer.json`."""
    return Path(__file__).resolve().parent
