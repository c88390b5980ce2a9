"""Fast-forward decoding: a decoding loop for `model.generate(custom_generate=...)`."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessorList, StoppingCriteriaList
from transformers.generation import logits_process
from transformers.generation.streamers import BaseStreamer
from transformers.generation.utils import GenerateDecoderOnlyOutput

from ffwd.adapters.logits import to_device
from ffwd.adapters.transformers.errors import NoTokenLeftError, UnsupportedGenerationError
from ffwd.adapters.transformers.fast_forward import FastForward, ForcedRows, TokenStops
from ffwd.adapters.transformers.mask import ScoreMask
from ffwd.adapters.transformers.masses import Masses, log_total
from ffwd.adapters.transformers.model import CACHE, ChunkedModel
from ffwd.adapters.transformers.processor import GrammarLogitsProcessor
from ffwd.adapters.transformers.report import GenerationReport, GenerationStats
from ffwd.adapters.transformers.rows import GrammarBatch, GrammarOrStart
from ffwd.chat import Start
from ffwd.view import Recorder

# `generate()` puts these after the processors of the caller. They cut the distribution, so they
# must see it masked.
_SAMPLING_WARPERS = (
    logits_process.TemperatureLogitsWarper,
    logits_process.TopHLogitsWarper,
    logits_process.TopKLogitsWarper,
    logits_process.TopPLogitsWarper,
    logits_process.MinPLogitsWarper,
    logits_process.TypicalLogitsWarper,
    logits_process.EpsilonLogitsWarper,
    logits_process.EtaLogitsWarper,
    logits_process.LogitNormalization,
)

# In place of a token: every allowed one has the score -inf; the scores are no numbers.
_LOST, _NOT_A_NUMBER = -1, -2


def fast_forward_generate(
    model: Any,
    input_ids: torch.Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: Any,
    *,
    grammar: GrammarOrStart | Sequence[GrammarOrStart] | None = None,
    fast_forward: FastForward | None = None,
    canonical: bool = False,
    complete: bool = False,
    token_streamer: BaseStreamer | None = None,
    report: GenerationReport | None = None,
    **model_kwargs: Any,
) -> GenerateDecoderOnlyOutput | torch.Tensor:
    """Decode under a grammar; forced tokens are part of the next forward pass.

    Pass it to `generate`, which prepares the arguments that are not keyword-only::

        model.generate(**inputs, custom_generate=fast_forward_generate, grammar=grammar)

    It supports greedy decoding and sampling with the options of `generate`, in batches, on a
    dynamic KV cache. The model chooses only where the grammar allows several tokens. Forced text is
    tokenized as the tokenizer does. A model under masks alone may tokenize it differently, so token
    ids can differ from those of `GrammarLogitsProcessor` alone. The text is the same if the model
    itself prefers its tokenizer's tokens.

    Args:
        model: A decoder-only model.
        input_ids: The prompts [rows, length], padded on the left.
        logits_processor: As `generate` prepares them; the mask comes before sampling's warpers.
        stopping_criteria: As `generate` prepares them.
        generation_config: As `generate` prepares it.
        **model_kwargs: As `generate` prepares them; the KV cache is one of them.
        grammar: One for all prompts, or one for each prompt; or the `Start` of each prompt of
            `ffwd.chat`, with its `prompt_ids` as the input.
        fast_forward: The options of forcing; None for the defaults.
        canonical: Allow only tokens that keep the text, from the prompt on, a tokenization of the
            tokenizer itself; see `CompiledGrammar.matcher`.
        complete: Allow only tokens after which the text can still end within the `max_new_tokens`
            (or `max_length`) of `generate`, so that no text is truncated.
        token_streamer: Receives the prompt, then every token once and separately, then the end; one
            row only. (`generate` passes no `streamer=` to a `custom_generate` function.)
        report: Filled with counters, also when an error is raised.

    Returns:
        As `generate`: prompt and generated ids [rows, longest], padded on the right.

    Raises:
        UnsupportedGenerationError: For an unsupported option: beam search, assisted decoding by
            prompt lookup, guidance, watermarks, scores or attentions in the output, no or a static
            cache, encoder-decoder models. (`generate` silently drops `assistant_model`.)
        NoTokenLeftError: If other logits processors exclude every token that the grammar allows.
        VocabularyError: If the vocabulary is larger than the model's logits, or `canonical` is set
            and it has no exact `Bpe`.
        BudgetError: `complete` is set, and no accepted output ends within `max_new_tokens`.

    Note:
        Stopping criteria are called after every token, forced ones included, with the ids of that
        one row. A row also stops when its matcher has accepted an end token. In a batch, logits
        processors are called once for each distinct length among the rows, with the ids of all rows
        truncated to that length. `stop_strings` needs `StopStringCriteria` in `stopping_criteria=`,
        since `generate` does not pass on `tokenizer=`.
    """
    if grammar is None:
        raise ValueError("fast_forward_generate needs grammar=")
    check_options(model, logits_processor, generation_config)
    count = input_ids.shape[0]
    if token_streamer is not None and count > 1:
        raise UnsupportedGenerationError("token_streamer", f"{count} rows, streamers take one")
    batch = GrammarBatch(grammar)
    pad_token = pad_token_of(generation_config, batch)
    chunked = ChunkedModel(model, input_ids, model_kwargs, pad_token=pad_token)
    grammars = batch.of_rows(count)
    recorders = None
    if report is not None and report.record:
        recorders = [
            _recorder(one, ids, pad_token, report.title)
            for one, ids in zip(grammars, input_ids.tolist(), strict=True)
        ]
    rows = ForcedRows(
        grammars,
        input_ids,
        vocabulary=batch.vocabulary,
        stops=TokenStops(stopping_criteria, input_ids.device),
        options=fast_forward or FastForward(),
        canonical=canonical,
        max_tokens=most_tokens(generation_config, input_ids) if complete else None,
        pad_token=pad_token,
        trace=report.tokens if report is not None and report.trace else None,
        recorders=recorders,
        masses=Masses(count) if report is not None and report.masses else None,
    )
    if report is not None:
        report.tokens.clear()
        report.recordings.clear()
        report.log_masses.clear()
    rows.mark_prompt_in_cache(chunked.cached)
    try:
        _decode(
            chunked,
            rows,
            _insert_mask(logits_processor, rows.mask),
            do_sample=bool(generation_config.do_sample),
            streamer=token_streamer,
        )
    finally:
        if report is not None:
            report.stats = GenerationStats(
                forward_passes=chunked.forward_passes,
                tokens=rows.tokens,
                forced_tokens=rows.forced_tokens,
                masks=rows.masks,
                mask_nanoseconds=rows.nanoseconds,
            )
            report.log_masses += [] if rows.masses is None else map(tuple, rows.masses.rows)
            for row, recorder in enumerate(recorders or ()):
                if rows.masses is not None:
                    recorder.weighed(rows.masses.rows[row])
                report.recordings.append(recorder.recording())
    sequences = rows.sequences()
    if generation_config.return_dict_in_generate:
        # The annotation of transformers is the class of an old tensor type.
        typed: Any = sequences
        return GenerateDecoderOnlyOutput(sequences=typed, **{CACHE: chunked.cache})
    return sequences


def _decode(
    chunked: ChunkedModel,
    rows: ForcedRows,
    processors: LogitsProcessorList,
    *,
    do_sample: bool,
    streamer: Any,
) -> None:
    if streamer is not None:
        streamer.put(rows.ids(rows.length(0)).cpu())
    appended = rows.advance({})
    while True:
        if streamer is not None:
            for token in appended[0]:
                streamer.put(torch.tensor([token]))
        active = rows.active
        unscored = rows.unscored()
        if not active and not any(unscored):
            break
        logits = _next_logits(chunked, rows, unscored)
        if not active:
            break
        scores, lost = _process(logits, rows, active, processors)
        rows.note_scores(active, logits, scores)
        chosen = choose(scores, lost, do_sample=do_sample)
        if _LOST in chosen:
            raise NoTokenLeftError(row=active[chosen.index(_LOST)])
        if _NOT_A_NUMBER in chosen:
            row = active[chosen.index(_NOT_A_NUMBER)]
            raise RuntimeError(f"the model's scores of row {row} have NaN or infinity")
        appended = rows.advance(dict(zip(active, chosen, strict=True)))
    if streamer is not None:
        streamer.end()


def _next_logits(
    chunked: ChunkedModel, rows: ForcedRows, unscored: list[list[int]]
) -> torch.Tensor:
    """Read the pending tokens; return the logits [rows, width] after them, and note masses."""
    if rows.masses is None:
        return chunked.logits(rows.take_pending())
    kept = chunked.last_logits(rows.take_pending(), 1 + max(map(len, unscored)))
    rows.masses.add_forced(kept, unscored)
    return chunked.float32(kept[:, -1])


def choose(scores: torch.Tensor, lost: torch.Tensor, *, do_sample: bool) -> list[int]:
    """Return the next token of each row, or why it has none.

    The device is asked once, for everything: each question would wait until it is done.
    """
    if do_sample:
        probabilities = torch.softmax(scores, dim=-1)
        # As multinomial() draws, which asks the device whether these are probabilities.
        shares = probabilities / torch.empty_like(probabilities).exponential_(1)
        chosen = torch.argmax(shares, dim=-1)
        of_chosen = shares.gather(1, chosen.unsqueeze(1)).squeeze(1)
        chosen = torch.where(torch.isnan(of_chosen), _NOT_A_NUMBER, chosen)
    else:
        chosen = torch.argmax(scores, dim=-1)
    found: list[int] = torch.where(lost, _LOST, chosen).tolist()
    return found


def _process(
    logits: torch.Tensor, rows: ForcedRows, active: list[int], processors: LogitsProcessorList
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scores of the active rows [active, width], and which have no token left [active].

    Processors may count tokens, so a row is shown at its own length. The mask does not. Masses are
    those of the model's own distribution, before the processors.
    """
    total = None if rows.masses is None else log_total(logits)
    if len(processors) == 1:
        masked = rows.mask.apply(logits, in_place=not rows.records)
        rows.note_masses(active, total, masked)
        lost = rows.mask.lost(masked)
        if len(active) == len(logits):
            return masked, lost
        index = to_device(torch.tensor(active), logits.device)
        return masked[index], lost[index]
    if total is not None:
        rows.note_masses(active, total, rows.mask.apply(logits))
    scores = torch.empty((len(active), logits.shape[1]), dtype=logits.dtype, device=logits.device)
    # Some releases of transformers annotate processors with the classes of an old tensor type.
    untyped: Any = logits
    for length in sorted({rows.length(row) for row in active}):
        ids: Any = rows.ids(length)
        processed = processors(ids, untyped)
        for place, row in enumerate(active):
            if rows.length(row) == length:
                scores[place] = processed[row]
    # NaN is no missing token: it is the model's fault.
    return scores, scores.amax(dim=-1) == -torch.inf


class _ApplyMask(logits_process.LogitsProcessor):
    """The grammar's place in the list of processors."""

    def __init__(self, mask: ScoreMask) -> None:
        self._mask = mask

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return self._mask.apply(scores)


def _insert_mask(processors: LogitsProcessorList, mask: ScoreMask) -> LogitsProcessorList:
    warpers = (i for i, entry in enumerate(processors) if isinstance(entry, _SAMPLING_WARPERS))
    place = next(warpers, len(processors))
    return LogitsProcessorList([*processors[:place], _ApplyMask(mask), *processors[place:]])


def _recorder(
    grammar: GrammarOrStart, prompt_ids: list[int], pad_token: int, title: str
) -> Recorder:
    begin = next((i for i, token in enumerate(prompt_ids) if token != pad_token), len(prompt_ids))
    taken_back = grammar.taken_back if isinstance(grammar, Start) else ()
    return Recorder(
        grammar.vocabulary, title=title, prompt_ids=prompt_ids[begin:], taken_back=taken_back
    )


def most_tokens(generation_config: Any, input_ids: torch.Tensor) -> int | None:
    """Return how many tokens a row may have."""
    # `generate` has made one of `max_new_tokens` and `max_length`.
    longest = generation_config.max_length
    return None if longest is None else max(int(longest) - input_ids.shape[1], 0)


def pad_token_of(generation_config: Any, batch: GrammarBatch) -> int:
    """Return the id that fills ended rows."""
    pad_token = generation_config.pad_token_id
    if pad_token is None:
        # The end token pads, as in `generate`.
        pad_token = batch.vocabulary.eos_token_ids[0]
    return int(pad_token)


def check_options(model: Any, processors: LogitsProcessorList, config: Any) -> None:
    """Refuse by name what this loop would otherwise ignore."""
    if model.config.is_encoder_decoder:
        raise UnsupportedGenerationError("encoder-decoder models", "decoder-only models")
    if (config.num_beams or 1) > 1:
        raise UnsupportedGenerationError("num_beams", "use GrammarLogitsProcessor for beam search")
    for option in ("prompt_lookup_num_tokens", "assistant_early_exit", "use_mtp", "penalty_alpha"):
        if getattr(config, option, None):
            raise UnsupportedGenerationError(option, "use GrammarLogitsProcessor instead")
    if config.return_dict_in_generate:
        for option in (
            "output_scores",
            "output_logits",
            "output_attentions",
            "output_hidden_states",
        ):
            if getattr(config, option, None):
                raise UnsupportedGenerationError(option, "forced tokens have none")
    if config.prefill_chunk_size is not None:
        raise UnsupportedGenerationError("prefill_chunk_size", "the prompt is fed at once")
    if config.watermarking_config is not None:
        raise UnsupportedGenerationError("watermarking_config", "forced tokens carry no mark")
    for entry in processors:
        if isinstance(entry, logits_process.UnbatchedClassifierFreeGuidanceLogitsProcessor):
            raise UnsupportedGenerationError(
                "guidance_scale", "its second model run sees one token per pass"
            )
        if isinstance(entry, GrammarLogitsProcessor):
            raise UnsupportedGenerationError(
                "GrammarLogitsProcessor", "give the grammar by grammar= only"
            )
