"""The functions of SGLang that ffwd replaces, extends or calls, to be read again for a new version.

The tests compare the fingerprints with the supported version, and `ffwd doctor sglang` with the
installed one.
"""

from collections.abc import Iterable

from ffwd.adapters.shared.surface import Symbol, fingerprint

_BACKEND = "sglang.srt.constrained.base_grammar_backend"
_REASONER = "sglang.srt.constrained.reasoner_grammar_backend"
_SPECULATION = "sglang.srt.speculative.spec_utils"

ROWS = (
    Symbol(
        "sglang.srt.sampling.sampling_batch_info",
        "SamplingBatchInfo.update_regex_vocab_mask",
        "replaced",
        ("8d91d5655ff7",),
    ),
    Symbol(_BACKEND, "GrammarMask", "made", ("5648a6d934a4",)),
)
"""What the masks of a batch depend on."""

TREES = (
    Symbol(_SPECULATION, "generate_token_bitmask", "replaced", ("f87fdb4fc1f3",)),
    Symbol(_SPECULATION, "traverse_tree", "not called any more", ("5c758516fc31",)),
    Symbol(_SPECULATION, "build_grammar_vocab_mask", "calls what is replaced", ("6d8a1c0dbfd8",)),
)
"""What the masks of drafts depend on."""

ARRIVALS = (
    Symbol(
        "sglang.srt.constrained.grammar_manager",
        "GrammarManager.get_ready_grammar_requests",
        "called with another interval, and only what is ready",
        ("27dcbdc7bb67",),
    ),
)
"""What the wait for grammars depends on."""

WORKER = (
    Symbol(
        "sglang.srt.speculative.ngram_worker",
        "NGRAMWorker._prepare_draft_tokens",
        "extended",
        ("2c7847e1bd46",),
    ),
)
"""What forced drafts depend on. It is not in `SYMBOLS`: its module loads SGLang's scheduler."""

SYMBOLS = (
    *ROWS,
    *TREES,
    *ARRIVALS,
    Symbol(
        "sglang.srt.speculative.spec_registry", "CustomSpecAlgo", "base class", ("c788fc7b1285",)
    ),
    Symbol(
        "sglang.srt.arg_groups.speculative_hook", "_handle_ngram", "followed", ("dc02b8844e1e",)
    ),
    Symbol(_BACKEND, "BaseGrammarBackend", "base class", ("27b9853b42f1",)),
    Symbol(_BACKEND, "BaseGrammarObject", "base class", ("c9d86344b099",)),
    Symbol(_BACKEND, "GrammarRow", "read", ("e437f28bd16c",)),
    Symbol(_BACKEND, "register_grammar_backend", "called", ("ff25a9af1d0d",)),
    Symbol(_BACKEND, "register_vocab_mask_buffer", "called", ("ea6e38f3e447",)),
    Symbol(_REASONER, "ReasonerGrammarBackend", "wraps the backend", ("5541c8d4fe88",)),
    Symbol(_REASONER, "ReasonerGrammarObject", "wraps a grammar", ("b9d888c1b0c0",)),
)


def changed(symbols: Iterable[Symbol] = SYMBOLS) -> list[Symbol]:
    """Return what differs in the installed SGLang from the supported version."""
    return [symbol for symbol in symbols if fingerprint(symbol) != symbol.fingerprints[0]]
