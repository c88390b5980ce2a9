"""The functions of vLLM that ffwd wraps or calls, to be read again for a new version.

The tests compare the fingerprints with those of each supported version, and `ffwd doctor vllm` with
those of the installed one. So work on a new version begins with the list of what changed in it.
"""

from ffwd.adapters.shared.surface import Symbol, find, fingerprint
from ffwd.adapters.vllm import SUPPORTED_VERSIONS

_CONFIG = "vllm.config.structured_outputs"
_MANAGER = "vllm.v1.structured_output"
_SCHEDULER = "vllm.v1.core.sched"
_WORKER = "vllm.v1.worker.gpu"

SYMBOLS = (
    Symbol(
        _CONFIG,
        "StructuredOutputsConfig",
        "its backend gets another name",
        ("b55106583ec1", "b55106583ec1", "6afb0859f549"),
    ),
    Symbol(
        "vllm.sampling_params",
        "SamplingParams._validate_structured_outputs",
        "wrapped",
        ("48ac129e10b0", "83a8779edbdc", "83a8779edbdc"),
    ),
    Symbol(
        "vllm.v1.structured_output.request",
        "get_structured_output_key",
        "called",
        ("fb89b7318944", "fb89b7318944", "fb89b7318944"),
    ),
    Symbol(
        f"{_MANAGER}.utils",
        "strip_speculative_padding",
        "called",
        ("887d79b7172c", "887d79b7172c", "887d79b7172c"),
    ),
    Symbol(
        _MANAGER,
        "StructuredOutputManager.__init__",
        "wrapped",
        ("baf9f05a1ec1", "baf9f05a1ec1", "a1a9d7922c94"),
    ),
    Symbol(
        _MANAGER,
        "StructuredOutputManager.grammar_bitmask",
        "wrapped",
        ("f70defc0db19", "5028d471b9d2", "0642b47c4826"),
    ),
    Symbol(
        _MANAGER,
        "StructuredOutputManager.accept_tokens",
        "wrapped",
        ("7a7193de771f", "7fdc18978d41", "7fdc18978d41"),
    ),
    Symbol(
        _MANAGER,
        "StructuredOutputManager.validate_tokens",
        "wrapped for drafts",
        ("754eed1d10b5", "6f0b521e79ee", "6f0b521e79ee"),
    ),
    Symbol(
        _MANAGER,
        "StructuredOutputManager._get_constraint_bounds",
        "called",
        (None, "f0c42ec10101", "f0c42ec10101"),
    ),
    Symbol(
        _MANAGER,
        "StructuredOutputManager._get_constraint_start",
        "called",
        ("632158782683", None, None),
    ),
    Symbol(
        _MANAGER,
        "StructuredOutputManager._masked_reasoning_ends",
        "called",
        (None, None, "415e17e88b61"),
    ),
    Symbol(
        _MANAGER,
        "StructuredOutputManager.grammar_init",
        "compiles with the backend",
        ("7dc38e95cc1e", "7dc38e95cc1e", "12c7e7bee621"),
    ),
    Symbol(
        f"{_MANAGER}.backend_types",
        "StructuredOutputBackend",
        "base class",
        ("ae9372d08af5", "ae9372d08af5", "ae9372d08af5"),
    ),
    Symbol(
        f"{_MANAGER}.backend_types",
        "StructuredOutputGrammar",
        "base class",
        ("a35c0cf8853f", "a35c0cf8853f", "a35c0cf8853f"),
    ),
    Symbol(
        "vllm.config",
        "VllmConfig._get_v2_model_runner_unsupported_features",
        "wrapped for drafts",
        ("29d2ddf640a7", "6473d416f657", "8d7a6e77ea46"),
        for_drafts=True,
    ),
    Symbol(
        f"{_SCHEDULER}.scheduler",
        "Scheduler.get_grammar_bitmask",
        "wrapped for drafts",
        ("755ec1481c5d", "90b0175e73e6", "90b0175e73e6"),
        for_drafts=True,
    ),
    Symbol(
        f"{_SCHEDULER}.scheduler",
        "Scheduler.schedule",
        "wrapped for drafts",
        ("b2ceeea138fe", "b138189458a8", "e846fe10aa29"),
        for_drafts=True,
    ),
    Symbol(
        f"{_SCHEDULER}.scheduler",
        "Scheduler.update_draft_token_ids_in_output",
        "relied on for drafts",
        ("938655fd63d3", "938655fd63d3", "938655fd63d3"),
        for_drafts=True,
    ),
    Symbol(
        f"{_SCHEDULER}.async_scheduler",
        "AsyncScheduler._update_after_schedule",
        "relied on for drafts",
        ("caf860411b23", "caf860411b23", "caf860411b23"),
        for_drafts=True,
    ),
    Symbol(
        f"{_SCHEDULER}.output",
        "GrammarOutput",
        "base class for drafts",
        ("ff917439438a", "3f606face607", "3f606face607"),
        for_drafts=True,
    ),
    Symbol(
        "vllm.v1.engine.core",
        "EngineCore.step_with_batch_queue",
        "relied on for drafts",
        ("a113b847e73e", "c486b7cdd528", "c486b7cdd528"),
        for_drafts=True,
    ),
    Symbol(
        f"{_WORKER}.spec_decode",
        "init_speculator",
        "wrapped for drafts",
        ("ea340581a57b", "f13c1922fef4", "c889ee566dc7"),
        for_drafts=True,
    ),
    Symbol(
        f"{_WORKER}.spec_decode.speculator",
        "BaseSpeculator",
        "base class for drafts",
        ("e54f5805c5e2", "7ce8717abc11", "7ce8717abc11"),
        for_drafts=True,
    ),
    Symbol(
        f"{_WORKER}.model_runner",
        "GPUModelRunner.sample_tokens",
        "wrapped for drafts",
        ("68eb11dd8c7a", "0401236d956a", "3d51522b1eca"),
        for_drafts=True,
    ),
    Symbol(
        f"{_WORKER}.input_batch",
        "combine_sampled_and_draft_tokens",
        "relied on for drafts",
        ("c476989fcb44", "c476989fcb44", "c476989fcb44"),
        for_drafts=True,
    ),
    Symbol(
        f"{_WORKER}.structured_outputs",
        "grammar_invalid_drafts",
        "relied on for drafts",
        (None, "c657ac1b537a", "c657ac1b537a"),
        for_drafts=True,
    ),
    Symbol(
        "vllm.utils.torch_utils",
        "async_tensor_h2d",
        "called for drafts",
        ("e9c462b9b198", "c48a8d83078b", "e9c462b9b198"),
        for_drafts=True,
    ),
)


def check(version: tuple[int, int]) -> None:
    """Look for all that the backend needs of a supported minor version, as `(0, 33)`.

    Raises:
        ImportError: A module is missing.
        AttributeError: A function or class is missing.

    """
    place = SUPPORTED_VERSIONS.index(version)
    for symbol in SYMBOLS:
        if symbol.fingerprints[place] is not None and not symbol.for_drafts:
            find(symbol)


def changed(version: tuple[int, int]) -> list[Symbol]:
    """Return what differs in the installed vLLM from a supported minor version, as `(0, 33)`."""
    place = SUPPORTED_VERSIONS.index(version)
    return [symbol for symbol in SYMBOLS if fingerprint(symbol) != symbol.fingerprints[place]]
