"""Two engines walk through the same text, and their masks are compared at every step.

Without a peer the subject walks alone, and is checked against itself: a continuation exists, and
its mask's bits equal its verdicts on single tokens.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from maskbench.conformance.differential.reports import CaseReport
from maskbench.conformance.gates.guides import Guide, Place
from maskbench.conformance.gates.walks import Tokens
from maskbench.engines.base import Compiled, Session

Bits = npt.NDArray[np.uint8]

_SORTS = {
    b'"': "a string or name",
    b"{": "an object",
    b"[": "an array",
    b"}": "the end of an object",
    b"]": "the end of an array",
    b",": "a comma",
    b"t": "true",
    b"f": "false",
    b"n": "null",
}
# Tokens for which the subject is asked whether it would accept them, at each place.
_ASKED = 4
# How many one-sided tokens are examined at one position, and how many of a sort in a case.
_LOOKED_AT = 64
_OF_A_SORT = 3
_AT_A_PLACE = 3


@dataclass(frozen=True)
class Contestant:
    """An engine that has compiled the case, and the vocabulary with its bitmask."""

    name: str
    compiled: Compiled
    tokens: Tokens

    def mask(self, session: Session) -> Bits:
        """Return the current mask of a session, one number per token."""
        session.fill()
        return self.tokens.allowed()

    def accepts(self, text: bytes) -> bool:
        """Return whether a whole text is accepted, in tokens of one byte."""
        session = self.compiled.session()
        if not all(session.accept(self.tokens.single[bytes([byte])]) for byte in text):
            return False
        mask = self.mask(session)
        return any(mask[end] for end in self.tokens.ends)


@dataclass(frozen=True)
class Spot:
    """A position with the text before it, and the token in question."""

    taken: tuple[int, ...]
    prefix: bytes
    token: int
    is_end: bool
    where: str
    """What of JSON the token begins in or with."""

    only: str
    """`subject` or `peer`: who allows it; `both` or `neither` of drawn ones."""


def spot_at(subject: Contestant, peer: Contestant, prefix: bytes, token: bytes | None) -> Spot:
    """Return the position after a text, in byte tokens, and a token there; None is the end.

    Raises `ValueError` if an engine does not get there.
    """
    tokens = subject.tokens
    taken = tuple(tokens.single[bytes([byte])] for byte in prefix)
    wanted = min(tokens.ends) if token is None else tokens.texts.index(token)
    place = Place()
    place.append(prefix)

    def allows(contestant: Contestant) -> bool:
        session = contestant.compiled.session()
        if not all(session.accept(one) for one in taken):
            raise ValueError(f"{contestant.name} does not accept {prefix!r}")
        return bool(contestant.mask(session)[wanted])

    only = {(True, False): "subject", (False, True): "peer", (True, True): "both"}
    where = _where(place, token is None, token or b"")
    return Spot(
        taken,
        prefix,
        wanted,
        token is None,
        where,
        only.get((allows(subject), allows(peer)), "neither"),
    )


@dataclass
class SideBySide:
    """The walks of one case."""

    subject: Contestant
    peer: Contestant | None
    report: CaseReport
    examine: Callable[[Spot], None]
    """Is asked about tokens that only one allows."""

    examine_drawn: Callable[[Spot], None] | None = None
    """Is asked about tokens on which both agree, some at each place."""

    contradicted: Callable[[Spot, str], None] = lambda spot, detail: None
    stuck: Callable[[bytes], None] = lambda prefix: None
    """Is told of an empty mask of the subject."""

    drawn: int = 0
    """How many tokens `examine_drawn` is asked about."""

    _seen: Counter[tuple[object, ...]] = field(default_factory=Counter)

    def walk(
        self,
        source: random.Random,
        guide: Guide,
        steps: int,
        follow: Sequence[int] = (),
        *,
        free: int,
        longest: float = math.inf,
    ) -> list[int]:
        """Walk along `follow` while both allow it, then at random; return the tokens.

        After `free` steps by chance it goes for the end. It stops in front of a token that makes
        the text longer than `longest` bytes.
        """
        subject, peer, report = self.subject, self.peer, self.report
        report.walks += 1
        guide.start()
        session = subject.compiled.session()
        other = None if peer is None else peer.compiled.session()
        taken: list[int] = []
        ends = subject.tokens.ends
        following = list(reversed(follow))
        chance_steps = 0
        for _ in range(steps):
            bits = subject.mask(session)
            if not bits.any():
                self.stuck(bytes(guide.place.text))
                return taken
            common = bits
            self._ask(source, session, bits, taken, guide)
            if peer is None or other is None:
                report.alone += 1
            else:
                theirs = peer.mask(other)
                problem = other.problem()
                if problem is not None:
                    report.add("peer gave up", " ".join(problem.split())[:60])
                    peer = other = None
                    continue
                report.states += 1
                report.bits += len(bits)
                common = bits & theirs
                self._compare(source, bits, theirs, taken, guide.place)
            allowed = np.flatnonzero(common)
            going_on = allowed[~np.isin(allowed, list(ends))]
            if not len(going_on):
                return taken
            token = following.pop() if following else None
            if token is None or not common[token]:
                following = []
                chance_steps += 1
                token = guide.next(source, common, going_on, ending=chance_steps > free)
            text = subject.tokens.texts[token]
            if text is not None and len(guide.place.text) + len(text) > longest:
                return taken
            if text is None or not session.accept(token):
                spot = self._spot(taken, guide.place, token, "subject")
                self.contradicted(spot, "the mask allows it and `accept_token` does not")
                return taken
            if other is not None and not other.accept(token):
                report.add("peer gave up", "refuses a token that its mask allows")
                peer = other = None
            guide.append(text)
            taken.append(token)
        return taken

    def _ask(
        self,
        source: random.Random,
        session: Session,
        bits: Bits,
        taken: Sequence[int],
        guide: Guide,
    ) -> None:
        """Return whether `validate_tokens` says of single tokens what the mask says."""
        if session.validate is None:
            return
        allowed = np.flatnonzero(bits)
        tokens = [source.randrange(len(bits)) for _ in range(_ASKED)]
        tokens += [int(allowed[source.randrange(len(allowed))]) for _ in range(_ASKED)]
        for token in tokens:
            if token in self.subject.tokens.ends:
                continue
            if session.validate([token]) != bits[token]:
                spot = self._spot(taken, guide.place, token, "subject" if bits[token] else "peer")
                self.contradicted(
                    spot, f"the mask's bit is {bits[token]}, `validate_tokens` differs"
                )

    def _compare(
        self, source: random.Random, bits: Bits, theirs: Bits, taken: Sequence[int], place: Place
    ) -> None:
        differing = np.flatnonzero(bits != theirs)
        if len(differing):
            self.report.differing_states += 1
            self.report.differing_bits += len(differing)
        for only, found in (
            ("subject", differing[bits[differing] == 1]),
            ("peer", differing[bits[differing] == 0]),
        ):
            for token in self._interesting(source, only, found, place):
                self.report.examined += 1
                self.examine(self._spot(taken, place, token, only))
        if self.examine_drawn is not None:
            agreeing = np.flatnonzero(bits == theirs)
            both = agreeing[bits[agreeing] == 1]
            for tokens, only in ((both, "both"), (agreeing[bits[agreeing] == 0], "neither")):
                for _ in range(min(self.drawn, len(tokens))):
                    self.report.examined += 1
                    token = int(tokens[source.randrange(len(tokens))])
                    self.examine_drawn(self._spot(taken, place, token, only))

    def _interesting(
        self, source: random.Random, only: str, found: npt.NDArray[np.intp], place: Place
    ) -> list[int]:
        """Return few tokens of many: some of every sort, and sometimes of a known sort."""
        some = found.tolist()
        if len(some) > _LOOKED_AT:
            some = source.sample(some, _LOOKED_AT)
        chosen: list[int] = []
        source.shuffle(some)
        for token in some:
            if len(chosen) == _AT_A_PLACE:
                break
            sort = (only, *self._sort(token, place))
            if self._seen[sort] < _OF_A_SORT or source.random() < 0.002:
                self._seen[sort] += 1
                chosen.append(token)
        return chosen

    def _sort(self, token: int, place: Place) -> tuple[object, ...]:
        text = self.subject.tokens.texts[token]
        if text is None or not text:
            return (token,)
        if b"\x7f" in text:
            return ("U+007F",)
        before = _kind(place.text[-1]) if place.text else ""
        return place.in_string, place.in_key, before, _kind(text[0]), len(text) > 1

    def _spot(self, taken: Sequence[int], place: Place, token: int, only: str) -> Spot:
        ends = self.subject.tokens.ends
        text = self.subject.tokens.texts[token]
        where = _where(place, token in ends, text or b"")
        return Spot(tuple(taken), bytes(place.text), token, token in ends, where, only)


def _kind(byte: int) -> str:
    if byte >= 0x80:
        return "within a character" if byte < 0xC0 else "a character"
    char = chr(byte)
    return "digit" if char.isdigit() else "letter" if char.isalpha() else char


def _where(place: Place, is_end: bool, text: bytes) -> str:
    if is_end:
        return "the end"
    if b"\x7f" in text:
        return "U+007F"
    if place.in_string:
        return "in a name" if place.in_key else "in a string"
    if place.text[-1:].isdigit() or text[:1].isdigit() or text[:1] in (b"-", b"."):
        return "a number"
    if text[:1] in _SORTS:
        return _SORTS[text[:1]]
    return "between tokens of JSON"
