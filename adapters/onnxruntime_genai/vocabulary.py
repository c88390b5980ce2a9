"""The vocabulary of a model's folder."""

import json
import os
from pathlib import Path

import ffwd.tokenizer
from ffwd import Vocabulary, VocabularyError


def vocabulary_of(folder: str | os.PathLike[str]) -> Vocabulary:
    """Return the vocabulary for the grammars of a model.

    Args:
        folder: The folder of the model, with `genai_config.json` and its tokenizer's files. ONNX
            Runtime GenAI does not tell the tokens of a loaded model.

    Raises:
        VocabularyError: A file is missing or in another form, or ffwd cannot read the tokenizer.

    """
    path = Path(folder) / "genai_config.json"
    try:
        model = json.loads(path.read_text(encoding="utf-8"))["model"]
        width, ends = int(model["vocab_size"]), model["eos_token_id"]
        tokens = [int(end) for end in (ends if isinstance(ends, list) else [ends])]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VocabularyError(
            f"{path} does not tell the model's vocab_size and eos_token_id: {error!r}"
        ) from error
    loaded = ffwd.tokenizer.load(Path(folder))
    return loaded.vocabulary(vocab_size=width, eos_token_ids=tokens)
