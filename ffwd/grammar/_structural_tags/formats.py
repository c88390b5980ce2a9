"""The formats of structural tags, each read into a grammar."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from ffwd.grammar._choice import choice
from ffwd.grammar._dispatch import dispatch
from ffwd.grammar._free_text import any_text
from ffwd.grammar._front_ends import ebnf
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._regex import regex
from ffwd.grammar._repeat import optional, repeat
from ffwd.grammar._sequence import lit, seq
from ffwd.grammar._spans import limit
from ffwd.grammar._structural_tags.errors import StructuralTagError
from ffwd.grammar._structural_tags.fields import Fields, check_text, check_token
from ffwd.grammar._structural_tags.schemas import Schemas
from ffwd.grammar._tokens import tokens

# Far above any reasonable tag, and within Python's own recursion.
MAX_NESTING = 100


@dataclass(frozen=True)
class Around:
    """The context of a format.

    Attributes:
        ends: The texts that end the tag around it; free text stops before them.
        end_tokens: The tokens that do.
        nesting: How many formats there are.

    """

    ends: tuple[str, ...] = ()
    end_tokens: tuple[int | str, ...] = ()
    nesting: int = 0


@dataclass(frozen=True)
class Reader:
    """Reads formats.

    Attributes:
        schemas: Reads JSON Schemas.
        lenient: Whether fields that are not known are left out.

    """

    schemas: Schemas
    lenient: bool = False

    def read(self, value: object, pointer: str, around: Around) -> Grammar:
        """Return the grammar of a format of any type."""
        fields = Fields(value, pointer, "a format")
        kind = fields.text("type")
        fields.kind = f"the format {kind!r}"
        read = FORMATS.get(kind)
        if read is None:
            raise StructuralTagError.at(
                fields.place("type"),
                f"there is no format {kind!r}; there are {', '.join(FORMATS)}",
            )
        if around.nesting >= MAX_NESTING:
            raise StructuralTagError.at(pointer, f"formats nest more than {MAX_NESTING} deep")
        grammar = read(self, fields, replace(around, nesting=around.nesting + 1))
        self.check_unread(fields)
        return grammar

    def check_unread(self, fields: Fields) -> None:
        """Refuse fields without a meaning here: they could be intended as restrictions."""
        for name in fields.unread():
            if not self.lenient:
                raise StructuralTagError.at(
                    fields.place(name), f"{fields.kind} has no field {name!r}"
                )

    def content(self, fields: Fields, around: Around) -> Grammar:
        """Return the grammar of a format's content."""
        return self.read(fields.value("content"), fields.place("content"), around)

    def tag(self, value: object, pointer: str, around: Around) -> "Tag":
        """Return a tag, in its three parts."""
        fields = Fields(value, pointer, "a tag")
        if fields.value("type", "tag") != "tag":
            raise StructuralTagError.at(
                fields.place("type"), f"this must be a tag, not {fields.value('type')!r}"
            )
        begin = self._mark(fields.value("begin"), fields.place("begin"))
        end = fields.value("end")
        marks: list[Mark]
        if isinstance(end, (list, tuple)):
            marks = [self._text(item, f"{fields.place('end')}/{i}") for i, item in enumerate(end)]
            if not marks:
                raise StructuralTagError.at(fields.place("end"), "'end' must not be empty")
        else:
            marks = [self._mark(end, fields.place("end"))]
        texts = tuple(mark for mark in marks if isinstance(mark, str) and mark)
        ids = tuple(mark[0] for mark in marks if isinstance(mark, tuple))
        inside = Around(texts, ids, around.nesting)
        tag = Tag(begin, self.content(fields, inside), marks)
        self.check_unread(fields)
        return tag

    def _mark(self, value: object, pointer: str) -> "Mark":
        if isinstance(value, str):
            return self._text(value, pointer)
        fields = Fields(value, pointer, "a string or a token format")
        if fields.text("type", "token") != "token":
            raise StructuralTagError.at(fields.place("type"), "this must be the format 'token'")
        token = check_token(fields.value("token"), fields.place("token"))
        self.check_unread(fields)
        return (token,)

    @staticmethod
    def _text(value: object, pointer: str) -> str:
        return check_text(value, pointer, "a begin or end")


Mark: TypeAlias = str | tuple[int | str]
"""What begins or ends a tag: a text, or one token."""


@dataclass(frozen=True)
class Tag:
    """The begin, content and end of a tag."""

    begin: Mark
    content: Grammar
    ends: list[Mark]

    def grammar(self, skipped: int | None = None) -> Grammar:
        """Return the whole tag, or its part after some characters of its begin; 0 for its token."""
        begin: Grammar
        if isinstance(self.begin, str):
            begin = lit(self.begin[skipped or 0 :], controls=True)
        else:
            begin = seq() if skipped is not None else mark_of(self.begin)
        return seq(begin, self.content, choice([mark_of(end) for end in self.ends]))


def mark_of(mark: Mark) -> Grammar:
    """Return the begin or end of a tag as a grammar."""
    return lit(mark, controls=True) if isinstance(mark, str) else tokens(mark)


def _const_string(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return lit(fields.text("value"), controls=True)


def _regex(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return regex(fields.text("pattern"), dialect="ecma")


def _grammar(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return ebnf(fields.text("grammar"))


def _json_schema(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return reader.schemas.read(fields)


def _any_text(reader: Reader, fields: Fields, around: Around) -> Grammar:
    max_tokens = fields.count("max_tokens", None)
    max_chars = fields.count("max_chars", None)
    excluding = _without(fields, "excludes", around)
    text: Grammar = any_text(excluding=excluding, max_chars=max_chars)
    return text if max_tokens is None else limit(text, max_tokens=max_tokens)


def _without(fields: Fields, name: str, around: Around) -> tuple[str, ...]:
    """Return the texts that free text excludes: the format's, and the end of the outer tag."""
    return tuple(dict.fromkeys(fields.texts(name, []) + around.ends))


def _token(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return tokens([check_token(fields.value("token"), fields.place("token"))])


def _exclude_token(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return tokens(fields.tokens("exclude_tokens", []) + around.end_tokens, exclude=True)


def _any_tokens(reader: Reader, fields: Fields, around: Around) -> Grammar:
    # Each is one token, so the number of tokens is that of repetitions.
    return repeat(_exclude_token(reader, fields, around), max=fields.count("max_tokens", None))


def _elements(reader: Reader, fields: Fields, around: Around) -> list[Grammar]:
    elements = [reader.read(item, pointer, around) for item, pointer in fields.items("elements")]
    if not elements:
        raise StructuralTagError.at(fields.place("elements"), f"{fields.kind} needs an element")
    return elements


def _sequence(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return seq(*_elements(reader, fields, around))


def _or(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return choice(_elements(reader, fields, around))


def _optional(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return optional(reader.content(fields, around))


def _plus(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return repeat(reader.content(fields, around), 1)


def _star(reader: Reader, fields: Fields, around: Around) -> Grammar:
    return repeat(reader.content(fields, around))


def _repeat(reader: Reader, fields: Fields, around: Around) -> Grammar:
    least, most = fields.count("min"), fields.count("max", least=-1)
    most = None if most == -1 else most
    if least is not None and most is not None and most < least:
        raise StructuralTagError.at(fields.place("max"), "'max' must be at least 'min', or -1")
    return repeat(reader.content(fields, around), least or 0, most)


def _tag(reader: Reader, fields: Fields, around: Around) -> Grammar:
    for name in ("begin", "content", "end"):
        fields.value(name)
    values = {name: fields.value(name) for name in ("type", "begin", "content", "end")}
    return reader.tag(values, fields.pointer, around).grammar()


def _tags(reader: Reader, fields: Fields, around: Around) -> list[tuple[Tag, str]]:
    tags = [(reader.tag(item, pointer, around), pointer) for item, pointer in fields.items("tags")]
    if not tags:
        raise StructuralTagError.at(fields.place("tags"), f"{fields.kind} needs a tag")
    return tags


def _triggered_tags(reader: Reader, fields: Fields, around: Around) -> Grammar:
    triggers = fields.texts("triggers")
    if not triggers:
        raise StructuralTagError.at(fields.place("triggers"), f"{fields.kind} needs a trigger")
    tags = _tags(reader, fields, around)
    followed: dict[str, list[Grammar]] = {}
    for tag, pointer in tags:
        begin = tag.begin
        if not isinstance(begin, str):
            raise StructuralTagError.at(f"{pointer}/begin", "this must be a string, not a token")
        found = [trigger for trigger in dict.fromkeys(triggers) if begin.startswith(trigger)]
        if len(found) != 1:
            raise StructuralTagError.at(
                f"{pointer}/begin",
                f"{begin!r} must begin with exactly one of the triggers, and does with {found}",
            )
        followed.setdefault(found[0], []).append(tag.grammar(len(found[0])))
    _check_triggers(fields, "triggers", triggers, followed)
    at_least_one = fields.flag("at_least_one", False)
    once = fields.flag("stop_after_first", False)
    first = choice([tag.grammar() for tag, _ in tags])
    if at_least_one and once:
        fields.texts("excludes", [])
        return first
    excluding = _without(fields, "excludes", around)
    cases = [(trigger, choice(grammars)) for trigger, grammars in followed.items()]
    rest = dispatch(cases, excluding=excluding, loop=not once, controls=True)
    return seq(first, rest) if at_least_one else rest


def _check_triggers(
    fields: Fields, name: str, triggers: tuple[Any, ...], followed: dict[Any, list[Grammar]]
) -> None:
    for index, trigger in enumerate(triggers):
        if trigger not in followed:
            raise StructuralTagError.at(
                f"{fields.place(name)}/{index}", f"no tag begins with the trigger {trigger!r}"
            )


def _token_triggered_tags(reader: Reader, fields: Fields, around: Around) -> Grammar:
    triggers = fields.tokens("trigger_tokens")
    if not triggers:
        raise StructuralTagError.at(
            fields.place("trigger_tokens"), f"{fields.kind} needs a trigger"
        )
    tags = _tags(reader, fields, around)
    followed: dict[int | str, list[Grammar]] = {}
    for tag, pointer in tags:
        if isinstance(tag.begin, str):
            raise StructuralTagError.at(f"{pointer}/begin", "this must be a token, not a string")
        if tag.begin[0] not in triggers:
            raise StructuralTagError.at(
                f"{pointer}/begin", f"{tag.begin[0]!r} must be one of the trigger tokens"
            )
        followed.setdefault(tag.begin[0], []).append(tag.grammar(0))
    _check_triggers(fields, "trigger_tokens", triggers, followed)
    at_least_one = fields.flag("at_least_one", False)
    once = fields.flag("stop_after_first", False)
    excluding = fields.tokens("exclude_tokens", []) + around.end_tokens
    first = choice([tag.grammar() for tag, _ in tags])
    if at_least_one and once:
        return first
    cases = [(token, choice(grammars)) for token, grammars in followed.items()]
    rest = _dispatch_tokens(cases, excluding, loop=not once)
    return seq(first, rest) if at_least_one else rest


def _dispatch_tokens(
    cases: Sequence[tuple[int | str, Grammar]], excluding: tuple[int | str, ...], *, loop: bool
) -> Grammar:
    free = repeat(tokens([token for token, _ in cases] + list(excluding), exclude=True))
    ends = choice([seq(tokens([token]), content) for token, content in cases])
    if loop:
        return seq(repeat(seq(free, ends)), free)
    return seq(free, optional(ends))


def _tags_with_separator(reader: Reader, fields: Fields, around: Around) -> Grammar:
    tag = choice([tag.grammar() for tag, _ in _tags(reader, fields, around)])
    separator = lit(fields.text("separator"), controls=True)
    least = int(fields.flag("at_least_one", False))
    once = fields.flag("stop_after_first", False)
    return repeat(tag, least, 1 if once else None, separator=separator)


def _rules(reader: Reader, fields: Fields, around: Around) -> list[tuple[Any, Grammar, str]]:
    rules = []
    for item, pointer in fields.items("rules"):
        if not isinstance(item, (list, tuple)) or len(item) != 2:
            raise StructuralTagError.at(pointer, "a rule must be a pattern and a format")
        rules.append((item[0], reader.read(item[1], f"{pointer}/1", around), f"{pointer}/0"))
    if not rules:
        raise StructuralTagError.at(fields.place("rules"), f"{fields.kind} needs a rule")
    return rules


def _dispatch(reader: Reader, fields: Fields, around: Around) -> Grammar:
    cases = []
    for pattern, content, pointer in _rules(reader, fields, around):
        if not check_text(pattern, pointer, "a pattern"):
            raise StructuralTagError.at(pointer, "a pattern must not be empty")
        cases.append((pattern, content))
    loop = fields.flag("loop", True)
    return dispatch(cases, excluding=fields.texts("excludes", []), loop=loop, controls=True)


def _token_dispatch(reader: Reader, fields: Fields, around: Around) -> Grammar:
    cases = [
        (check_token(token, pointer), content)
        for token, content, pointer in _rules(reader, fields, around)
    ]
    loop = fields.flag("loop", True)
    return _dispatch_tokens(cases, fields.tokens("exclude_tokens", []), loop=loop)


FORMATS: dict[str, Callable[[Reader, Fields, Around], Grammar]] = {
    "const_string": _const_string,
    "json_schema": _json_schema,
    "qwen_xml_parameter": _json_schema,
    "regex": _regex,
    "grammar": _grammar,
    "any_text": _any_text,
    "token": _token,
    "exclude_token": _exclude_token,
    "any_tokens": _any_tokens,
    "sequence": _sequence,
    "or": _or,
    "optional": _optional,
    "plus": _plus,
    "star": _star,
    "repeat": _repeat,
    "tag": _tag,
    "triggered_tags": _triggered_tags,
    "token_triggered_tags": _token_triggered_tags,
    "tags_with_separator": _tags_with_separator,
    "dispatch": _dispatch,
    "token_dispatch": _token_dispatch,
}
