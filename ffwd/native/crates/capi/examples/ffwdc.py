"""The C library through Python's ctypes: what a program in another language does, in a page.

It needs neither the package ffwd nor NumPy. `record.py` writes a JSON record with it.
"""

import ctypes
from ctypes import (
    POINTER,
    byref,
    c_bool,
    c_char_p,
    c_double,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path

LANGUAGES = {"json_schema": 0, "regex": 1, "lark": 2, "gbnf": 3, "ebnf": 4}
STATUS = ("ok", "argument", "vocabulary", "grammar", "unsupported", "unsatisfiable", "limit")
STATUS += ("token", "budget", "internal", "file")


class Bytes(ctypes.Structure):
    """`ffwd_bytes`; those of a Python object live as long as it does."""

    _fields_ = (("data", c_void_p), ("length", c_size_t))

    @classmethod
    def of(cls, data: "bytes | None") -> "Bytes":
        return cls(ctypes.cast(c_char_p(data), c_void_p), 0 if data is None else len(data))


class Options(ctypes.Structure):
    """`ffwd_options`."""

    _fields_ = (
        ("whitespace", c_uint32),
        ("max_whitespace", c_uint32),
        ("any_property_order", c_bool),
        ("any_numbers", c_bool),
        ("any_escapes", c_bool),
        ("lenient", c_bool),
        ("regex_dialect", c_uint32),
        ("root", Bytes),
    )


class Limits(ctypes.Structure):
    """`ffwd_limits`."""

    _fields_ = (
        *((name, c_size_t) for name in ("source_bytes", "nesting", "expression_nodes", "states")),
        *((name, c_size_t) for name in ("stacks", "memory_bytes", "work_bytes")),
        *((name, c_uint64) for name in ("compile_steps", "call_steps")),
        *((name, c_double) for name in ("compile_seconds", "call_seconds")),
    )


ENCODE = ctypes.CFUNCTYPE(
    c_size_t, c_void_p, POINTER(c_uint8), c_size_t, POINTER(c_uint32), c_size_t
)


class CallError(Exception):
    """A status, its text, and its place."""

    def __init__(self, status: str, text: str, pointer: str, line: int, column: int) -> None:
        super().__init__(text)
        self.status, self.pointer, self.line, self.column = status, pointer, line, column


def load(path: Path) -> ctypes.CDLL:
    """Load the library, and say what its functions return."""
    library = ctypes.CDLL(str(path))
    returns = {
        "version": c_char_p,
        "error_message": c_char_p,
        "error_pointer": c_char_p,
        "error_line": c_size_t,
        "error_column": c_size_t,
        "vocabulary_mask_words": c_size_t,
        "vocabulary_width": c_size_t,
        "vocabulary_token": Bytes,
        "options_default": Options,
        "limits_default": Limits,
        "grammar_memory_bytes": c_uint64,
        "matcher_num_tokens": c_size_t,
        "matcher_is_accepting": c_bool,
        "matcher_is_terminated": c_bool,
    }
    for name, kind in returns.items():
        getattr(library, f"ffwd_{name}").restype = kind
    return library


class C:
    """The functions of the library; those that fail raise `CallError`."""

    def __init__(self, path: Path) -> None:
        self.library = load(path)

    def call(self, name: str, *arguments):
        """Call a function whose last argument receives an error."""
        library, error = self.library, c_void_p()
        status = getattr(library, f"ffwd_{name}")(*arguments, byref(error))
        if status == 0:
            return
        assert library.ffwd_error_status(error) == status
        failure = CallError(
            STATUS[status],
            library.ffwd_error_message(error).decode(),
            library.ffwd_error_pointer(error).decode(),
            library.ffwd_error_line(error),
            library.ffwd_error_column(error),
        )
        library.ffwd_error_free(error)
        raise failure

    def vocabulary(self, tokens, end_tokens, encode=None) -> c_void_p:
        """`encode` is an `ENCODE`, which the caller keeps as long as the vocabulary."""
        texts = (Bytes * len(tokens))(*map(Bytes.of, tokens))
        ends = (c_uint32 * len(end_tokens))(*end_tokens)
        made, num_tokens, num_ends = c_void_p(), c_size_t(len(tokens)), c_size_t(len(end_tokens))
        given = encode or ctypes.cast(None, ENCODE)
        self.call(
            "vocabulary_new",
            texts,
            num_tokens,
            ends,
            num_ends,
            c_size_t(0),
            given,
            None,
            byref(made),
        )
        return made

    def vocabulary_from_file(self, path: str, end_tokens=(), width: int = 0) -> c_void_p:
        """Without end tokens, they are those with a well-known name."""
        return self._from_tokenizer("file", path.encode(), end_tokens, width)

    def vocabulary_from_json(self, text: bytes, end_tokens=(), width: int = 0) -> c_void_p:
        """`text` is that of a tokenizer.json."""
        return self._from_tokenizer("json", Bytes.of(text), end_tokens, width)

    def _from_tokenizer(self, what: str, given, end_tokens, width: int) -> c_void_p:
        ends, num_ends = (c_uint32 * len(end_tokens))(*end_tokens), c_size_t(len(end_tokens))
        made, name = c_void_p(), f"vocabulary_from_{what}"
        self.call(name, given, ends, num_ends, c_size_t(width), byref(made))
        return made

    def token(self, vocabulary: c_void_p, token: int) -> bytes:
        """Return the bytes of a token; none if it has no text."""
        found = self.library.ffwd_vocabulary_token(vocabulary, c_uint32(token))
        return ctypes.string_at(found.data, found.length) if found.length else b""

    def compile(
        self, vocabulary, language: str, text: bytes, *, limits=None, **options
    ) -> c_void_p:
        """`options` are fields of `Options`."""
        given = self.library.ffwd_options_default()
        for name, value in options.items():
            setattr(given, name, value)
        made, source = c_void_p(), Bytes.of(text)
        kind = c_uint32(LANGUAGES.get(language, 99))
        bounds = None if limits is None else byref(limits)
        self.call("compile", vocabulary, kind, source, byref(given), bounds, byref(made))
        return made


class CMatcher:
    """`ffwd_matcher`."""

    def __init__(self, c: C, grammar: c_void_p, num_words: int, max_tokens: int = 0) -> None:
        self.c, self.num_words, self.pointer = c, num_words, c_void_p()
        c.call("matcher_new", grammar, c_size_t(max_tokens), byref(self.pointer))

    def mask(self):
        words = (c_uint32 * self.num_words)()
        self.c.call("matcher_fill", self.pointer, words, c_size_t(self.num_words))
        return list(words)

    def accept(self, token: int) -> bool:
        accepted = c_bool()
        self.c.call("matcher_accept", self.pointer, c_uint32(token), byref(accepted))
        return accepted.value

    def accept_all(self, tokens) -> bool:
        accepted, given = c_bool(), (c_uint32 * len(tokens))(*tokens)
        count = c_size_t(len(tokens))
        self.c.call("matcher_accept_all", self.pointer, given, count, byref(accepted))
        return accepted.value

    def validate(self, tokens) -> int:
        valid, given = c_size_t(), (c_uint32 * len(tokens))(*tokens)
        count = c_size_t(len(tokens))
        self.c.call("matcher_validate", self.pointer, given, count, byref(valid))
        return valid.value

    def rollback(self, num_tokens: int) -> None:
        self.c.call("matcher_rollback", self.pointer, c_size_t(num_tokens))

    def reset(self) -> None:
        self.c.call("matcher_reset", self.pointer)

    def forced_tokens(self):
        tokens, count = POINTER(c_uint32)(), c_size_t()
        self.c.call("matcher_forced_tokens", self.pointer, byref(tokens), byref(count))
        return tokens[: count.value]

    def forced_bytes(self, max_bytes: int = 65536) -> bytes:
        found = Bytes()
        self.c.call("matcher_forced_bytes", self.pointer, c_size_t(max_bytes), byref(found))
        return ctypes.string_at(found.data, found.length) if found.length else b""

    def fork(self) -> "CMatcher":
        other = CMatcher.__new__(CMatcher)
        other.c, other.num_words, other.pointer = self.c, self.num_words, c_void_p()
        self.c.call("matcher_fork", self.pointer, byref(other.pointer))
        return other

    @property
    def is_terminated(self) -> bool:
        return self.c.library.ffwd_matcher_is_terminated(self.pointer)

    @property
    def is_accepting(self) -> bool:
        return self.c.library.ffwd_matcher_is_accepting(self.pointer)

    @property
    def num_tokens(self) -> int:
        return self.c.library.ffwd_matcher_num_tokens(self.pointer)

    def free(self) -> None:
        self.c.library.ffwd_matcher_free(self.pointer)
