"""Structural tags: what they are read as, and what is refused, with the place."""

import json
from typing import Any

import compiled
import pytest
from compiled import byte_vocabulary
from recognise import accepts
from structuraltags import ANY, CASES, PLACE, const, schema, tag

import ffwd
from ffwd.grammar import StructuralTagError


def read(form: Any, **options: Any) -> ffwd.Grammar:
    return ffwd.structural_tag({"type": "structural_tag", "format": form}, **options)


@pytest.mark.parametrize("name", CASES)
def test_texts_of_every_format(name: str) -> None:
    """All but those that are listed to show where a bound lies."""
    form, texts = CASES[name]
    grammar = read(form)
    refused = {"aab", "abcd", "<t>ab", "<f2>x</f>", "<aaa"}
    assert [text for text in texts if not accepts(grammar, text) and text not in refused] == []
    assert ffwd.structural_tag(json.dumps({"format": form})) == grammar


def test_the_older_form() -> None:
    """As vLLM and SGLang emit it: schemas as values or as text."""
    structure = {"begin": "<f=go>", "schema": PLACE, "end": "</f>"}
    older = {"type": "structural_tag", "structures": [structure], "triggers": ["<f="]}
    format_ = {
        "type": "triggered_tags",
        "triggers": ["<f="],
        "tags": [tag("<f=go>", schema(PLACE), "</f>")],
    }
    assert ffwd.structural_tag(older) == read(format_)
    structure["schema"] = json.dumps(PLACE)
    assert ffwd.structural_tag(older) == read(format_)


TOKEN = {"type": "token", "token": 7}


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (TOKEN, ffwd.token(7)),
        ({"type": "token", "token": "<|x|>"}, ffwd.token("<|x|>")),
        ({"type": "exclude_token"}, ffwd.tokens([], exclude=True)),
        (
            {"type": "exclude_token", "exclude_tokens": [1, "a"]},
            ffwd.tokens([1, "a"], exclude=True),
        ),
        (
            {"type": "any_tokens", "exclude_tokens": [1], "max_tokens": 3},
            ffwd.repeat(ffwd.tokens([1], exclude=True), max=3),
        ),
        (
            tag(TOKEN, {"type": "any_tokens"}, {"type": "token", "token": "</x>"}),
            ffwd.token(7)
            + ffwd.repeat(ffwd.tokens(["</x>"], exclude=True))
            + ffwd.choice([ffwd.token("</x>")]),
        ),
        (
            {"type": "any_text", "max_tokens": 4, "excludes": ["a"]},
            ffwd.limit(ffwd.any_text(excluding="a"), max_tokens=4),
        ),
        (
            {"type": "token_dispatch", "rules": [[7, const("a")]], "loop": False},
            ffwd.repeat(ffwd.tokens([7], exclude=True))
            + ffwd.optional(ffwd.choice([ffwd.token(7) + ffwd.lit("a", controls=True)])),
        ),
        ({"type": "grammar", "grammar": 'root ::= "a"'}, ffwd.ebnf('root ::= "a"')),
    ],
)
def test_formats_about_tokens(form: Any, expected: ffwd.Grammar) -> None:
    """And others that the slow recogniser does not know."""
    assert read(form) == expected


@pytest.mark.parametrize(
    ("value", "good", "bad"),
    [
        ({"type": "string"}, ["a b", '"', ""], ["a</parameter>"]),
        ({"type": "integer"}, ["17", " 17\n"], ['"17"', ""]),
        ({"$ref": "#/$defs/n", "$defs": {"n": {"enum": ["x", None]}}}, ["x", "null"], ['"x"']),
    ],
)
def test_one_value_in_a_style_of_xml(value: Any, good: list[str], bad: list[str]) -> None:
    """It is written like that of an argument, as SGLang asks for it in calls of Kimi K3."""
    grammar = read(schema(value, style="qwen_xml"))
    assert all(accepts(grammar, text) for text in good)
    assert not any(accepts(grammar, text) for text in bad)


def test_tokens_that_trigger() -> None:
    """Free tokens, but for the triggers, what is excluded, and the end of the tag around."""
    form = {
        "type": "token_triggered_tags",
        "trigger_tokens": [7],
        "tags": [tag(TOKEN, const("a"), "b")],
        "exclude_tokens": [9],
    }
    follows = ffwd.choice([ffwd.seq(ffwd.lit("a", controls=True), ffwd.lit("b", controls=True))])
    assert repr(follows) not in repr(read(form))
    free = ffwd.repeat(ffwd.tokens([7, 9, 2], exclude=True))
    around = tag({"type": "token", "token": 1}, form, {"type": "token", "token": 2})
    assert repr(free) in repr(read(around))
    once = read({**form, "at_least_one": True, "stop_after_first": True})
    assert repr(once).startswith("choice([seq(tokens([7])")


@pytest.mark.parametrize(
    ("form", "pointer", "message"),
    [
        ({"type": "zz"}, "/format/type", "no format 'zz'"),
        ({}, "/format", "needs 'type'"),
        ([], "/format", "must be an object, not a list"),
        ({"type": "const_string"}, "/format", "needs 'value'"),
        ({"type": "const_string", "value": 3}, "/format/value", "must be a string"),
        ({"type": "const_string", "value": "a", "x": 1}, "/format/x", "no field 'x'"),
        ({"type": "sequence", "elements": []}, "/format/elements", "needs an element"),
        ({"type": "or", "elements": [const("a"), 3]}, "/format/elements/1", "must be an object"),
        ({"type": "optional"}, "/format", "needs 'content'"),
        ({"type": "repeat", "min": 2, "max": 1, "content": ANY}, "/format/max", "at least 'min'"),
        ({"type": "repeat", "min": -1, "max": 1, "content": ANY}, "/format/min", "from 0"),
        ({"type": "any_text", "excludes": [""]}, "/format/excludes/0", "must not be empty"),
        ({"type": "any_text", "max_tokens": -1}, "/format/max_tokens", "from 0"),
        ({"type": "token", "token": -1}, "/format/token", "no token has the id"),
        ({"type": "token", "token": 1.0}, "/format/token", "an id or a name"),
        (tag("a", ANY, []), "/format/end", "must not be empty"),
        (tag({"type": "any_text"}, ANY, "b"), "/format/begin/type", "the format 'token'"),
        (tag("a", {"type": "q"}, "b"), "/format/content/type", "no format 'q'"),
        ({"type": "triggered_tags", "triggers": [], "tags": []}, "/format/triggers", "a trigger"),
        (
            {"type": "triggered_tags", "triggers": ["<g"], "tags": [tag("<f", ANY, ">")]},
            "/format/tags/0/begin",
            "exactly one",
        ),
        (
            {"type": "triggered_tags", "triggers": ["<", "<f"], "tags": [tag("<f", ANY, ">")]},
            "/format/tags/0/begin",
            "exactly one",
        ),
        (
            {"type": "triggered_tags", "triggers": ["<f", "<g"], "tags": [tag("<f", ANY, ">")]},
            "/format/triggers/1",
            "no tag begins",
        ),
        (
            {"type": "triggered_tags", "triggers": ["<"], "tags": [tag(TOKEN, ANY, ">")]},
            "/format/tags/0/begin",
            "must be a string",
        ),
        (
            {"type": "token_triggered_tags", "trigger_tokens": [1], "tags": [tag("<", ANY, ">")]},
            "/format/tags/0/begin",
            "must be a token",
        ),
        (
            {"type": "token_triggered_tags", "trigger_tokens": [1], "tags": [tag(TOKEN, ANY, ">")]},
            "/format/tags/0/begin",
            "one of the trigger tokens",
        ),
        ({"type": "tags_with_separator", "tags": [], "separator": ""}, "/format/tags", "a tag"),
        ({"type": "dispatch", "rules": []}, "/format/rules", "needs a rule"),
        ({"type": "dispatch", "rules": [["", ANY]]}, "/format/rules/0/0", "must not be empty"),
        ({"type": "dispatch", "rules": [["a"]]}, "/format/rules/0", "a pattern and a format"),
        (schema(3), "/format/json_schema", "an object or a boolean"),
        (schema({}, style="xml"), "/format/style", "no style 'xml'"),
        (schema({}, excludes=['"']), "/format/excludes", "escapes"),
        (schema(False, style="qwen_xml"), "/format/json_schema", "no such value"),
        (
            schema({"type": "object", "properties": {"a>": {}}}, style="qwen_xml"),
            "/format/json_schema/properties/a>",
            "cannot be written",
        ),
        (
            schema(
                {
                    "type": "object",
                    "properties": {"xa": {"type": "integer"}},
                    "patternProperties": {"^x": {"minimum": 3}},
                },
                style="glm_xml",
            ),
            "/format/json_schema/patternProperties/^x",
            "the declared name 'xa' matches",
        ),
        (
            schema({"type": "object", "propertyNames": {"not": {}}}, style="glm_xml"),
            "/format/json_schema/propertyNames/not",
            "'not' of names",
        ),
        (
            schema(
                {
                    "type": "object",
                    "properties": {"a": {}},
                    "required": ["a"],
                    "propertyNames": {"enum": ["b"]},
                },
                style="glm_xml",
            ),
            "/format/json_schema/required",
            "'a' is required and cannot be a name",
        ),
        (
            schema({"enum": ["ab", "b"]}, style="glm_xml", excludes=["b"]),
            "/format/json_schema",
            "each of the listed strings",
        ),
        (
            schema(
                {"type": "object", "properties": {"a": {"type": "string", "not": {}}}},
                style="glm_xml",
            ),
            "/format/json_schema/properties/a/not",
            "of strings is not supported",
        ),
        (
            schema({"type": "object", "properties": {"a": {"$ref": "http://x"}}}, style="glm_xml"),
            "/format/json_schema/properties/a/$ref",
            "references into the schema itself",
        ),
        (
            schema(
                {"type": "object", "properties": {"a": {"const": "</parameter>"}}},
                style="qwen_xml",
            ),
            "/format/json_schema/properties/a",
            "in it",
        ),
    ],
)
def test_what_is_refused(form: Any, pointer: str, message: str) -> None:
    """By name, and with the JSON pointer."""
    with pytest.raises(StructuralTagError, match=message) as caught:
        read(form)
    assert caught.value.pointer == pointer
    assert pointer in str(caught.value)


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ("", ""),
        ("[]", ""),
        ("{}", ""),
        ('{"type": "json_schema"}', "/type"),
        ("[" * 100_000, ""),
        ({"structures": [{"begin": "a"}], "triggers": ["a"]}, "/structures/0"),
        ({"structures": [], "triggers": ["a"]}, "/structures"),
        (
            {"structures": [{"begin": "b", "schema": {}, "end": "c"}], "triggers": ["a"]},
            "/structures/0/begin",
        ),
        (
            {"structures": [{"begin": "a", "schema": "{", "end": "c"}], "triggers": ["a"]},
            "/structures/0/schema",
        ),
    ],
)
def test_what_is_no_structural_tag(document: Any, pointer: str) -> None:
    """Also in the older form."""
    with pytest.raises(StructuralTagError) as caught:
        ffwd.structural_tag(document)
    assert caught.value.pointer == pointer


def test_nesting_is_bounded() -> None:
    """Long before Python's own limit."""
    form: Any = const("a")
    for _ in range(99):
        form = {"type": "star", "content": form}
    assert read(form)
    with pytest.raises(StructuralTagError, match="nest more than 100 deep"):
        read({"type": "star", "content": {"type": "star", "content": form}})
    for _ in range(1000):
        form = {"type": "star", "content": form}
    with pytest.raises((StructuralTagError, ffwd.LimitExceededError)):
        read(form)


def test_a_tag_that_contains_itself() -> None:
    """Has no text."""
    form: Any = {"type": "star"}
    form["content"] = form
    with pytest.raises(ffwd.InvalidSchemaError, match="circular: /format contains itself"):
        read(form)


def test_fields_that_are_not_known_can_be_left_out() -> None:
    """With the policy for keywords of schemas."""
    form = {**const("a"), "new": 1}
    assert read(form, policy="lenient") == read(const("a"))


def test_objects_are_closed_as_xgrammar_has_them() -> None:
    """Unless their schemas say otherwise, or it is asked for."""
    value = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert not accepts(read(schema(value)), '{"b": 1}')
    assert accepts(read(schema(value), closed_objects=False), '{"b": 1}')
    assert accepts(read(schema({**value, "additionalProperties": True})), '{"b": 1}')
    nested = {"type": "array", "items": {"anyOf": [value, {"type": "null"}]}}
    assert accepts(read(schema(nested)), '[{"a": 1}, null]')
    assert not accepts(read(schema(nested)), '[{"b": 1}]')
    both = {"allOf": [value, {"properties": {"c": {}}}]}
    assert accepts(read(schema(both)), '{"a": 1, "c": 2}')
    assert not accepts(read(schema({**both, "properties": {"a": {}}})), '{"d": 2}')


def test_excluded_texts_of_json() -> None:
    """In strings and names, declared or not; but for strings with a pattern."""
    value = {"type": "object", "properties": {"a": {}, "b": {"type": "string", "pattern": "^<|x$"}}}
    grammar = read(schema(value, excludes=["<|", "(."]))
    for text in ('{"a": "<x"}', '{"b": "<|x"}', '{"a": [{"q": ".("}]}'):
        assert accepts(grammar, text)
    for text in ('{"a": "<|x"}', '{"a": [{"q": "(."}]}', '{"a": {"<|": 1}}', '{"a": [["<|"]]}'):
        assert not accepts(grammar, text)
    anything = read(schema(True, excludes=["no"]))
    assert accepts(anything, '["on", {"x": 1}]')
    assert not accepts(anything, '["on", {"x": "nono"}]')


def test_options_of_formats() -> None:
    """Bounds of whitespace and the order of properties."""
    grammar = read(schema(PLACE, max_whitespace_cnt=2, any_order=True))
    assert isinstance(grammar, ffwd.JsonSchema)
    assert (grammar.max_whitespace, grammar.property_order) == (2, "any")
    with pytest.raises(ValueError, match="whitespace"):
        read(schema(PLACE), whitespace="none")


@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("type", "a type of JSON"),
        ("required", "a list of strings"),
        ("enum", "a list"),
        ("anyOf", "a list"),
        ("oneOf", "a list"),
        ("allOf", "a list"),
        ("properties", "an object"),
        ("patternProperties", "an object"),
        ("minProperties", "a whole number"),
        ("maxProperties", "a whole number"),
        ("minItems", "a whole number"),
        ("maxItems", "a whole number"),
        ("minLength", "a whole number"),
        ("maxLength", "a whole number"),
    ],
)
@pytest.mark.parametrize("value", [{"x": {}}, [[]], [{"a": 1}], 2.5, -1, "x", None, True])
def test_keywords_with_wrong_values_in_xml(keyword: str, message: str, value: Any) -> None:
    """Each is an error with its place, or a value that the keyword may have."""
    fits = {
        "enum": isinstance(value, list),
        "properties": isinstance(value, dict),
        "patternProperties": isinstance(value, dict),
        **dict.fromkeys(("anyOf", "oneOf", "allOf"), value == [{"a": 1}]),
    }
    part = {keyword: value}
    whole = {"type": "object", "properties": {"a": part}, "required": ["a"]}
    if fits.get(keyword):
        read(schema(whole, style="glm_xml"))
        return
    with pytest.raises(ffwd.StructuralTagError) as caught:
        read(schema(whole, style="glm_xml"))
    assert "/properties/a" in str(caught.value)
    if keyword not in ("anyOf", "oneOf", "allOf") or not isinstance(value, list):
        assert message in str(caught.value)


@pytest.mark.parametrize("count", [2**32, 2**70, 1e92])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("Length", {"type": "string"}),
        ("Items", {"type": "array", "items": {"type": "string"}}),
        ("Properties", {"type": "object"}),
    ],
)
def test_counts_in_xml_that_nothing_reaches(kind: str, value: Any, count: float) -> None:
    """A largest number is none, and a least one an error."""

    def nested(more: dict[str, Any]) -> ffwd.Grammar:
        whole = {"type": "object", "properties": {"a": {**value, **more}}, "required": ["a"]}
        return read(schema(whole, style="cohere_xml"))

    assert nested({f"max{kind}": count}) == nested({f"min{kind}": 0})
    assert nested({f"min{kind}": 2.0}) == nested({f"min{kind}": 2})
    place = f"/properties/a/min{kind}"
    with pytest.raises(ffwd.StructuralTagError, match=f"at most 4294967295 .*{place}"):
        nested({f"min{kind}": count})


def test_members_of_xml_are_counted() -> None:
    """In declared order, and in any order as XGrammar documents it."""
    names = {name: {"type": "integer"} for name in "abc"}
    value = {"type": "object", "properties": names, "minProperties": 2, "maxProperties": 2}
    form = schema({**value, "required": ["b"]}, style="qwen_xml")
    texts = {
        names: "".join(f"<parameter={name}>1</parameter>" for name in names)
        for names in ("", "a", "b", "ab", "bc", "ac", "ba", "abc", "bb")
    }
    in_order = read(form)
    assert {name for name in texts if accepts(in_order, texts[name])} == {"ab", "bc"}
    any_order = read({**form, "any_order": True})
    found = {name for name in texts if accepts(any_order, texts[name])}
    assert found == {"ab", "bc", "ac", "ba", "bb"}
    with pytest.raises(StructuralTagError, match="at least 4 and at most 5 members"):
        read(schema({**value, "minProperties": 4, "maxProperties": 5}, style="qwen_xml"))


def test_members_that_are_not_declared() -> None:
    """Have a name of letters, which is none of those that are declared."""
    value = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "additionalProperties": {"type": "integer"},
    }
    grammar = read(schema(value, style="qwen_xml"))
    assert accepts(grammar, "<parameter=a>1</parameter><parameter=b>2</parameter>")
    assert accepts(grammar, "<parameter=ab>1</parameter>")
    for text in (
        "<parameter=b>x</parameter>",
        "<parameter=b>1</parameter><parameter=a>1</parameter>",
        "<parameter=1>1</parameter>",
    ):
        assert not accepts(grammar, text)
    anything = read(schema({"type": "object"}, style="qwen_xml"))
    assert accepts(anything, "<parameter=b>x y</parameter>")


def test_xml_that_contains_itself() -> None:
    """A tree, in the styles that write objects as elements."""
    tree = {
        "type": "object",
        "properties": {
            "v": {"type": "string"},
            "l": {"type": "array", "items": {"$ref": "#"}},
        },
        "required": ["v"],
    }
    grammar = read(schema(tree, style="minimax_m3_xml"))
    mark = "]<]minimax[>["
    leaf = f"{mark}<v>x{mark}</v>"
    node = f"{leaf}{mark}<l>{mark}<item>{leaf}{mark}</item>{mark}</l>"
    assert accepts(grammar, leaf)
    assert accepts(grammar, node)
    assert not accepts(grammar, f"{leaf}{mark}<l>{mark}<item>{mark}</item>{mark}</l>")


def member(name: str, value: str) -> str:
    return f"<parameter={name}>{value}</parameter>"


BOOLEANS = {"^x": {"type": "boolean"}, "y$": {"type": "integer"}}


@pytest.mark.parametrize(
    ("value", "good", "bad"),
    [
        (
            {"patternProperties": BOOLEANS, "additionalProperties": False},
            [member("x", "true"), member("ay", "1"), member("x1", "true") + member("y", "2")],
            # `xy` would have to be both.
            [member("x", "1"), member("ay", "true"), member("a", "1"), member("xy", "1")],
        ),
        (
            {"patternProperties": {"^x": False, "^z": {}}, "properties": {"a": {"const": 1}}},
            [member("a", "1"), member("zz", "q")],
            [member("x", "1"), member("xx", "q"), member("a", "2")],
        ),
        (
            {"propertyNames": {"pattern": "^x", "maxLength": 3}, "properties": {"a": {}, "xa": {}}},
            [member("xa", "q"), member("xb", "q"), member("xa", "q") + member("xbc", "1"), ""],
            [member("a", "q"), member("b", "q"), member("xbcd", "1")],
        ),
        (
            {"propertyNames": {"enum": ["p", "q", "a"]}, "properties": {"a": {}, "b": {}}},
            [member("a", "1"), member("p", "1"), member("a", "1") + member("q", "1")],
            [member("b", "1"), member("c", "1")],
        ),
        ({"propertyNames": False, "properties": {"a": {}}}, [""], [member("a", "1")]),
    ],
)
def test_names_of_arguments_in_xml(value: Any, good: list[str], bad: list[str]) -> None:
    """As JSON Schema has them: declared names have to fit as well."""
    value = {"type": "object", **value}
    grammar = read(schema(value, style="qwen_xml"), closed_objects=False)
    native = ffwd.compile(grammar, byte_vocabulary())
    for text in [*good, *bad]:
        assert accepts(grammar, text) == compiled.accepts(native, text) == (text in good), text


def test_lists_of_several_kinds_in_nested_xml() -> None:
    """`oneOf` and `anyOf` of lists, written as elements."""
    lists = [
        {"type": "array", "items": {"type": name}, "minItems": 1} for name in ("integer", "null")
    ]
    value = {"type": "object", "properties": {"l": {"oneOf": lists}}, "additionalProperties": False}
    grammar = read(schema(value, style="cohere_xml"))
    item = '<cofl:value type="json">{}</cofl:value>'.format
    whole = '<cofl:value name="l" type="list">{}</cofl:value>'.format
    assert accepts(grammar, whole(item(1) + item(2)))
    assert accepts(grammar, whole(item("null")))
    assert not accepts(grammar, whole(item(1) + item("null")))
    assert not accepts(grammar, whole(item("true")))
    assert not accepts(grammar, whole(""))


def test_free_text_in_a_tag_without_an_end() -> None:
    """It goes on to what follows the tag, or to the end."""
    endless = tag("<x>", ANY, "")
    grammar = read({"type": "sequence", "elements": [const("a"), endless]})
    assert all(accepts(grammar, text) for text in ("a<x>", "a<x>any\n<x>"))
    assert not accepts(grammar, "b<x>")
    between = read({"type": "sequence", "elements": [endless, const("z")]})
    assert accepts(between, "<x>abz")
    assert not accepts(between, "<x>ab")
