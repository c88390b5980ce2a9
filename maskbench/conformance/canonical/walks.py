"""Random walks under canonical masks: the tokens must be those of the finished text."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from maskbench.canonicality.forcing import Ffwd
from maskbench.canonicality.variants import Mode
from maskbench.conformance.canonical.wander import Wandered, Wanderer
from maskbench.conformance.gates.guides import Plans
from maskbench.conformance.gates.walks import VocabularyTokens
from maskbench.data import DataError, Source, parse_case
from maskbench.documents import UnwritableSchemaError, prepare
from maskbench.engines.base import RefusedError
from maskbench.sums import added
from maskbench.tokenizer import OutputEncoder, TokenizerSpec

MAX_FREE_STEPS = 40

WAYS = {"masks": False, "forced tokens, then masks": True}
"""Whether a walk takes forced tokens where there are any."""


@dataclass(frozen=True)
class Astray:
    """A walk whose tokens are not those of its text, though no mask fell back."""

    case: str
    mode: Mode
    text: str
    tokens: tuple[int, ...]
    encoded: tuple[int, ...]


@dataclass
class Walked:
    """Walks of one way, and how they ended."""

    walks: int = 0
    tokens: int = 0
    equal: int = 0
    """Walks whose text is encoded into their tokens."""
    unfinished: int = 0
    unreadable: int = 0
    """Walks whose text is not UTF-8."""
    fell_back: int = 0
    """Walks in which a mask could not be canonical."""
    unequal_after_fallback: int = 0
    fallbacks: Counter[str] = field(default_factory=Counter)
    """Masks by the reason for which they are not canonical."""
    mask_us: Counter[int] = field(default_factory=Counter)
    """Masks by their processor time in microseconds, rounded up to two digits."""
    astray: list[Astray] = field(default_factory=list)


def quantile(counts: Counter[int], share: float) -> int:
    """Return the least value that this share of all is at most."""
    left = share * counts.total()
    for value in sorted(counts):
        left -= counts[value]
        if left <= 0:
            return value
    return max(counts, default=0)


@dataclass
class SchemaWalks:
    """The walks on schemas, by way, and the schemas that are left out, by reason."""

    schemas: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    ways: dict[str, Walked] = field(default_factory=lambda: {way: Walked() for way in WAYS})

    def add(self, other: SchemaWalks) -> None:
        """Add the counts of another schema."""
        self.schemas += other.schemas
        self.refused += other.refused
        for way, walked in other.ways.items():
            self.ways[way] = added(self.ways[way], walked)


@dataclass(frozen=True)
class WalkSetup:
    """The arguments of a process."""

    tokenizer: TokenizerSpec
    modes: tuple[Mode, ...]
    walks: int = 1
    """Walks in each mode on each schema."""
    seed: int = 0


class CanonicalWalks:
    """Walks on schema after schema, in a worker process."""

    def __init__(self, setup: WalkSetup) -> None:
        self._setup = setup
        self._engine = Ffwd(setup.tokenizer)
        self._encoder = OutputEncoder(setup.tokenizer)
        self._tokens = VocabularyTokens(self._engine.vocabulary)
        self._wanderer = Wanderer(self._tokens)

    def __call__(self, source: Source) -> SchemaWalks:
        """Return all modes of one schema."""
        result = SchemaWalks()
        self._wanderer.mask_us.clear()
        try:
            case = parse_case(source)
            for mode in self._setup.modes:
                schema = prepare(case, 0, self._encoder, mode.whitespace).job.schema
                grammar = self._engine.compile(schema, mode).grammar
                randomly = random.Random(f"{self._setup.seed} {case.id} {mode.value}")
                plans = Plans(case.schema)
                for way in list(WAYS) * self._setup.walks:
                    matcher = grammar.matcher(canonical=True)
                    walked = self._wanderer.wander(
                        matcher, b"", plans, randomly, randomly.randrange(MAX_FREE_STEPS),
                        forced=WAYS[way],
                    )  # fmt: skip
                    result.ways[way].mask_us += self._wanderer.mask_us
                    self._wanderer.mask_us.clear()
                    fallbacks = Counter(matcher.canonical_fallbacks)
                    self._judge(result.ways[way], case.id, mode, walked, fallbacks)
            result.schemas = 1
        except (DataError, UnwritableSchemaError) as error:
            result.refused[type(error).__name__] += 1
        except RefusedError as error:
            result.refused[error.reason] += 1
        return result

    def _judge(
        self,
        result: Walked,
        case: str,
        mode: Mode,
        walked: Wandered,
        fallbacks: Counter[str],
    ) -> None:
        tokens = walked.tokens
        result.walks += 1
        result.tokens += len(tokens)
        result.fallbacks += fallbacks
        fell_back = fallbacks.total() > 0
        result.fell_back += fell_back
        if not walked.finished:
            result.unfinished += 1
            return
        try:
            text = b"".join(self._tokens.texts[token] or b"" for token in tokens).decode()
        except UnicodeDecodeError:
            result.unreadable += 1
            return
        encoded = self._encoder.encode(text)
        if encoded == tokens:
            result.equal += 1
        elif fell_back:
            result.unequal_after_fallback += 1
        else:
            result.astray.append(Astray(case, mode, text, tuple(tokens), tuple(encoded)))
