"""Masked decoding in any decoding mode of `generate()`."""

import time
from collections.abc import Sequence

import torch
from transformers import LogitsProcessor

from ffwd import VocabularyError
from ffwd.adapters.transformers.errors import NoTokenLeftError
from ffwd.adapters.transformers.mask import ScoreMask
from ffwd.adapters.transformers.masses import log_mass, log_total
from ffwd.adapters.transformers.report import GenerationStats
from ffwd.adapters.transformers.rows import GrammarBatch, GrammarOrStart, GrammarRows


class GrammarLogitsProcessor(LogitsProcessor):
    """A logits processor that allows only the tokens of a grammar.

    Works in greedy decoding, sampling, beam search and assisted decoding, in batches with
    padding::

        model.generate(**inputs, logits_processor=[GrammarLogitsProcessor(grammar)])

    It detects fresh tokens by itself. The ids of the first call are the prompt. Ids are another
    prompt if they do not continue those of the call before, or are no longer than the prompt. So a
    processor can serve several calls of `generate`, one after the other. A prompt that consists of
    the old prompt and a prefix of its output counts as its continuation; call `reset` to avoid
    this.

    Args:
        grammar: One for all prompts, or one for each prompt of the batch; or the `Start` of each
            prompt of `ffwd.chat`, with its `prompt_ids` as the input. Several rows of a prompt
            (beams, returned sequences) share theirs.
        max_draft_tokens: The most tokens of a row after one that its grammar rejects; more raise an
            error. Assisted decoding by an assistant model or prompt lookup drafts under the mask
            and needs none; candidate generators that draft without logits processors need the
            length of their drafts.
        canonical: Allow only tokens that keep the text, from the prompt on, a tokenization of the
            tokenizer itself; see `CompiledGrammar.matcher`.
        narrow: For forced text, allow only the token with which the tokenizer encodes it. Then the
            greedy text is that of `fast_forward_generate` with its default options, token for
            token.
        max_tokens: The most output tokens, the end token included; other tokens are excluded in
            time. Pass `generate`'s `max_new_tokens`, and no text is truncated.
        in_place: Write to the scores that are passed in, which saves a pass over them. `generate`
            makes them anew for each step. With `output_logits=True` it keeps them, so leave it off.
        masses: Note `log_masses`, at the cost of a log-sum-exp of each row of scores, before and
            after the mask.

    Raises:
        ValueError, VocabularyError: No grammar, grammars of different vocabularies, or `canonical`
            or `narrow` with a vocabulary that has no exact `Bpe`.

    Note:
        After the end token a row allows only the end tokens; `generate` pads there. Scores may have
        any floating type and device. Columns past the vocabulary's tokens are the model's padding
        and become -inf.
    """

    # Continuous batching shows a processor packed requests, not rows.
    supports_continuous_batching = False

    def __init__(
        self,
        grammar: GrammarOrStart | Sequence[GrammarOrStart],
        *,
        max_draft_tokens: int = 0,
        canonical: bool = False,
        narrow: bool = False,
        max_tokens: int | None = None,
        in_place: bool = False,
        masses: bool = False,
    ) -> None:
        if max_draft_tokens < 0:
            raise ValueError(f"max_draft_tokens is {max_draft_tokens}, must not be negative")
        self._batch = GrammarBatch(grammar)
        bpe = self._batch.vocabulary.bpe
        if narrow and (bpe is None or not bpe.exact):
            raise VocabularyError(
                "narrow masks need a vocabulary with an exact Bpe, which says for certain which"
                " token is forced: load it by ffwd.tokenizer, or leave narrow off"
            )
        self._narrow = narrow
        self._rows = GrammarRows(
            self._batch,
            max_draft_tokens=max_draft_tokens,
            canonical=canonical,
            max_tokens=max_tokens,
        )
        self._mask: ScoreMask | None = None
        self._in_place = in_place
        self._masses = masses
        self._calls = self._masks = self._nanoseconds = 0

    def __repr__(self) -> str:
        return f"GrammarLogitsProcessor({self._batch!r})"

    @property
    def stats(self) -> GenerationStats:
        """Counters since the prompt; `tokens` are those that the rows hold now."""
        return GenerationStats(
            forward_passes=self._calls,
            tokens=sum(len(row.tokens) for row in self._rows.rows),
            masks=self._masks,
            mask_nanoseconds=self._nanoseconds,
        )

    @property
    def log_masses(self) -> list[tuple[float, ...]]:
        """The log masses of the tokens of each row, in nats; needs `masses=True`.

        For each token, and for the one that the last call was about: the log probability that the
        scores gave to all allowed tokens. With `narrow` that is, of a forced token, its own. The
        sum over the tokens of a text is its log importance weight. Scores are those that the
        processor is given: earlier processors have changed them.

        Rows are those of the last call. Beam search may return a text that ended before, so its
        masses are not among them.
        """
        return [tuple(row.log_masses) for row in self._rows.rows]

    def reset(self) -> None:
        """Take the next ids for a new prompt."""
        self._rows.reset()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Return the scores with -inf for every token that the grammar does not allow.

        Args:
            input_ids: Shape [rows, length], int64.
            scores: Shape [rows, width].

        Raises:
            RefusedTokenError: If a prompt has no row left that is in its grammar.
            NoTokenLeftError: If all tokens that the grammar allows have the score -inf already.
            VocabularyError: If the vocabulary is larger than `width`.
            BudgetError: If no text of a grammar ends within `max_tokens`.
            ValueError: If the rows are not a multiple of the grammars.

        """
        started = time.perf_counter_ns()
        self._rows.update(input_ids)
        rows = self._rows.rows
        if self._mask is None or self._rows.restarted:
            self._mask = ScoreMask(self._batch.vocabulary, len(rows))
            self._calls = self._masks = self._nanoseconds = 0
        masked = []
        for index, row in enumerate(rows):
            if row.refused is not None:
                self._mask.set_free(index)
            elif row.ended:
                self._mask.set_ended(index)
            else:
                masked.append(index)
        open_rows = self._narrowed(masked, self._mask) if self._narrow else masked
        self._mask.fill([rows[index].matcher for index in open_rows], open_rows)
        self._calls += 1
        self._masks += len(masked)
        self._nanoseconds += time.perf_counter_ns() - started
        total = log_total(scores) if self._masses else None
        result = self._mask.apply(scores, in_place=self._in_place)
        if total is not None:
            found = log_mass(total, result).tolist()
            for index in masked:
                rows[index].weigh(found[index])
        for index in self._mask.starved(result):
            if rows[index].refused is None and not rows[index].ended:
                raise NoTokenLeftError(row=index)
        return result

    def _narrowed(self, masked: list[int], mask: ScoreMask) -> list[int]:
        """Leave the forced token of rows that have one, and return the other rows."""
        others = []
        for index in masked:
            forced = self._rows.rows[index].matcher.fast_forward_tokens(max_tokens=1)
            if forced:
                mask.set_only(index, forced[0])
            else:
                others.append(index)
        return others
