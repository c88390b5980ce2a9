"""Counters of one `generate()` call."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class GenerationStats:
    """What one generation cost.

    Attributes
    ----------
    forward_passes : int
        Calls of the model. For a `GrammarLogitsProcessor`: calls of the processor.
    tokens : int
        Generated tokens of all rows: end tokens counted, padding and prompts not.
    forced_tokens : int
        Those of them that were appended without a forward pass of their own.
    masks : int
        Token bitmasks that were computed.
    mask_nanoseconds : int
        Wall-clock time spent on accepting tokens, filling bitmasks and fast-forwarding; writing
        masks to the scores is not in it.
    """

    forward_passes: int = 0
    tokens: int = 0
    forced_tokens: int = 0
    masks: int = 0
    mask_nanoseconds: int = 0


@dataclass(frozen=True, kw_only=True)
class TokenTrace:
    """One generated token.

    Attributes
    ----------
    row : int
        Row of the batch.
    token : int
        Token id.
    allowed : int or None
        Number of tokens that the mask left to choose from; None where no mask was computed.
    forced : bool
        True where the token was appended without a forward pass of its own.
    """

    row: int
    token: int
    allowed: int | None
    forced: bool


@dataclass
class GenerationReport:
    """Give one to `fast_forward_generate(report=...)`; it is filled in when generation ends.

    Attributes
    ----------
    trace : bool
        Ask for `tokens`.
    stats : GenerationStats
        The counters of the last generation.
    tokens : list of TokenTrace
        With `trace`, one entry per generated token, in the order of appending.
    """

    trace: bool = False
    stats: GenerationStats = field(default_factory=GenerationStats)
    tokens: list[TokenTrace] = field(default_factory=list)
