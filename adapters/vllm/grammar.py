"""vLLM's two abstract classes for structured output, on top of ffwd."""

import logging
from typing import Any

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

import ffwd
from ffwd.adapters.shared.environment import is_on
from ffwd.adapters.shared.requests import GrammarRequest
from ffwd.adapters.shared.warming import build_masks, constraint, start_warming
from ffwd.adapters.vllm.requests import GrammarStore, grammar_request
from ffwd.engine import EngineRequest

NARROW_VARIABLE = "FFWD_VLLM_NARROW"
"""Set to 0, masks allow every tokenization of forced text."""

_logger = logging.getLogger("vllm.plugins.ffwd")


class FfwdGrammar(EngineRequest, StructuredOutputGrammar):  # type: ignore[misc]
    """The state of one request; all that vLLM calls is native.

    A client's `stop_token_ids` end the text as the model's end tokens do: they are masked until the
    text can end.

    Args:
        grammar: The request's grammar.
        stop_token_ids: What stops the request.
        narrow: As for `EngineRequest`.

    """


class FfwdBackend(StructuredOutputBackend):  # type: ignore[misc]
    """One engine's grammars.

    Raises:
        VocabularyError: ffwd cannot read the engine's tokenizer.
        FfwdError: An environment variable of ffwd's has an unusable value.
        WarmingError: The file that `FFWD_WARM` names, or a line of it, is unusable.

    """

    def __init__(
        self, vllm_config: Any, tokenizer: Any, vocab_size: int, *, store: GrammarStore
    ) -> None:
        super().__init__(vllm_config, tokenizer, vocab_size)
        self._config = vllm_config.structured_outputs_config
        self._cache = store.cache(vllm_config.model_config, tokenizer)
        self._narrow = is_on(NARROW_VARIABLE)
        self.warming = start_warming(self._asked, self._build, _logger)

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> FfwdGrammar:
        """Return the grammar of a request, compiled in this thread if it is not cached.

        Raises:
            FfwdError: What is wrong with the grammar, and where.

        """
        request = grammar_request(request_type.name, grammar_spec, self._config)
        is_new = self._cache.kept(request) is None
        grammar = FfwdGrammar(self._cache.get(request), stop_token_ids, narrow=self._narrow)
        if is_new:
            # In a thread of vLLM's. Masks that are missing in a step delay the whole batch.
            grammar.build_ahead()
        return grammar

    def _asked(self, line: dict[str, Any]) -> GrammarRequest:
        kind, text = constraint(line)
        return grammar_request(kind.upper(), text, self._config)

    def _build(self, request: GrammarRequest) -> None:
        build_masks(self._cache.get(request, counts=False), narrow=self._narrow)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Return memory for rows that allow every token."""
        width = self._cache.vocabulary.vocab_size
        return torch.from_numpy(ffwd.allocate_bitmask(max_num_seqs, width))

    def destroy(self) -> None:
        """Evict the grammars."""
        self._cache.clear()
