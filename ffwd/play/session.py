"""From a request of the page to its answer: what the local server and the notebook share."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import ffwd
import ffwd.model
from ffwd._limits import Limits
from ffwd._native import Cancellation, CompiledGrammar, FfwdError
from ffwd.grammar import Grammar
from ffwd.play import share
from ffwd.play.compare import Comparison
from ffwd.play.errors import PlayError, error_data
from ffwd.play.generating import Generating
from ffwd.play.looking import Look
from ffwd.play.schema import GRAMMAR, STATE, check
from ffwd.play.state import State, source_of
from ffwd.sources import LANGUAGES, NamedTokens, SourceText, keywords, missing_package, unused
from ffwd.tokenizer import TokenizerNotFoundError

LIMITS = Limits(compile_seconds=5.0, call_seconds=2.0)
"""The limits of a grammar on the page: shorter times than the default, since a person waits."""
BOX, BYTES = "box", "bytes"
"""The tokenizers that are always there: of the model in the box, and each byte a token."""
MOST_DOCUMENTS = 50
_MOST_LISTED = 500
_KEPT = 8

T = TypeVar("T")

EXAMPLE = {
    "grammar": {
        "language": "json-schema",
        "text": """{
  "type": "object",
  "properties": {
    "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,9}$"},
    "status": {"enum": ["new", "paid", "shipped"]},
    "items": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 5}
  },
  "required": ["name", "status"],
  "additionalProperties": false
}
""",
    },
    "tokenizer": BOX,
    "text": '{"name": "Ada", "status": "',
}
"""What a page shows that was opened without a file."""


class Session:
    """The grammars, tokenizers and models of the pages of one process.

    Args:
        state: What a page shows first, as `ffwd.play.schema.STATE` has it.
        tokenizer: The path of a tokenizer, or a `NamedTokens`.
        model: The directory of a model; None for the one in the box.
        given: A grammar that was made in Python, which the page shows as it is.

    Raises:
        PlayError: The state is none.
        VocabularyError: The tokenizer cannot be read.

    """

    def __init__(
        self,
        state: dict[str, Any] | None = None,
        *,
        tokenizer: str | NamedTokens | None = None,
        model: Path | None = None,
        given: Grammar | None = None,
    ) -> None:
        self._tokenizers: dict[str, NamedTokens] = {}
        self._given = given
        self._lock = threading.Lock()
        self._running: dict[tuple[str, str], Cancellation] = {}
        self._compiled: OrderedDict[Any, tuple[CompiledGrammar, float]] = OrderedDict()
        self._generating = Generating(model)
        self._comparison = Comparison()
        self._state = dict(EXAMPLE if state is None else State.read(state).data())
        if isinstance(tokenizer, NamedTokens):
            self._tokenizers[tokenizer.source] = tokenizer
            self._state["tokenizer"] = tokenizer.source
        elif tokenizer is not None:
            self._state["tokenizer"] = self._load(tokenizer)
        self._answers: dict[str, Callable[[dict[str, Any], Cancellation], dict[str, Any]]] = {
            "hello": self._hello,
            "check": self._check,
            "look": self._look,
            "documents": self._documents,
            "generate": self._generate,
            "compare": self._compare,
            "tokenizer": self._tokenizer,
            "save": self._save,
            "open": self._open,
        }

    def __repr__(self) -> str:
        return f"Session({self._state['grammar']['language']!r}, {self._state['tokenizer']!r})"

    def answer(self, request: Any) -> dict[str, Any]:
        """Return the answer to a request, both as JSON.

        A request has a `kind`, the `tab` that it comes from and what the kind needs. A request
        cancels an unfinished one of the same kind and tab. `{"kind": "cancel", "of": kind}` only
        cancels. An error is an answer: `{"error": {"type", "message", …}}`, with `line` and
        `column` if it has a position in the grammar, and `about`: `"grammar"` or `"text"`.
        """
        try:
            kind, tab = _kind(request, self._answers)
            if kind == "cancel":
                self._cancel((tab, request.get("of", "")))
                return {}
            with self._newest((tab, kind)) as cancellation:
                return self._answers[kind](request, cancellation)
        except _InGrammar as error:
            return {"error": error.data}
        except FfwdError as error:
            return {"error": error_data(error)}
        except ImportError as error:
            message = missing_package(error)
            if message is None:
                raise
            return {"error": {"type": "MissingPackage", "message": message}}

    def close(self) -> None:
        """Cancel what is running, and end the process of other engines."""
        with self._lock:
            for cancellation in self._running.values():
                cancellation.cancel()
        self._comparison.close()

    @contextmanager
    def _newest(self, key: tuple[str, str]) -> Iterator[Cancellation]:
        cancellation = Cancellation()
        with self._lock:
            older = self._running.get(key)
            self._running[key] = cancellation
        if older is not None:
            older.cancel()
        try:
            yield cancellation
        finally:
            with self._lock:
                if self._running.get(key) is cancellation:
                    del self._running[key]

    def _cancel(self, key: tuple[str, Any]) -> None:
        with self._lock:
            running = self._running.get(key)
        if running is not None:
            running.cancel()

    # ------------------------------------------------------------------------------ the answers

    def _hello(self, request: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        known = {BOX: "the model in the box", BYTES: "each byte a token"}
        names = dict(self._tokenizers)
        return {
            "version": ffwd.__version__,
            "state": self._state,
            "languages": {name: title for name, (title, _) in LANGUAGES.items()},
            "tokenizers": {**{name: name for name in names}, **known},
            "model": self._generating.name,
            "given": self._given is not None,
        }

    def _check(self, request: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        """Return what becomes of the keywords of a schema, and which rules are not used."""
        source = source_of(_field(request, "grammar", GRAMMAR), self._given)
        lines, problems = _placed(source, lambda: keywords(source))
        problems = problems + _placed(source, lambda: unused(source))
        counts: dict[str, int] = {}
        for line in lines:
            counts[line["fidelity"]] = counts.get(line["fidelity"], 0) + 1
        noted = [line for line in lines if line["fidelity"] != "enforced"]
        return {
            "counts": counts,
            "noted": noted[:_MOST_LISTED],
            "more_noted": max(0, len(noted) - _MOST_LISTED),
            "problems": problems[:_MOST_LISTED],
            "more_problems": max(0, len(problems) - _MOST_LISTED),
        }

    def _look(self, request: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        """Return the tokens of the text, and what follows at the cursor."""
        state, source, tokens = self._read(request)
        compiled, seconds = self._compile(state, source, tokens, cancellation)

        def look() -> dict[str, Any]:
            return Look(compiled, tokens, source, cancellation).at(state)

        return {"compile_us": seconds * 1e6, **_placed(source, look, "text")}

    def _documents(self, request: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        """Return random documents of the grammar, each with its cost."""
        count = _field(
            request, "count", {"type": "integer", "minimum": 1, "maximum": MOST_DOCUMENTS}
        )
        state, source, tokens = self._read(request)
        compiled, _ = self._compile(state, source, tokens, cancellation)

        def documents() -> list[dict[str, Any]]:
            look = Look(compiled, tokens, source, cancellation)
            found = []
            for text in ffwd.sample_documents(
                source.grammar, count, seed=state.seed, limits=LIMITS
            ):
                if cancellation.is_cancelled:
                    break
                found.append({"text": text, **look.cost(text)})
            return found

        return {"documents": _placed(source, documents), "seed": state.seed}

    def _generate(self, request: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        """Return what a model writes after the text before the cursor."""
        state, source, _ = self._read(request)
        found = _placed(source, lambda: self._generating.write(state, source, cancellation), "text")
        name = self._generating.tokenizer
        if name not in self._tokenizers:
            self._load(name)
        return {**found, "tokenizer": name}

    def _compare(self, request: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        """Return the verdicts and masks of other engines."""
        state, source, tokens = self._read(request)
        if source.language not in LANGUAGES:
            raise PlayError("other engines take a grammar in a notation, and this is of Python")
        return self._comparison.run(state, tokens, cancellation)

    def _tokenizer(self, request: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        """Load a tokenizer from a path."""
        name = self._load(_field(request, "path", {"type": "string", "maxLength": 4096}))
        return {"tokenizer": name, "vocab_size": self._tokens(name).vocabulary.vocab_size}

    def _save(self, request: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        """Return the text of a file with the state."""
        state = _field(request, "state", STATE)
        return {"text": share.dump(State.read(state).data())}

    def _open(self, request: dict[str, Any], cancellation: Cancellation) -> dict[str, Any]:
        """Return the state of a file's text, and whether its tokenizer is loaded."""
        most = {"type": "string", "maxLength": share.MAX_FILE}
        state = share.load(_field(request, "text", most))
        source_of(state["grammar"], self._given)
        return {"state": state, "tokenizer_known": self._knows(state["tokenizer"])}

    # -------------------------------------------------------------------------------- what it uses

    def _read(self, request: dict[str, Any]) -> tuple[State, SourceText, NamedTokens]:
        state = State.read(_field(request, "state", STATE))
        return state, source_of(state.grammar, self._given), self._tokens(state.tokenizer)

    def _knows(self, name: str) -> bool:
        return name in (BOX, BYTES) or name in self._tokenizers

    def _tokens(self, name: str) -> NamedTokens:
        if name not in self._tokenizers:
            if name not in (BOX, BYTES):
                # A file of strangers names a path; only a person's own choice reads it.
                raise PlayError(
                    f"the tokenizer `{name[:200]}` is not loaded: choose it", "/tokenizer"
                )
            source = str(ffwd.model.path()) if name == BOX else None
            self._tokenizers[name] = NamedTokens(source)
        return self._tokenizers[name]

    def _load(self, path: str) -> str:
        """Load a tokenizer, if it is not yet loaded, and return its name."""
        if self._knows(path):
            return path
        if not path or not Path(path).expanduser().exists():
            raise TokenizerNotFoundError(
                f"there is no file or directory `{path[:200]}`: give the path of a tokenizer"
            )
        self._tokenizers[path] = NamedTokens.of(path)
        return path

    def _compile(
        self,
        state: State,
        source: SourceText,
        tokens: NamedTokens,
        cancellation: Cancellation,
    ) -> tuple[CompiledGrammar, float]:
        """Return the compiled grammar of a state, and the seconds that its compilation took."""
        key = (source.grammar, state.tokenizer)
        with self._lock:
            known = self._compiled.get(key)
            if known is not None:
                self._compiled.move_to_end(key)
                return known

        def compiled() -> CompiledGrammar:
            return ffwd.compile(
                source.grammar, tokens.vocabulary, limits=LIMITS, cancellation=cancellation
            )

        started = time.perf_counter()
        made = _placed(source, compiled), time.perf_counter() - started
        with self._lock:
            self._compiled[key] = made
            while len(self._compiled) > _KEPT:
                self._compiled.popitem(last=False)
        return made


class _InGrammar(Exception):  # noqa: N818
    """An error of a grammar's text, which has its position."""

    def __init__(self, error: FfwdError, source: SourceText, about: str) -> None:
        super().__init__(str(error))
        self.data = {**error_data(error, source), "about": about}


def _placed(source: SourceText, call: Callable[[], T], about: str = "grammar") -> T:
    """Call a function whose errors may have a position in a grammar."""
    try:
        return call()
    except FfwdError as error:
        raise _InGrammar(error, source, about) from error


def _kind(request: Any, known: dict[str, Any]) -> tuple[str, str]:
    if not isinstance(request, dict):
        raise PlayError("a request must be an object")
    kind, tab = request.get("kind"), request.get("tab", "")
    if not isinstance(kind, str) or (kind not in known and kind != "cancel"):
        raise PlayError(f"unknown kind of request: known are {', '.join(known)}, cancel", "/kind")
    if not isinstance(tab, str) or len(tab) > 64:
        raise PlayError("`/tab` must be a string of at most 64 characters", "/tab")
    return kind, tab


def _field(request: dict[str, Any], name: str, schema: dict[str, Any]) -> Any:
    if name not in request:
        raise PlayError(f"the request lacks `{name}`", "")
    check(request[name], schema, f"/{name}")
    return request[name]
