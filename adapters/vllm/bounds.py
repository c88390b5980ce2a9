"""Bounds of the grammar among a request's drafts, in each supported version of vLLM.

Nothing of vLLM is imported here.
"""

from collections.abc import Sequence
from typing import Any


def grammar_bounds(manager: Any, request: Any, tokens: Sequence[int]) -> tuple[int, int]:
    """Return the first of some tokens that the grammar reads, and the first that it masks.

    They differ if reasoning ends with a token of the answer, which vLLM 0.31 does not know.

    Args:
        manager: A `StructuredOutputManager`.
        request: vLLM's.
        tokens: Drafts, without padding.

    """
    if knows_two_bounds(manager):
        start, constraint_start = manager._get_constraint_bounds(request, tokens)
    else:
        start = constraint_start = manager._get_constraint_start(request, tokens)
    return start, constraint_start


def knows_two_bounds(manager: Any) -> bool:
    """Return whether a manager is that of vLLM 0.32 or later."""
    return hasattr(manager, "_get_constraint_bounds")
