"""The generated part of each row in fast-forward decoding: sampled, forced, stopped.

It has no model. `ForcedRows` owns the ids, the matchers, the masks and the stopping criteria.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import StoppingCriteriaList
from transformers.generation.stopping_criteria import EosTokenCriteria, MaxLengthCriteria

from ffwd import Matcher, Vocabulary
from ffwd.adapters.logits import to_device
from ffwd.adapters.transformers.errors import RefusedTokenError
from ffwd.adapters.transformers.mask import ScoreMask
from ffwd.adapters.transformers.masses import Masses, log_mass
from ffwd.adapters.transformers.report import TokenTrace
from ffwd.adapters.transformers.rows import GrammarOrStart, prompted_matchers
from ffwd.view import MOST_CANDIDATES, Recorder


@dataclass(frozen=True, kw_only=True)
class FastForward:
    """How forced bytes become forced tokens; see `Matcher.fast_forward_tokens`.

    Attributes:
        max_tokens: At most so many forced tokens at a time; None for no limit.
        method: "exact" or "backoff"; None for what the vocabulary allows.
        look_ahead: Force a little more, for a little more time; exact only, None for its default.
        backoff_tokens: Longest suffix, in tokens, that is given up where it could be cut
            differently later.
        backoff_bytes: The same limit in bytes.
        conservative: Give up such a suffix whether or not the grammar lets it go on.

    """

    max_tokens: int | None = None
    method: str | None = None
    look_ahead: bool | None = None
    backoff_tokens: int | None = None
    backoff_bytes: int | None = None
    conservative: bool = False

    def tokens(self, matcher: Matcher) -> list[int]:
        """Return the forced tokens at the matcher's place."""
        return matcher.fast_forward_tokens(
            max_tokens=self.max_tokens,
            method=self.method,
            look_ahead=self.look_ahead,
            backoff_tokens=self.backoff_tokens,
            backoff_bytes=self.backoff_bytes,
            conservative=self.conservative,
        )


class TokenStops:
    """Stopping criteria, asked after every token of a row.

    Others than the two below see ids on the device of the model, as in `generate()`.
    Length and end tokens are looked at directly; all others get the ids of the one row, up to
    and including the token, as `generate()` would show them.
    """

    def __init__(self, criteria: StoppingCriteriaList, device: torch.device) -> None:
        self._device = device
        self._max_length: int | None = None
        self._end_tokens: frozenset[int] = frozenset()
        self._others = StoppingCriteriaList()
        for criterion in criteria:
            if type(criterion) is MaxLengthCriteria:
                self._max_length = min(
                    criterion.max_length,
                    criterion.max_length if self._max_length is None else self._max_length,
                )
            elif type(criterion) is EosTokenCriteria:
                self._end_tokens |= frozenset(criterion.eos_token_id.flatten().tolist())
            else:
                self._others.append(criterion)

    def after(self, token: int, ids: torch.Tensor) -> bool:
        """Return whether a row stops at `ids` [1, length], whose last id is `token`."""
        if self._max_length is not None and ids.shape[1] >= self._max_length:
            return True
        if token in self._end_tokens:
            return True
        if not self._others:
            return False
        on_device: Any = to_device(ids, self._device)
        return bool(self._others(on_device, None).all())


@dataclass
class _ForcedRow:
    matcher: Matcher
    length: int
    in_cache: int = 0
    finished: bool = False


class ForcedRows:
    """Rows that share a left-padded prompt and then grow independently.

    Args:
        grammars: One for each row.
        prompt: Shape [rows, length].
        stops: When a row ends.
        options: How to force.
        canonical: Whether masks hold canonical tokens only.
        max_tokens: Within how many tokens a row ends.
        pad_token: Fills the ids after the end of a row.
        trace: Where to note every token.
        recorders: One for each row, which note all that happens.
        masses: Where the masses of tokens are noted. Rows that have ended then go through the model
            once more, if their last tokens are forced.

    """

    def __init__(
        self,
        grammars: Sequence[GrammarOrStart],
        prompt: torch.Tensor,
        *,
        vocabulary: Vocabulary,
        stops: TokenStops,
        options: FastForward,
        canonical: bool,
        max_tokens: int | None,
        pad_token: int,
        trace: list[TokenTrace] | None,
        recorders: Sequence[Recorder] | None = None,
        masses: Masses | None = None,
    ) -> None:
        count, length = prompt.shape
        self._device = prompt.device
        # The host decides what follows, so the ids are in its memory.
        prompt = prompt.cpu()
        self._rows = [
            _ForcedRow(matcher, length)
            for matcher in prompted_matchers(
                grammars, prompt, canonical=canonical, max_tokens=max_tokens
            )
        ]
        self._vocabulary = vocabulary
        self._stops = stops
        self._options = options
        self._pad_token = pad_token
        self._trace = trace
        self._recorders = recorders
        self.masses = masses
        bpe = vocabulary.bpe
        # Where forcing finds all that is forced, a mask seldom has one token only.
        forces_all = options == FastForward() and bpe is not None and bpe.exact
        self._overlaps = self._device.type != "cpu" and forces_all and recorders is None
        # The time of the model and of sampling starts here.
        self._left = time.perf_counter_ns()
        self._prompt_length = length
        self._ids = prompt.new_full((count, length + 256), pad_token)
        self._ids[:, :length] = prompt
        self.mask = ScoreMask(vocabulary, count)
        self.tokens = 0
        self.forced_tokens = 0
        self.masks = 0
        self.nanoseconds = 0
        self._recording_nanoseconds = 0

    @property
    def active(self) -> list[int]:
        """Rows that have not stopped."""
        return [index for index, row in enumerate(self._rows) if not row.finished]

    def length(self, row: int) -> int:
        """Return the number of ids of a row, prompt and its padding included."""
        return self._rows[row].length

    def ids(self, length: int) -> torch.Tensor:
        """Return the first ids of all rows on the device: [rows, length]. Shorter are padded."""
        return to_device(self._ids[:, :length], self._device)

    def mark_prompt_in_cache(self, length: int) -> None:
        """Set how many ids of the prompt the cache already holds."""
        for row in self._rows:
            row.in_cache = length

    def unscored(self) -> list[list[int]]:
        """Return the last tokens of each row without a mass, all forced; none without `masses`."""
        if self.masses is None:
            return [[] for _ in self._rows]
        begin = self._prompt_length
        return [
            self._ids[index, begin + len(self.masses.rows[index]) : row.length].tolist()
            for index, row in enumerate(self._rows)
        ]

    def take_pending(self) -> list[torch.Tensor]:
        """Return the ids of each row that the cache does not hold, and count them as held.

        They are in the processor's memory.

        Finished rows have only their prompt, in the first pass, so that no row of the cache is
        all padding: nothing is ever sampled after them. Those without all their masses have the
        rest of their tokens, too.
        """
        pending = []
        unscored = self.unscored()
        for index, row in enumerate(self._rows):
            ended = row.finished and not unscored[index]
            end = max(row.in_cache, self._prompt_length) if ended else row.length
            pending.append(self._ids[index, row.in_cache : end])
            row.in_cache = end
        return pending

    def advance(self, sampled: dict[int, int]) -> list[list[int]]:
        """Append sampled tokens, then all that is forced, and begin the masks after them.

        On an accelerator these are filled while the next forward pass runs.

        Args:
            sampled: Row to token; rows without a token (at the start) are only forced.

        Returns:
            What was appended to each row.

        Raises:
            RefusedTokenError: If a sampled token is not in the grammar.

        """
        started = time.perf_counter_ns()
        before = self._recording_nanoseconds
        model = started - self._left
        appended: list[list[int]] = [[] for _ in self._rows]
        for index, token in sampled.items():
            allowed = self.mask.count(index) if self._trace is not None else None
            begun = time.perf_counter_ns()
            appended[index] += self._append(index, [token], forced=False, allowed=allowed)
            self._note_sampled(index, token, model // len(sampled), begun)
        open_rows = self.active
        later: list[int] = []
        while open_rows:
            for index in open_rows:
                appended[index] += self._force(index)
            open_rows = [index for index in open_rows if not self._rows[index].finished]
            if self._overlaps:
                soon = {i for i in open_rows if _may_be_alone(self._rows[i].matcher)}
                later += [index for index in open_rows if index not in soon]
                open_rows = [index for index in open_rows if index in soon]
            begun = time.perf_counter_ns()
            self.mask.fill([self._rows[index].matcher for index in open_rows], open_rows)
            self.masks += len(open_rows)
            self._note_masks(open_rows, begun)
            # If the mask allows one token, no model is needed to choose it.
            alone: list[int] = []
            for index in open_rows:
                only = self.mask.only_token(index)
                if only is None:
                    continue
                begun = time.perf_counter_ns()
                new = self._append(index, [only], forced=True, allowed=1)
                self._note_forced(index, new, begun)
                appended[index] += new
                if not self._rows[index].finished:
                    alone.append(index)
            open_rows = alone
        self.masks += len(later)
        self._left = time.perf_counter_ns()
        self.nanoseconds += self._left - started - (self._recording_nanoseconds - before)
        if later:
            self._start(later)
        return appended

    def _start(self, rows: list[int]) -> None:
        """Fill the masks of rows beside the forward pass; the time counts all the same."""
        started = time.perf_counter_ns()

        def filled() -> None:
            self.nanoseconds += time.perf_counter_ns() - started

        self.mask.start([self._rows[row].matcher for row in rows], rows, filled=filled)

    def _force(self, row: int) -> list[int]:
        """Append all that is forced, or as much as the options allow at a time."""
        appended: list[int] = []
        while not self._rows[row].finished:
            begun = time.perf_counter_ns()
            tokens = self._options.tokens(self._rows[row].matcher)
            new = self._append(row, tokens, forced=True, allowed=None)
            self._note_forced(row, new, begun)
            appended += new
            # A token that extends past the forced text may force more.
            if not tokens or self._options.max_tokens is not None:
                break
        return appended

    @property
    def records(self) -> bool:
        """Whether `note_scores` needs the model's logits as they were."""
        return self._recorders is not None

    def note_scores(
        self, active: Sequence[int], logits: torch.Tensor, scores: torch.Tensor
    ) -> None:
        """Note what the model made of the next tokens, where that is recorded.

        Args:
            active: The rows that a token is chosen for.
            logits: The model's, of all rows: [rows, width].
            scores: What is chosen by, of the active rows: [active, width].

        """
        if self._recorders is None:
            return
        started = time.perf_counter_ns()
        raw = torch.softmax(logits[list(active)].float(), dim=-1)
        legal = raw.masked_fill(scores == -torch.inf, 0.0).sum(dim=-1).tolist()
        favourites = raw.max(dim=-1)
        after = torch.softmax(scores.float(), dim=-1).topk(min(MOST_CANDIDATES, scores.shape[1]))
        for place, row in enumerate(active):
            favourite = int(favourites.indices[place])
            refused = bool(scores[place, favourite] == -torch.inf)
            found = zip(after.indices[place].tolist(), after.values[place].tolist(), strict=True)
            self._recorders[row].scored(
                [(token, probability) for token, probability in found if probability > 0],
                allowed_probability=legal[place],
                preferred=(favourite, float(favourites.values[place])) if refused else None,
            )
        # This time counts neither for the model nor for the grammar.
        self._left += time.perf_counter_ns() - started

    def note_masses(
        self, active: Sequence[int], total: torch.Tensor | None, masked: torch.Tensor
    ) -> None:
        """Note the masses of the next tokens of the active rows, with `masses` only.

        Args:
            active: The rows that a token is chosen for.
            total: The `log_total` of the model's logits, of all rows.
            masked: These logits under the masks, of all rows: [rows, width].

        """
        if self.masses is not None and total is not None:
            found = log_mass(total, masked).tolist()
            self.masses.add(active, [found[row] for row in active])

    def _note_sampled(self, row: int, token: int, model: int, begun: int) -> None:
        if self._recorders is not None:
            ended = time.perf_counter_ns()
            self._recorders[row].sampled(token, model=model, accept=ended - begun)
            self._recording_nanoseconds += time.perf_counter_ns() - ended

    def _note_forced(self, row: int, tokens: Sequence[int], begun: int) -> None:
        if self._recorders is not None and tokens:
            ended = time.perf_counter_ns()
            self._recorders[row].forced(tokens, ended - begun)
            self._recording_nanoseconds += time.perf_counter_ns() - ended

    def _note_masks(self, rows: Sequence[int], begun: int) -> None:
        if self._recorders is not None:
            ended = time.perf_counter_ns()
            for row in rows:
                self._recorders[row].masked(self.mask.bits(row), (ended - begun) // len(rows))
            self._recording_nanoseconds += time.perf_counter_ns() - ended

    def select(self, indices: Sequence[int]) -> None:
        """Replace the rows by copies of some of them. Masks are not filled afterwards."""
        taken: set[int] = set()
        rows = []
        for index in indices:
            row = self._rows[index]
            rows.append(replace(row, matcher=row.matcher.fork()) if index in taken else row)
            taken.add(index)
        self._rows = rows
        self._ids = self._ids[list(indices)]
        if self.masses is not None:
            self.masses.rows = [list(self.masses.rows[index]) for index in indices]
        if self.mask.rows != len(rows):
            self.mask = ScoreMask(self._vocabulary, len(rows))

    def finish(self, rows: Sequence[int]) -> None:
        """End rows where they are."""
        for row in rows:
            self._rows[row].finished = True

    def generated(self) -> list[tuple[int, ...]]:
        """Return the ids of each row after its prompt."""
        return [
            tuple(self._ids[index, self._prompt_length : row.length].tolist())
            for index, row in enumerate(self._rows)
        ]

    def sequences(self) -> torch.Tensor:
        """Return prompt and generated ids: [rows, longest], padded on the right."""
        found = self._ids[:, : max(row.length for row in self._rows)].clone()
        return to_device(found, self._device)

    def _append(
        self, index: int, tokens: list[int], *, forced: bool, allowed: int | None
    ) -> list[int]:
        """Append tokens until one of them stops the row; return those that were appended."""
        if not tokens:
            return []
        row = self._rows[index]
        start = row.length
        self._write(index, start, tokens)
        for done, token in enumerate(tokens, start=1):
            if not row.matcher.accept_token(token):
                raise RefusedTokenError(
                    row=index,
                    token=token,
                    position=row.length - self._prompt_length,
                    text=self._vocabulary.token_bytes(token),
                )
            row.length = start + done
            if self._trace is not None:
                self._trace.append(
                    TokenTrace(row=index, token=token, allowed=allowed, forced=forced)
                )
            ids = self._ids[index : index + 1, : row.length]
            row.finished = row.matcher.is_terminated() or self._stops.after(token, ids)
            if row.finished:
                break
        self._ids[index, row.length : start + len(tokens)] = self._pad_token
        count = row.length - start
        self.tokens += count
        self.forced_tokens += count if forced else 0
        return tokens[:count]

    def _write(self, index: int, start: int, tokens: list[int]) -> None:
        short = start + len(tokens) - self._ids.shape[1]
        if short > 0:
            count, width = self._ids.shape
            grown = self._ids.new_full((count, width + max(short, width)), self._pad_token)
            grown[:, :width] = self._ids
            self._ids = grown
        self._ids[index, start : start + len(tokens)] = torch.tensor(tokens, dtype=self._ids.dtype)


def _may_be_alone(matcher: Matcher) -> bool:
    """Return whether a mask may have one token only, of a matcher that forces no more.

    Such a token is the end, or begins with the only byte that may come.
    """
    return matcher.is_accepting() or bool(matcher.forced_bytes(1))
