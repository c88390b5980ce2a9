"""Bounds on the work and memory of a grammar and of each call of its matchers."""

import math
from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds on the work and the memory that one grammar may use.

    The defaults suit a server that compiles untrusted grammars. `None` removes a limit; fixed
    bounds of the core remain. An exceeded limit raises `LimitExceededError` with its name in
    `limit`, and the process remains usable. See `docs/limits.md`.

    Attributes:
        source_bytes: Bytes of all texts that one grammar is compiled from: schemas and the
            documents they refer to, grammars, patterns, literals.
        nesting: The depth of brackets in one schema, or in one grammar in a notation.
        expression_nodes: Byte expressions of one lexeme, which is a part without nesting such as a
            pattern. Those derived while matching are included.
        states: Automaton states of one grammar in memory at a time.
        stacks: Stacks of open constructs of one grammar in memory at a time.
        memory_bytes: The memory for lazily built states and masks of one grammar. Exceeding it
            raises no error: everything is evicted, and matchers parse their tokens again with their
            next step. Twice the memory that the current matchers need is always granted.
        work_bytes: Memory that one `ffwd.compile`, or one call of a matcher, holds at a time. A
            batch of masks may use as much for each row.
        compile_steps: Elementary steps, each about one table look-up, of one `ffwd.compile`.
        call_steps: The same of one call of a matcher, such as a mask or an accepted token. A batch
            of masks may use as many for each row.
        compile_seconds: Wall-clock seconds of one `ffwd.compile`, else a `DeadlineExceededError`.
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
        """Check that each limit is a non-negative number."""
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
