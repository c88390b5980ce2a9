"""Bitmasks onto logits, wherever torch has them: the processor's memory or an accelerator's.

For logits on the processor this is `ffwd.apply_token_bitmask_inplace`. On an accelerator that
Triton compiles for, it is a kernel of ours; on others, torch's own operations.
"""

from ffwd.adapters.logits.apply import (
    Backend,
    apply_token_bitmask_inplace,
    default_backend,
    to_device,
)
from ffwd.adapters.logits.staging import StagedBitmask

__all__ = [
    "Backend",
    "StagedBitmask",
    "apply_token_bitmask_inplace",
    "default_backend",
    "to_device",
]
