"""Samples of the model given the grammar: several texts at a time, with importance weights.

Masks sample a token from the model's distribution, cut and scaled. So a text comes with probability
q(x) = p(x) / w(x), where p is the model's and w is the product of the masses of its tokens. Each
mask keeps only tokens after which a text of the grammar remains possible, so no text is lost, and
weights by w give the model's distribution given the grammar. Resampling is that of sequential Monte
Carlo (Lew et al., arXiv 2306.03081): texts of little weight end, and others are continued twice.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import torch
from transformers import LogitsProcessorList, StoppingCriteriaList
from transformers.generation.logits_process import MinPLogitsWarper, TemperatureLogitsWarper

from ffwd.adapters.logits import to_device
from ffwd.adapters.transformers.adaptive import Tree, expected_weights
from ffwd.adapters.transformers.errors import NoTokenLeftError, UnsupportedGenerationError
from ffwd.adapters.transformers.fast_forward import FastForward, ForcedRows, TokenStops
from ffwd.adapters.transformers.generate import (
    check_options,
    choose,
    most_tokens,
    pad_token_of,
)
from ffwd.adapters.transformers.masses import Masses, log_total
from ffwd.adapters.transformers.model import CACHE, ChunkedModel
from ffwd.adapters.transformers.report import GenerationReport, GenerationStats
from ffwd.adapters.transformers.rows import GrammarBatch, GrammarOrStart

Sampling = Literal["masks", "weighted", "smc", "adaptive"]
"""How `ffwd.generate` samples: under masks; so, several times, and one of them drawn by weight;
that with resampling, which is sequential Monte Carlo; or one text after the other, each of which
learns from those before."""

NEUTRAL: Mapping[str, float] = {
    "top_k": 0,
    "top_p": 1.0,
    "min_p": 0.0,
    "typical_p": 1.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "repetition_penalty": 1.0,
}
"""Options of `generate` that change the distribution, with the values that do not."""

RESAMPLE_BELOW = 0.5
"""Texts are resampled if their effective number is below this share of them."""


@dataclass(frozen=True, kw_only=True)
class Particle:
    """One of the weighted texts behind an answer of `ffwd.generate(sampling=…)`.

    Attributes:
        tokens: The generated ids, the end token included.
        log_weight: The log of its weight, in nats; of texts that were resampled, since then. With
            "adaptive", equal texts have equal weights.
        probability: The weight as a share of all particles'; they sum to 1.

    """

    tokens: tuple[int, ...] = field(repr=False)
    log_weight: float
    probability: float
    _text: Callable[[tuple[int, ...]], str] = field(repr=False, compare=False)

    @cached_property
    def text(self) -> str:
        """The text of the grammar."""
        return self._text(self.tokens)


@dataclass
class Particles:
    """The texts of `particle_generate`, and their weights.

    Attributes:
        tokens: Of each text.
        log_masses: Of each text.
        log_weights: Of each text.
        chosen: Which one is the answer.

    """

    tokens: list[tuple[int, ...]] = field(default_factory=list)
    log_masses: list[tuple[float, ...]] = field(default_factory=list)
    log_weights: list[float] = field(default_factory=list)
    chosen: int = 0

    @property
    def shares(self) -> list[float]:
        """Return the weights, which sum to 1."""
        found: list[float] = torch.softmax(_double(self.log_weights), dim=0).tolist()
        return found

    @property
    def log_evidence(self) -> float:
        """Return the log of the mean weight: of the model's probability of the grammar."""
        return log_mean(self.log_weights)


def particle_generate(
    model: Any,
    input_ids: torch.Tensor,
    logits_processor: LogitsProcessorList,
    stopping_criteria: StoppingCriteriaList,
    generation_config: Any,
    *,
    grammar: GrammarOrStart,
    number: int,
    sampling: Sampling,
    found: Particles,
    report: GenerationReport,
    fast_forward: FastForward | None = None,
    canonical: bool = False,
    **model_kwargs: Any,
) -> torch.Tensor:
    """Decode several texts after one prompt, for `generate(custom_generate=…)`.

    The prompt goes through the model once, and the texts begin with copies of its cache.

    Args:
        model: A decoder-only model.
        input_ids: The prompt [1, length].
        logits_processor: As `generate` prepares them: a temperature, or nothing.
        stopping_criteria: As `generate` prepares them.
        generation_config: As `generate` prepares it.
        grammar: The grammar, or the `Start` after the prompt.
        number: How many texts.
        sampling: How they are sampled.
        found: Receives the texts and their weights.
        report: Receives the counters, of all texts.
        fast_forward: The options of forcing.
        canonical: Whether masks hold canonical tokens only.
        **model_kwargs: As `generate` prepares them.

    Returns:
        The prompt and the ids of one text, drawn by weight: [1, length].

    Raises:
        UnsupportedGenerationError: A logits processor changes or cuts the distribution.
        NoTokenLeftError: The model gives no text of the grammar any probability.

    """
    heat = _temperature(logits_processor)
    check_options(model, logits_processor, generation_config)
    batch = GrammarBatch(grammar)
    pad_token = pad_token_of(generation_config, batch)
    report.stats = GenerationStats()

    def begin(cache: Any = None) -> tuple[ChunkedModel, ForcedRows]:
        kwargs = model_kwargs if cache is None else {**model_kwargs, CACHE: cache}
        chunked = ChunkedModel(model, input_ids, kwargs, pad_token=pad_token)
        rows = ForcedRows(
            [grammar],
            input_ids,
            vocabulary=batch.vocabulary,
            stops=TokenStops(stopping_criteria, input_ids.device),
            options=fast_forward or FastForward(),
            canonical=canonical,
            max_tokens=most_tokens(generation_config, input_ids),
            pad_token=pad_token,
            trace=None,
            masses=Masses(1),
        )
        rows.mark_prompt_in_cache(chunked.cached)
        return chunked, rows

    def end(chunked: ChunkedModel, rows: ForcedRows, weights: list[float]) -> None:
        assert rows.masses is not None
        found.tokens += rows.generated()
        found.log_masses += map(tuple, rows.masses.rows)
        found.log_weights += weights
        report.stats += GenerationStats(
            forward_passes=chunked.forward_passes,
            tokens=rows.tokens,
            forced_tokens=rows.forced_tokens,
            masks=rows.masks,
            mask_nanoseconds=rows.nanoseconds,
        )

    if sampling == "adaptive":
        tree, cache = Tree(), None
        log_ps = []
        for _ in range(number):
            chunked, rows = begin(cache)
            weight, log_p = tree.draw(chunked, rows, heat=heat)
            log_ps.append(log_p)
            end(chunked, rows, [weight])
            if tree.root.bound == -math.inf:
                raise NoTokenLeftError(row=0)
            cache = _prompt_alone(chunked.cache, input_ids.shape[1])
        found.log_weights = expected_weights(found.tokens, found.log_weights, log_ps)
    else:
        chunked, rows = begin()
        resample = sampling == "smc"
        end(chunked, rows, _decode(chunked, rows, number=number, resample=resample, heat=heat))
    found.chosen = int(torch.multinomial(torch.softmax(_double(found.log_weights), dim=0), 1))
    tokens = torch.tensor([found.tokens[found.chosen]], device=input_ids.device)
    return torch.cat([input_ids, tokens], dim=1)


def _prompt_alone(cache: Any, length: int) -> Any:
    """Leave the prompt in a cache, but for its last token, after which the logits are needed."""
    if any(cache.is_sliding):
        raise UnsupportedGenerationError(
            "sampling='adaptive' with sliding-window attention", "the cache has lost the prompt"
        )
    cache.crop(length - 1 - cache.get_seq_length())
    return cache


class _Batch:
    """The texts that go through the model: those that have ended are not in its cache.

    Args:
        chunked: The model, before the prompt, which is one row.

    """

    def __init__(self, chunked: ChunkedModel) -> None:
        self._chunked = chunked
        self._held = [0]

    def keep(self, rows: Set[int]) -> None:
        """Leave only these of the rows in the cache."""
        places = [place for place, row in enumerate(self._held) if row in rows]
        if len(places) < len(self._held):
            self._chunked.select(places)
            self._held = [self._held[place] for place in places]

    def select(self, chosen: Sequence[int]) -> None:
        """Replace all rows by copies of some of them."""
        places = {row: place for place, row in enumerate(self._held)}
        found = [places[row] for row in chosen if row in places]
        self._held = [row for row, source in enumerate(chosen) if source in places]
        if found:
            self._chunked.select(found)

    def last_logits(self, pending: Sequence[torch.Tensor], keep: int) -> torch.Tensor:
        """Feed ids as `ChunkedModel.last_logits` does; rows that have ended get logits of 0."""
        logits = self._chunked.last_logits([pending[row] for row in self._held], keep)
        if len(self._held) == len(pending):
            return logits
        found = logits.new_zeros((len(pending), *logits.shape[1:]))
        found[to_device(torch.tensor(self._held), logits.device)] = logits
        return found


def _decode(
    chunked: ChunkedModel, rows: ForcedRows, *, number: int, resample: bool, heat: float
) -> list[float]:
    """Decode to the end; return the log weight of each text."""
    assert rows.masses is not None
    weights = [0.0]
    batch = _Batch(chunked)
    rows.advance({})
    while True:
        active, unscored = rows.active, rows.unscored()
        if not active and not any(unscored):
            break
        batch.keep({*active, *(row for row, tokens in enumerate(unscored) if tokens)})
        known = [len(masses) for masses in rows.masses.rows]
        kept = batch.last_logits(rows.take_pending(), 1 + max(map(len, unscored)))
        rows.masses.add_forced(kept if heat == 1 else kept.float() / heat, unscored)
        logits = chunked.float32(kept[:, -1]) / heat
        total = log_total(logits)
        if active:
            rows.mask.apply(logits, in_place=True)
            rows.note_masses(active, total, logits)
        for row, masses in enumerate(rows.masses.rows):
            weights[row] += math.fsum(masses[known[row] :])
            if math.isnan(weights[row]):
                raise RuntimeError(f"the model's scores of row {row} have NaN or infinity")
        if max(weights) == -math.inf:
            raise NoTokenLeftError(row=0)
        chosen = _next_rows(weights, number, resample=resample)
        if chosen is not None:
            rows.select(chosen)
            batch.select(chosen)
            logits = logits[to_device(torch.tensor(chosen), logits.device)]
            resampled = len(weights) == number
            weights = [log_mean(weights) if resampled else weights[row] for row in chosen]
        rows.finish([row for row, weight in enumerate(weights) if weight == -math.inf])
        active = rows.active
        if active:
            scores = logits[to_device(torch.tensor(active), logits.device)]
            lost = torch.zeros(len(active), dtype=torch.bool, device=logits.device)
            tokens = choose(scores, lost, do_sample=True)
            rows.advance(dict(zip(active, tokens, strict=True)))
    return weights


def _next_rows(weights: Sequence[float], number: int, *, resample: bool) -> list[int] | None:
    """Return the rows that are continued: all of the first pass, or those that are resampled."""
    if len(weights) < number:
        return [0] * number
    if not resample:
        return None
    shares = torch.softmax(_double(weights), dim=0)
    if 1 / float((shares**2).sum()) >= RESAMPLE_BELOW * number:
        return None
    return systematic(shares, float(torch.rand(())))


def systematic(shares: torch.Tensor, offset: float) -> list[int]:
    """Return as many indices as there are shares, each about in proportion to its share.

    Args:
        shares: Shape [number], float64; they sum to 1.
        offset: Drawn from [0, 1).

    """
    number = len(shares)
    points = (torch.arange(number, dtype=torch.double) + offset) / number
    sums = shares.cumsum(0)
    # Rounding may end the sums below 1; a share of 0 is never chosen.
    last = int(torch.nonzero(shares)[-1])
    found: list[int] = torch.searchsorted(sums, points, right=True).clamp(max=last).tolist()
    return found


def log_mean(weights: Sequence[float]) -> float:
    """Return the log of the mean of weights, of which the logs are given."""
    return float(_double(weights).logsumexp(0)) - math.log(len(weights))


def _double(values: Sequence[float]) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.double)


def _temperature(processors: LogitsProcessorList) -> float:
    """Return the temperature; refuse all other processors."""
    heat = 1.0
    for entry in processors:
        if isinstance(entry, TemperatureLogitsWarper):
            heat *= entry.temperature
        elif not (isinstance(entry, MinPLogitsWarper) and entry.min_p == 0):
            raise UnsupportedGenerationError(
                type(entry).__name__,
                "weights are those of the model's whole distribution, which it changes",
            )
    return heat
