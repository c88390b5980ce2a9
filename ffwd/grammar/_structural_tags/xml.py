"""Arguments of tools as XML: one element for each, with verbatim strings."""

from dataclasses import dataclass, field
from typing import Any

from ffwd.grammar._choice import choice
from ffwd.grammar._free_text import any_text
from ffwd.grammar._grammar import Grammar
from ffwd.grammar._regex import regex
from ffwd.grammar._repeat import optional, repeat
from ffwd.grammar._rules import rule, rules
from ffwd.grammar._sequence import lit, seq
from ffwd.grammar._structural_tags.document import ANNOTATIONS, KINDS, Document, branches, escaped
from ffwd.grammar._structural_tags.xml_names import (
    ANY_NAME,
    Names,
    avoiding,
    matches,
    patterns_of,
    read_names,
)
from ffwd.grammar._structural_tags.xml_strings import strings
from ffwd.grammar._structural_tags.xml_styles import STYLES as STYLES
from ffwd.grammar._structural_tags.xml_styles import Bodies, Style

# Names of arguments that are not declared.
NAME = r"^[a-zA-Z_][a-zA-Z0-9_]*$"
# Keywords of objects that this module does not write.
REFUSED = (
    "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies",
    "$dynamicRef", "$recursiveRef",
)  # fmt: skip
# The position of an unconstrained value.
ANYTHING = None


def arguments(
    style: Style,
    document: Document,
    max_whitespace: int,
    any_order: bool,
    excluding: tuple[str, ...] = (),
) -> Grammar:
    """Return a grammar for the arguments that a schema describes, or for one such value.

    Raises:
        StructuralTagError: The schema says something of objects that is not supported in XML.

    """
    space: Grammar = regex(rf"[ \t\n\r]{{0,{max_whitespace}}}")
    writer = Writer(style, document, space, any_order, excluding)
    start = writer.members("") if writer.may_be_object() else writer.value()
    return rules({"arguments": start, **writer.named}) if writer.named else start


@dataclass
class Writer:
    """Writes the values of one schema.

    Attributes:
        style: How.
        document: The schema.
        space: The whitespace between elements.
        any_order: Members come in any order, and only their number is checked.
        excluding: Texts that come neither in strings nor in names.
        named: The objects and lists in it, where they are not written as JSON.

    """

    style: Style
    document: Document
    space: Grammar
    any_order: bool
    excluding: tuple[str, ...] = ()
    named: dict[str, Grammar] = field(default_factory=dict)

    def may_be_object(self) -> bool:
        """Return whether the schema is one of arguments."""
        kinds = self.document.kinds(self.document.resolve(""))
        return not kinds or "object" in kinds

    def value(self) -> Grammar:
        """Return the value of the schema itself, which is no object."""
        return choice([body for _, body in self._bodies(self.document.resolve(""))])

    def element(
        self, name: str | Grammar | None, place: str | None, names: Names = ANY_NAME
    ) -> Grammar:
        """Return one argument, or an item of a list, whose value is at a place."""
        written = self._name(name, place or "", names) if isinstance(name, str) else name
        opened = self.style.write(written, self._bodies(place), self.space)
        closing: Grammar = lit(self.style.close, controls=True)
        if self.style.tight:
            closing = seq(closing, "</", written or "", ">")
        return seq(opened, closing)

    def _name(self, name: str, place: str, names: Names) -> Grammar:
        written = self.style.escaped(name)
        forbidden = self.style.forbidden
        if (forbidden and forbidden in written) or (self.style.tight and not name.strip(" /")):
            raise self.document.error(place, f"the name {name!r} cannot be written in this style")
        if names.is_free:
            return lit(written)
        if written != name:
            raise self.document.error(
                place,
                f"'propertyNames' beside the name {name!r}, which is escaped, is not supported",
            )
        return names.among([name])

    def _bodies(self, place: str | None) -> Bodies:
        """Return the contents of an element."""
        kinds = frozenset(KINDS) if place is ANYTHING else self.document.kinds(place)
        if not self.style.open_values and kinds == frozenset(KINDS):
            raise self.document.error(
                place or "", "a value of which no type is said cannot be written in this style"
            )
        bodies: Bodies = []
        if "string" in kinds:
            close, excluding = self.style.close, self.excluding
            free_text = any_text(excluding=(close, *excluding))
            text = (
                free_text if place is ANYTHING else strings(self.document, place, close, excluding)
            )
            # Whitespace around free text belongs to it.
            free = text == free_text
            bodies.append(("string", text if free else self._spaced(text)))
        others = [frozenset({kind}) for kind in KINDS[1:] if kind in kinds]
        if not self.style.typed and not self.style.nested and others:
            others = [frozenset().union(*others)]
        for only in others:
            bodies.append((min(only), self._spaced(self._value(only, place))))
        if not bodies:
            raise self.document.error(place or "", "there is no such value")
        return bodies

    def _spaced(self, value: Grammar) -> Grammar:
        return value if self.style.tight else seq(self.space, value, self.space)

    def _value(self, only: frozenset[str], place: str | None) -> Grammar:
        """Return a value of some types, none of them a string."""
        if self.style.nested and only & {"object", "array"}:
            return self._named(min(only), place)
        if place is ANYTHING:
            return self.document.any_json(only)
        return self.document.json(place, only)

    def _named(self, kind: str, place: str | None) -> Grammar:
        """Return an object or list as a rule, because it may contain itself."""
        place = ANYTHING if place is ANYTHING else self.document.resolve(place)
        name = f"any {kind}" if place is ANYTHING else f"{kind} {place}"
        if name not in self.named:
            self.named[name] = seq()
            body = self.members(place) if kind == "object" else self._items(place)
            self.named[name] = body
        return rule(name)

    def members(self, place: str | None) -> Grammar:
        """Return the members of an object, one after the other."""
        if place is not ANYTHING:
            place = self.document.resolve(place)
        schema = True if place is ANYTHING else self.document.at(place)
        if place is ANYTHING or isinstance(schema, bool) or not schema.keys() - {"type"}:
            if schema is False:
                raise self.document.error(place or "", "there is no such value")
            if place is not ANYTHING and "object" not in self.document.kinds(place):
                raise self.document.error(place, "arguments must be an object")
            return seq(
                repeat(
                    seq(
                        self.space, self._other(ANY_NAME.but((), self.excluding, (NAME,)), ANYTHING)
                    )
                ),
                self.space,
            )
        return self._members(place, schema)

    def _members(self, place: str, schema: dict[str, Any]) -> Grammar:
        document = self.document
        if "object" not in document.kinds(place):
            raise document.error(place, "arguments must be an object")
        for keyword in REFUSED:
            if keyword in schema:
                raise document.error(
                    f"{place}/{keyword}", f"{keyword!r} of objects is not supported in XML"
                )
        choices = [keyword for keyword in ("anyOf", "oneOf", "allOf") if keyword in schema]
        if choices:
            places = [f"{place}/{one}" for one in branches(schema, choices[0])]
            alone = len(choices) == 1 and not schema.get("properties")
            if not alone or (choices[0] == "allOf" and len(places) > 1):
                raise document.error(
                    f"{place}/{choices[0]}",
                    f"{choices[0]!r} beside other keywords of an object is not supported in XML",
                )
            objects = [one for one in places if "object" in document.kinds(one)]
            return choice([self.members(one) for one in objects])
        return self._object(place, schema)

    def _object(self, place: str, schema: dict[str, Any]) -> Grammar:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        missing = [name for name in required if name not in properties]
        if missing:
            raise self.document.error(
                f"{place}/required", f"{missing[0]!r} is required and not declared"
            )
        names = read_names(self.document, place, schema)
        members = []
        for name, value in properties.items():
            written = self.style.escaped(name)
            refused = any(text in written for text in self.excluding) or not names.allows(name)
            if refused and name in required:
                raise self.document.error(
                    f"{place}/required", f"{name!r} is required and cannot be a name here"
                )
            self._check_patterns(place, schema, name, value)
            if value is not False and not refused:
                inner = f"{place}/properties/{escaped(name)}"
                members.append((self.element(name, inner, names), name in required))
        other = self._others(place, schema, tuple(properties), names)
        least, most = self.document.bounds(place, schema, "Properties")
        if self.any_order:
            ways = [element for element, _ in members] + ([] if other is None else [other])
            least = max(least, len(required))
            if not ways:
                return self.space
            return seq(repeat(seq(self.space, choice(ways)), least, most), self.space)
        return seq(self._in_order(members, other, least, most, place), self.space)

    def _check_patterns(self, place: str, schema: dict[str, Any], name: str, value: object) -> None:
        """Refuse a declared name of which a pattern says something as well."""
        for pattern, inner in patterns_of(self.document, place, schema).items():
            says = inner not in (True, {}) and value is not False
            if says and matches(pattern, name):
                raise self.document.error(
                    f"{place}/patternProperties/{escaped(pattern)}",
                    f"a pattern that the declared name {name!r} matches is not supported in XML",
                )

    def _others(
        self, place: str, schema: dict[str, Any], declared: tuple[str, ...], names: Names
    ) -> Grammar | None:
        """Return an undeclared member, if the schema allows any.

        A name that several patterns match does not come.
        """
        patterns = patterns_of(self.document, place, schema)
        ways = []
        for pattern, value in patterns.items():
            if value is not False:
                inner = f"{place}/patternProperties/{escaped(pattern)}"
                apart = [avoiding(other) for other in patterns if other != pattern]
                fits = names.but(declared, self.excluding, (NAME, pattern, *apart))
                ways.append(self._other(fits, ANYTHING if value in (True, {}) else inner))
        keywords = ("additionalProperties", "unevaluatedProperties")
        keyword = next((one for one in keywords if one in schema), None)
        value = True if keyword is None else schema[keyword]
        if value is not False:
            fits = names.but(declared, self.excluding, (NAME, *map(avoiding, patterns)))
            open_value = value in (True, {})
            ways.append(self._other(fits, ANYTHING if open_value else f"{place}/{keyword}"))
        if not ways or names.is_nothing:
            return None
        return ways[0] if len(ways) == 1 else choice(ways)

    def _other(self, name: Grammar, place: str | None) -> Grammar:
        if self.style.tight:
            raise self.document.error(
                place or "", "members that are not declared cannot be written in this style"
            )
        return self.element(name, place)

    def _in_order(
        self,
        members: list[tuple[Grammar, bool]],
        other: Grammar | None,
        least: int,
        most: int | None,
        place: str,
    ) -> Grammar:
        """Return members in the declared order, with bounds on their number."""
        counted = least > 0 or most is not None
        # The grammar of the rest, by the number of examined and of written members.
        after: dict[int, Grammar | None] = {}
        for came in range(len(members) + 1 if counted else 1):
            after[came] = self._rest(other, least - came, None if most is None else most - came)
        for index in range(len(members) - 1, -1, -1):
            element, required = members[index]
            here: dict[int, Grammar | None] = {}
            for came in range(index + 1 if counted else 1):
                with_it = after[came + 1 if counted else came]
                taken = None if with_it is None else seq(self.space, element, with_it)
                without = None if required else after[came]
                if not counted and not required:
                    here[came] = seq(optional(seq(self.space, element)), after[came] or seq())
                elif taken is not None and without is not None:
                    here[came] = choice([taken, without])
                else:
                    here[came] = taken or without
            after = here
        if after[0] is None:
            bounds = f"at least {least}" + ("" if most is None else f" and at most {most}")
            raise self.document.error(
                place,
                f"no object with these `properties` and `required` has {bounds} members: "
                "change `minProperties` or `maxProperties`",
            )
        return after[0]

    def _rest(self, other: Grammar | None, least: int, most: int | None) -> Grammar | None:
        if most is not None and most < max(least, 0):
            return None
        if other is None:
            return seq() if least <= 0 else None
        return repeat(seq(self.space, other), max(least, 0), most)

    def _items(self, place: str | None) -> Grammar:
        """Return the items of a list, one after the other."""
        schema = True if place is ANYTHING else self.document.at(place)
        if place is ANYTHING or isinstance(schema, bool):
            return repeat(self.element(None, ANYTHING))
        choices = [keyword for keyword in ("anyOf", "oneOf") if keyword in schema]
        if len(choices) == 1 and not schema.keys() - ANNOTATIONS - {"type", *choices}:
            places = [f"{place}/{one}" for one in branches(schema, choices[0])]
            lists = [one for one in places if "array" in self.document.kinds(one)]
            return choice([self._items(self.document.resolve(one)) for one in lists])
        for keyword in ("prefixItems", "contains", "uniqueItems", "unevaluatedItems", "not", "if",
                        "anyOf", "oneOf", "allOf", "enum", "const", "additionalItems"):  # fmt: skip
            if schema.get(keyword, False) is not False:
                raise self.document.error(
                    f"{place}/{keyword}", f"{keyword!r} of lists is not supported in this style"
                )
        least, most = self.document.bounds(place, schema, "Items")
        items = schema.get("items", True)
        if items is False:
            return seq()
        item = self.element("item" if self.style.tight else None,
                            ANYTHING if items in (True, {}) else f"{place}/items")  # fmt: skip
        if not self.style.tight:
            return repeat(item, least, most)
        some = seq(repeat(seq(self.space, item), max(least, 1), most), self.space)
        if most == 0:
            return seq()
        return some if least else optional(some)
