"""For adapters of inference engines: requests, and the bitmask rows of all requests of a step.

    request = EngineRequest(grammar, stop_token_ids, narrow=True)
    rows = StepRows(bitmask)
    rows.fill([request, ...], drafts, threads=8)
    request.accept_tokens("id", [sampled])

An engine differs from other callers in what it expects of `Matcher`: nothing is raised for a token
that cannot be accepted, or for a request that exceeds a limit. It calls once a step for its whole
batch, with the drafts of speculative decoding. `fill_rows` and `fill_trees` are for engines that
allocate a bitmask for each step; the latter for drafts that are trees.
"""

from ffwd._native import EngineRequest as EngineRequest
from ffwd._native import StepRows as StepRows
from ffwd._native import fill_rows as fill_rows
from ffwd._native import fill_trees as fill_trees
from ffwd._native import forced_table as forced_table
