"""One native call for the masks of all drafts of a step.

SGLang walks over the tree of each request's drafts in Python, with an accept, a fill and a rollback
for each node. If all grammars of a batch are ffwd's, `fill_trees` walks over all of them, without
the interpreter lock. Any other batch takes SGLang's own way.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any

import torch

from ffwd.adapters.sglang.grammar import (
    THREADS,
    FfwdGrammar,
    allocate_vocab_mask,
    observe_fill,
)
from ffwd.adapters.sglang.surface import TREES, changed
from ffwd.engine import fill_trees

_logger = logging.getLogger(__name__)


def extend_trees() -> None:
    """Replace SGLang's function for the masks of drafts, once.

    If its source is not the one that was tested, it stays, and a line of the log names it.
    """
    from sglang.srt.speculative import spec_utils

    if hasattr(spec_utils.generate_token_bitmask, "__wrapped__"):
        return
    differing = changed(TREES)
    if differing:
        _logger.warning(
            "drafts are walked over by SGLang itself, which is slower: %s is not as in the SGLang"
            " that ffwd supports",
            ", ".join(map(str, differing)),
        )
        return
    spec_utils.generate_token_bitmask = _in_one_call(spec_utils.generate_token_bitmask)


def _in_one_call(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def generate_token_bitmask(
        reqs: list[Any],
        retrieve_next_token_cpu: torch.Tensor,
        retrieve_next_sibling_cpu: torch.Tensor,
        draft_tokens_cpu: torch.Tensor,
        vocab_size: int,
    ) -> Any:
        trees = (draft_tokens_cpu, retrieve_next_token_cpu, retrieve_next_sibling_cpu)
        grammars = [req.grammar for req in reqs]
        used = [grammar for grammar in grammars if grammar is not None]
        if {*map(type, used)} != {FfwdGrammar}:
            return original(reqs, *trees[1:], trees[0], vocab_size)
        mask = allocate_vocab_mask(vocab_size, draft_tokens_cpu.numel())
        arrays = [tree.to(torch.int64).contiguous().numpy() for tree in trees]
        observe_fill(grammars, lambda: fill_trees(grammars, mask, *arrays, threads=THREADS))
        return mask, used[-1]

    return generate_token_bitmask
