"""The grammar backend of SGLang: from a request's text to a grammar object."""

import json
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
    register_vocab_mask_buffer,
)
from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.runtime_context import get_serving

import ffwd
from ffwd import FfwdError, Vocabulary
from ffwd.adapters.sglang import grammar as grammars
from ffwd.adapters.sglang.cache import GrammarObjectCache
from ffwd.adapters.sglang.grammar import FfwdGrammar
from ffwd.adapters.sglang.step import extend_step
from ffwd.adapters.sglang.tags import as_structural_tag
from ffwd.adapters.shared.cache import DEFAULT_CACHE_BYTES, GrammarCache
from ffwd.adapters.shared.environment import is_on
from ffwd.adapters.shared.metrics import process_metrics
from ffwd.adapters.shared.requests import GrammarRequest
from ffwd.adapters.shared.vocabulary import engine_vocabulary
from ffwd.adapters.shared.warming import build_masks, constraint, start_warming
from ffwd.grammar import Writing

CACHE_BYTES_VARIABLE = "FFWD_CACHE_BYTES"
NARROW_VARIABLE = "FFWD_SGLANG_NARROW"
"""Set to 0, masks allow every tokenization of forced text."""

# SGLang's name for any JSON value.
_ANY_JSON = "$$ANY$$"
# What SGLang makes of `response_format: {"type": "json_object"}`.
_ANY_OBJECT = '{"type": "object"}'
_AS_IT_COMES = Writing()

_logger = logging.getLogger(__name__)


class FfwdGrammarBackend(BaseGrammarBackend):  # type: ignore[misc]
    """Compiles grammars, in the threads of SGLang's executor.

    Args:
        vocabulary: The model's tokens.
        writing: How JSON is written.
        cache_bytes: How many bytes of compiled grammars are kept for requests to come. Those that
            requests in progress use are held by these.
        narrow: As for `ffwd.engine.EngineRequest`.

    Raises:
        WarmingError: The file that `FFWD_WARM` names, or a line of it, is unusable.

    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        writing: Writing = _AS_IT_COMES,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        narrow: bool = True,
    ) -> None:
        super().__init__()
        self._narrow = narrow
        self.vocabulary = vocabulary
        self._framed_vocabulary = vocabulary
        self._writing = writing
        # This one holds grammars in compilation, and those that SGLang has not collected yet.
        self._compiled = GrammarCache(
            vocabulary, max_bytes=cache_bytes // 4, metrics=process_metrics()
        )
        self._object_bytes = cache_bytes - cache_bytes // 4
        self.cache = self.new_object_cache()
        self.warming = start_warming(self._asked, self._build, _logger)

    def new_object_cache(self) -> GrammarObjectCache:
        """Return the replacement of SGLang's dict of grammar objects."""
        return GrammarObjectCache(self._object_bytes)

    # ------------------------------------------------------------------ from text to grammars

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a JSON Schema, or of any JSON value."""
        text = "true" if key_string == _ANY_JSON else key_string
        return self._grammar("json", lambda: self._request("json", text))

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a regular expression in Python's dialect, for the whole output."""
        return self._grammar("regex", lambda: self._request("regex", key_string))

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Return a grammar in EBNF as XGrammar reads it, in GBNF or in Lark."""
        return self._grammar("ebnf", lambda: self._request("grammar", key_string))

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Return the grammar of a structural tag of XGrammar, in either form."""
        return self._grammar(
            "structural_tag",
            lambda: self._request("structural_tag", as_structural_tag(key_string)),
        )

    def reset(self) -> None:
        """Evict all compiled grammars; running requests keep theirs."""
        super().reset()
        self._compiled.clear()

    def _asked(self, line: dict[str, Any]) -> GrammarRequest:
        kind, text = constraint(line)
        if kind == "choice":
            raise ValueError("SGLang has no choice: write an enum in json, or a regex")
        if kind == "json_object":
            return self._request("json", _ANY_OBJECT)
        return self._request(kind, as_structural_tag(text) if kind == "structural_tag" else text)

    def _build(self, request: GrammarRequest) -> None:
        build_masks(self._compiled.get(request, counts=False), narrow=self._narrow)

    def _request(self, kind: str, text: str) -> GrammarRequest:
        return GrammarRequest(kind, text, **self._writing.options())

    def _grammar(
        self, kind: str, request: Callable[[], GrammarRequest]
    ) -> FfwdGrammar | InvalidGrammarObject:
        try:
            asked = request()
            return self._object(self._compiled.get(asked), asked, kind)
        # SGLang survives an Exception, but nothing else, such as a panic.
        except BaseException as error:
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            return _invalid(kind, error)

    def _object(
        self, compiled: ffwd.CompiledGrammar, request: GrammarRequest, kind: str
    ) -> FfwdGrammar:
        stats = GrammarStats(dispatch_type=kind)
        grammar = FfwdGrammar(compiled, request, stats, narrow=self._narrow)
        # In a thread of the executor's. Masks that are missing in a step delay the whole batch.
        # The first one may exceed a limit.
        grammar.fill_bitmask(ffwd.allocate_bitmask(1, compiled.vocabulary.vocab_size), 0)
        grammar.build_ahead()
        return grammar

    # --------------------------------------------------- what SGLang asks of the backend itself

    allocate_vocab_mask = staticmethod(grammars.allocate_vocab_mask)
    move_vocab_mask = staticmethod(grammars.move_vocab_mask)
    apply_vocab_mask = staticmethod(grammars.apply_vocab_mask)

    def initialize_vocab_mask_buffer(
        self, name: str, vocab_size: int, max_rows: int, device: Any
    ) -> Any:
        """Return a reusable bitmask of all rows."""
        mask = grammars.allocate_vocab_mask(vocab_size, max_rows, device)
        return register_vocab_mask_buffer(name, mask, max_rows)

    # ------------------------------------------------------------------------------ reasoning

    @property
    def is_support_token_filter(self) -> bool:
        """Whether single tokens can be allowed and forbidden, as strict thinking does."""
        return True

    def set_token_filter(
        self,
        vocab_mask: Any,
        token_ids: Sequence[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or forbid tokens in a row; the others before that too, if it is reset."""
        set_token_filter_torch(vocab_mask, list(token_ids), batch_idx, is_allowed, reset_vocab_mask)

    def reserve_framing_tokens(self, token_ids: Sequence[int]) -> None:
        """Let these tokens stand for themselves only in framed grammars, never for their text."""
        reserved = set(token_ids)
        vocabulary = self.vocabulary
        if not any(
            token < vocabulary.vocab_size and vocabulary.token_bytes(token) is not None
            for token in reserved
        ):
            return
        self._framed_vocabulary = Vocabulary(
            [
                None if token in reserved else vocabulary.token_bytes(token)
                for token in range(vocabulary.vocab_size)
            ],
            eos_token_ids=vocabulary.eos_token_ids,
            token_names=vocabulary.token_names,
        )

    def compile_framed_grammar(
        self, grammar: FfwdGrammar, frame: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> FfwdGrammar | InvalidGrammarObject:
        """Return a grammar within the messages of a format that frames whole turns."""
        try:
            tag = json.dumps(frame(_content(grammar.request)))
            request = self._request("structural_tag", tag)
            compiled = ffwd.compile(
                ffwd.structural_tag(tag, whitespace=self._writing.whitespace),
                self._framed_vocabulary,
            )
            return self._object(compiled, request, "structural_tag")
        except (FfwdError, ValueError, RecursionError) as error:
            return _invalid("structural_tag", error)


def create(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int] | int | None
) -> BaseGrammarBackend:
    """Return the backend for a model, in SGLang's wrapper for reasoning if it has a parser."""
    del server_args  # The runtime context has the resolved values.
    serving = get_serving()
    if isinstance(eos_token_ids, int):
        eos_token_ids = [eos_token_ids]
    vocabulary = engine_vocabulary(
        tokenizer, vocab_size=vocab_size, eos_token_ids=eos_token_ids or ()
    )
    backend = FfwdGrammarBackend(
        vocabulary,
        writing=_writing(serving),
        cache_bytes=_cache_bytes(),
        narrow=is_on(NARROW_VARIABLE),
    )
    extend_step(FfwdGrammarBackend)
    return _with_reasoning(backend, serving, tokenizer)


def _with_reasoning(
    backend: FfwdGrammarBackend, serving: Any, tokenizer: Any
) -> BaseGrammarBackend:
    if not serving.reasoning_parser:
        return backend
    parser = ReasoningParser(
        model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer
    )
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend  # SGLang has logged that it does not wait for reasoning.
    wrapper = ReasonerGrammarBackend(
        backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking
    )
    wrapper.cache = backend.new_object_cache()
    return wrapper


def _writing(serving: Any) -> Writing:
    if serving.constrained_json_whitespace_pattern:
        _logger.warning(
            "the grammar backend ffwd has no use for --constrained-json-whitespace-pattern; "
            "--constrained-json-disable-any-whitespace and "
            "--constrained-json-max-whitespace-cnt are what it knows"
        )
    if serving.constrained_json_disable_any_whitespace:
        return Writing(whitespace="single-space")
    longest = serving.constrained_json_max_whitespace_cnt
    if longest is None:
        return _AS_IT_COMES
    return Writing(whitespace="flexible", max_whitespace=longest)


def _cache_bytes() -> int:
    text = os.environ.get(CACHE_BYTES_VARIABLE, "")
    if not text:
        return DEFAULT_CACHE_BYTES
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"{CACHE_BYTES_VARIABLE} must be a number of bytes, not {text!r}")
    return int(text)


def _invalid(kind: str, error: BaseException) -> InvalidGrammarObject:
    known = isinstance(error, FfwdError)
    message = str(error) if known else f"{type(error).__name__} within ffwd: {error}"
    _logger.warning("a %s grammar is refused: %s", kind, message)
    return InvalidGrammarObject(message)


def _content(request: GrammarRequest) -> dict[str, Any]:
    """Return a request as the content of a structural tag."""
    if request.kind == "json":
        return {"type": "json_schema", "json_schema": json.loads(request.text)}
    if request.kind == "regex":
        return {"type": "regex", "pattern": request.text}
    if request.kind == "grammar":
        return {"type": "grammar", "grammar": request.text}
    content: dict[str, Any] = json.loads(request.text)["format"]
    return content
