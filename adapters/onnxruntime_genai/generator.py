"""A generator of ONNX Runtime GenAI under a grammar."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime_genai as og
from numpy.typing import NDArray

import ffwd
from ffwd import FfwdError, VocabularyError
from ffwd.adapters.shared.sequence import GrammarOrStart, GrammarSequence, NoTokenLeftError


class UnsupportedGenerationError(FfwdError):
    """A search option that cannot be combined with a grammar.

    Attributes:
        option: Name of the option, as `set_search_options` names it.

    """

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"GrammarGenerator does not support {option}: {reason}")
        self.option = option


class GrammarGenerator:
    """An `og.Generator` that allows only the tokens of a grammar.

    Its loop is that of `og.Generator`. After each token, the tokens that the grammar forces are
    appended: they pass through the model together, and no step samples them.

    Args:
        model: The `og.Model`.
        params: Its `og.GeneratorParams`, with search options.
        grammar: A `CompiledGrammar`, or the `Start` of a prompt of `ffwd.chat`, whose `prompt_ids`
            are then the prompt; or a list with one for each row of `batch_size`.
        canonical: Allow only tokens that keep the text a tokenization of the tokenizer itself; see
            `CompiledGrammar.matcher`.
        fast_forward: Whether forced tokens are appended, in a batch of one row. In larger batches
            rows have different forced tokens, and og appends the same number to each.
        max_tokens: The most output tokens, the end token included; other tokens are excluded in
            time. Its `max_length` is that of the prompt and `max_tokens`, and no text is truncated.

    Raises:
        BudgetError: No output of a grammar ends within `max_tokens`.
        TypeError: A grammar is neither.
        UnsupportedGenerationError: `num_beams` or `num_return_sequences` is greater than 1, or
            there are more or fewer grammars than rows.
        VocabularyError: `canonical`, and the vocabulary has no exact `Bpe`; or the grammars have
            different vocabularies.

    Attributes:
        generator: The `og.Generator`.
        forced: How many tokens were appended.

    """

    def __init__(
        self,
        model: Any,
        params: Any,
        grammar: GrammarOrStart | Sequence[GrammarOrStart],
        *,
        canonical: bool = False,
        fast_forward: bool = True,
        max_tokens: int | None = None,
    ) -> None:
        options = params.get_search_options()
        for option in ("num_beams", "num_return_sequences"):
            if options.get(option, 1) > 1:
                raise UnsupportedGenerationError(
                    f"{option}={options[option]:g}", "the rows of a prompt change places"
                )
        rows = int(options.get("batch_size", 1))
        given = [grammar] * rows if isinstance(grammar, GrammarOrStart) else list(grammar)
        if len(given) != rows:
            raise UnsupportedGenerationError(
                f"batch_size={rows}", f"{len(given)} grammars; give one, or one for each row"
            )
        self._rows = [
            GrammarSequence(one, canonical=canonical, max_tokens=max_tokens) for one in given
        ]
        first = self._rows[0].vocabulary
        if any(row.vocabulary.vocab_size != first.vocab_size for row in self._rows):
            raise VocabularyError("the grammars were compiled for different vocabularies")
        self._bits = ffwd.allocate_bitmask(rows, first.vocab_size)
        self._room = int(options["max_length"])
        self._prompt = 0
        self._fast_forward = fast_forward and rows == 1 and _encodes(self._rows[0])
        self._outputs: list[list[int]] = [[] for _ in given]
        self.forced = 0
        self.generator = og.Generator(model, params)

    @property
    def outputs(self) -> list[list[int]]:
        """The output tokens of each row, its end token included."""
        return self._outputs

    def append_tokens(self, prompt: Any) -> None:
        """Take the prompt: int32 [length] or [rows, length], with padding on the left.

        Raises:
            ValueError: Another prompt than that of a `Start`, or another number of rows.
            UnsupportedGenerationError: There is output already.

        """
        if any(self._outputs):
            raise UnsupportedGenerationError("append_tokens after the first token", "make another")
        prompt = np.asarray(prompt, dtype=np.int32)
        rows = prompt.reshape(len(self._rows), -1)
        for row, ids in zip(self._rows, rows, strict=True):
            row.begin(ids.tolist())
        self._prompt = rows.shape[1]
        self.generator.append_tokens(rows if len(rows) > 1 else rows[0])
        self._force()

    def is_done(self) -> bool:
        """Return whether all rows have ended, or `max_length` is reached."""
        return all(row.ended for row in self._rows) or bool(self.generator.is_done())

    def generate_next_token(self) -> None:
        """Generate a token for each row, and append the forced ones after it.

        Raises:
            NoTokenLeftError: All allowed tokens of a row have the logit -inf.
            RefusedTokenError: og chose a token that the grammar refuses: another option excluded
                all others.
            VocabularyError: The vocabulary is larger than the logits are wide.

        """
        # A copy: og keeps its logits elsewhere.
        logits: NDArray[np.float32] = np.array(self.generator.get_logits(), dtype=np.float32)
        scores = logits.reshape(len(self._rows), -1)
        self._rows[0].check_width(scores.shape[1])
        for at, row in enumerate(self._rows):
            self._bits[at] = row.mask()[0]
        size = self._rows[0].vocabulary.vocab_size
        if ffwd.apply_token_bitmask_inplace(scores, self._bits, vocab_size=size):
            raise NoTokenLeftError
        self.generator.set_logits(logits)
        self.generator.generate_next_token()
        for row, output, token in zip(
            self._rows, self._outputs, self.generator.get_next_tokens().tolist(), strict=True
        ):
            if not row.ended:
                row.accept(token)
                output.append(token)
        self._force()

    def rewind_to(self, count: int) -> None:
        """Take back output tokens until the sequence of one row has `count`, with its prompt.

        Raises:
            UnsupportedGenerationError: Several rows, or it would take back the prompt.

        """
        if len(self._rows) != 1:
            raise UnsupportedGenerationError("rewind_to", "og rewinds one row only")
        output = self._outputs[0]
        # Of the end token og keeps no count.
        back = self._prompt + len(output) - count
        if not 0 <= back <= len(output):
            raise UnsupportedGenerationError(
                f"rewind_to({count})", f"there are {len(output)} output tokens"
            )
        self._rows[0].take_back(back)
        del output[len(output) - back :]
        if back and int(self.generator.token_count()) == count:
            # After an end token alone, og would stay at its end.
            last = self.generator.get_sequence(0)[-1:].astype(np.int32)
            self.generator.rewind_to(count - 1)
            self.generator.append_tokens(last)
        else:
            self.generator.rewind_to(count)

    def _force(self) -> None:
        """Append the forced tokens, as far as `max_length` allows."""
        if not self._fast_forward or self.generator.is_done():
            return
        room = self._room - int(self.generator.token_count()) - 1
        tokens = self._rows[0].forced(max_tokens=room) if room > 0 else []
        if tokens:
            for token in tokens:
                self._rows[0].accept(token)
            self._outputs[0].extend(tokens)
            self.forced += len(tokens)
            self.generator.append_tokens(np.array(tokens, dtype=np.int32))


def _encodes(row: GrammarSequence) -> bool:
    """Return whether forced text can be tokenized."""
    try:
        row.vocabulary.encode(b"")
    except VocabularyError:
        return False
    return True
