"""Fast-forward in SGLang: forced tokens as drafts, beside those of its n-gram worker.

    python -m sglang.launch_server --model-path MODEL --grammar-backend ffwd \\
        --speculative-algorithm FFWD --speculative-num-draft-tokens 12

Drafts are verified in one forward pass together with the token before them, so forced tokens need
no pass of their own. SGLang drafts in the scheduler's process, after it has accepted a step's
tokens, so drafts know the last token. Forced tokens stand first among them, then come those of the
n-gram worker that go on after them. Other requests have the n-gram worker's.

This module is loaded in every process of SGLang, `drafts` only where a worker is made.
"""

from typing import Any

from sglang.srt.speculative.spec_info import SpeculativeAlgorithm
from sglang.srt.speculative.spec_registry import CustomSpecAlgo, get_spec

from ffwd import FfwdError
from ffwd.adapters.sglang import ALGORITHM_NAME, BACKEND_NAME, SUPPORTED_VERSION
from ffwd.adapters.sglang.surface import WORKER, changed

DRAFT_TOKENS = 12
"""As many as SGLang's n-gram worker has, the last accepted token included."""

RUNNING_REQUESTS = 48
"""The most requests at once by default, as with SGLang's n-gram worker."""


class ForcedDraftsError(FfwdError):
    """Arguments of SGLang with which forced tokens cannot be drafts; the text says what can."""


class ForcedDrafts(CustomSpecAlgo):  # type: ignore[misc]
    """The algorithm `FFWD`; for SGLang it is n-grams, but for its name."""

    def is_ngram(self) -> bool:
        """Return True: the trees of drafts, and their graphs, are those of n-grams."""
        return True

    def has_draft_kv(self) -> bool:
        """Return False: there is no draft model."""
        return False

    def handle_server_args(self, server_args: Any) -> None:
        """Set what SGLang sets for n-grams, and refuse what it refuses.

        Raises:
            ForcedDraftsError: Another grammar backend, device or kind of parallelism is asked for.

        """
        args = server_args
        if args.grammar_backend != BACKEND_NAME:
            raise ForcedDraftsError(
                f"--speculative-algorithm {ALGORITHM_NAME} drafts what ffwd's grammars force, and"
                f" the backend is {args.grammar_backend!r}: add --grammar-backend {BACKEND_NAME}"
            )
        if args.device not in ("cuda", "cpu", "xpu"):
            raise ForcedDraftsError(
                f"SGLang's n-gram worker, which {ALGORITHM_NAME} extends, does not run on"
                f" {args.device!r}: leave --speculative-algorithm out"
            )
        if args.enable_dp_attention:
            raise ForcedDraftsError(
                f"SGLang's n-gram worker, which {ALGORITHM_NAME} extends, does not support"
                " --enable-dp-attention: leave it or --speculative-algorithm out"
            )
        if args.device == "cpu":
            args.disable_overlap_schedule = True
        if args.max_running_requests is None:
            args.max_running_requests = RUNNING_REQUESTS
        if args.speculative_num_draft_tokens is None:
            args.speculative_num_draft_tokens = DRAFT_TOKENS
        breadth = args.speculative_ngram_max_bfs_breadth
        if breadth > 1 and (args.page_size or 1) > 1 and args.attention_backend != "flashinfer":
            raise ForcedDraftsError(
                "trees of drafts need --page-size 1 or --attention-backend flashinfer: set one,"
                " or --speculative-ngram-max-bfs-breadth 1"
            )
        budget = args.speculative_ngram_external_sam_budget
        if args.speculative_ngram_external_corpus_path is not None and not (
            0 < budget < args.speculative_num_draft_tokens
            and args.speculative_ngram_external_corpus_max_tokens > 0
        ):
            raise ForcedDraftsError(
                "an external corpus needs --speculative-ngram-external-sam-budget from 1 to"
                f" {args.speculative_num_draft_tokens - 1}, less than the draft tokens, and"
                " --speculative-ngram-external-corpus-max-tokens above 0"
            )
        args.speculative_eagle_topk = breadth
        if args.speculative_num_steps is None:
            args.speculative_num_steps = args.speculative_num_draft_tokens // breadth
        args.enable_mixed_chunk = False


def create_worker(server_args: Any) -> type:
    """Return the class of the worker, which SGLang makes in the process of each scheduler.

    Raises:
        ForcedDraftsError: SGLang's worker is not the one that was tested.

    """
    del server_args
    from ffwd.adapters.sglang.drafts import ForcedDraftsWorker

    for symbol in changed(WORKER):
        raise ForcedDraftsError(
            f"--speculative-algorithm {ALGORITHM_NAME} extends {symbol}, which is not as in SGLang"
            f" {SUPPORTED_VERSION}: install that, or choose another algorithm"
        )
    return ForcedDraftsWorker


def register_algorithm() -> None:
    """Make `FFWD` a speculative algorithm; repeated calls do nothing."""
    if get_spec(ALGORITHM_NAME) is None:
        register = SpeculativeAlgorithm.register
        register(ALGORITHM_NAME, supports_overlap=True, spec_class=ForcedDrafts)(create_worker)
