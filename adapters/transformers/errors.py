"""Errors of generation with `transformers` under a grammar."""

from ffwd import FfwdError
from ffwd.adapters.shared import sequence


class RefusedTokenError(sequence.RefusedTokenError):
    """A row holds a token that its grammar refuses, so its text is no longer in the language.

    Attributes:
        row: Row of the batch, beams and returned sequences counted as rows.
        token: The refused token id.
        position: Its place among the generated tokens of that row, from 0.

    """

    def __init__(self, *, row: int, token: int, position: int, text: bytes | None) -> None:
        shown = "no text" if text is None else repr(text)
        FfwdError.__init__(
            self,
            f"row {row}: the grammar refuses token {token} ({shown}) at position {position} of the"
            " generated tokens; a logits processor that runs after the grammar may have chosen it,"
            " or, if it is a draft that is still to be verified, raise max_draft_tokens",
        )
        self.row = row
        self.token = token
        self.position = position


class NoTokenLeftError(sequence.NoTokenLeftError):
    """Every token that the grammar allows in a row has the score -inf.

    Another logits processor (`min_length`, `bad_words_ids`, …) and the grammar contradict each
    other, or the model gives -inf. Continuing would choose a token that the grammar refuses.

    Attributes:
        row: Row of the batch.

    """

    def __init__(self, *, row: int) -> None:
        FfwdError.__init__(
            self,
            f"row {row}: every token that the grammar allows has the score -inf; another logits"
            " processor or generation option rules out what the grammar needs",
        )
        self.row = row


class UnsupportedGenerationError(FfwdError):
    """`fast_forward_generate` cannot honour a generation option.

    Attributes:
        option: Name of the option, as `generate()` spells it.

    """

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"fast_forward_generate does not support {option}: {reason}")
        self.option = option


class ContinuousBatchingError(FfwdError):
    """Continuous batching cannot be constrained in this way.

    Attributes:
        option: The unsupported option or feature.

    """

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"continuous batching with grammars does not support {option}: {reason}")
        self.option = option


class ModelError(FfwdError):
    """A directory that is no model, or whose tokenizer belongs to another one."""
