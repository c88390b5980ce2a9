"""Imported first by modules that need torch: names the extra that installs it."""

try:
    import torch as torch
    import transformers as transformers
except ImportError as error:
    name = (error.name or "").partition(".")[0]
    if name not in ("torch", "transformers", "tokenizers"):
        raise
    raise ImportError(
        f"{name} is not installed: pip install 'ffwd[transformers]'", name=name
    ) from error
