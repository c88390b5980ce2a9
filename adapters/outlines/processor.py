"""The logits processor of `outlines.Generator`."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import numpy as np
from outlines.processors import OutlinesLogitsProcessor

import ffwd
from ffwd import CompiledGrammar, FfwdError, Vocabulary
from ffwd.adapters.outlines.output_types import grammar_of
from ffwd.adapters.shared.sequence import GrammarOrStart, GrammarSequence
from ffwd.adapters.shared.vocabulary import engine_vocabulary
from ffwd.chat import Start
from ffwd.grammar import Writing, WritingOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

_LOGGER = logging.getLogger(__name__)


class UnsupportedModelError(FfwdError):
    """A model of outlines whose logits ffwd cannot mask.

    Attributes:
        model: The name of the model's class.

    """

    def __init__(self, model: Any, reason: str) -> None:
        self.model = type(model).__name__
        super().__init__(f"the outlines model {self.model} is not supported: {reason}")


class GrammarLogitsProcessor(OutlinesLogitsProcessor):  # type: ignore[misc]
    """A logits processor that allows only the tokens of a grammar.

    Pass it as `outlines.Generator(model, processor=...)`. A generator resets its processor before
    each call, so one serves all calls of its generator, one after the other.

    Args:
        model: The model of outlines: `Transformers`, `LlamaCpp` or `MLXLM`.
        output_type: An output type of outlines, a grammar of ffwd, or one that is compiled; the
            `Start` of a prompt of `ffwd.chat`; or a list of these with one for each prompt of
            `generator.batch`.
        vocabulary: That of `vocabulary_of(model)`, which is otherwise made anew.
        canonical: Allow only tokens that keep the text a tokenization of the tokenizer itself; see
            `CompiledGrammar.matcher`.
        narrow: For forced text, allow only the token with which the tokenizer encodes it.
        max_tokens: The most output tokens, the end token included; other tokens are excluded in
            time. Pass the model's own limit, and no text is truncated.
        **options: How JSON is written: the options of `ffwd.json_schema`.

    Raises:
        BudgetError: No output ends within `max_tokens`.
        FfwdError: What is wrong with a schema, an expression or a grammar.
        UnsupportedModelError: Another model, or a list of types for one without batches.
        UnsupportedOutputTypeError: A type that is no type of outlines.
        VocabularyError: ffwd cannot read the tokenizer, or `canonical` or `narrow` with a
            vocabulary that has no exact `Bpe`.

    Attributes:
        error: llama-cpp-python drops errors of processors. There, this is what ended the output
            early, and `check` raises it.

    """

    def __init__(
        self,
        model: Any,
        output_type: Any,
        *,
        vocabulary: Vocabulary | None = None,
        canonical: bool = False,
        narrow: bool = False,
        max_tokens: int | None = None,
        **options: Unpack[WritingOptions],
    ) -> None:
        library = getattr(model, "tensor_library_name", None)
        if library not in ("torch", "numpy", "mlx"):
            raise UnsupportedModelError(
                model,
                f"ffwd masks logits of torch, NumPy and mlx, not of {library or 'no library'}",
            )
        if vocabulary is None and not _compiled(output_type):
            vocabulary = vocabulary_of(model)
        writing = Writing(**options)
        given = output_type if isinstance(output_type, list) else [output_type]
        grammars = [_compile(one, vocabulary, writing) for one in given]
        self.error: Exception | None = None
        # The same for all libraries: raises what is wrong with the options.
        chosen: dict[str, Any] = {"canonical": canonical, "narrow": narrow}
        self._sequences = [
            GrammarSequence(one, max_tokens=max_tokens, **chosen) for one in grammars
        ]
        chosen["max_tokens"] = max_tokens
        self._inner: Any = None
        if library == "torch":
            from ffwd.adapters import transformers

            rows = grammars if isinstance(output_type, list) else grammars[0]
            # As the processors of outlines do: its models return texts only, no logits.
            self._inner = transformers.GrammarLogitsProcessor(rows, in_place=True, **chosen)
        elif len(grammars) != 1:
            raise UnsupportedModelError(model, "it generates no batches under a processor")
        elif library == "mlx":
            from ffwd.adapters import mlx_lm

            self._inner = mlx_lm.GrammarLogitsProcessor(grammars[0], **chosen)
        super().__init__(library)

    def reset(self) -> None:
        """Take the next ids for a new prompt; a generator calls it."""
        self.error = None
        if self._inner is not None:
            self._inner.reset()
        for sequence in self._sequences:
            sequence.reset()

    def process_logits(self, input_ids: Any, logits: Any) -> Any:
        """Return the logits with -inf for every token that the grammar does not allow.

        Logits of torch are changed in place.

        Args:
            input_ids: Shape [rows, length], of the model's library.
            logits: Shape [rows, width].

        Raises:
            NoTokenLeftError: All allowed tokens have the score -inf already.
            RefusedTokenError: The grammar refuses a token that was chosen.
            VocabularyError: The vocabulary is larger than `width`.

        """
        if self._inner is not None:
            ids = input_ids[0] if self.tensor_adapter.library_name == "mlx" else input_ids
            return self._inner(ids, logits)
        # llama.cpp shows logits that lie among other data.
        masked = np.array(logits)
        for ids, row in zip(input_ids, masked, strict=True):
            self._mask(self._sequences[0], ids, row)
        return masked

    def check(self) -> None:
        """Raise `error` if there is one."""
        if self.error is not None:
            raise self.error

    def _mask(self, sequence: GrammarSequence, ids: Any, scores: Any) -> None:
        if self.error is None:
            try:
                sequence.follow(ids)
                sequence.apply(scores)
                return
            # llama.cpp would print and drop it, and the scores would stay unmasked.
            except Exception as error:
                _LOGGER.error("the text ends here: %s", error)
                self.error = error
        sequence.only_ends(scores)


def vocabulary_of(model: Any) -> Vocabulary:
    """Return the vocabulary of a model of outlines: `Transformers`, `LlamaCpp` or `MLXLM`.

    Raises:
        UnsupportedModelError: Another model.
        VocabularyError: ffwd cannot read the tokenizer.

    """
    library = getattr(model, "tensor_library_name", None)
    if library == "numpy":
        from ffwd.adapters import llama_cpp

        vocabulary: Vocabulary = llama_cpp.vocabulary_of(model.model)
        return vocabulary
    if library == "mlx":
        from ffwd.adapters import mlx_lm

        return mlx_lm.vocabulary_of(model.model, model.mlx_tokenizer)
    if library != "torch":
        raise UnsupportedModelError(model, "it is no model of transformers, llama.cpp or mlx-lm")
    ends = getattr(model.model.generation_config, "eos_token_id", None)
    return engine_vocabulary(
        model.hf_tokenizer,
        vocab_size=model.model.config.get_text_config(decoder=True).vocab_size,
        eos_token_ids=[] if ends is None else ends if isinstance(ends, list) else [ends],
    )


def _compiled(output_type: Any) -> bool:
    given = output_type if isinstance(output_type, list) else [output_type]
    return all(isinstance(one, (CompiledGrammar, Start)) for one in given)


def _compile(given: Any, vocabulary: Vocabulary | None, writing: Writing) -> GrammarOrStart:
    if vocabulary is None or isinstance(given, (CompiledGrammar, Start)):
        compiled: GrammarOrStart = given
        return compiled
    return ffwd.compile(grammar_of(given, writing), vocabulary)
