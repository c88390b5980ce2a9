"""Deprecated: `ffwd.adapters.logits` masks logits with Triton."""

from ffwd._deprecated import moved_names

__getattr__ = moved_names(
    __name__,
    "ffwd.adapters.logits.triton_bitmask",
    {"mask_logits": "ffwd.adapters.logits.apply_token_bitmask_inplace(…, backend='triton')"},
)
