"""Counters of one `generate()` call."""

from dataclasses import dataclass, field, fields

from ffwd.view import Recording


@dataclass(frozen=True, kw_only=True)
class GenerationStats:
    """The statistics of one generation.

    Attributes:
        forward_passes: Calls of the model. For a `GrammarLogitsProcessor`: calls of the processor.
        tokens: Generated tokens of all rows: end tokens counted, padding and prompts not.
        forced_tokens: Those of them that were appended without a forward pass of their own.
        masks: Token bitmasks that were computed.
        mask_nanoseconds: Wall-clock time spent on accepting tokens, filling bitmasks and
            fast-forwarding; writing masks to the scores is not in it.

    """

    forward_passes: int = 0
    tokens: int = 0
    forced_tokens: int = 0
    masks: int = 0
    mask_nanoseconds: int = 0

    def __add__(self, other: "GenerationStats") -> "GenerationStats":
        names = (each.name for each in fields(self))
        return GenerationStats(**{n: getattr(self, n) + getattr(other, n) for n in names})


@dataclass(frozen=True, kw_only=True)
class TokenTrace:
    """One generated token.

    Attributes:
        row: Row of the batch.
        token: Token id.
        allowed: Number of tokens that the mask left to choose from; None where no mask was
            computed.
        forced: True where the token was appended without a forward pass of its own.

    """

    row: int
    token: int
    allowed: int | None
    forced: bool


@dataclass
class GenerationReport:
    """Give one to `fast_forward_generate(report=...)`; it is filled in when generation ends.

    Attributes:
        trace: Ask for `tokens`.
        stats: The counters of the last generation.
        tokens: With `trace`, one entry per generated token, in the order of appending.
        record: Ask for `recordings`. It costs up to a millisecond a token, most of it for the
            model's probabilities; `stats` do not count it.
        title: What the recordings are about.
        recordings: With `record`, one for each row, which `save` as a picture: what was sampled,
            forced and healed, what was allowed and what the model made of it (`ffwd.view`).
        masses: Ask for `log_masses`. It costs a log-sum-exp of each row of logits, the logits of
            forced tokens, and one more pass over forced tokens at the end.
        log_masses: With `masses`, one tuple for each row, with a number in nats for each of its
            tokens: the log probability that the model gave to all allowed tokens. Of a forced token
            it is that of the token. The distribution is the model's own, before processors,
            temperature and cuts. Their sum is the log importance weight of the text. After an error
            a row may lack its last ones, or have one that no token followed.

    """

    trace: bool = False
    record: bool = False
    title: str = ""
    stats: GenerationStats = field(default_factory=GenerationStats)
    tokens: list[TokenTrace] = field(default_factory=list)
    recordings: list[Recording] = field(default_factory=list)
    masses: bool = False
    log_masses: list[tuple[float, ...]] = field(default_factory=list)
