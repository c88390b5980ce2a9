"""The base of all grammars: an immutable value that composes with every other."""

from collections.abc import Callable, Iterable
from dataclasses import MISSING, fields
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, TypeAlias

# The longest repr. Values with shared parts can have an exponentially long one.
MAX_REPR = 2_000


@cache
def _fields_of(kind: type) -> "Callable[[Grammar], tuple[Any, ...]]":
    """Return a fast getter of the fields' values, because finding the fields is slow."""
    names = [field.name for field in fields(kind)]
    if len(names) < 2:
        return lambda grammar: tuple(getattr(grammar, name) for name in names)
    return attrgetter(*names)


class Grammar:
    """A description of the texts that an output may have.

    Everything that `ffwd.compile` takes is a grammar. Grammars are immutable, hashable and equal by
    value. Any may be part of any other, whatever its source. `a + b` is `seq(a, b)`, and `a | b`
    is `choice([a, b])`; a str beside a grammar is that text. For regular grammars, `a & b` is
    `intersection(a, b)`, and `~a` is `complement(a)`.
    """

    _function: ClassVar[str] = ""
    """The function that makes it, for its repr."""
    _hash: int
    _free: frozenset[str]

    def __post_init__(self) -> None:
        self._seal()

    def _seal(self) -> None:
        """Cache what needs a walk over all parts; they are sealed before."""
        parts = self._parts()
        free = frozenset().union(*[part._free for part in parts])
        label = hash((type(self).__name__, self._label(), tuple([part._hash for part in parts])))
        object.__setattr__(self, "_hash", label)
        object.__setattr__(self, "_free", self._unbound(free))

    def _parts(self) -> "tuple[Grammar, ...]":
        """Return the direct parts of the grammar."""
        return ()

    def _label(self) -> tuple[Any, ...]:
        """Return everything that identifies it except its parts; hashable."""
        kind: Any = type(self)
        return _fields_of(kind)(self)

    def _unbound(self, names: frozenset[str]) -> frozenset[str]:
        """Return the names of rules that it uses and does not define, given those of its parts."""
        return names

    def _arguments(self) -> "Iterable[tuple[str, object]]":
        """Yield the arguments of the function that makes it: names (empty first) and values."""
        # Those that a base class declares come first, and take names only.
        ordered = sorted(fields(self), key=lambda field: field.kw_only is True)  # type: ignore[arg-type]
        for index, field in enumerate(ordered):
            value = getattr(self, field.name)
            if index == 0:
                yield "", value
            elif field.default is MISSING or value != field.default:
                yield field.name, value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grammar):
            return NotImplemented
        return self is other or _equal(self, other)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return _text(self)

    def __add__(self, other: "GrammarLike") -> "Grammar":
        from ffwd.grammar._sequence import seq

        return seq(self, other) if isinstance(other, (Grammar, str)) else NotImplemented

    def __radd__(self, other: str) -> "Grammar":
        from ffwd.grammar._sequence import seq

        return seq(other, self) if isinstance(other, str) else NotImplemented

    def __or__(self, other: "GrammarLike") -> "Grammar":
        from ffwd.grammar._choice import either

        return either(self, other) if isinstance(other, (Grammar, str)) else NotImplemented

    def __ror__(self, other: str) -> "Grammar":
        from ffwd.grammar._choice import either

        return either(other, self) if isinstance(other, str) else NotImplemented

    def __and__(self, other: "GrammarLike") -> "Grammar":
        from ffwd.grammar._languages import intersection

        return intersection(self, other) if isinstance(other, (Grammar, str)) else NotImplemented

    def __rand__(self, other: str) -> "Grammar":
        from ffwd.grammar._languages import intersection

        return intersection(other, self) if isinstance(other, str) else NotImplemented

    def __invert__(self) -> "Grammar":
        from ffwd.grammar._languages import complement

        return complement(self)

    def __getstate__(self) -> dict[str, Any]:
        # Hashes of strings differ between processes.
        return {name: value for name, value in vars(self).items() if name not in ("_hash", "_free")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._seal()


GrammarLike: TypeAlias = Grammar | str
"""A grammar, or the text that is meant, verbatim."""


def as_grammar(value: GrammarLike, what: str) -> Grammar:
    """Return a grammar unchanged, and a str as the grammar of that text.

    Raises:
        GrammarError: A lone surrogate in a text.
        TypeError: Anything else.

    """
    from ffwd.grammar._sequence import lit

    if isinstance(value, Grammar):
        return value
    if isinstance(value, str):
        return lit(value)
    raise TypeError(f"{what} must be a grammar or a str, not {type(value).__name__}")


def _equal(left: Grammar, right: Grammar) -> bool:
    """Return whether two grammars are the same value; each pair of parts is compared once."""
    seen: set[tuple[int, int]] = set()
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if one is other or (id(one), id(other)) in seen:
            continue
        if one._hash != other._hash or type(one) is not type(other):
            return False
        parts, others = one._parts(), other._parts()
        if len(parts) != len(others) or one._label() != other._label():
            return False
        seen.add((id(one), id(other)))
        pairs.extend(zip(parts, others, strict=True))
    return True


def _text(grammar: Grammar) -> str:
    """Return the call that makes it, truncated if it is long."""
    written = ""
    # The last one comes next; a str is written as it is.
    coming: list[object] = [_Value(grammar)]
    while coming and len(written) < MAX_REPR:
        piece = coming.pop()
        if isinstance(piece, str):
            written += piece
        elif isinstance(piece, _Value):
            coming.extend(reversed(_pieces(piece.value)))
    return written[:MAX_REPR] + "…" if coming or len(written) > MAX_REPR else written


class _Value:
    """A value that is not yet written."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


def _pieces(value: object) -> list[object]:
    """Yield the pieces of a value's text."""
    if isinstance(value, Grammar):
        name = value._function or type(value).__name__
        arguments = [((f"{key}=" if key else ""), item) for key, item in value._arguments()]
        return _joined(f"{name}(", arguments, ")")
    # Parts that do not fit the repr are not visited.
    if isinstance(value, (list, tuple)):
        items = [("", item) for item in value[:MAX_REPR]]
        if isinstance(value, tuple):
            return _joined("(", items, ",)" if len(value) == 1 else ")")
        return _joined("[", items, "]")
    if isinstance(value, dict):
        return _joined("{", [(f"{key!r}: ", item) for key, item in value.items()], "}")
    return [repr(value[: MAX_REPR + 1] if isinstance(value, str) else value)]


def _joined(before: str, items: list[tuple[str, object]], after: str) -> list[object]:
    pieces: list[object] = [before]
    for index, (label, item) in enumerate(items):
        pieces += [", " * (index > 0) + label, _Value(item)]
    return [*pieces, after]
