"""The patches that add a backend to vLLM.

vLLM has no registry for backends of structured output. In each supported version, the patches wrap
the type of `StructuredOutputsConfig.backend` and the checks beside it, the validation of a request,
and the construction of `StructuredOutputManager`. With another backend each of them behaves as
before.
"""

import functools
from collections.abc import Callable
from typing import Any

from ffwd.adapters.vllm.drafts import draft_limit
from ffwd.adapters.vllm.naming import BACKEND, extend_config
from ffwd.adapters.vllm.requests import GrammarStore, grammar_request
from ffwd.adapters.vllm.splice import extend_worker

_WRAPPED = "__ffwd_wrapped__"

# Fields of a request that vLLM has and gives to no backend.
_REQUEST_OPTIONS = ("disable_any_whitespace", "disable_additional_properties", "whitespace_pattern")


def extend() -> None:
    """Add the backend to a supported version; what was added before is left as it is."""
    store = GrammarStore()
    extend_manager(store)
    extend_validation(store)
    extend_runner_choice()
    extend_worker()
    # Last, so that the name is known only if everything else is patched.
    extend_config()


def extend_validation(store: GrammarStore) -> None:
    """Let `SamplingParams` check a request's grammar with ffwd."""
    from vllm.sampling_params import SamplingParams

    def wrap(original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def validate(self: Any, model_config: Any, config: Any, tokenizer: Any) -> None:
            if config is None or config.backend != BACKEND or self.structured_outputs is None:
                original(self, model_config, config, tokenizer)
            else:
                _validate(store, self, model_config, config, tokenizer)

        return validate

    _wrap(SamplingParams, "_validate_structured_outputs", wrap)


def _validate(
    store: GrammarStore, params: Any, model_config: Any, config: Any, tokenizer: Any
) -> None:
    """Compile the request's grammar, so that its client hears what is wrong with it.

    Raises:
        VLLMValidationError: vLLM's error for bad requests, an answer with status 400.

    """
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.structured_output.request import get_structured_output_key

    structured = params.structured_outputs
    if model_config.is_diffusion:
        raise VLLMValidationError("structured outputs are not supported for diffusion models")
    if tokenizer is None:
        raise VLLMValidationError(
            "structured outputs need a tokenizer, so they cannot be used with skip_tokenizer_init"
        )
    if structured._backend not in (None, BACKEND):
        raise VLLMValidationError(
            f"the request asks for the backend {structured._backend!r}, but vLLM runs with"
            f" {BACKEND!r}, and there is one backend for all requests"
        )
    for option in _REQUEST_OPTIONS:
        if getattr(structured, option):
            raise VLLMValidationError(
                f"{option} is not an option of one request: vLLM does not tell its backends of it",
                parameter=f"structured_outputs.{option}",
            )
    if structured.json_object is False:
        raise VLLMValidationError(
            "json_object must be true, or left out", parameter="structured_outputs.json_object"
        )
    # Also for input that `get_structured_output_key` cannot read, such as a schema that contains
    # itself.
    try:
        option, spec = get_structured_output_key(structured)
        store.cache(model_config, tokenizer).get(grammar_request(option.name, spec, config))
    except (ValueError, TypeError, RecursionError) as error:
        raise VLLMValidationError(
            f"{type(error).__name__}: {error}", parameter="structured_outputs"
        ) from error
    structured._backend = BACKEND


def extend_manager(store: GrammarStore) -> None:
    """Let `StructuredOutputManager` begin with ffwd's backend where that is configured.

    It makes a backend with the first request otherwise. So a tokenizer that ffwd cannot read keeps
    the engine from starting, and the first request does not wait for the vocabulary.
    """
    from vllm.v1.structured_output import StructuredOutputManager

    from ffwd.adapters.vllm.drafts import install
    from ffwd.adapters.vllm.grammar import FfwdBackend, FfwdGrammar
    from ffwd.adapters.vllm.step import extend_step

    def with_backend(original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def make(self: Any, vllm_config: Any) -> None:
            original(self, vllm_config)
            model_config = vllm_config.model_config
            if vllm_config.structured_outputs_config.backend != BACKEND:
                return
            # Without a tokenizer vLLM refuses every request for structured output.
            if model_config.skip_tokenizer_init:
                return
            self.backend = FfwdBackend(
                vllm_config, self.tokenizer, model_config.get_vocab_size(), store=store
            )
            self.backend_name = BACKEND
            # Only the engine's process needs the scheduler, and it makes one after this.
            from ffwd.adapters.vllm.ahead import extend_scheduler

            extend_scheduler(_wrap)

        return make

    _wrap(StructuredOutputManager, "__init__", with_backend)
    extend_step(StructuredOutputManager, _wrap)
    install(StructuredOutputManager, FfwdGrammar)


def extend_runner_choice() -> None:
    """Let the model runner V2 take `ForcedDrafts` where the backend is ffwd's."""
    from vllm.config import VllmConfig

    def wrap(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
        @functools.wraps(original)
        def unsupported(self: Any) -> list[str]:
            found = original(self)
            if draft_limit(self) and self.structured_outputs_config.backend == BACKEND:
                return [name for name in found if name != "speculative method 'custom_class'"]
            return found

        return unsupported

    _wrap(VllmConfig, "_get_v2_model_runner_unsupported_features", wrap)


def _wrap(owner: type, name: str, wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace a method, once."""
    original = getattr(owner, name)
    if getattr(original, _WRAPPED, False):
        return
    wrapped = wrap(original)
    setattr(wrapped, _WRAPPED, True)
    setattr(owner, name, wrapped)
