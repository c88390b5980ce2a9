"""The matchers of guided decoding of TensorRT-LLM's PyTorch backend, with grammars of ffwd."""

import importlib
from collections import OrderedDict
from typing import Any

import torch
from tokenizers import Tokenizer

import ffwd
from ffwd import CompiledGrammar, Matcher, VocabularyError
from ffwd.adapters.shared.requests import EngineRequestError, GrammarRequest, grammar_of
from ffwd.adapters.shared.vocabulary import engine_vocabulary

_KINDS = {
    "JSON": "json_object",
    "JSON_SCHEMA": "json",
    "REGEX": "regex",
    "EBNF_GRAMMAR": "grammar",
    "STRUCTURAL_TAG": "structural_tag",
}
_GRAMMARS = 64
"""How many compiled grammars a factory keeps."""


class GuidedMatcher:
    """TensorRT-LLM's `GrammarMatcher` over a matcher of ffwd."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.matcher!r})"

    def accept_token(self, token_id: int) -> bool:
        """Take a token; return False, and change nothing, if the grammar refuses it."""
        matcher = self.matcher
        if matcher.is_terminated() or not 0 <= token_id < matcher.grammar.vocabulary.vocab_size:
            return False
        return matcher.accept_token(token_id)

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens.

        Raises:
            IndexError: More tokens than were accepted.

        """
        self.matcher.rollback(num_tokens)

    def fill_next_token_bitmask(self, next_token_bitmask: torch.Tensor, index: int) -> None:
        """Write the allowed tokens to a row of a bitmask, int32 [rows, words], on the host."""
        self.matcher.fill_bitmask(next_token_bitmask.numpy(), index)

    def is_terminated(self) -> bool:
        """Return whether the sequence has its end token."""
        return self.matcher.is_terminated()


class GuidedMatcherFactory:
    """TensorRT-LLM's `GrammarMatcherFactory` with grammars of ffwd.

    Args:
        guided_decoding_config: TensorRT-LLM's `GuidedDecodingConfig`: `tokenizer_str`, the text of
            a tokenizer.json, and `stop_token_ids`.
        vocab_size_padded: The width of the model's logits.
        max_num_draft_tokens: Is not needed: a matcher takes back any number of tokens.

    Raises:
        VocabularyError: There is no `tokenizer_str`, or ffwd cannot read it.

    """

    def __init__(
        self,
        guided_decoding_config: Any,
        vocab_size_padded: int,
        max_num_draft_tokens: int = 0,
    ) -> None:
        text = guided_decoding_config.tokenizer_str
        if text is None:
            raise VocabularyError(
                "the configuration has no tokenizer_str: ffwd needs a tokenizer.json, "
                "as a fast tokenizer of transformers has"
            )
        self.vocabulary = engine_vocabulary(
            Tokenizer.from_str(text),
            vocab_size=vocab_size_padded,
            eos_token_ids=guided_decoding_config.stop_token_ids or (),
        )
        self._grammars: OrderedDict[GrammarRequest, CompiledGrammar] = OrderedDict()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vocabulary!r}, grammars={len(self._grammars)})"

    def create(self, guided_decoding_params: Any) -> GuidedMatcher:
        """Return a matcher for the `guide_type` and `guide` of a request.

        Raises:
            EngineRequestError: ffwd does not know this type of guide.
            FfwdError: What is wrong with the schema, the expression, the grammar or the tag.

        """
        name = guided_decoding_params.guide_type.name
        kind = _KINDS.get(name)
        if kind is None:
            raise EngineRequestError(
                f"there is no guide of the type {name}, only {', '.join(_KINDS)}"
            )
        request = GrammarRequest(kind, guided_decoding_params.guide or "")
        grammar = self._grammars.pop(request, None)
        if grammar is None:
            grammar = ffwd.compile(grammar_of(request), self.vocabulary)
        self._grammars[request] = grammar
        if len(self._grammars) > _GRAMMARS:
            self._grammars.popitem(last=False)
        return GuidedMatcher(grammar.matcher())


def register() -> None:
    """Let the engines that are made from now on in this process use ffwd for either backend.

    TensorRT-LLM has no registry. This replaces the names of both factories where its decoder looks
    for them, and has its abstract classes know ffwd's.

    Raises:
        ImportError: TensorRT-LLM is missing, or has no such names in this version.

    """
    package = "tensorrt_llm._torch.pyexecutor"
    decoder = importlib.import_module(f"{package}.guided_decoder")
    names = ("XGrammarMatcherFactory", "LLGuidanceMatcherFactory")
    for name in names:
        if not hasattr(decoder, name):
            raise ImportError(f"{decoder.__name__} has no {name}: another version of TensorRT-LLM")
    matchers = importlib.import_module(f"{package}.grammar_matcher")
    matchers.GrammarMatcher.register(GuidedMatcher)
    matchers.GrammarMatcherFactory.register(GuidedMatcherFactory)
    for name in names:
        setattr(decoder, name, GuidedMatcherFactory)
