"""A grammar as a filter of ExLlamaV3's generator."""

from typing import Any

import numpy as np
import torch
from exllamav3.generator.filter import Filter

from ffwd import Vocabulary
from ffwd.adapters.shared.sequence import GrammarOrStart, GrammarSequence
from ffwd.adapters.shared.vocabulary import engine_vocabulary


class GrammarFilter(Filter):  # type: ignore[misc]
    """A filter that allows only the tokens of a grammar, for one job.

    It is completed when only the end is left, so a job with `eos_after_completed=True` saves the
    pass for the end token. Banned strings roll it back.

    Args:
        tokenizer: The tokenizer of ExLlamaV3.
        grammar: A `CompiledGrammar`, or the `Start` of a prompt of `ffwd.chat`, whose `prompt_ids`
            are then the prompt.
        trigger_token: The token after which the filter begins, and begins anew; None for the first.
        eos_after_completed: Whether the job ends with the grammar. Otherwise it continues without.
        canonical: Allow only tokens that keep the text a tokenization of the tokenizer itself; see
            `CompiledGrammar.matcher`.
        narrow: For forced text, allow only the token with which the tokenizer encodes it.
        max_tokens: The most tokens of the grammar, the end token included; other tokens are
            excluded in time.

    Raises:
        BudgetError: No output of the grammar ends within `max_tokens`.
        TypeError: `grammar` is neither.
        VocabularyError: `canonical` or `narrow`, and the vocabulary has no exact `Bpe`.

    """

    def __init__(
        self,
        tokenizer: Any,
        grammar: GrammarOrStart,
        trigger_token: int | None = None,
        *,
        eos_after_completed: bool = False,
        canonical: bool = False,
        narrow: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__(tokenizer, trigger_token, None, eos_after_completed)
        self._sequence = GrammarSequence(
            grammar, canonical=canonical, narrow=narrow, max_tokens=max_tokens
        )
        self._ends = np.zeros((1, -(-grammar.vocabulary.vocab_size // 32)), dtype=np.int32)
        for token in grammar.vocabulary.eos_token_ids:
            self._ends.view(np.uint32)[0, token >> 5] |= np.uint32(1 << (token & 31))
        self._accepted = 0

    def reset(self) -> None:
        """Begin anew."""
        self._sequence.take_back(self._accepted)
        self._accepted = 0

    def accept_token(self, token: int) -> None:
        """Take a token.

        Raises:
            RefusedTokenError: The grammar refuses it.

        """
        if not self._sequence.ended:
            self._sequence.accept(token)
            self._accepted += 1

    def rollback_tokens(self, num_tokens: int) -> bool:
        """Take back the last tokens; False if there are fewer."""
        if num_tokens > self._accepted:
            return False
        self._sequence.take_back(num_tokens)
        self._accepted -= num_tokens
        return True

    def get_next_logit_mask(self) -> torch.Tensor:
        """Return the bitmask of the allowed tokens, int32 [1, words] in CPU memory.

        The next call overwrites it. ExLlamaV3 excludes what lies past its width.
        """
        return torch.from_numpy(self._sequence.mask())

    def is_completed(self) -> bool:
        """Return whether the output has ended, or only the end is left."""
        if self._sequence.ended:
            return True
        return self._sequence.matcher.is_accepting() and bool(
            np.array_equal(self._sequence.mask(), self._ends)
        )


def vocabulary_of(tokenizer: Any) -> Vocabulary:
    """Return the vocabulary for the grammars of a tokenizer of ExLlamaV3.

    Its end tokens are those of the model's configuration, and those that the tokenizer states.

    Raises:
        VocabularyError: ffwd cannot read the tokenizer, or nothing says what ends an output.

    """
    config = getattr(tokenizer, "config", None)
    ends = list(getattr(config, "eos_token_id_list", None) or ())
    own = getattr(tokenizer, "eos_token_id", None)
    if own is not None and own not in ends:
        ends.append(own)
    return engine_vocabulary(tokenizer, eos_token_ids=ends, stated=False)
