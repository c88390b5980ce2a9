"""The native core. The public names are re-exported by `ffwd`; import them from there."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, AnyStr, ClassVar, Literal, final

from typing_extensions import Self, disjoint_base

from ffwd._events import Event
from ffwd._explain import Explanation
from ffwd._limits import Limits
from ffwd.grammar._writing import Writing

__all__ = [
    "AppendEncoder",
    "BitmaskError",
    "Bpe",
    "BpeModel",
    "BudgetError",
    "Cancellation",
    "CancellationError",
    "CompileMeter",
    "CompiledGrammar",
    "DeadlineExceededError",
    "DecodeStream",
    "Decoder",
    "EngineRequest",
    "FfwdError",
    "GrammarBuilder",
    "GrammarError",
    "Held",
    "IntervalCounter",
    "InvalidSchemaError",
    "LimitExceededError",
    "Matcher",
    "ModelFile",
    "PrependEncoder",
    "SchemaError",
    "SerializationError",
    "StepRows",
    "StopSequenceDecoder",
    "StopSequenceError",
    "Stopped",
    "StoppedWithText",
    "StreamInUseError",
    "Text",
    "TextError",
    "TokenError",
    "TokenSequence",
    "UnsatisfiableSchemaError",
    "UnsupportedSchemaError",
    "Vocabulary",
    "VocabularyError",
    "__version__",
    "compile_choice",
    "compile_grammar",
    "compile_json_schema",
    "compile_language",
    "compile_regex",
    "default_limits",
    "encode_batch",
    "encode_parts",
    "encode_with_offsets",
    "fill_bitmasks",
    "fill_rows",
    "fill_trees",
    "forced_table",
    "inject_allocation_fault",
    "inject_fault",
    "json_schema_fidelity",
    "mask_logits",
    "observe_streams",
    "read_ranks",
    "survey_tokens",
    "text_chunks",
]

__version__: str

class FfwdError(ValueError):
    """The base of ffwd's errors."""

class VocabularyError(FfwdError):
    """An unusable vocabulary; the message names the token ids."""

class GrammarError(FfwdError):
    """A regular expression or grammar that cannot be parsed or compiled.

    `line` and `column` count from 1, in characters.
    """

    line: int
    column: int

class SchemaError(FfwdError):
    """An error in a JSON Schema, at the JSON pointer `pointer`.

    `line` and `column` locate the schema in the text of a grammar, from 1, in characters; None
    outside such a text.
    """

    pointer: str
    line: int | None
    column: int | None

class InvalidSchemaError(SchemaError):
    """A schema that is not JSON, or has a keyword with an invalid value."""

class UnsupportedSchemaError(SchemaError):
    """An unsupported keyword, named by `keyword`."""

    keyword: str

class UnsatisfiableSchemaError(SchemaError):
    """A schema without a valid JSON value."""

class LimitExceededError(FfwdError):
    """An exceeded limit; the objects of the call are unchanged.

    `limit` names it: a field of `ffwd.Limits` or a fixed bound of docs/limits.md. `maximum` is its
    value. `pointer` is the place in the schema; `line` and `column` are those in the text of a
    grammar, from 1, in characters; empty and None where no place is known. `is_temporary`: it says
    nothing of the input, and the same call may succeed later. `rows` is what `fill_bitmasks` has
    not written, and empty elsewhere.
    """

    limit: str
    maximum: float
    pointer: str
    line: int | None
    column: int | None
    is_temporary: bool
    rows: tuple[int, ...]

class DeadlineExceededError(LimitExceededError):
    """A call that took longer than `maximum` seconds. `is_temporary` is True."""

class CancellationError(LimitExceededError):
    """A call that `ffwd.Cancellation.cancel` cancelled. `is_temporary` is True."""

class TokenError(FfwdError):
    """A token id outside the vocabulary, or a token after the end; `token` is the id."""

    token: int

class TextError(FfwdError):
    """A text that cannot be encoded as requested; `byte` is the offset, if known."""

    byte: int | None

class StopSequenceError(FfwdError):
    """An unusable stop string; `index` is its position in its list."""

    index: int | None

class SerializationError(FfwdError):
    """Bytes that cannot be loaded, or an object that cannot be saved; `reason` is one word."""

    reason: str

class StreamInUseError(FfwdError):
    """A stream that two threads use at the same time."""

class BudgetError(FfwdError):
    """A `max_tokens` that is too small for every output; `needed` tokens suffice."""

    needed: int
    max_tokens: int

class BitmaskError(FfwdError):
    """A bitmask of the wrong type, shape or layout, or a row out of range."""

@final
class GrammarBuilder:
    def __new__(cls, meter: CompileMeter | None = None) -> GrammarBuilder: ...
    def text(self, text: str) -> int: ...
    def texts(self, texts: Sequence[str]) -> int: ...
    def regex(
        self,
        pattern: str,
        *,
        dialect: str = "rust",
        flags: str = "",
        search: bool = False,
        characters: Sequence[tuple[str, str]] = ...,
    ) -> int: ...
    def substring(self, chunks: Sequence[str]) -> int: ...
    def intersection(self, parts: Sequence[int]) -> int: ...
    def complement(self, inner: int) -> int: ...
    def any_text(
        self, excluding: Sequence[str], *, ending: str = "", max_chars: int | None = None
    ) -> int: ...
    def text_until(
        self, stops: Sequence[str], excluding: Sequence[str], *, max_chars: int | None = None
    ) -> int: ...
    def lark(self, text: str) -> int: ...
    def gbnf(self, text: str, root: str = "root") -> int: ...
    def ebnf(self, text: str, root: str = "root") -> int: ...
    def up_to_trigger(
        self, trigger: str, triggers: Sequence[str], excluding: Sequence[str]
    ) -> int: ...
    def string(
        self,
        *,
        excluding: Sequence[str],
        other_than: Sequence[str],
        patterns: Sequence[str],
        formats: Sequence[str],
        min_chars: int = 0,
        max_chars: int | None = None,
    ) -> int: ...
    def json_schema(self, schema: str, *, writing: Writing) -> int: ...
    def tokens(
        self, items: Sequence[int | str | tuple[int, int]], *, exclude: bool = False
    ) -> int: ...
    def seq(self, parts: Sequence[int]) -> int: ...
    def choice(self, parts: Sequence[int]) -> int: ...
    def repeat(self, inner: int, min: int, max: int | None = None) -> int: ...
    def declare(self, name: str) -> int: ...
    def define(self, rule: int, body: int) -> None: ...
    def rule(self, rule: int) -> int: ...
    def span(self, kind: str, name: str, inner: int) -> int: ...
    def limit(self, inner: int, max_tokens: int) -> int: ...
    def unused_rules(self, node: int) -> list[tuple[str, str, tuple[int, int] | None]]: ...

@final
class Vocabulary:
    def __new__(
        cls,
        tokens: Sequence[bytes | None],
        *,
        eos_token_ids: Sequence[int],
        width: int | None = None,
        encode: Callable[[bytes], Sequence[int]] | None = None,
        bpe: Bpe | None = None,
        token_names: Mapping[str, int] = ...,
    ) -> Vocabulary: ...
    def __copy__(self) -> Vocabulary: ...
    def __deepcopy__(self, _memo: Any) -> Vocabulary: ...
    @property
    def token_names(self) -> dict[str, int]: ...
    @property
    def bpe(self) -> Bpe | None: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def eos_token_ids(self) -> list[int]: ...
    @property
    def max_token_bytes(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def limit_memory(
        self, *, lexeme_bytes: int | None = None, lexeme_mask_bytes: int | None = None
    ) -> None: ...
    def token_bytes(self, token_id: int) -> bytes | None: ...
    def encode(self, data: bytes) -> list[int]: ...
    def clear_memos(self) -> None: ...

@final
class BpeModel:
    @staticmethod
    def ranked(
        tokens: Mapping[bytes, int] | Iterable[tuple[bytes, int]],
        *,
        id_offset: int = 0,
        characters: bool = False,
        byte_tokens: Sequence[int | None] | None = None,
        whole_pieces: bool = True,
    ) -> BpeModel: ...
    @staticmethod
    def from_json(
        text: str | bytes,
        *,
        byte_level: bool,
        replacements: Sequence[tuple[str, str]] = ...,
        exclude: Sequence[int] = ...,
        missing_from: int | None = None,
    ) -> BpeModel: ...
    def save(self) -> bytes | None: ...
    @staticmethod
    def load(data: bytes) -> BpeModel: ...
    def texts(self, size: int) -> list[bytes | None]: ...
    def token_bytes(self, token_id: int) -> bytes: ...
    def is_reachable(self, token_id: int) -> bool: ...
    @property
    def memory_bytes(self) -> int: ...

@final
class ModelFile:
    @staticmethod
    def read(data: bytes) -> ModelFile | None: ...
    def shell(self) -> str: ...
    def __len__(self) -> int: ...
    @property
    def size(self) -> int: ...
    def find(self, names: AbstractSet[str]) -> dict[str, int]: ...
    def pieces(self) -> dict[str, int]: ...
    def beginning_with(self, characters: str) -> list[tuple[str, int]]: ...
    def containing(self, text: str) -> list[int]: ...
    def names(self, size: int) -> list[str | None]: ...
    def texts(
        self,
        size: int,
        *,
        byte_level: bool,
        replacements: Sequence[tuple[str, str]],
        byte_fallback: bool,
    ) -> list[bytes | None]: ...
    def compile(
        self,
        *,
        byte_level: bool,
        replacements: Sequence[tuple[str, str]] = ...,
        exclude: Sequence[int] = ...,
        missing_from: int | None = None,
    ) -> BpeModel: ...

@disjoint_base
class Bpe:
    def __new__(
        cls,
        model: BpeModel,
        *,
        stages: Sequence[Mapping[str, Any]] = ...,
        added_tokens: Sequence[tuple[int, str, Mapping[str, Any]]] = ...,
        dummy_space: str = "never",
        dummy_space_before_space: bool = True,
        compose: bool = False,
        replaced: Sequence[tuple[str, str]] = ...,
        limits: Sequence[str] = ...,
        vocab_size: int | None = None,
    ) -> Self: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def exact(self) -> bool: ...
    @property
    def limits(self) -> list[str]: ...
    @property
    def special_tokens(self) -> dict[str, int]: ...
    @property
    def memory_bytes(self) -> int: ...
    def encode(
        self,
        text: str | bytes,
        *,
        special: str | Iterable[str] = ...,
        method: str = "backtracking",
        pretokenize: bool = True,
        normalize: bool = True,
        prefix_space: bool = True,
    ) -> list[int]: ...
    def count(
        self,
        text: str | bytes,
        *,
        special: str | Iterable[str] = ...,
        pretokenize: bool = True,
        normalize: bool = True,
        prefix_space: bool = True,
    ) -> int: ...
    def count_up_to(
        self,
        text: str | bytes,
        limit: int,
        *,
        special: str | Iterable[str] = ...,
        pretokenize: bool = True,
        normalize: bool = True,
        prefix_space: bool = True,
    ) -> int | None: ...
    def split_at(
        self,
        text: AnyStr,
        num_tokens: int,
        *,
        pretokenize: bool = True,
        normalize: bool = True,
        prefix_space: bool = True,
    ) -> tuple[AnyStr, AnyStr]: ...
    def decode(self, token_ids: Sequence[int]) -> bytes: ...
    def unused_tokens(self) -> tuple[list[int], list[int]]: ...
    def token_bytes(self, token_id: int) -> bytes: ...
    def differing(self, tokens: Sequence[bytes | None]) -> list[int]: ...
    def append_encoder(
        self, *, pretokenize: bool = True, normalize: bool = True, prefix_space: bool = True
    ) -> AppendEncoder: ...
    def prepend_encoder(
        self, *, pretokenize: bool = True, normalize: bool = True, prefix_space: bool = True
    ) -> PrependEncoder: ...
    def interval_counter(
        self,
        text: str | bytes,
        *,
        pretokenize: bool = True,
        normalize: bool = True,
        prefix_space: bool = True,
    ) -> IntervalCounter: ...
    def is_canonical(self, token_ids: Sequence[int]) -> bool: ...
    def first_noncanonical(self, token_ids: Sequence[int]) -> int | None: ...
    def canonical_prefix(self, token_ids: Sequence[int]) -> list[int]: ...
    def tokenize_partial(
        self, data: bytes, recent_tokens: Sequence[int] = ...
    ) -> tuple[list[int], bytes]: ...
    def heal(
        self, token_ids: Sequence[int], *, max_rollback: int = 2
    ) -> tuple[list[int], bytes]: ...

def encode_batch(
    bpe: Bpe,
    texts: Sequence[str | bytes],
    *,
    special: str | Iterable[str] = ...,
    threads: int | None = None,
) -> list[list[int]]: ...
def encode_with_offsets(
    bpe: Bpe, text: str, *, special: str | Iterable[str] = ...
) -> tuple[list[int], list[tuple[int, int]], list[tuple[int, int]]]: ...
def encode_parts(bpe: Bpe, parts: Sequence[str | bytes | int]) -> list[int]: ...

@final
class AppendEncoder:
    def push(self, text: str | bytes) -> None: ...
    def truncate(self, length: int) -> None: ...
    def count(self) -> int: ...
    def tokens(self) -> list[int]: ...
    @property
    def text(self) -> bytes: ...
    def __len__(self) -> int: ...

@final
class PrependEncoder:
    def push(self, text: str | bytes) -> None: ...
    def truncate(self, length: int) -> None: ...
    def count(self) -> int: ...
    def tokens(self) -> list[int]: ...
    @property
    def text(self) -> bytes: ...
    def __len__(self) -> int: ...

@final
class IntervalCounter:
    def count(self, start: int = 0, end: int | None = None) -> int: ...
    def __len__(self) -> int: ...

@final
class Decoder:
    def __new__(
        cls,
        tokens: Sequence[bytes | None],
        *,
        special: Iterable[int] = ...,
        strip_first_space: bool = False,
        strip_every_first_space: bool = False,
        first_tokens: Mapping[int, bytes] = ...,
    ) -> Decoder: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def strip_first_space(self) -> bool: ...
    @property
    def memory_bytes(self) -> int: ...
    def decode(self, token_ids: Iterable[int], *, skip_special_tokens: bool = True) -> str: ...
    def decode_bytes(
        self, token_ids: Iterable[int], *, skip_special_tokens: bool = True
    ) -> bytes: ...

@final
class DecodeStream:
    def __new__(
        cls, source: Any, /, *, prompt_ids: Iterable[int] = ..., skip_special_tokens: bool = True
    ) -> DecodeStream: ...
    def step(self, token_id: int, /) -> str | None: ...
    def step_batch(self, token_ids: Iterable[int], /) -> str: ...
    def flush(self) -> str: ...
    def fork(self) -> DecodeStream: ...
    @property
    def pending(self) -> bytes: ...

@disjoint_base
class TokenSequence:
    def __new__(
        cls, source: Any, /, *, prompt_ids: Iterable[int] = ..., skip_special_tokens: bool = True
    ) -> Self: ...
    @property
    def source(self) -> Any: ...
    def append_token(self, token_id: int, /) -> str: ...
    def append_tokens(self, token_ids: Iterable[int], /) -> str: ...
    @property
    def at_text_start(self) -> bool: ...
    @property
    def token_ids(self) -> list[int]: ...
    @property
    def prompt_ids(self) -> list[int]: ...
    @property
    def generated_ids(self) -> list[int]: ...
    @property
    def text(self) -> str: ...
    @property
    def prompt_text(self) -> str: ...
    @property
    def generated_text(self) -> str: ...
    @property
    def data(self) -> bytes: ...
    @property
    def pending(self) -> bytes: ...
    @property
    def byte_offsets(self) -> list[tuple[int, int]]: ...
    @property
    def character_offsets(self) -> list[tuple[int, int]]: ...
    def __len__(self) -> int: ...

@final
class Text:
    __match_args__: ClassVar[tuple[Literal["text"]]]
    stopped: bool
    def __new__(cls, text: str, /) -> Text: ...
    @property
    def text(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class StoppedWithText:
    __match_args__: ClassVar[tuple[Literal["text"]]]
    stopped: bool
    def __new__(cls, text: str, /) -> StoppedWithText: ...
    @property
    def text(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Held:
    text: str
    stopped: bool
    def __new__(cls) -> Held: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Stopped:
    text: str
    stopped: bool
    def __new__(cls) -> Stopped: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class StopSequenceDecoder:
    def __new__(
        cls,
        source: Any,
        /,
        *,
        stop_tokens: Iterable[int] = ...,
        stop_strings: Sequence[str] = ...,
        visible_stop_tokens: Iterable[int] = ...,
        visible_stop_strings: Sequence[str] = ...,
        prompt_ids: Iterable[int] = ...,
        skip_special_tokens: bool = True,
    ) -> StopSequenceDecoder: ...
    def step(self, token_id: int, /) -> Text | Held | Stopped | StoppedWithText: ...
    def step_batch(
        self, token_ids: Iterable[int], /
    ) -> Text | Held | Stopped | StoppedWithText: ...
    def flush(self) -> Text | Held | Stopped | StoppedWithText: ...
    def fork(self) -> StopSequenceDecoder: ...
    def reset(self) -> None: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def matched(self) -> int | str | None: ...
    @property
    def held(self) -> str: ...
    @property
    def pending(self) -> bytes: ...
    @property
    def num_tokens(self) -> int: ...

@final
class Cancellation:
    def __new__(cls) -> Cancellation: ...
    def cancel(self) -> None: ...
    def reset(self) -> None: ...
    @property
    def is_cancelled(self) -> bool: ...

@final
class CompileMeter:
    def __new__(
        cls, limits: Limits | None = None, cancellation: Cancellation | None = None
    ) -> CompileMeter: ...
    @property
    def steps(self) -> int: ...

@final
class CompiledGrammar:
    @property
    def vocabulary(self) -> Vocabulary: ...
    def to_bytes(self) -> bytes: ...
    def __copy__(self) -> CompiledGrammar: ...
    def __deepcopy__(self, _memo: Any) -> CompiledGrammar: ...
    @staticmethod
    def from_bytes(
        data: bytes,
        vocabulary: Vocabulary,
        *,
        limits: Limits | None = None,
        cancellation: Cancellation | None = None,
    ) -> CompiledGrammar: ...
    def matcher(
        self,
        *,
        canonical: bool = False,
        recent_tokens: Sequence[int] = ...,
        prefix: bytes | None = None,
        prefill: bytes | None = None,
        free_until: int | Sequence[int] | bytes | None = None,
        free_controls: Sequence[int] = ...,
        max_tokens: int | None = None,
        cancellation: Cancellation | None = None,
        limits: Limits | None = None,
    ) -> Matcher: ...
    def shortest_completion(self) -> list[int]: ...
    def stats(self) -> dict[str, int]: ...

@disjoint_base
class EngineRequest:
    def __new__(
        cls,
        grammar: CompiledGrammar | EngineRequest,
        stop_token_ids: Iterable[int] | None = None,
        *,
        narrow: bool = False,
    ) -> Self: ...
    @property
    def grammar(self) -> CompiledGrammar: ...
    def matcher(self) -> Matcher: ...
    @property
    def num_tokens(self) -> int: ...
    @property
    def refused(self) -> str | None: ...
    def accept(self, token: int) -> bool: ...
    def accept_tokens(self, request_id: str, tokens: Sequence[int]) -> bool: ...
    def validate_tokens(self, tokens: Sequence[int]) -> list[int]: ...
    def rollback(self, num_tokens: int) -> None: ...
    def reset(self) -> None: ...
    def is_terminated(self) -> bool: ...
    def forced(self, max_tokens: int) -> list[int]: ...
    def build_ahead(self, *, max_states: int = 128, seconds: float = 0.01) -> int: ...
    def fill_bitmask(self, bitmask: Any, batch_index: int) -> None: ...

@final
class StepRows:
    def __new__(cls, bitmask: Any) -> StepRows: ...
    def forget(self) -> None: ...
    def fill(
        self,
        requests: list[Any],
        drafts: list[Any] | None = None,
        bounds: Sequence[tuple[int, int, int, Sequence[int]]] = ...,
        *,
        stride: int | None = None,
        threads: int = 1,
    ) -> tuple[int, list[int], list[tuple[int, int]]]: ...

@final
class Matcher:
    @property
    def grammar(self) -> CompiledGrammar: ...
    @property
    def tokens(self) -> list[int]: ...
    @property
    def num_tokens(self) -> int: ...
    @property
    def state_id(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    def accept_token(self, token_id: int) -> bool: ...
    def accept_tokens(self, token_ids: Sequence[int]) -> bool: ...
    def validate_tokens(self, token_ids: Sequence[int]) -> int: ...
    def rollback(self, num_tokens: int) -> None: ...
    def reset(self) -> None: ...
    def to_bytes(self) -> bytes: ...
    @staticmethod
    def from_bytes(
        data: bytes, grammar: CompiledGrammar, *, cancellation: Cancellation | None = None
    ) -> Matcher: ...
    def fork(self, *, limits: Limits | None = None) -> Matcher: ...
    def __copy__(self) -> Matcher: ...
    def __deepcopy__(self, _memo: Any) -> Matcher: ...
    def is_accepting(self) -> bool: ...
    def is_terminated(self) -> bool: ...
    def fill_bitmask(self, bitmask: Any, row: int = 0) -> None: ...
    def allowed_token_ids(self) -> list[int]: ...
    def forced_bytes(self, max_bytes: int = 65536) -> bytes: ...
    def fast_forward_tokens(
        self,
        *,
        max_tokens: int | None = None,
        method: str | None = None,
        look_ahead: bool | None = None,
        backoff_tokens: int | None = None,
        backoff_bytes: int | None = None,
        conservative: bool = False,
    ) -> list[int]: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def tokens_left(self) -> int | None: ...
    def shortest_completion(self) -> list[int]: ...
    def explain(self, token: int | None = None, text: str | bytes | None = None) -> Explanation: ...
    def events(self, *, finish: bool = False) -> list[Event]: ...
    def captures(self, *, finish: bool = False) -> dict[str, str | list[str]]: ...
    @property
    def canonical_fallbacks(self) -> dict[str, int]: ...
    @property
    def num_noncanonical_tokens(self) -> int | None: ...

def default_limits() -> dict[str, float]: ...
def inject_allocation_fault(allocations: int | None) -> int | None: ...
def inject_fault(charges: int | None) -> int | None: ...
def compile_json_schema(
    schema: str,
    vocabulary: Vocabulary,
    *,
    writing: Writing,
    registry: Sequence[tuple[str, str]] = ...,
    meter: CompileMeter | None = None,
) -> CompiledGrammar: ...
def compile_regex(
    pattern: str,
    vocabulary: Vocabulary,
    *,
    dialect: str = "rust",
    flags: str = "",
    search: bool = False,
    characters: Sequence[tuple[str, str]] = ...,
    meter: CompileMeter | None = None,
) -> CompiledGrammar: ...
def compile_grammar(
    builder: GrammarBuilder,
    node: int,
    vocabulary: Vocabulary,
    *,
    writing: Writing,
    registry: Sequence[tuple[str, str]] = ...,
    meter: CompileMeter | None = None,
) -> CompiledGrammar: ...
def compile_language(
    builder: GrammarBuilder,
    node: int,
    vocabulary: Vocabulary,
    *,
    meter: CompileMeter | None = None,
) -> CompiledGrammar: ...
def text_chunks(text: str, by: str) -> list[str]: ...
def compile_choice(
    options: Sequence[str], vocabulary: Vocabulary, *, meter: CompileMeter | None = None
) -> CompiledGrammar: ...
def json_schema_fidelity(
    schema: str, *, writing: Writing, registry: Sequence[tuple[str, str]] = ...
) -> list[tuple[str, str, str, str]]: ...
def fill_bitmasks(
    matchers: Sequence[Matcher],
    bitmask: Any,
    rows: Sequence[int] | None = None,
    *,
    threads: int | None = None,
) -> None: ...
def fill_rows(
    requests: list[Any], bitmask: Any, rows: Sequence[int], *, threads: int = 1
) -> list[int]: ...
def fill_trees(
    requests: list[Any],
    bitmask: Any,
    tokens: Any,
    first_child: Any,
    next_sibling: Any,
    *,
    threads: int = 1,
) -> list[int]: ...
def forced_table(
    requests: list[Any],
    max_tokens: int,
    drafts: list[Any] | None = None,
    bounds: Sequence[tuple[int, int, int, Sequence[int]]] = ...,
    held_back: Sequence[int] = ...,
) -> Any: ...
def mask_logits(
    logits: Any,
    bitmask: Any,
    *,
    indices: Sequence[int] | None = None,
    mask_rows: Sequence[int] | None = None,
    halves: str | None = None,
    vocab_size: int | None = None,
    threads: int | None = None,
    source: Any | None = None,
) -> list[int]: ...
def read_ranks(data: bytes) -> dict[bytes, int] | None: ...
def observe_streams(
    observer: Callable[[Any, str], object] | None, /
) -> Callable[[Any, str], object] | None: ...
def survey_tokens(
    tokens: Sequence[bytes | None], kinds: Sequence[object], text: object, ends: frozenset[int]
) -> tuple[list[int], list[int], list[list[int]], list[int]]: ...
