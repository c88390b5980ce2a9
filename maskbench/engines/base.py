"""The interface of engines."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from maskbench.documents import SHARED_WHITESPACE, Whitespace
from maskbench.errors import InputError
from maskbench.tokenizer import TokenizerSpec


class MissingEngineError(InputError, RuntimeError):
    """An engine that is not known or not installed; the message says how to install it."""


@contextmanager
def needed(name: str, install: str) -> Iterator[None]:
    """Import an engine's packages; raise `MissingEngineError` if one is missing."""
    try:
        yield
    except ImportError as error:
        raise MissingEngineError(
            f"{name} cannot be used ({error}): pip install {install}"
        ) from error


class RefusedError(Exception):
    """The engine declares that it cannot enforce a schema.

    `reason` is a short category for counting, `detail` the engine's own message.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def refusal(message: str) -> RefusedError:
    """Return a refusal with a message of the engine's own."""
    return RefusedError(short_reason(message), message)


class FailedError(Exception):
    """The engine failed on a schema that it had accepted, or contradicted itself."""


@dataclass(frozen=True)
class EngineSetup:
    """The same for every engine of a run."""

    tokenizer: TokenizerSpec
    whitespace: Whitespace
    property_order: str = "declared"
    """`declared` or `any`. An engine that has no such mode refuses every schema."""
    cold_store: bool = False
    """Whether `Engine.forget` drops what the engine keeps between schemas."""


@dataclass(frozen=True)
class Session:
    """One walk through one document.

    The hot ones are plain callables rather than methods to override, so that an engine can bind
    its native function and no wrapper is measured with it.
    """

    fill: Callable[[], object]
    """Writes the mask of the next token into `Engine.bitmask`."""

    accept: Callable[[int], bool]
    """Advances by one token; false if the engine refuses it."""

    problem: Callable[[], str | None]
    """What has gone wrong inside the engine (a limit, an internal error), if anything."""

    forced: Callable[[], list[int]] | None = None
    """The fast-forward tokens at this point; None where the engine has no such function."""

    rollback: Callable[[int], object] | None = None
    """Takes back so many tokens; None where the engine has no such function."""

    fork: Callable[[], object] | None = None
    """A second walk at the same place; None where the engine has no such function."""

    validate: Callable[[list[int]], object] | None = None
    """How many of the tokens could come; changes nothing. None as above."""


class Compiled(abc.ABC):
    """A compiled schema."""

    @abc.abstractmethod
    def session(self) -> Session:
        """Return a fresh walk from the start. Raises `RefusedError` or `FailedError`."""


class Engine(abc.ABC):
    """An engine with a tokenizer, ready to compile. One lives in each worker process.

    The constructor imports the engine's package and raises `MissingEngineError` without it; the
    module itself must be importable without.
    """

    name: ClassVar[str] = ""
    """What `--engine` calls it. A class in this folder that has a name is found by it."""

    bitmask: NDArray[np.int32]
    """The mask that `Session.fill` writes, shape `(ceil(vocab_size / 32),)`: bit `i % 32` of word
    `i // 32` is set if token `i` may come next."""

    _unsupported: tuple[str, str] | None = None
    """What `unsupported_mode` says of the run."""

    @abc.abstractmethod
    def __init__(self, setup: EngineSetup) -> None: ...

    @abc.abstractmethod
    def versions(self) -> dict[str, str]:
        """Package versions and the options that were used."""

    @abc.abstractmethod
    def compile(self, schema: str) -> Compiled:
        """Compile the text of a JSON Schema anew.

        Raises `RefusedError`. This, `session()` and the first `fill()` are timed together.
        """

    def _refuse_unsupported(self) -> None:
        """Raise `RefusedError` in a run whose mode the engine lacks."""
        if self._unsupported is not None:
            raise RefusedError(*self._unsupported)

    def compile_grammar(self, kind: str, text: str) -> Compiled:
        """Compile a grammar of a format: `lark`, `gbnf`, `ebnf` or `regex`.

        Raises `RefusedError`, also where the engine does not read the format.
        """
        raise RefusedError(
            "no such format", f"{self.name} reads no {kind} (of {len(text)} characters)"
        )

    def forget(self) -> None:  # noqa: B027 - an engine may keep nothing between schemas
        """Evict caches before each schema, untimed, if the run asks for it."""


def unsupported_mode(
    setup: EngineSetup,
    package: str,
    *,
    whitespace: tuple[Whitespace, ...] = SHARED_WHITESPACE,
    property_orders: tuple[str, ...] = ("declared", "any"),
) -> tuple[str, str] | None:
    """Return the arguments of a `RefusedError` for a run whose mode is not among these.

    None if the engine has the run's modes.
    """
    if setup.whitespace not in whitespace:
        known = ", ".join(mode.value for mode in whitespace)
        return "no such whitespace", f"{package} has no {setup.whitespace.value}; it has {known}"
    if setup.property_order not in property_orders:
        return "no such property order", (
            f"{package} cannot let properties come in the order {setup.property_order!r}; "
            f"it has {', '.join(property_orders)}"
        )
    return None


def token_texts(spec: TokenizerSpec) -> list[bytes | None]:
    """Return the bytes of every token by id, as in the middle of an output, or None.

    For engines that cannot read a `tokenizer.json` themselves. Raises `MissingEngineError`.
    """
    import ffwd.tokenizer

    try:
        vocabulary = ffwd.tokenizer.from_huggingface(spec.directory, vocab_size=spec.vocab_size)
    except ffwd.FfwdError as error:
        raise MissingEngineError(f"the tokenizer cannot be read: {error}") from error
    return [vocabulary.token_bytes(token) for token in range(spec.vocab_size)]


def mask_words(vocab_size: int) -> int:
    """Return the length of a mask in 32-bit words."""
    return (vocab_size + 31) // 32


def short_reason(message: str, limit: int = 80) -> str:
    """Return a message's first line, shortened, without numbers, so that equal causes match."""
    line = message.strip().splitlines()[0] if message.strip() else "no message"
    blurred: list[str] = []
    for char in line:
        if not char.isdigit():
            blurred.append(char)
        elif blurred[-1:] != ["N"]:
            blurred.append("N")
    text = "".join(blurred)
    return text if len(text) <= limit else text[: limit - 1] + "…"
