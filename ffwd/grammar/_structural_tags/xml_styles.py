"""How the styles of XML write one argument."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from ffwd.grammar._choice import choice
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._sequence import lit, seq

Bodies = list[tuple[str, Grammar]]
"""What may stand in an argument: the type of the value, and its text."""


@dataclass(frozen=True)
class Style:
    """A style of XML.

    Attributes:
        close: What closes an argument. It does not come in strings.
        write: From the name of an argument (None for an item of a list), the bodies that it may
            have and whitespace to the whole of it, without what closes it.
        escape: How a name is written.
        forbidden: What a name must not have in it once it is escaped.
        typed: The type of a value is written beside it.
        nested: Objects and lists are written likewise, and not as JSON.
        tight: No whitespace stands around values.
        open_values: Whether values of any type can be written.

    """

    close: str
    write: Callable[[Grammar | None, Bodies, Grammar], Grammar]
    escape: tuple[tuple[str, str], ...] = ()
    forbidden: str = ""
    typed: bool = False
    nested: bool = False
    tight: bool = False
    open_values: bool = True

    def escaped(self, name: str) -> str:
        """Return a name in its written form."""
        for character, entity in self.escape:
            name = name.replace(character, entity)
        return name


def _mark(text: str) -> Grammar:
    return lit(text, controls=True)


def _any(bodies: Iterable[tuple[str, Grammar]]) -> Grammar:
    found = [body for _, body in bodies]
    return found[0] if len(found) == 1 else choice(found)


def _around(before: str, after: str) -> Callable[[Grammar | None, Bodies, Grammar], Grammar]:
    """Return the name between two texts, then a value of any type."""

    def write(name: Grammar | None, bodies: Bodies, space: Grammar) -> Grammar:
        return seq(_mark(before), name or "", _mark(after), _any(bodies))

    return write


def _glm(name: Grammar | None, bodies: Bodies, space: Grammar) -> Grammar:
    opened = (_mark("<arg_key>"), name or "", _mark("</arg_key>"))
    return seq(*opened, space, _mark("<arg_value>"), _any(bodies))


def _deepseek(before: str) -> Callable[[Grammar | None, Bodies, Grammar], Grammar]:
    """Return whether the value is a string is said."""

    def write(name: Grammar | None, bodies: Bodies, space: Grammar) -> Grammar:
        strings = [body for body in bodies if body[0] == "string"]
        others = [body for body in bodies if body[0] != "string"]
        ways = [
            seq(lit(f'" string="{said}">'), _any(part))
            for said, part in (("true", strings), ("false", others))
            if part
        ]
        return seq(_mark(before), name or "", choice(ways))

    return write


def _kimi_k3(name: Grammar | None, bodies: Bodies, space: Grammar) -> Grammar:
    """Return an element that states the type of the value."""
    ways = [seq(lit(f'" type="{kind}"'), _mark("<|sep|>"), body) for kind, body in bodies]
    return seq(_mark('<|open|>argument key="'), name or "", choice(ways))


def _cohere(name: Grammar | None, bodies: Bodies, space: Grammar) -> Grammar:
    """Return how the value is written is said."""
    types = {"string": "raw", "object": "dict", "array": "list"}
    ways = [seq(lit(f' type="{types.get(kind, "json")}">'), body) for kind, body in bodies]
    named = seq(' name="', name, '"') if name is not None else seq()
    return seq(_mark("<cofl:value"), named, choice(ways))


NAMESPACE = "]<]minimax[>["
"""What MiniMax M3 writes before each of its tags."""

STYLES: dict[str, Style] = {
    "qwen_xml": Style("</parameter>", _around("<parameter=", ">"), forbidden=">"),
    "minimax_xml": Style("</parameter>", _around('<parameter name="', '">'), forbidden='"'),
    # What closes an element has its name in it, so `xml` writes it.
    "minimax_m3_xml": Style(
        NAMESPACE,
        _around(f"{NAMESPACE}<", ">"),
        forbidden=">",
        nested=True,
        tight=True,
        open_values=False,
    ),
    "deepseek_xml": Style(
        "</｜DSML｜parameter>",  # noqa: RUF001
        _deepseek('<｜DSML｜parameter name="'),  # noqa: RUF001
        forbidden='"',
        typed=True,
    ),
    "glm_xml": Style("</arg_value>", _glm, forbidden="<"),
    "cohere_xml": Style(
        "</cofl:value>",
        _cohere,
        escape=(("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")),
        typed=True,
        nested=True,
    ),
    "kimi_k3_xml": Style(
        "<|close|>argument<|sep|>",
        _kimi_k3,
        escape=(("&", "&amp;"), ('"', "&quot;")),
        typed=True,
    ),
    "deepseek_v4_1_xml": Style(
        "</｜DSML｜ parameter>",  # noqa: RUF001
        _deepseek('<｜DSML｜ parameter name="'),  # noqa: RUF001
        forbidden='"',
        typed=True,
    ),
}
