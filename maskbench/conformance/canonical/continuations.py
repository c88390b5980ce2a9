"""A comparison of forced tokens with the encodings of random continuations.

At positions of a document with forced tokens, the text continues at random as the grammar allows,
and the tokenizer encodes the finished text. Forced tokens outside this encoding are wrong. If the
encoding already differs before them, the random continuation has changed earlier tokens, and the
text says nothing about the forced ones: such texts are skipped and counted.
"""

from __future__ import annotations

import bisect
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import ffwd
from maskbench.canonicality.forcing import Ffwd
from maskbench.canonicality.variants import Mode, Variant
from maskbench.conformance.canonical.wander import Wanderer
from maskbench.conformance.gates.guides import Plans
from maskbench.conformance.gates.walks import VocabularyTokens
from maskbench.data import DataError, Source, parse_case
from maskbench.documents import UnwritableSchemaError, prepare
from maskbench.engines.base import RefusedError
from maskbench.sums import added
from maskbench.tokenizer import OutputEncoder, TokenizerSpec

MAX_FREE_STEPS = 12
_SUFFIX = 12


class ContinuationVerdict(str, Enum):
    """The verdict on one continuation."""

    RIGHT = "right"
    """The forced tokens are those of the finished text."""
    WRONG = "wrong"
    RECUT = "tokens before were cut anew"
    UNFINISHED = "no end was reached"
    UNREADABLE = "the text is not UTF-8"


@dataclass(frozen=True)
class Wrong:
    """Forced tokens that are not those of the finished text."""

    case: str
    mode: Mode
    text: str
    place: int
    forced: tuple[int, ...]
    encoded: tuple[int, ...]


@dataclass
class Checked:
    """Verdicts, and the wrong ones in full."""

    verdicts: Counter[ContinuationVerdict] = field(default_factory=Counter)
    wrong: list[Wrong] = field(default_factory=list)

    @property
    def compared(self) -> int:
        """How many continuations decide whether forced tokens are right."""
        return self.verdicts[ContinuationVerdict.RIGHT] + self.verdicts[ContinuationVerdict.WRONG]


@dataclass(frozen=True)
class ContinuationSetup:
    """The arguments of a process."""

    tokenizer: TokenizerSpec
    modes: tuple[Mode, ...]
    variant: Variant
    places: int = 2
    """Places of a document."""
    continuations: int = 2
    """Continuations from one place."""
    seed: int = 0


class ContinuationGate:
    """Checks case after case, in a worker process."""

    def __init__(self, setup: ContinuationSetup) -> None:
        self._setup = setup
        self._engine = Ffwd(setup.tokenizer)
        self._encoder = OutputEncoder(setup.tokenizer)
        self._tokens = VocabularyTokens(self._engine.vocabulary)
        self._wanderer = Wanderer(self._tokens)
        self._sorted = sorted(self._wanderer.by_text)
        self._options = dict(setup.variant.options)

    def __call__(self, source: Source) -> Checked:
        """Return all modes of one case."""
        result = Checked()
        try:
            case = parse_case(source)
            for mode in self._setup.modes:
                job = prepare(case, 0, self._encoder, mode.whitespace).job
                documents = [document.tokens for document in job.documents if document.valid]
                randomly = random.Random(f"{self._setup.seed} {case.id} {mode.value}")
                compiled = self._engine.compile(job.schema, mode)
                plans = Plans(case.schema)
                for document in documents:
                    if compiled.accepts(document):
                        place = _Document(case.id, plans, mode, list(document))
                        result = added(result, self._check(compiled.grammar, place, randomly))
        except (DataError, UnwritableSchemaError, RefusedError):
            pass  # the counts of the other commands tell of these
        return result

    def _check(
        self, grammar: ffwd.CompiledGrammar, document: _Document, randomly: random.Random
    ) -> Checked:
        """Check some of the positions of one document with forced tokens."""
        result = Checked()
        forcing = self._forcing_places(grammar, document.tokens)
        for place in randomly.sample(forcing, min(self._setup.places, len(forcing))):
            matcher = grammar.matcher()
            matcher.accept_tokens(document.tokens[:place])
            forced = matcher.fast_forward_tokens(**self._options)
            if not matcher.accept_tokens(forced):
                raise RuntimeError(f"forced tokens {forced} are refused")
            for number in range(self._setup.continuations):
                ways = (self._by_tokens, self._by_bytes, self._across)
                way = ways[(place + number) % len(ways)]
                text = self._bytes([*document.tokens[:place], *forced])
                fork = matcher.fork()
                begun = way(fork, text, randomly)
                after = self._wanderer.wander(
                    fork, text + self._bytes(begun), document.plans, randomly,
                    randomly.randrange(MAX_FREE_STEPS),
                )  # fmt: skip
                whole = text + self._bytes([*begun, *after.tokens])
                verdict = self._judge(whole, after.finished, document, place, forced, result)
                result.verdicts[verdict] += 1
        return result

    def _judge(
        self,
        whole: bytes,
        finished: bool,
        document: _Document,
        place: int,
        forced: Sequence[int],
        result: Checked,
    ) -> ContinuationVerdict:
        if not finished:
            return ContinuationVerdict.UNFINISHED
        try:
            text = whole.decode()
        except UnicodeDecodeError:
            return ContinuationVerdict.UNREADABLE
        encoded = self._encoder.encode(text)
        end = place + len(forced)
        if encoded[:place] != document.tokens[:place]:
            return ContinuationVerdict.RECUT
        if encoded[place:end] == list(forced):
            return ContinuationVerdict.RIGHT
        result.wrong.append(
            Wrong(
                document.case, document.mode, text, place, tuple(forced), tuple(encoded[place:end])
            )
        )
        return ContinuationVerdict.WRONG

    def _forcing_places(self, grammar: ffwd.CompiledGrammar, tokens: Sequence[int]) -> list[int]:
        matcher = grammar.matcher()
        places = []
        for place, token in enumerate(tokens):
            if matcher.fast_forward_tokens(**self._options):
                places.append(place)
            matcher.accept_token(token)
        return places

    def _by_tokens(self, matcher: ffwd.Matcher, text: bytes, randomly: random.Random) -> list[int]:
        """Return no bytes: the masks decide the continuation."""
        return []

    def _by_bytes(self, matcher: ffwd.Matcher, text: bytes, randomly: random.Random) -> list[int]:
        """Return some single bytes, each allowed one being equally likely."""
        begun: list[int] = []
        for _ in range(randomly.randrange(1, 8)):
            bits = self._wanderer.allowed(matcher)
            allowed = [token for token in self._tokens.single.values() if bits[token]]
            if not allowed:
                break
            begun.append(randomly.choice(allowed))
            matcher.accept_token(begun[-1])
        return begun

    def _across(self, matcher: ffwd.Matcher, text: bytes, randomly: random.Random) -> list[int]:
        """Return the bytes that complete the last ones to a token, if the grammar accepts it."""
        lengths = list(range(1, min(_SUFFIX, len(text)) + 1))
        randomly.shuffle(lengths)
        for length in lengths:
            longer = self._longer(text[-length:])
            for rest in randomly.sample(longer, min(4, len(longer))):
                single = [self._tokens.single.get(bytes([byte])) for byte in rest]
                begun = [token for token in single if token is not None]
                if len(begun) == len(single) and matcher.accept_tokens(begun):
                    return begun
        return self._by_bytes(matcher, text, randomly)

    def _longer(self, suffix: bytes) -> list[bytes]:
        """Return the rests of the tokens that start with the suffix."""
        start = bisect.bisect_right(self._sorted, suffix)
        stop = bisect.bisect_left(self._sorted, suffix + b"\xff" * 4, start)
        return [text[len(suffix) :] for text in self._sorted[start:stop]]

    def _bytes(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self._tokens.texts[token] or b"" for token in tokens)


@dataclass(frozen=True)
class _Document:
    case: str
    plans: Plans
    mode: Mode
    tokens: list[int]
