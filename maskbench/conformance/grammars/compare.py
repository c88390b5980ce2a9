"""Two engines walk side by side through a grammar of the corpus; their masks must be equal.

Walks follow the examples of a case, mutations of them, what their own masks allow at random, and
mutations of the texts that this finds. A text is followed until both engines refuse a token of it.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskbench.conformance.grammars.cases import GrammarCase
from maskbench.conformance.grammars.examples import TOKENS, ContinuationEncoder, mutated
from maskbench.engines import Engine, EngineSetup, find
from maskbench.engines.base import Compiled, RefusedError, Session, token_texts
from maskbench.tokenizer import BYTES_NAME

Bits = npt.NDArray[np.uint8]

_SHOWN = 8
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf]")


@dataclass(frozen=True)
class CompareSettings:
    """The same for every case."""

    setup: EngineSetup
    subject: str
    peers: dict[str, str]
    """By the format of the case."""

    seed: int
    walks: int
    """Of each sort: mutations, random walks, mutations of what these found."""

    steps: int
    """The most of one walk."""


@dataclass(frozen=True)
class Difference:
    """A place at which two masks are not equal."""

    walk: str
    text: bytes
    subject_only: tuple[str, ...]
    """Some of the tokens that only the subject allows, and below those that only the peer does."""

    peer_only: tuple[str, ...]
    counts: tuple[int, int]


@dataclass
class GrammarReport:
    """The result of one case."""

    name: str
    kind: str
    peer: str
    refused: dict[str, str] = field(default_factory=dict)
    """By the engine: why it does not take the grammar."""

    wrong_examples: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    gave_up: str | None = None
    """What an engine reported in the midst of a walk, such as a limit of its own."""

    walks: int = 0
    masks: int = 0
    skipped: str | None = None


class GrammarComparison:
    """Lives in a process of its own, with both engines."""

    def __init__(self, settings: CompareSettings) -> None:
        self._settings = settings
        spec = settings.setup.tokenizer
        self._engines: dict[str, Engine] = {}
        self._encoder = ContinuationEncoder(spec)
        self._texts = token_texts(spec)
        self._ends = frozenset(spec.eos_token_ids)
        # XGrammar reads the names of special tokens as text.
        texts = [text is not None or token in self._ends for token, text in enumerate(self._texts)]
        self._is_text = np.array(texts, dtype=np.uint8)

    def __call__(self, case: GrammarCase, seed: int | None = None) -> GrammarReport:
        """Compile the case for both and walks; ends with the first difference.

        `seed` takes the place of that of the settings.
        """
        settings = self._settings
        peer = settings.peers[case.kind]
        report = GrammarReport(case.name, case.kind, peer)
        if not self._encoder.knows(case):
            report.skipped = "the vocabulary lacks its special tokens"
            return report
        compiled: dict[str, Compiled] = {}
        for name in (settings.subject, peer):
            found = self._compile(name, case)
            if isinstance(found, Compiled):
                compiled[name] = found
            else:
                report.refused[name] = found
        if len(compiled) == 2:
            self._walk_all(case, compiled, report, settings.seed if seed is None else seed)
        for name, one in compiled.items():
            self._check_examples(case, name, one, report)
        return report

    def _engine(self, name: str) -> Engine:
        if name not in self._engines:
            self._engines[name] = find(name)(self._settings.setup)
        return self._engines[name]

    def _compile(self, name: str, case: GrammarCase) -> Compiled | str:
        try:
            return self._engine(name).compile_grammar(case.kind, case.text)
        except RefusedError as error:
            return error.detail

    def _check_examples(
        self, case: GrammarCase, name: str, compiled: Compiled, report: GrammarReport
    ) -> None:
        # Ids of tokens are bytes only where every byte is one.
        if TOKENS in case.tags and self._settings.setup.tokenizer.name != BYTES_NAME:
            return
        examples = [(t, True) for t in case.accepted] + [(t, False) for t in case.rejected]
        for text, expected in examples:
            if self._accepts(name, compiled, self._encoder.encode(text)) is not expected:
                verdict = "refused" if expected else "accepted"
                report.wrong_examples.append(f"{name} {verdict} {text!r}")

    def _accepts(self, name: str, compiled: Compiled, tokens: Sequence[int]) -> bool:
        session = compiled.session()
        if not all(session.accept(token) for token in tokens):
            return False
        session.fill()
        bits = self._bits(name)
        return any(bits[end] for end in self._ends)

    def _walk_all(
        self, case: GrammarCase, compiled: dict[str, Compiled], report: GrammarReport, seed: int
    ) -> None:
        source = random.Random(f"{seed} {case.name}")
        examples = [*case.accepted, *case.rejected]
        likely = sorted({token for text in examples for token in self._encoder.encode(text)})
        for walk, tokens in self._plans(source, case):
            follower = _Follower(tokens) if tokens is not None else _Wanderer(source, likely)
            self._walk(walk, follower, compiled, report)
            if report.differences or report.gave_up is not None:
                return
            if isinstance(follower, _Wanderer) and follower.taken:
                text = b"".join(self._texts[t] or b"" for t in follower.taken)
                changed = mutated(source, [text.decode(errors="replace"), *case.accepted])
                self._walk(
                    f"{walk}, changed", _Follower(self._encoder.encode(changed)), compiled, report
                )
                if report.differences:
                    return

    def _plans(
        self, source: random.Random, case: GrammarCase
    ) -> Iterator[tuple[str, list[int] | None]]:
        for text in (*case.accepted, *case.rejected):
            yield f"example {text!r}", self._encoder.encode(text)
        for number in range(self._settings.walks):
            text = mutated(source, case.accepted)
            yield f"mutation {number}", self._encoder.encode(text)
        for number in range(self._settings.walks):
            yield f"random {number}", None

    def _walk(
        self,
        walk: str,
        follower: _Follower | _Wanderer,
        compiled: dict[str, Compiled],
        report: GrammarReport,
    ) -> None:
        report.walks += 1
        names = list(compiled)
        sessions = {name: compiled[name].session() for name in names}
        taken: list[int] = []
        for _ in range(self._settings.steps):
            masks = [self._mask(name, sessions[name]) for name in names]
            if any(name.startswith("xgrammar") for name in names):
                masks = [mask & self._is_text for mask in masks]
            problem = self._problem(sessions)
            if problem is not None:
                report.gave_up = problem
                return
            report.masks += 1
            if any(name.startswith("xgrammar") for name in names):
                self._forgive_surrogates(taken, masks)
            if not np.array_equal(masks[0], masks[1]):
                report.differences.append(self._difference(walk, taken, masks))
                return
            token = follower.next(masks[0], self._ends)
            if token is None or not masks[0][token]:
                return
            for name in names:
                if not sessions[name].accept(token):
                    problem = f"{name} allows token {token} and refuses it"
                    report.gave_up = self._problem(sessions) or problem
                    return
            taken.append(token)

    def _mask(self, name: str, session: Session) -> Bits:
        session.fill()
        return self._bits(name)

    def _bits(self, name: str) -> Bits:
        words = self._engines[name].bitmask.view(np.uint8)
        return np.unpackbits(words, bitorder="little")[: len(self._texts)]

    def _forgive_surrogates(self, taken: Sequence[int], masks: Sequence[Bits]) -> None:
        """Excuse surrogates, which XGrammar reads as characters and UTF-8 cannot have."""
        before = b"".join(self._texts[t] or b"" for t in taken[-3:])[-2:]
        for token in np.flatnonzero(masks[1] & ~masks[0] & 1):
            if _SURROGATE.search(before + (self._texts[token] or b"")):
                masks[1][token] = 0

    @staticmethod
    def _problem(sessions: dict[str, Session]) -> str | None:
        for name, session in sessions.items():
            problem = session.problem()
            if problem is not None:
                return f"{name}: {problem}"
        return None

    def _difference(self, walk: str, taken: Sequence[int], masks: Sequence[Bits]) -> Difference:
        subject, peer = masks
        only = [np.flatnonzero(subject & ~peer & 1), np.flatnonzero(peer & ~subject & 1)]
        return Difference(
            walk,
            b"".join(self._texts[t] or f"<[{t}]>".encode() for t in taken),
            self._named(only[0]),
            self._named(only[1]),
            (len(only[0]), len(only[1])),
        )

    def _named(self, tokens: npt.NDArray[np.intp]) -> tuple[str, ...]:
        # The shortest say most.
        found = [("END" if t in self._ends else repr(self._texts[t] or t)) for t in tokens[:5000]]
        return tuple(sorted(found, key=lambda name: (name != "END", len(name)))[:_SHOWN])


class _Follower:
    """Goes along given tokens, and ends with the last."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._left = iter(tokens)

    def next(self, mask: Bits, ends: frozenset[int]) -> int | None:
        """Return the next token, allowed or not."""
        return next(self._left, None)


class _Wanderer:
    """Takes what the mask allows: half of the time what occurs in examples, or any token."""

    def __init__(self, source: random.Random, likely: Sequence[int]) -> None:
        self._source = source
        self._likely = likely
        self.taken: list[int] = []

    def next(self, mask: Bits, ends: frozenset[int]) -> int | None:
        """Return a token that continues the text, if any."""
        allowed: list[int] = []
        if self._source.random() < 0.6:
            allowed = [token for token in self._likely if mask[token]]
        if not allowed:
            allowed = [token for token in np.flatnonzero(mask).tolist() if token not in ends]
        if not allowed:
            return None
        token = self._source.choice(allowed)
        self.taken.append(token)
        return token


def default_peers() -> dict[str, str]:
    """Return the peers with masks that read each format."""
    lark = "llguidance-unforced"
    return {"lark": lark, "regex": lark, "gbnf": "xgrammar", "ebnf": "xgrammar"}


__all__ = ["CompareSettings", "Difference", "GrammarComparison", "GrammarReport", "default_peers"]
