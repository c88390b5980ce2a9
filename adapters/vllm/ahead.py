"""Forced drafts on vLLM's model runner V2: what the engine core sends to the workers.

With asynchronous scheduling, vLLM launches a pass before it knows the token sampled in the pass
before, and its worker proposes the drafts. So with each bitmask the engine core sends a table: if
this row's sample is that token, this run of tokens is forced. The worker chooses on the device
(`splice.py`); vLLM does the rest, as with every drafter.

vLLM's scheduler plans as many placeholders as there may be drafts. Without a drafter they are left
out where no running request has an entry in its last table.
"""

import functools
import logging
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.output import GrammarOutput
from vllm.v1.core.sched.scheduler import Scheduler

from ffwd.adapters.vllm.drafts import draft_limit
from ffwd.adapters.vllm.grammar import FfwdGrammar
from ffwd.adapters.vllm.splice import ForcedGrammarOutput, splice_refusal
from ffwd.adapters.vllm.step import Wrap, constraint_bounds
from ffwd.engine import forced_table

MAX_RUN = 32
"""The most forced tokens of an entry."""

_logger = logging.getLogger("vllm.plugins.ffwd")


def extend_scheduler(wrap: Wrap) -> None:
    """Let vLLM's scheduler send tables, and plan drafts only where there may be some.

    Args:
        wrap: Replaces a method of a class, once.

    """
    wrap(Scheduler, "get_grammar_bitmask", _with_table)
    wrap(Scheduler, "schedule", _with_placeholders)


class Tables:
    """The tables of one scheduler.

    Args:
        scheduler: vLLM's.

    """

    def __init__(self, scheduler: Any) -> None:
        config = scheduler.vllm_config
        refusal = splice_refusal(config)
        if refusal:
            _logger.warning("forced tokens are not among the drafts: %s", refusal)
        self._drafts = config.num_speculative_tokens
        self.max_run = min(self._drafts, MAX_RUN) if refusal is None else 0
        self._manager = scheduler.structured_output_manager
        # A drafter's own drafts are as good as forced ones.
        is_alone = draft_limit(config) > 0 and isinstance(scheduler, AsyncScheduler)
        self.plans_drafts = self.max_run > 0 and is_alone
        # The requests that had entries in the table of their last step.
        self._forcing: set[str] = set()

    def table(self, scheduler: Any, scheduled: Any, ids: list[str]) -> Any:
        """Return the table of a step; None if a request's grammar is not ffwd's."""
        requests = [scheduler.requests[name] for name in ids]
        grammars = [request.structured_output_request.grammar for request in requests]
        if {*map(type, grammars)} != {FfwdGrammar}:
            return None
        drafts = None
        if scheduled.scheduled_spec_decode_tokens:
            drafts = list(map(scheduled.scheduled_spec_decode_tokens.get, ids))
        bounds = constraint_bounds(self._manager, scheduler.requests, ids, drafts)
        # vLLM excludes end tokens after the mask. Nothing would be left.
        held_back = [
            at
            for at, request in enumerate(requests)
            if request.sampling_params.min_tokens > request.num_output_tokens
        ]
        return forced_table(grammars, self.max_run, drafts, bounds, held_back)

    def remember(self, ids: list[str], table: Any) -> None:
        """Note which requests have entries."""
        self._forcing.difference_update(ids)
        if table is not None:
            self._forcing.update(ids[at] for at in np.unique(table[:, 0]).tolist())

    def plan(self, scheduler: Any) -> None:
        """Leave out the drafts of a step for which nothing is known to be forced.

        All requests of a batch have as many drafts, since vLLM captures whole graphs for that.
        """
        running = scheduler.running
        self._forcing.intersection_update([request.request_id for request in running])
        if not self._forcing:
            for request in running:
                request.spec_token_ids = []


def _tables(scheduler: Any) -> Tables:
    tables = getattr(scheduler, "_ffwd_tables", None)
    if tables is None:
        tables = scheduler._ffwd_tables = Tables(scheduler)
    return tables


def _with_table(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_grammar_bitmask(self: Any, scheduler_output: Any) -> Any:
        output = original(self, scheduler_output)
        tables = _tables(self)
        if not tables.max_run or output is None:
            return output
        ids = output.structured_output_request_ids
        table = tables.table(self, scheduler_output, ids)
        if tables.plans_drafts:
            tables.remember(ids, table)
        if table is None or not len(table):
            return output
        known = {field.name: getattr(output, field.name) for field in fields(GrammarOutput)}
        return ForcedGrammarOutput(**known, forced=table)

    return get_grammar_bitmask


def _with_placeholders(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def schedule(self: Any, *arguments: Any, **named: Any) -> Any:
        tables = _tables(self)
        if tables.plans_drafts:
            tables.plan(self)
        return original(self, *arguments, **named)

    return schedule
