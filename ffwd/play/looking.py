"""A text on the page: its tokens, the continuations at the cursor, and the cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ffwd._bitmask import allocate_bitmask
from ffwd._explain import Expected, Explanation
from ffwd._native import Cancellation, CompiledGrammar, Matcher
from ffwd.play.state import State, Units
from ffwd.sources import NamedTokens, SourceText, locate_all
from ffwd.view.page import piece_of, ranges_of
from ffwd.view.walk import walk

MOST_SHOWN = 4096
"""So many tokens of a text are coloured and counted; the rest is only accepted or refused."""
MOST_LISTED = 60
"""So many tokens of a mask are listed."""


@dataclass
class Cost:
    """The cost of a text in a loop that masks and forces."""

    tokens: int = 0
    forced: int = 0
    masks: int = 0
    mask_nanoseconds: int = 0
    accept_nanoseconds: int = 0

    def data(self) -> dict[str, Any]:
        """Return the figures: each forced token saves a forward pass; times are in µs."""
        masks = self.mask_nanoseconds / 1e3
        return {
            "tokens": self.tokens,
            "forced": self.forced,
            "share": self.forced / max(self.tokens, 1),
            "passes": self.tokens - self.forced,
            "masks": self.masks,
            "mask_us": masks,
            "mean_mask_us": masks / max(self.masks, 1),
            "accept_us": self.accept_nanoseconds / 1e3,
        }


class Look:
    """A text under a compiled grammar.

    Args:
        compiled: The grammar.
        tokens: Its tokenizer.
        source: The text of the grammar, for positions of pointers.
        cancellation: Cancels each call.

    """

    def __init__(
        self,
        compiled: CompiledGrammar,
        tokens: NamedTokens,
        source: SourceText,
        cancellation: Cancellation,
    ) -> None:
        self._compiled = compiled
        self._tokens = tokens
        self._source = source
        self._cancellation = cancellation

    def at(self, state: State) -> dict[str, Any]:
        """Return the tokens of the text, its cost, and what follows at the cursor.

        Raises:
            TextError: The text has a lone surrogate.
            LimitExceededError: A call of the matcher met a limit, or was cancelled.

        """
        units = Units(state.text)
        ids, healed = self._ids(state, units.data)
        shown, cost, matcher, place = self._walk(ids, healed, units)
        refusal = None
        if place < len(ids):
            refusal = self._refusal(matcher, ids[place:], units)
        cut = units.to_bytes(state.cursor)
        return {
            "tokens": shown,
            "more_tokens": max(0, len(ids) - MOST_SHOWN),
            "refused": refusal,
            "complete": refusal is None and (matcher.is_accepting() or matcher.is_terminated()),
            "cost": cost.data(),
            "cursor": self._cursor(units.data[:cut]),
        }

    def cost(self, text: str) -> dict[str, Any]:
        """Return the cost of a whole text that the grammar accepts."""
        _, cost, _, _ = self._walk(self._tokens.vocabulary.encode(text.encode()), set(), None)
        return cost.data()

    def _matcher(self) -> Matcher:
        return self._compiled.matcher(cancellation=self._cancellation)

    def _ids(self, state: State, data: bytes) -> tuple[list[int], set[int]]:
        """Return the tokens of the text: those of the model that wrote it, or the tokenizer's."""
        vocabulary = self._tokens.vocabulary
        if state.tokens is not None:
            ids, size = state.tokens["ids"], vocabulary.vocab_size
            if all(token < size for token in ids):
                pieces = [vocabulary.token_bytes(token) or b"" for token in ids]
                if b"".join(pieces) == data:
                    return ids, set(state.tokens["healed"])
        return vocabulary.encode(data), set()

    def _walk(
        self, ids: Sequence[int], healed: set[int], units: Units | None
    ) -> tuple[list[list[Any]], Cost, Matcher, int]:
        """Return tokens as `[end, kind, allowed, id, piece, sort]`, and how far the walk came."""
        vocabulary = self._tokens.vocabulary
        matcher, cost = self._matcher(), Cost()
        shown: list[list[Any]] = []
        place, offset = 0, 0
        for stretch in walk(matcher, ids[:MOST_SHOWN]):
            cost.mask_nanoseconds += stretch.mask_time
            cost.accept_nanoseconds += stretch.accept_time
            if not stretch.accepted:
                return shown, cost, matcher, place
            allowed = None if stretch.mask is None else _count(stretch.mask)
            cost.tokens += len(stretch.tokens)
            cost.forced += len(stretch.tokens) if stretch.forced else 0
            cost.masks += 0 if stretch.forced else 1
            for token in stretch.tokens:
                piece = vocabulary.token_bytes(token)
                if units is not None:
                    offset += len(piece or b"")
                    kind = "forced" if stretch.forced else "accepted"
                    kind = "healed" if place in healed else kind
                    named = piece_of(piece, self._name(token))
                    shown.append([units.of_bytes(offset), kind, allowed, token, *named])
                place += 1
        rest = ids[place:]
        good = matcher.validate_tokens(rest)
        matcher.accept_tokens(rest[:good])
        return shown, cost, matcher, place + good

    def _refusal(self, matcher: Matcher, rest: Sequence[int], units: Units) -> dict[str, Any]:
        spelled = self._tokens.vocabulary.token_bytes
        text = b"".join(spelled(token) or b"" for token in rest)
        answer = matcher.explain(text=text).answer
        assert answer is not None
        byte = len(units.data) - len(text) + answer.good_bytes
        reasons = [
            {"message": one.message, "where": self._where(one.rules, one.pointers)}
            for one in answer.reasons
        ]
        return {
            "byte": byte,
            "at": units.of_bytes(byte),
            "reasons": reasons,
            "instead": [self._expected(one) for one in answer.instead],
            "more": answer.num_more,
            "text": str(answer),
        }

    def _cursor(self, data: bytes) -> dict[str, Any]:
        """Return what follows after these bytes, or None if they are refused."""
        ids = self._tokens.vocabulary.encode(data)
        matcher = self._matcher()
        if not matcher.accept_tokens(ids):
            return {"refused": True}
        explanation = matcher.explain()
        vocabulary = self._tokens.vocabulary
        bitmask = allocate_bitmask(1, vocabulary.vocab_size)
        allowed: list[int] = []
        count, forced, follows = 0, b"", []
        if not matcher.is_terminated():
            matcher.fill_bitmask(bitmask, 0)
            count = _count(bitmask[0])
            allowed = _first(bitmask[0], MOST_LISTED)
            forced = matcher.forced_bytes(4096)
            follows = matcher.fast_forward_tokens(max_tokens=64)
        return {
            "refused": False,
            "num_tokens": len(ids),
            "can_end": explanation.is_accepting,
            "expected": [self._expected(one) for one in explanation.expected],
            "more": explanation.num_more,
            "notes": list(explanation.notes),
            "next_bytes": ranges_of(explanation.next_bytes),
            "forced": _text(forced),
            "forced_tokens": [self._token(token) for token in follows],
            "mask": count,
            "vocab_size": vocabulary.vocab_size,
            "allowed": [self._token(token) for token in allowed],
            "completion": self._completion(explanation),
        }

    def _completion(self, explanation: Explanation) -> dict[str, Any] | None:
        if explanation.completion is None:
            return None
        text = explanation.completion_text or b""
        return {"tokens": len(explanation.completion), "text": _text(text)}

    def _expected(self, one: Expected) -> dict[str, Any]:
        return {
            "what": one.what,
            "kind": one.kind,
            "begun": one.begun,
            "where": self._where(one.rules, one.pointers),
            "example": None if one.example is None else _text(one.example),
        }

    def _where(self, rules: Sequence[Any], pointers: Sequence[str]) -> list[dict[str, Any]]:
        found = [{"name": one.name, "line": one.line, "column": one.column} for one in rules]
        # Those of other documents have their URI before the `#`.
        own = [pointer[1:] for pointer in pointers if pointer.startswith("#")]
        is_schema = self._source.language == "json-schema"
        places = locate_all(self._source.text, own) if own and is_schema else {}
        for pointer in pointers:
            line, column = places.get(pointer[1:], (None, None))
            found.append({"name": pointer, "line": line, "column": column})
        return found

    def _name(self, token: int) -> str:
        return self._tokens.name(token)

    def _token(self, token: int) -> list[Any]:
        """Return a token as its id, its piece, its sort, and the text to append, if it is text."""
        piece = self._tokens.vocabulary.token_bytes(token)
        shown, sort = piece_of(piece, self._name(token))
        return [token, shown, sort]


def _count(row: Any) -> int:
    return int.from_bytes(np.ascontiguousarray(row).tobytes(), "little").bit_count()


def _first(row: Any, most: int) -> list[int]:
    """Return the first tokens of a mask."""
    words = np.flatnonzero(row)[:most]
    bits = np.unpackbits(row[words].view(np.uint8), bitorder="little").reshape(-1, 32)
    tokens = (words[:, None] * 32 + np.arange(32))[bits.astype(bool)]
    found: list[int] = tokens[:most].tolist()
    return found


def _text(data: bytes) -> str | None:
    """Return bytes as text, or None if they end within a character."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
