"""Continuous batching: a grammar of its own for each request of `transformers`' scheduler."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from transformers import LogitsProcessorList

from ffwd import Vocabulary, VocabularyError
from ffwd.adapters.transformers.errors import ContinuousBatchingError
from ffwd.adapters.transformers.rows import GrammarBatch, GrammarOrStart


def constrain_manager(manager: Any, vocabulary: Vocabulary) -> None:
    """Let the requests of a manager of continuous batching have a `grammar`.

    Call it between `init_continuous_batching` and `start`::

        manager = model.init_continuous_batching(
            continuous_batching_config=ContinuousBatchingConfig(
                use_async_batching=False, use_cuda_graph=False
            )
        )
        constrain_manager(manager, vocabulary)
        manager.start()
        manager.add_request(prompt_ids, grammar=grammar, max_new_tokens=200)

    `add_request` then takes `grammar`, a `CompiledGrammar` or the `Start` of a prompt of
    `ffwd.chat`; `canonical=True`, as for `GrammarLogitsProcessor`; and `complete=True`, which
    completes the output within the request's `max_new_tokens`. Requests without a grammar are
    unaffected. A request with an invalid grammar has the message in its output's `error`, and the
    other requests continue.

    The mask of a step depends on the tokens of the step before, and is filled between the two on
    the host. Features that run ahead of the host, or replay without it, are therefore unsupported.

    Args:
        manager: From `model.init_continuous_batching`, not started.
        vocabulary: The vocabulary of the grammars of all requests.

    Raises:
        ContinuousBatchingError: The manager was started or warmed up, or has asynchronous batching,
            CUDA graphs, compilation or tensor parallelism; or this release of transformers has no
            processors with arguments for each request.
        VocabularyError: The vocabulary is larger than the model's logits.
    """
    try:
        from transformers.generation.continuous_batching.cb_logits_processors import (
            ContinuousBatchingLogitsProcessorList,
        )

        from ffwd.adapters.transformers.continuous_processor import GrammarBatchProcessor
    except ImportError as error:
        raise ContinuousBatchingError(
            "this release of transformers",
            f"it has no logits processors with arguments for each request ({error}); 5.23 has them",
        ) from None
    _check_manager(manager)
    width = manager.model.config.get_text_config().vocab_size
    if vocabulary.vocab_size > width:
        raise VocabularyError(
            f"the vocabulary has {vocabulary.vocab_size} tokens, the model's logits only {width};"
            " build it with vocab_size= of this model's configuration"
        )
    before = manager.logit_processor
    if any(isinstance(entry, GrammarBatchProcessor) for entry in before.logits_processor):
        raise ContinuousBatchingError("constrain_manager", "it has been called for this manager")
    # The grammar comes first: processors that cut the distribution must see it masked.
    combined = ContinuousBatchingLogitsProcessorList(
        LogitsProcessorList([GrammarBatchProcessor(vocabulary), *before.logits_processor]),
        per_request_processors=False,  # They have been made.
        drop_unsupported_processors=False,  # They have been dropped.
    )
    combined.tensors_required = before.tensors_required + 1
    manager.logit_processor = combined


def constrained_generate_batch(
    model: Any,
    inputs: Sequence[Sequence[int]],
    grammar: GrammarOrStart | Sequence[GrammarOrStart],
    *,
    generation_config: Any = None,
    continuous_batching_config: Any = None,
    max_new_tokens: int | None = None,
    canonical: bool = False,
    complete: bool = False,
) -> dict[str, Any]:
    """Run `model.generate_batch` with a grammar for each prompt, or one for all.

    Args:
        model: A decoder-only model.
        inputs: The prompts, as token ids.
        grammar: One, or one for each prompt; or the `Start` of each prompt of `ffwd.chat`.
        generation_config: As for `generate_batch`.
        continuous_batching_config: As for `generate_batch`. Asynchronous batching and CUDA graphs
            are switched off where it leaves them open, and refused where it asks for them.
        max_new_tokens: As for `generate_batch`.
        canonical: Leave only tokens with which the tokenizer itself would have cut the text.
        complete: Leave only tokens after which a text can still end within its `max_new_tokens`.

    Returns:
        The outputs by request id, in the order of the prompts, as `generate_batch`. One that its
        grammar failed has the reason in `error`.

    Raises:
        ContinuousBatchingError: As `constrain_manager`; or the scheduler's thread has died, with
            its error.
        ValueError: There is not one grammar for each prompt.

    """
    batch = GrammarBatch(grammar)
    if not isinstance(grammar, GrammarOrStart) and len(grammar) != len(inputs):
        raise ValueError(f"{len(grammar)} grammars for {len(inputs)} prompts: give one for each")
    if not inputs:
        return {}
    manager = model.init_continuous_batching(
        generation_config=generation_config,
        continuous_batching_config=_step_by_step(continuous_batching_config),
    )
    constrain_manager(manager, batch.vocabulary)
    ends = batch.vocabulary.eos_token_ids
    manager.start()
    try:
        ids = [
            manager.add_request(
                list(prompt),
                max_new_tokens=max_new_tokens,
                eos_token_id=ends,
                grammar=row,
                canonical=canonical,
                complete=complete,
            )
            for prompt, row in zip(inputs, batch.of_rows(len(inputs)), strict=True)
        ]
        return _outputs(manager, ids)
    finally:
        manager.stop(block=True)
        manager.destroy()


def _outputs(manager: Any, ids: list[str]) -> dict[str, Any]:
    children = manager.num_return_sequences - 1
    expected = [
        name for one in ids for name in (*(f"{one}__child#{i}" for i in range(children)), one)
    ]
    found: dict[str, Any] = {}
    while len(found) < len(expected):
        output = manager.get_result(timeout=1)
        if output is not None:
            if output.is_finished():
                found[output.request_id] = output
        elif not manager.is_running():
            error = manager.background_thread_status.fatal_error
            raise ContinuousBatchingError(
                "this batch", f"the scheduler's thread has ended: {error}"
            ) from error
    return {name: found[name] for name in expected}


def _step_by_step(config: Any) -> Any:
    """Return the configuration, with unset features that grammars do not support switched off."""
    from transformers import ContinuousBatchingConfig

    made = ContinuousBatchingConfig() if config is None else copy(config)
    if made.use_async_batching is None:
        made.use_async_batching = False
    if made.use_cuda_graph is None:
        made.use_cuda_graph = False
    return made


def _check_manager(manager: Any) -> None:
    """Refuse by name the features that grammars do not support."""
    if manager.is_running() or manager.batch_processor is not None:
        raise ContinuousBatchingError(
            "a manager that has been started or warmed up",
            "call constrain_manager between init_continuous_batching and start, after"
            " destroy_cached_continuous_batching_manager where one is kept",
        )
    config = manager.continuous_batching_config
    if config.use_async_batching:
        raise ContinuousBatchingError(
            "use_async_batching",
            "a step is prepared before the tokens of the one before are known; set it to False",
        )
    if any(config.cuda_graph_booleans):
        raise ContinuousBatchingError(
            "use_cuda_graph",
            "a graph replays the masks that it was captured with; set it to False",
        )
    if config.varlen_compile_config is not None or config.decode_compile_config is not None:
        raise ContinuousBatchingError(
            "varlen_compile_config and decode_compile_config",
            "masks are filled by the host; leave out the compilation",
        )
    if manager.distributed_helper.tp_size > 1:
        raise ContinuousBatchingError(
            "tensor parallelism", "requests are sent to other processes, and grammars cannot be"
        )
