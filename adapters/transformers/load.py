"""A model of transformers from a directory, with its tokenizer as ffwd reads it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

import ffwd.tokenizer
from ffwd import Vocabulary
from ffwd.adapters.transformers.errors import ModelError
from ffwd.adapters.transformers.fit import misfit, model_width
from ffwd.tokenizer import Tokenizer

_NEEDED = (
    "It takes the directory of a model of transformers: config.json, the weights (.safetensors) "
    "and the tokenizer"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalModel:
    """A model and its tokenizer, which fit each other.

    Attributes:
        model: The model, on its device, ready to generate.
        tokenizer: Its tokenizer.
        width: How many tokens the model gives logits for.
        max_length: How many tokens it was made for; None where it does not say.

    """

    model: Any
    tokenizer: Tokenizer
    width: int
    max_length: int | None

    def vocabulary(self, eos_token_ids: tuple[int, ...] = ()) -> Vocabulary:
        """Return the vocabulary for grammars, with `eos_token_ids` and the files' end tokens."""
        ends = {*self.tokenizer.eos_token_ids, *eos_token_ids}
        return self.tokenizer.vocabulary(
            vocab_size=self.width, eos_token_ids=sorted(ends) if ends else None
        )


def load_local(
    path: str | Path,
    *,
    device: str = "auto",
    dtype: str = "auto",
    chat_template: str | Path | None = None,
) -> LocalModel:
    """Load a model from a directory. Nothing is downloaded.

    Args:
        path: The directory: weights, configuration, tokenizer.
        device: As torch names it; "auto" for an accelerator where there is one.
        dtype: As torch names it; "auto" for what the weights are in.
        chat_template: A `.jinja` file instead of the tokenizer's own template.

    Raises:
        ModelError: The directory is no model, cannot be loaded, or its tokenizer is that of another
            model.
        VocabularyError: Its tokenizer cannot be read.

    """
    folder = Path(path)
    if not (folder / "config.json").is_file():
        what = "is no directory" if not folder.is_dir() else "has no config.json"
        raise ModelError(
            f"{folder} {what}. {_NEEDED}; `hf download NAME --local-dir {folder}` makes one, and "
            "python -c 'import ffwd.model; print(ffwd.model.path())' says where one is that comes "
            "with ffwd"
        )
    tokenizer = ffwd.tokenizer.load(
        folder, chat_template=None if chat_template is None else str(chat_template)
    )
    kind: Any = dtype if dtype == "auto" else getattr(torch, dtype, None)
    if kind != "auto" and not isinstance(kind, torch.dtype):
        raise ModelError(f"torch has no dtype {dtype!r}: give float32, bfloat16 or float16")
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        # Without it, transformers asks at the terminal whether to run a model's own code.
        model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=kind, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # whatever files of others make their readers raise
        raise ModelError(
            f"the model in {folder} cannot be loaded: {error}. {_NEEDED}; a file may be missing or "
            "cut off, so fetch the directory again, or load it with "
            "AutoModelForCausalLM.from_pretrained to see the whole error"
        ) from error
    try:
        model = model.to(device).eval()
    except (RuntimeError, AssertionError) as error:
        raise ModelError(
            f"the model in {folder} does not go onto the device {device!r}: {error}. Give another "
            'one, such as "cpu", or less precise weights with dtype="bfloat16"'
        ) from error
    if (reason := misfit(model, tokenizer)) is not None:
        raise ModelError(f"{folder}: {reason}")
    config = model.config.get_text_config(decoder=True)
    return LocalModel(
        model=model,
        tokenizer=tokenizer,
        width=model_width(model),
        max_length=getattr(config, "max_position_embeddings", None),
    )
