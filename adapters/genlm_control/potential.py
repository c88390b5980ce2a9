"""A potential of genlm-control that is a grammar."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np
from genlm.control.potential.base import Potential, VocabTables
from numpy.typing import NDArray

import ffwd
from ffwd import CompiledGrammar, FfwdError, Matcher, Vocabulary
from ffwd.adapters.shared.vocabulary import engine_vocabulary

_REFUSED = float("-inf")
_MATCHERS = 4096
"""How many contexts a potential keeps a matcher for."""


class UnsupportedTokensError(FfwdError):
    """A potential whose tokens have no ids, such as one over bytes."""


class GrammarPotential(Potential):  # type: ignore[misc]
    """A potential whose log weight is 0 for texts and prefixes of a grammar, and -inf for others.

    Multiply it with the language model: `llm * GrammarPotential(grammar, llm)`. Next weights are a
    mask, which the product with a language model reads sparsely.

    A matcher is kept for each of the latest contexts, and a context that is another one with a
    token more costs one step.

    Args:
        grammar: A grammar compiled for `vocabulary_of(llm)`.
        llm: The `PromptedLLM`, or another potential over its tokens, of which this one shares the
            tables.
        canonical: Weigh only sequences of tokens that the tokenizer itself would write; see
            `CompiledGrammar.matcher`.

    Raises:
        TypeError: `grammar` is no compiled grammar.
        UnsupportedTokensError: The tokens of `llm` have no ids below the vocabulary's size.
        VocabularyError: `canonical`, and the vocabulary has no exact `Bpe`.

    """

    def __init__(self, grammar: CompiledGrammar, llm: Any, *, canonical: bool = False) -> None:
        if not isinstance(grammar, CompiledGrammar):
            raise TypeError(
                f"the grammar is a {type(grammar).__name__}; give a CompiledGrammar of ffwd.compile"
            )
        size = grammar.vocabulary.vocab_size
        ids = [getattr(token, "token_id", -1) for token in llm.vocab]
        if not all(0 <= token < size for token in ids):
            raise UnsupportedTokensError(
                f"the tokens of {type(llm).__name__} are not those of the grammar's vocabulary of"
                f" {size} tokens; compile it for vocabulary_of(llm), of a PromptedLLM"
            )
        self._grammar = grammar
        self._llm = llm
        self._canonical = canonical
        # Which place of genlm's vocabulary a token has; it has no end tokens.
        self._places: NDArray[np.int64] = np.full(size, -1, np.int64)
        self._places[ids] = np.arange(len(ids))
        self._bits = ffwd.allocate_bitmask(1, size)
        self._matchers: OrderedDict[tuple[int, ...], Matcher | None] = OrderedDict()
        self._matchers[()] = grammar.matcher(canonical=canonical)
        tables = VocabTables(llm.token_type, llm.eos, llm.vocab_eos, llm.lookup)
        super().__init__(llm.vocab, tables=tables)

    def __repr__(self) -> str:
        return f"GrammarPotential({self._grammar!r})"

    async def prefix(self, context: Sequence[Any]) -> float:
        """Return 0 if a text of the grammar begins with the context's tokens, else -inf."""
        return _REFUSED if self._matcher(context) is None else 0.0

    async def complete(self, context: Sequence[Any]) -> float:
        """Return 0 if the context's tokens are a text of the grammar, else -inf."""
        matcher = self._matcher(context)
        return 0.0 if matcher is not None and matcher.is_accepting() else _REFUSED

    async def sparse_logw_next(
        self, context: Sequence[Any]
    ) -> tuple[NDArray[np.int64], float, float]:
        """Return the places of allowed tokens, their weight 0, and the weight of the end.

        Raises:
            ValueError: The context has the weight -inf itself.

        """
        matcher = self._matcher(context)
        if matcher is None:
            raise ValueError(f"Context {context!r} has weight zero under `prefix`.")
        matcher.fill_bitmask(self._bits, 0)
        flags = np.unpackbits(self._bits.view(np.uint8), bitorder="little")
        places = self._places[np.flatnonzero(flags[: len(self._places)])]
        return places[places >= 0], 0.0, 0.0 if matcher.is_accepting() else _REFUSED

    def spawn(self) -> "GrammarPotential":
        """Return another potential of the same grammar, without matchers."""
        return GrammarPotential(self._grammar, self._llm, canonical=self._canonical)

    def _matcher(self, context: Sequence[Any]) -> Matcher | None:
        """Return the matcher after a context, None if the grammar refuses it."""
        key = tuple(getattr(token, "token_id", -1) for token in context)
        known = self._matchers
        if key not in known:
            start = len(key)
            while key[:start] not in known:
                start -= 1
            base = known[key[:start]]
            matcher = None if base is None else base.fork()
            # A refused token leaves a matcher unusable for the context, and for all beyond.
            if matcher is not None and not _accepts(matcher, key[start:]):
                matcher = None
            known[key] = matcher
            if len(known) > _MATCHERS:
                known.popitem(last=False)
                known.setdefault((), self._grammar.matcher(canonical=self._canonical))
        known.move_to_end(key)
        return known[key]


def _accepts(matcher: Matcher, tokens: Sequence[int]) -> bool:
    size = matcher.grammar.vocabulary.vocab_size
    return all(0 <= token < size and matcher.accept_token(token) for token in tokens)


def vocabulary_of(llm: Any) -> Vocabulary:
    """Return the vocabulary for the grammars of a `PromptedLLM`.

    Raises:
        UnsupportedTokensError: The potential is no language model with a tokenizer.
        VocabularyError: ffwd cannot read the tokenizer.

    """
    tables = getattr(llm, "token_maps", None)
    if tables is None:
        raise UnsupportedTokensError(f"{type(llm).__name__} is no PromptedLLM: it has no tokenizer")
    return engine_vocabulary(
        llm.model.tokenizer,
        vocab_size=max(token.token_id for token in tables.decode) + 1,
        eos_token_ids=tables.eos_idxs,
        stated=False,
    )
