"""The model in the box: a very small Llama with its own tokenizer, for demonstrations and tests.

`path()` is a folder as transformers, vLLM and `ffwd.tokenizer` read them. What it was trained on is
in `ffwd.model.texts`; `README.md` in the folder is its model card.
"""

from pathlib import Path


def path() -> Path:
    """The folder with `config.json`, `model.safetensors` and `tokenizer.json`."""
    return Path(__file__).resolve().parent
