"""Imported first by what needs torch and transformers: says what installs them."""

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
