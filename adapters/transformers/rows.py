"""Finds the new tokens: compares the rows of `generate()` with what the matchers have accepted.

`transformers` tells a logits processor nothing but token ids. Rows grow by a token (greedy,
sampling), are replaced by copies of each other (beam search) and shrink to a shorter prefix
(assisted decoding). So each call compares the ids with those of the call before. Two facts make
that exact: a call shows at most one token that no earlier call has shown, and rows only ever
take over from rows with the same prompt. Everything else is a new prompt.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from ffwd import CompiledGrammar, Matcher, Vocabulary, VocabularyError
from ffwd.adapters.transformers.errors import RefusedTokenError
from ffwd.chat import Start


@dataclass
class Row:
    """One row: a matcher, and the tokens that it has accepted.

    `refused` is the first token that the grammar rejected. Later tokens are not matched.
    `ended` says whether the end token has been accepted; tokens after it are padding.
    `log_masses` has a number for each token and one for the next token, or is empty.
    """

    matcher: Matcher
    tokens: list[int] = field(default_factory=list)
    refused: int | None = None
    log_masses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        # Each query of a matcher costs about as much as an accepted token.
        self._vocab_size = self.matcher.grammar.vocabulary.vocab_size
        self.ended = self.matcher.is_terminated()

    def accept(self, token: int) -> None:
        """Take a token; a no-op after the end and after a refused token."""
        if self.refused is not None or self.ended:
            return
        if 0 <= token < self._vocab_size and self.matcher.accept_token(token):
            self.tokens.append(token)
            self.ended = self.matcher.is_terminated()
        else:
            self.refused = token

    def fork(self) -> "Row":
        """Copy the row; the matchers share their grammar."""
        return Row(self.matcher.fork(), list(self.tokens), self.refused, list(self.log_masses))

    def weigh(self, log_mass: float) -> None:
        """Note the log mass of the next token."""
        # A draft that was rolled back leaves those of tokens after it.
        del self.log_masses[len(self.tokens) :]
        self.log_masses.append(log_mass)

    def move_to(self, tokens: Sequence[int]) -> None:
        """Roll back to the common prefix with `tokens` and accept the rest of them."""
        keep = common_prefix(self.tokens, tokens)
        self.matcher.rollback(len(self.tokens) - keep)
        del self.tokens[keep:]
        self.ended = self.matcher.is_terminated()
        self.refused = None
        for token in tokens[keep:]:
            if self.refused is not None or self.ended:
                break
            self.accept(token)


_Ids = np.ndarray[Any, np.dtype[np.int64]] | torch.Tensor
"""Token ids of rows: an array in CPU memory, or a tensor of another device."""

RECENT_TOKENS = 64
"""How many tokens of the prompt are asked what is canonical after it; a piece is seldom longer."""


GrammarOrStart = CompiledGrammar | Start
"""What a row follows: a grammar, or the place where it begins after a prompt of `ffwd.chat`."""


def prompted_matchers(
    grammars: Sequence[GrammarOrStart],
    prompt: torch.Tensor,
    *,
    canonical: bool,
    max_tokens: int | None = None,
) -> list[Matcher]:
    """Return a matcher for each row, which knows the last tokens of its prompt.

    `prompt` has the shape [rows, length], with padding on the left if at all.

    Raises:
        VocabularyError: `canonical`, and the vocabulary has no exact `Bpe`.
        BudgetError: No text of a grammar ends within `max_tokens`.
        ValueError: A `Start` is not one after this prompt.

    """
    recent = prompt[:, -RECENT_TOKENS:].tolist()
    matchers = []
    for row, (grammar, tokens) in enumerate(zip(grammars, recent, strict=True)):
        if isinstance(grammar, CompiledGrammar):
            matchers.append(
                grammar.matcher(canonical=canonical, recent_tokens=tokens, max_tokens=max_tokens)
            )
            continue
        expected = list(grammar.prompt_ids)
        if prompt[row, -len(expected) :].tolist() != expected:
            raise ValueError(
                f"row {row} is not the prompt of its Start: give the model its prompt_ids"
            )
        matchers.append(grammar.matcher(canonical=canonical or None, max_tokens=max_tokens))
    return matchers


class GrammarBatch:
    """One grammar for all prompts, or one for each.

    Raises:
        ValueError: If the sequence is empty.
        VocabularyError: If the grammars were compiled for different vocabularies.

    """

    def __init__(self, grammar: GrammarOrStart | Sequence[GrammarOrStart]) -> None:
        self._shared = isinstance(grammar, GrammarOrStart)
        self._grammars = [grammar] if isinstance(grammar, GrammarOrStart) else list(grammar)
        if not self._grammars:
            raise ValueError("no grammar: give one, or one for each prompt")
        self.vocabulary: Vocabulary = self._grammars[0].vocabulary
        for index, other in enumerate(self._grammars):
            if other.vocabulary.vocab_size != self.vocabulary.vocab_size or (
                other.vocabulary.eos_token_ids != self.vocabulary.eos_token_ids
            ):
                raise VocabularyError(
                    f"grammar {index} was compiled for another vocabulary than grammar 0"
                )

    def __repr__(self) -> str:
        return f"GrammarBatch({len(self._grammars)} of {self._grammars[0]!r})"

    def of_rows(self, rows: int) -> list[GrammarOrStart]:
        """Return the grammar of each row.

        With several rows per prompt (beams, returned sequences) the rows of a prompt are adjacent.

        Raises:
            ValueError: If the rows are not a multiple of the grammars.

        """
        if self._shared:
            return self._grammars * rows
        each, rest = divmod(rows, len(self._grammars))
        if rest or not each:
            raise ValueError(
                f"{len(self._grammars)} grammars for a batch of {rows} rows: give one grammar, or"
                " exactly one for each prompt"
            )
        return [grammar for grammar in self._grammars for _ in range(each)]


class GrammarRows:
    """The matchers of a batch, kept in step with `input_ids`.

    There are never more matchers than rows.

    Args:
        batch: The grammars.
        max_draft_tokens: How far a row may go on after a token that its grammar refuses.
        canonical: Whether masks hold canonical tokens only.
        max_tokens: Within how many tokens a row ends.

    """

    def __init__(
        self,
        batch: GrammarBatch,
        *,
        max_draft_tokens: int,
        canonical: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        self._batch = batch
        self._canonical = canonical
        self._max_tokens = max_tokens
        self._max_draft_tokens = max_draft_tokens
        self.rows: list[Row] = []
        self._groups: list[list[int]] = []
        self._group_of: list[int] = []
        self._prompt_length = 0
        self._seen: _Ids | None = None
        self.restarted = False

    def reset(self) -> None:
        """Forget all rows: the next ids are a new prompt."""
        self.rows = []
        self._seen = None

    def update(self, input_ids: torch.Tensor) -> None:
        """Bring the matchers to `input_ids` [rows, length].

        Raises:
            RefusedTokenError: If no row of a prompt is in its grammar any more.

        """
        self.restarted = False
        # NumPy's views cost a third of torch's, which are half of this with one row.
        ids: _Ids = input_ids.numpy() if input_ids.is_cpu else input_ids
        if self._grew_by_one(ids):
            for row, token in zip(self.rows, ids[:, -1].tolist(), strict=True):
                row.accept(token)
        elif not self._rearrange(ids):
            self._restart(input_ids)
        # A copy: the caller owns the tensor and may write into it.
        self._seen = ids.copy() if isinstance(ids, np.ndarray) else ids.clone()
        self._check_refused(input_ids)

    def _grew_by_one(self, ids: _Ids) -> bool:
        seen = self._seen
        if seen is None:
            return False
        rows, length = ids.shape
        return seen.shape == (rows, length - 1) and _equal(seen, ids[:, :-1])

    def _restart(self, input_ids: torch.Tensor) -> None:
        count, length = input_ids.shape
        grammars = self._batch.of_rows(count)
        matchers = prompted_matchers(
            grammars, input_ids, canonical=self._canonical, max_tokens=self._max_tokens
        )
        self.rows = [Row(matcher) for matcher in matchers]
        self._prompt_length = length
        prompts = [row.tobytes() for row in input_ids.numpy(force=True)]
        self._groups = []
        self._group_of = []
        for index in range(count):
            before = index - 1
            if index and prompts[index] == prompts[before] and grammars[index] is grammars[before]:
                self._groups[-1].append(index)
            else:
                self._groups.append([index])
            self._group_of.append(len(self._groups) - 1)
        self.restarted = True

    def _rearrange(self, ids: _Ids) -> bool:
        """Move the matchers to rows that come from earlier rows; False if they do not."""
        seen = self._seen
        prompt = self._prompt_length
        if seen is None or seen.shape[0] != ids.shape[0] or ids.shape[1] <= prompt:
            return False
        if not _equal(seen[:, :prompt], ids[:, :prompt]):
            return False
        new = ids[:, prompt:].tolist()
        old = seen[:, prompt:].tolist()
        sources: list[int] = []
        for index, tokens in enumerate(new):
            group = self._groups[self._group_of[index]]
            best = max([index, *group], key=lambda other: common_prefix(old[other], tokens))
            if common_prefix(old[best], tokens) < len(tokens) - 1:
                return False
            sources.append(best)
        last_use = {source: index for index, source in enumerate(sources)}
        moved = [
            self.rows[source] if last_use[source] == index else self.rows[source].fork()
            for index, source in enumerate(sources)
        ]
        for row, tokens in zip(moved, new, strict=True):
            row.move_to(tokens)
        self.rows = moved
        return True

    def _check_refused(self, input_ids: torch.Tensor) -> None:
        if all(row.refused is None for row in self.rows):
            return
        generated = input_ids.shape[1] - self._prompt_length
        for group in self._groups:
            # A beam of score -inf may hold anything; one of its sisters is still alive.
            if any(self.rows[index].refused is None for index in group):
                continue
            row = self.rows[group[0]]
            position = len(row.tokens)
            if row.refused is None or generated - position - 1 < self._max_draft_tokens:
                continue
            text = None
            if 0 <= row.refused < self._batch.vocabulary.vocab_size:
                text = self._batch.vocabulary.token_bytes(row.refused)
                tail = input_ids[group[0], self._prompt_length + position :]
                if text is None and bool((tail == row.refused).all()):
                    continue  # A row that a stopping criterion has ended is padded from there on.
            raise RefusedTokenError(row=group[0], token=row.refused, position=position, text=text)


def _equal(seen: _Ids, ids: _Ids) -> bool:
    """Return whether ids of one shape are equal; they may be on different devices."""
    if isinstance(seen, np.ndarray) and isinstance(ids, np.ndarray):
        return bool(seen.tobytes() == ids.tobytes())
    here, there = torch.as_tensor(seen), torch.as_tensor(ids)
    return torch.equal(here.to(there.device), there)


def common_prefix(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the length of the longest common prefix, by comparing slices."""
    length = min(len(a), len(b))
    if a[:length] == b[:length]:
        return length
    low, high = 0, length - 1  # a[:low] agrees; a[:high + 1] does not
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
