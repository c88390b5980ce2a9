"""The manager of guided decoding of LMDeploy's PyTorch engine, with grammars of ffwd."""

import importlib
import logging
from collections import OrderedDict
from typing import Any

import torch
from lmdeploy._guided_decoding import _grammar_source
from lmdeploy.pytorch.engine.guided_process import GuidedDecodingManager

import ffwd
from ffwd import CompiledGrammar, Grammar, Matcher, Vocabulary, VocabularyError
from ffwd.adapters.logits import apply_token_bitmask_inplace
from ffwd.adapters.shared.requests import GrammarRequest, grammar_of
from ffwd.adapters.shared.vocabulary import engine_vocabulary

_LOGGER = logging.getLogger(__name__)
_KINDS = {"json_schema": "json", "regex_schema": "regex", "structural_tag": "structural_tag"}
_GRAMMARS = 64
"""How many compiled grammars a manager keeps."""


class GrammarProcessor:
    """The state of one sequence: a matcher, or the reason why only the end is allowed.

    An exception would stop all requests of the engine. So after an error, this request alone ends
    with its next token, and the reason is logged.
    """

    def __init__(self, matcher: Matcher | None, *, draft: bool = False) -> None:
        self.matcher = matcher
        self.ended = False
        self._draft = draft

    def fork(self) -> "GrammarProcessor":
        """Return a copy for drafts, whose refused tokens are not logged."""
        return GrammarProcessor(self.matcher and self.matcher.fork(), draft=True)

    def accept(self, token: int, ends: list[int]) -> None:
        """Take a token."""
        matcher = self.matcher
        if matcher is None:
            self.ended = token in ends
        elif 0 <= token < matcher.grammar.vocabulary.vocab_size and matcher.accept_token(token):
            self.ended = matcher.is_terminated()
        else:
            self.matcher = None
            if not self._draft:
                _LOGGER.error("the output ends here: the grammar refuses token %d", token)


class GrammarDecodingManager(GuidedDecodingManager):  # type: ignore[misc]
    """LMDeploy's `GuidedDecodingManager` with grammars of ffwd.

    Args:
        tokenizer: The tokenizer of transformers that the engine has.
        vocab_size: The width of the model's logits.

    Attributes:
        vocabulary: What grammars are compiled for; None if ffwd cannot read the tokenizer. The
            first request with a response format then raises the `VocabularyError`, because LMDeploy
            would decode without any grammar if the manager itself raised it.

    """

    def __init__(self, tokenizer: Any, vocab_size: int | None) -> None:
        # Not that of XGrammar's manager, which reads the tokenizer for XGrammar.
        self.vocab_size: int = max(vocab_size or 0, len(tokenizer))
        self.processors: dict[int, dict[int, GrammarProcessor]] = {}
        self._grammars: OrderedDict[str, CompiledGrammar] = OrderedDict()
        self.vocabulary: Vocabulary | None = None
        self._error: VocabularyError | None = None
        try:
            self.vocabulary = engine_vocabulary(tokenizer, vocab_size=self.vocab_size)
        except VocabularyError as error:
            _LOGGER.error("requests with a response format will fail: %s", error)
            self._error = error

    def compile(self, response_format: dict[str, Any]) -> CompiledGrammar:
        """Return the grammar of a response format, compiled or kept.

        Raises:
            FfwdError: What is wrong with the schema, the expression or the tag.
            ValueError: LMDeploy does not know the form.
            VocabularyError: ffwd cannot read the tokenizer.

        """
        if self.vocabulary is None:
            assert self._error is not None
            raise self._error
        key = repr(response_format)
        grammar = self._grammars.pop(key, None)
        if grammar is None:
            grammar = ffwd.compile(_grammar(response_format), self.vocabulary)
        self._grammars[key] = grammar
        if len(self._grammars) > _GRAMMARS:
            self._grammars.popitem(last=False)
        return grammar

    def get_processor(
        self, session_id: int, seq_id: int, response_format: dict[str, Any]
    ) -> GrammarProcessor:
        """Return the processor of a sequence, made anew for its first step."""
        session = self.processors.setdefault(session_id, {})
        if seq_id not in session:
            matcher: Matcher | None = None
            try:
                matcher = self.compile(response_format).matcher()
            except VocabularyError:
                raise
            except ValueError as error:
                _LOGGER.error("session %d has no output: %s", session_id, error)
            session[seq_id] = GrammarProcessor(matcher)
        return session[seq_id]

    def allocate_batched_bitmap(self, batch_size: int) -> torch.Tensor:
        """Return bitmasks that allow all tokens: int32 [batch_size, words]."""
        return torch.full((batch_size, -(-self.vocab_size // 32)), -1, dtype=torch.int32)

    def fill_bitmap(
        self, processor: GrammarProcessor, guided_bitmask: torch.Tensor, index: int
    ) -> None:
        """Write the allowed tokens of a sequence to a row."""
        bits = guided_bitmask.numpy()
        if processor.matcher is not None:
            processor.matcher.fill_bitmask(bits, index)
            return
        bits[index] = 0
        for token in self._ends():
            bits.view("uint32")[index, token >> 5] |= 1 << (token & 31)

    def accept_token(self, processor: GrammarProcessor, token: int) -> None:
        """Take a token of a sequence."""
        processor.accept(token, self._ends())

    def is_terminated(self, processor: GrammarProcessor) -> bool:
        """Return whether the sequence has its end token."""
        return processor.ended

    def apply_batched_bitmap(self, logits: torch.Tensor, guided_bitmask: torch.Tensor) -> None:
        """Set logits [rows, width] of tokens that are not allowed to -inf, on any device."""
        apply_token_bitmask_inplace(logits, guided_bitmask)

    def _ends(self) -> list[int]:
        return [] if self.vocabulary is None else self.vocabulary.eos_token_ids


def check_response_format(response_format: dict[str, Any]) -> None:
    """Raise what is wrong with a response format, as far as it shows without a vocabulary.

    Raises:
        FfwdError: A schema, an expression or a tag that ffwd refuses.
        ValueError: LMDeploy does not know the form.

    """
    if response_format.get("type", "text") != "text":
        bytes_only = [*(bytes([byte]) for byte in range(256)), None]
        ffwd.compile(_grammar(response_format), ffwd.Vocabulary(bytes_only, eos_token_ids=[256]))


def register() -> None:
    """Let the PyTorch engines that are made from now on in this process use ffwd.

    LMDeploy has no registry. This replaces the name `GuidedDecodingManager` where the engine looks
    for it, and `ensure_response_format_compilable` where requests are checked.
    """
    agent = importlib.import_module("lmdeploy.pytorch.engine.model_agent.agent")
    front = importlib.import_module("lmdeploy.serve.core.async_engine")
    for module, name in (
        (agent, "GuidedDecodingManager"),
        (front, "ensure_response_format_compilable"),
    ):
        if not hasattr(module, name):
            raise ImportError(f"{module.__name__} has no {name}: another version of LMDeploy")
    agent.GuidedDecodingManager = GrammarDecodingManager  # type: ignore[attr-defined]
    front.ensure_response_format_compilable = check_response_format  # type: ignore[attr-defined]


def _grammar(response_format: dict[str, Any]) -> Grammar:
    try:
        kind, source = _grammar_source(response_format)
    except (KeyError, TypeError) as error:
        raise ValueError(f"the response format lacks {error}") from error
    return grammar_of(GrammarRequest(_KINDS[kind], source))
