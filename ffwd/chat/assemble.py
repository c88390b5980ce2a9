"""From rendered text with known origins to the parts of a prompt."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ffwd.chat.control import ControlTokens, missing_names
from ffwd.chat.errors import InjectionError
from ffwd.chat.prompt import ControlPart, Part, TextPart


@dataclass(frozen=True)
class Assembled:
    """Parts, and the names that the template writes and the vocabulary lacks."""

    parts: tuple[Part, ...]
    missing: tuple[str, ...]


def assemble(text: str, control: ControlTokens) -> Assembled:
    """Return the parts of a rendered text.

    Control tokens are searched only in the template's own characters, in each run separately, so no
    text beside it completes or hides one.

    Raises `InjectionError` for a control token in text of unknown origin.
    """
    from ffwd.chat.jinja import tracked

    runs = _runs(tracked.origins_of(text))
    text = tracked.raw(text)
    parts: list[Part] = []
    missing: list[str] = []

    def add_text(start: int, stop: int, pieces: Sequence[_Run]) -> None:
        for origin, first, last in pieces[bisect_right(pieces, start, key=_stop) :]:
            if first >= stop:
                break
            piece = text[max(first, start) : min(last, stop)]
            parts.append(TextPart(piece, tracked.message_of(origin)))
            if origin == tracked.TEMPLATE:
                missing.extend(missing_names(piece))

    for kind, grouped in groupby(runs, lambda run: _kind(run[0])):
        pieces = list(grouped)
        at, stop = pieces[0][1], pieces[-1][2]
        if kind == _CONTROL:
            done = at
            for start, end, name in control.find(text[at:stop]):
                add_text(done, at + start, pieces)
                parts.append(ControlPart(control.ids[name], name))
                done = at + end
            add_text(done, stop, pieces)
        else:
            if kind == _UNKNOWN:
                _refuse_control(text, at, stop, control)
            add_text(at, stop, pieces)
    return Assembled(_merged(parts), tuple(dict.fromkeys(missing)))


_Run = tuple[int, int, int]


def _runs(origins: Iterable[int]) -> list[_Run]:
    """Return stretches of one origin: it, where it begins, where it ends."""
    found: list[_Run] = []
    at = 0
    for origin, characters in groupby(origins):
        stop = at + len(list(characters))
        found.append((origin, at, stop))
        at = stop
    return found


def _stop(run: _Run) -> int:
    return run[2]


_TEXT, _CONTROL, _UNKNOWN = range(3)


def _kind(origin: int) -> int:
    from ffwd.chat.jinja import tracked

    if origin == tracked.FUZZY:
        return _UNKNOWN
    return _CONTROL if tracked.may_control(origin) else _TEXT


def _refuse_control(text: str, start: int, stop: int, control: ControlTokens) -> None:
    reach = control.longest
    at = max(0, start - reach)
    # Each position is examined, because a name may begin within another one.
    while (found := control.pattern.search(text, at, stop + reach)) and found.start() < stop:
        at = found.start() + 1
        name = found.group()
        if found.end() > start:
            raise InjectionError(
                f"the template changes text in a way that cannot be followed, so it cannot be told "
                f"whether {name!r} is its own or part of a message"
            )


def _merged(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Return the texts without empty ones, and with adjacent ones of equal origin joined."""
    found: list[Part] = []
    for part in parts:
        if isinstance(part, TextPart):
            if not part.text:
                continue
            last = found[-1] if found else None
            if isinstance(last, TextPart) and last.message == part.message:
                found[-1] = TextPart(last.text + part.text, part.message)
                continue
        found.append(part)
    return tuple(found)
