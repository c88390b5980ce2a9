"""The logits processor of `mlx_lm.generate`, and the vocabulary of its models."""

from typing import Any

import mlx.core as mx
import numpy as np

from ffwd import Vocabulary
from ffwd.adapters.shared.sequence import GrammarOrStart, GrammarSequence, NoTokenLeftError
from ffwd.adapters.shared.vocabulary import engine_vocabulary


class GrammarLogitsProcessor:
    """A logits processor that allows only the tokens of a grammar.

        mlx_lm.generate(model, tokenizer, prompt, logits_processors=[processor])

    It works in `generate`, `stream_generate` with or without a draft model, and in a
    `BatchGenerator`, where each sequence needs a processor of its own. It serves several calls, one
    after the other. A prompt that is the old prompt with the beginning of its output counts as its
    continuation; call `reset` to avoid this.

    The mask is made on the host while the model computes the logits, and applied by the model's
    device; logits are never copied to the host.

    Args:
        grammar: A `CompiledGrammar`, or the `Start` of a prompt of `ffwd.chat`, whose `prompt_ids`
            are then the prompt.
        canonical: Allow only tokens that keep the text a tokenization of the tokenizer itself; see
            `CompiledGrammar.matcher`.
        narrow: For forced text, allow only the token with which the tokenizer encodes it.
        max_tokens: The most output tokens, the end token included; other tokens are excluded in
            time. Pass the `max_tokens` of `generate`, and no text is truncated.

    Raises:
        BudgetError: No output of the grammar ends within `max_tokens`.
        TypeError: `grammar` is neither.
        VocabularyError: `canonical` or `narrow`, and the vocabulary has no exact `Bpe`.

    """

    # mlx-vlm then yields a decoded token before it reads the prompts of other requests.
    requires_immediate_decode_yield = True

    def __init__(
        self,
        grammar: GrammarOrStart,
        *,
        canonical: bool = False,
        narrow: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        self._options: Any = {"canonical": canonical, "narrow": narrow, "max_tokens": max_tokens}
        self._grammar = grammar
        self._sequence = GrammarSequence(grammar, **self._options)
        self._left: mx.array | None = None

    def __repr__(self) -> str:
        return f"GrammarLogitsProcessor({self._grammar!r})"

    @property
    def masks(self) -> int:
        """How many masks were made since the prompt."""
        return self._sequence.masks

    def reset(self) -> None:
        """Take the next ids for a new prompt."""
        self._sequence.reset()
        self._left = None

    def clone(self) -> "GrammarLogitsProcessor":
        """Return a processor of the same grammar and options, for another sequence."""
        return GrammarLogitsProcessor(self._grammar, **self._options)

    def __call__(self, tokens: mx.array, logits: mx.array) -> mx.array:
        """Return the logits with -inf for every token that the grammar does not allow.

        Args:
            tokens: The ids so far, shape [length] or [1, length].
            logits: Shape [width] or [1, width], any floating type.

        Raises:
            NoTokenLeftError: All tokens that the grammar allowed at the step before had the score
                -inf.
            RefusedTokenError: The grammar refuses a token that was chosen.
            SharedProcessorError: Two sequences have this processor at the same time.
            ValueError: Several rows.
            VocabularyError: The vocabulary is larger than `width`.

        """
        width = logits.shape[-1]
        if logits.size != width:
            raise ValueError(
                f"logits of the shape {logits.shape} are those of several sequences: give each a"
                " processor of its own"
            )
        self._sequence.check_width(width)
        # The device computes the logits while the host makes the mask.
        mx.async_eval(logits)
        left, self._left = self._left, None
        ids = np.array(tokens.reshape(-1))
        if left is not None and not left.item():
            raise NoTokenLeftError
        self._sequence.follow(ids)
        # A byte for each token, which is less work than unpacking bits on the device. Columns past
        # the tokens are the model's padding.
        allowed = np.zeros(width, np.bool_)
        bits = np.unpackbits(self._sequence.mask()[0].view(np.uint8), bitorder="little")
        covered = min(width, len(bits))
        allowed[:covered] = bits[:covered]
        masked = mx.where(mx.array(allowed), logits, mx.array(-mx.inf, logits.dtype))
        # Read at the next step, when it is computed anyway.
        self._left = (masked > -mx.inf).any()
        return masked


def vocabulary_of(model: Any, tokenizer: Any) -> Vocabulary:
    """Return the vocabulary for the grammars of a model.

    Args:
        model: A model of `mlx_lm.load`, or the width of its logits.
        tokenizer: Its tokenizer: a `TokenizerWrapper`, or one of transformers.

    Raises:
        VocabularyError: ffwd cannot read the tokenizer, or nothing says what ends an output.

    """
    width = model if isinstance(model, int) else _width(model)
    ends = getattr(tokenizer, "eos_token_ids", None) or ()
    inner = getattr(tokenizer, "_tokenizer", tokenizer)
    return engine_vocabulary(inner, vocab_size=width, eos_token_ids=ends)


def _width(model: Any) -> int:
    """Return the width of the logits, which models have under different names."""
    logits = model(mx.array([[0]]))
    return int(getattr(logits, "logits", logits).shape[-1])
