"""From rendered text that knows where it comes from to the parts of a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from ffwd.chat.control import ControlTokens, missing_names
from ffwd.chat.errors import InjectionError
from ffwd.chat.prompt import ControlPart, Part, TextPart


@dataclass(frozen=True)
class Assembled:
    """Parts, and the names that the template writes and the vocabulary does not have."""

    parts: tuple[Part, ...]
    missing: tuple[str, ...]


def assemble(text: str, control: ControlTokens) -> Assembled:
    """The parts of a rendered text.

    Control tokens are looked for in the template's own characters only, in each run of them on its
    own, so that no text beside it completes or hides one.

    Raises `InjectionError` where a control token lies in text of which it is not known whose it
    is.
    """
    from ffwd.chat.jinja import tracked

    origins = tracked.origins_of(text)
    text = tracked.raw(text)
    parts: list[Part] = []
    missing: list[str] = []

    def add_text(start: int, stop: int) -> None:
        at = start
        for origin, run in groupby(origins[start:stop]):
            length = sum(1 for _ in run)
            parts.append(TextPart(text[at : at + length], tracked.message_of(origin)))
            if origin == tracked.TEMPLATE:
                missing.extend(missing_names(text[at : at + length]))
            at += length

    at = 0
    for kind, run in groupby(origins, _kind):
        stop = at + sum(1 for _ in run)
        if kind == _CONTROL:
            done = at
            for start, end, name in control.find(text[at:stop]):
                add_text(done, at + start)
                parts.append(ControlPart(control.ids[name], name))
                done = at + end
            add_text(done, stop)
        else:
            if kind == _UNKNOWN:
                _refuse_control(text, at, stop, control, origins)
            add_text(at, stop)
        at = stop
    return Assembled(_merged(parts), tuple(dict.fromkeys(missing)))


_TEXT, _CONTROL, _UNKNOWN = range(3)


def _kind(origin: int) -> int:
    from ffwd.chat.jinja import tracked

    if origin == tracked.FUZZY:
        return _UNKNOWN
    return _CONTROL if tracked.may_control(origin) else _TEXT


def _refuse_control(
    text: str, start: int, stop: int, control: ControlTokens, origins: Sequence[int]
) -> None:
    reach = control.longest
    low, high = max(0, start - reach), stop + reach
    for begin, end, name in control.find(text[low:high]):
        if low + begin < stop and low + end > start:
            raise InjectionError(
                f"the template changes text in a way that cannot be followed, so it cannot be told "
                f"whether {name!r} is its own or part of a message"
            )


def _merged(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Without empty texts, and with adjacent ones of the same origin as one."""
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
