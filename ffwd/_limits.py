"""How much a grammar, and each call on one of its texts, may use."""

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on the work and the memory that one grammar can cost, whoever wrote it.

    The defaults are for a server that compiles what strangers send. `None` lifts a limit; what
    remains then are fixed bounds of the core. Passing one is a `LimitExceededError` with its name
    in `limit`, after which everything else works on. See `docs/limits.md`.

    Attributes:
        source_bytes: Bytes of all texts that one grammar is read from: schemas and the documents
            they may refer to, grammars, patterns, literals.
        nesting: Brackets in brackets of one schema, or of one grammar in a notation.
        expression_nodes: Byte expressions of one lexeme, which is a run of text without nesting
            such as a pattern, what was derived from them while texts were read included.
        states: Places in texts that are held for one grammar at a time.
        stacks: Stacks of what is open that are held for one grammar at a time.
        memory_bytes: How much memory may hold what is built lazily for one grammar, masks among it.
            Passing it is no error: everything is let go and begins anew, matchers go on unchanged,
            and read their tokens again with their next step. Twice what the texts in progress
            cannot do without is always granted.
        work_bytes: Memory that one `ffwd.compile`, or one call of a matcher, takes at a time and
            has not given back. A batch of masks has as much for each row.
        compile_steps: Elementary steps, each about a look at a table, of one `ffwd.compile`.
        call_steps: The same of one call of a matcher, such as a mask or a token that is accepted.
            A batch of masks has as many for each row.
        compile_seconds: Wall-clock time of one `ffwd.compile`: a `DeadlineExceededError`.
        call_seconds: The same of one call of a matcher.

    Raises:
        TypeError: A limit that is no number.
        ValueError: A limit that is negative, or a time that is not finite.

    """

    source_bytes: int | None = 4 << 20
    nesting: int | None = 512
    expression_nodes: int | None = 250_000
    states: int | None = 1_000_000
    stacks: int | None = 700_000
    memory_bytes: int | None = 256 << 20
    work_bytes: int | None = 512 << 20
    compile_steps: int | None = 6_000_000
    call_steps: int | None = 6_000_000
    compile_seconds: float | None = 10.0
    call_seconds: float | None = 10.0

    def __post_init__(self) -> None:
        """Check that each limit is a number that can be one."""
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            is_time = field.name.endswith("_seconds")
            kinds = (int, float) if is_time else (int,)
            if isinstance(value, bool) or not isinstance(value, kinds):
                expected = "a number" if is_time else "an integer"
                raise TypeError(
                    f"{field.name} must be {expected} or None, not {type(value).__name__}"
                )
            if value < 0 or not math.isfinite(value):
                raise ValueError(f"{field.name} must be finite and not negative, not {value}")


NO_LIMITS = Limits(**dict.fromkeys((field.name for field in fields(Limits)), None))
"""Nothing is limited but by the fixed bounds of the core."""
