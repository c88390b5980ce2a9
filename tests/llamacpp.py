"""Vocabularies and chat templates of real models, from llama-cpp-python's source distribution.

`make vocabularies` fetches and unpacks it; the wheel does not carry them.
"""

from pathlib import Path

_FOLDER = Path(__file__).parents[1] / "build" / "llama-cpp-python" / "models"


def models_folder() -> Path:
    """The folder with `ggml-vocab-*.gguf`, some with `.inp` and `.out`, and `templates/`."""
    if not (_FOLDER / "templates").is_dir():
        raise FileNotFoundError(f"{_FOLDER} is missing: make vocabularies fetches it")
    return _FOLDER


def vocabularies() -> list[Path]:
    """The GGUF files, which have vocabularies only."""
    return sorted(models_folder().glob("ggml-vocab-*.gguf"))


def templates() -> list[Path]:
    """The Jinja templates."""
    return sorted((models_folder() / "templates").glob("*.jinja"))
