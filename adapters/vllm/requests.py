"""vLLM's requests as grammars, and the compiled ones of this process."""

import os
from threading import Lock
from typing import Any

from ffwd import FfwdError
from ffwd.adapters.shared.cache import DEFAULT_CACHE_BYTES, GrammarCache
from ffwd.adapters.shared.metrics import process_metrics
from ffwd.adapters.shared.requests import EngineRequestError, GrammarRequest
from ffwd.adapters.shared.vocabulary import engine_vocabulary

# How many MiB the compiled grammars of a process may hold together.
CACHE_VARIABLE = "FFWD_VLLM_CACHE_MB"

# The names of vLLM's `StructuredOutputOptions`.
_KINDS = {
    "JSON": "json",
    "JSON_OBJECT": "json_object",
    "REGEX": "regex",
    "GRAMMAR": "grammar",
    "CHOICE": "choice",
    "STRUCTURAL_TAG": "structural_tag",
}


def grammar_request(name: str, spec: str, config: Any) -> GrammarRequest:
    """Return a request of vLLM's, with the defaults of a `StructuredOutputsConfig`.

    Raises:
        EngineRequestError: A type that vLLM has and ffwd does not know.

    """
    kind = _KINDS.get(name)
    if kind is None:
        raise EngineRequestError(
            f"ffwd does not know vLLM's structured outputs of type {name}, only {', '.join(_KINDS)}"
        )
    compact = config.disable_any_whitespace
    return GrammarRequest(kind, spec, whitespace="compact" if compact else "consistent")


class GrammarStore:
    """The grammars of a process, by tokenizer: one for the client's side and the engine's.

    Both are in one process with `VLLM_ENABLE_V1_MULTIPROCESSING=0`, and then share their grammars.
    """

    MAX_TOKENIZERS = 4

    def __init__(self) -> None:
        self._lock = Lock()
        # The caches with their tokenizers, which are compared by identity.
        self._caches: list[tuple[Any, int, GrammarCache]] = []

    def cache(self, model_config: Any, tokenizer: Any) -> GrammarCache:
        """Return the grammar cache for a model and its tokenizer.

        Raises:
            VocabularyError: ffwd cannot read the tokenizer.

        """
        vocab_size = model_config.get_vocab_size()
        with self._lock:
            for known, width, cache in self._caches:
                if known is tokenizer and width == vocab_size:
                    return cache
            vocabulary = engine_vocabulary(
                tokenizer,
                vocab_size=vocab_size,
                eos_token_ids=_end_tokens(model_config, tokenizer),
                stated=False,
            )
            made = GrammarCache(vocabulary, max_bytes=cache_bytes(), metrics=process_metrics())
            self._caches.append((tokenizer, vocab_size, made))
            for _, _, old in self._caches[: -self.MAX_TOKENIZERS]:
                old.close()
            del self._caches[: -self.MAX_TOKENIZERS]
            return made


def cache_bytes() -> int:
    """Return how many bytes the compiled grammars of a process may hold.

    Raises:
        FfwdError: The environment variable is no number of MiB.

    """
    text = os.environ.get(CACHE_VARIABLE)
    if text is None:
        return DEFAULT_CACHE_BYTES
    if not text.isdecimal() or not int(text):
        raise FfwdError(f"{CACHE_VARIABLE} must be a number of MiB, 1 or more, not {text!r}")
    return int(text) << 20


def _end_tokens(model_config: Any, tokenizer: Any) -> set[int]:
    """Return the end tokens of every request: the tokenizer's, and the generation config's."""
    found = model_config.try_get_generation_config().get("eos_token_id")
    ends = {found} if isinstance(found, int) else set(found or ())
    if tokenizer.eos_token_id is not None:
        ends.add(tokenizer.eos_token_id)
    return ends
