"""One native call for what vLLM's manager does with grammars in every step.

vLLM fills a row at a time in Python. If all grammars of a batch are ffwd's, `StepRows.fill` fills
all rows, and walks over the drafts of all requests, without the interpreter lock. Any other batch
takes vLLM's own path.
"""

import functools
import logging
import os
import time
from collections.abc import Callable
from typing import Any

from vllm.v1.structured_output.utils import strip_speculative_padding

from ffwd.adapters.shared.metrics import mask_seconds
from ffwd.adapters.vllm.bounds import grammar_bounds
from ffwd.adapters.vllm.grammar import FfwdGrammar
from ffwd.engine import StepRows

# Asked once: finding out takes ten times as long as filling a row.
THREADS = os.cpu_count() or 1

_logger = logging.getLogger("vllm.plugins.ffwd")

Wrap = Callable[[type, str, Callable[[Callable[..., Any]], Callable[..., Any]]], None]


def extend_step(manager: type, wrap: Wrap) -> None:
    """Let `StructuredOutputManager` fill bitmasks and accept tokens natively.

    Args:
        manager: The class.
        wrap: Replaces one of its methods, once.

    """
    wrap(manager, "grammar_bitmask", _in_one_call)
    wrap(manager, "accept_tokens", _directly)


class _Bitmask:
    """The manager's bitmask, as an array that is filled natively.

    Args:
        manager: A `StructuredOutputManager`.

    """

    def __init__(self, manager: Any) -> None:
        config = manager.vllm_config
        self.drafts = config.num_speculative_tokens
        # vLLM 0.33 gives each request the rows of as many drafts as there may be, and versions
        # before it only those that it needs.
        self.stride = 1 + self.drafts if hasattr(manager, "_masked_reasoning_ends") else None
        if manager._grammar_bitmask is None:
            rows = config.scheduler_config.max_num_seqs * (1 + self.drafts)
            manager._grammar_bitmask = manager.backend.allocate_token_bitmask(rows)
        self.tensor = manager._grammar_bitmask
        self.array = self.tensor.numpy()
        self.rows = StepRows(self.array)
        self.seconds = mask_seconds()


def _in_one_call(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def grammar_bitmask(
        self: Any,
        requests: dict[str, Any],
        structured_output_request_ids: list[str],
        scheduled_spec_decode_tokens: dict[str, list[int]],
    ) -> Any:
        ids = structured_output_request_ids
        if not ids:
            return None
        structured = [requests[name].structured_output_request for name in ids]
        grammars = [request._grammar for request in structured]
        if not _are_ours(self, grammars):
            _forget(self)
            return original(self, requests, ids, scheduled_spec_decode_tokens)
        bitmask = getattr(self, "_ffwd_bitmask", None)
        if bitmask is None or bitmask.tensor is not self._grammar_bitmask:
            bitmask = self._ffwd_bitmask = _Bitmask(self)
        drafts = None
        if bitmask.drafts and scheduled_spec_decode_tokens:
            drafts = list(map(scheduled_spec_decode_tokens.get, ids))
        bounds = constraint_bounds(self, requests, ids, drafts)
        began = time.perf_counter()
        try:
            count, refused, rejected = bitmask.rows.fill(
                grammars, drafts, bounds, stride=bitmask.stride, threads=THREADS
            )
        except BaseException:
            _forget(self)
            raise
        if bitmask.seconds is not None:
            bitmask.seconds.observe(time.perf_counter() - began)
        for index in refused:
            _logger.error(
                "request %s is ended, its mask exceeds a limit: %s",
                ids[index],
                grammars[index].refused,
            )
        for index, token in rejected:
            _logger.error(
                "the grammar of request %s does not accept the draft %d", ids[index], token
            )
        return bitmask.array[:count]

    return grammar_bitmask


def _are_ours(manager: Any, grammars: list[Any]) -> bool:
    if manager.vllm_config.model_config.is_diffusion:
        return False
    return {*map(type, grammars)} == {FfwdGrammar}


def _forget(manager: Any) -> None:
    """Forget the contents of the rows: vLLM writes to them itself, or a call has failed."""
    manager._ffwd_bitmask = None


def constraint_bounds(
    manager: Any, requests: dict[str, Any], ids: list[str], drafts: list[Any] | None
) -> list[tuple[int, int, int, list[int]]]:
    """Return where the grammar holds among the drafts of requests that are still reasoning."""
    found: list[tuple[int, int, int, list[int]]] = []
    # Without a reasoner, the grammar holds from the start.
    if manager.reasoner_cls is None:
        return found
    for index, name in enumerate(ids):
        request = requests[name]
        if request.structured_output_request.reasoning_ended or manager.enable_in_reasoning:
            continue
        tokens = (drafts[index] if drafts else None) or []
        start, constraint_start = grammar_bounds(
            manager, request, strip_speculative_padding(tokens)
        )
        if constraint_start:
            masked = getattr(manager, "_masked_reasoning_ends", lambda _: ())(request)
            found.append((index, start, constraint_start, list(masked)))
    return found


def _directly(original: Callable[..., bool]) -> Callable[..., bool]:
    @functools.wraps(original)
    def accept_tokens(self: Any, request: Any, new_token_ids: list[int]) -> bool:
        structured = request.structured_output_request
        if structured is None or not new_token_ids:
            return True
        grammar = structured._grammar
        accepted: bool
        if type(grammar) is not FfwdGrammar:
            return original(self, request, new_token_ids)
        if not structured.reasoning_ended:
            accepted = original(self, request, new_token_ids)
            if not structured.reasoning_ended and request.is_finished():
                _tell_of_free_output(self, request)
            return accepted
        accepted = grammar.accept_tokens(request.request_id, new_token_ids)
        if not accepted and grammar.refused is not None:
            _logger.error("request %s is ended: %s", request.request_id, grammar.refused)
        return accepted

    return accept_tokens


def _tell_of_free_output(manager: Any, request: Any) -> None:
    """Warn, once, of an output that has ended before its grammar held."""
    if getattr(manager, "_ffwd_has_told", False):
        return
    manager._ffwd_has_told = True
    parser = manager.vllm_config.structured_outputs_config.reasoning_parser
    _logger.warning(
        "request %s ended without its grammar: the reasoning parser %r found no end of the"
        " reasoning in the prompt or the %d tokens of the output. vLLM asks it for plain"
        " completions, too. Send chats, put the end of the reasoning into the prompt, or allow more"
        " tokens; or start vLLM with enable_in_reasoning or without the parser. Later requests are"
        " not reported.",
        request.request_id,
        parser,
        request.num_output_tokens,
    )
