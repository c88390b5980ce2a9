"""Structural tags of every format, with texts that belong to them."""

# ruff: noqa: RUF001
from typing import Any, TypeAlias

Format: TypeAlias = dict[str, Any]


def tag(begin: Any, content: Format, end: Any) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def const(value: str) -> Format:
    return {"type": "const_string", "value": value}


def schema(value: Any, **options: Any) -> Format:
    return {"type": "json_schema", "json_schema": value, **options}


def triggered(**options: Any) -> Format:
    tags = [tag("<f1>", const("q"), "</f>"), tag("<f2>", ANY, ["</f>", "</g>"])]
    return {"type": "triggered_tags", "triggers": ["<f"], "tags": tags, **options}


def separated(**options: Any) -> Format:
    tags = [tag("<a>", const("q"), "</a>"), tag("<b>", ANY, "</b>")]
    return {"type": "tags_with_separator", "tags": tags, "separator": ",", **options}


def dispatch(*pairs: tuple[str, str], **options: Any) -> Format:
    rules = [[pattern, const(value)] for pattern, value in pairs]
    return {"type": "dispatch", "rules": rules, **options}


def repeated(least: int, most: int) -> Format:
    return {"type": "repeat", "min": least, "max": most, "content": const("ab")}


ANY: Format = {"type": "any_text"}
PLACE = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}

CASES: dict[str, tuple[Format, list[str]]] = {
    "const": (const("a<b>"), ["a<b>"]),
    "empty": (const(""), [""]),
    "any text": (ANY, ["", "xy\n", "é"]),
    "any text without": ({"type": "any_text", "excludes": ["ab", "c"]}, ["", "ba", "aab"]),
    "any text, short": ({"type": "any_text", "max_chars": 3}, ["", "éab", "abcd"]),
    "regex": ({"type": "regex", "pattern": "[a-c]+x{2,3}"}, ["abxx", "cxxx"]),
    "sequence": (
        {"type": "sequence", "elements": [const("a"), ANY, const("b")]},
        ["ab", "aab", "abb", "axyb"],
    ),
    "or": ({"type": "or", "elements": [const("a"), const("ab"), const("")]}, ["a", "ab", ""]),
    "optional": ({"type": "optional", "content": const("ab")}, ["", "ab"]),
    "plus": ({"type": "plus", "content": const("ab")}, ["ab", "abab"]),
    "star": ({"type": "star", "content": const("ab")}, ["", "ab", "ababab"]),
    "repeat": (repeated(1, 2), ["ab", "abab"]),
    "repeat, open": (repeated(2, -1), ["abab", "ababab"]),
    "repeat, none": (repeated(0, 0), [""]),
    "tag": (tag("<t>", ANY, "</t>"), ["<t></t>", "<t>a<b</t>"]),
    "tag, end of one kind": (tag("<", ANY, "aa"), ["<aa", "<xaaa", "<aaa"]),
    "tag, several ends": (tag("<t>", ANY, ["</t>", "</u>"]), ["<t>x</t>", "<t></u>"]),
    "tag, short": (
        tag("<t>", {"type": "any_text", "max_chars": 2}, "</t>"),
        ["<t>ab</t>", "<t></t>"],
    ),
    "tag in tag": (
        tag("<a>", {"type": "sequence", "elements": [tag("<b>", ANY, "</b>"), ANY]}, "</a>"),
        ["<a><b>x</a></b>y</a>", "<a><b></b></a>"],
    ),
    "triggered": (triggered(), ["", "x", "a<f1>q</f>b<f2>zz</g>", "<f1>q</f><f1>q</f>"]),
    "triggered, at least one": (triggered(at_least_one=True), ["<f1>q</f>", "<f2></f>x<f1>q</f>"]),
    "triggered, once": (triggered(stop_after_first=True), ["x", "x<f1>q</f>"]),
    "triggered, exactly one": (
        triggered(at_least_one=True, stop_after_first=True),
        ["<f1>q</f>", "<f2>x</g>"],
    ),
    "triggered, without": (triggered(excludes=["x", "</f"]), ["ab<f1>q</f>", "<f2>x</f>"]),
    "triggered in tag": (
        tag("<t>", triggered(), "</t>"),
        ["<t></t>", "<t>a<f1>q</f>b</t>", "<t><f2></t></f></t>"],
    ),
    "triggered with schemas": (
        {
            "type": "triggered_tags",
            "triggers": ["<f="],
            "tags": [tag("<f=go>", schema(PLACE), "</f>")],
        },
        ['so: <f=go>{"city":"Rome","days":3}</f>', '<f=go>{"city": ""}</f>.'],
    ),
    "separated": (separated(), ["", "<a>q</a>", "<a>q</a>,<b>x,</b>,<a>q</a>"]),
    "separated, at least one": (separated(at_least_one=True), ["<a>q</a>", "<b></b>,<b></b>"]),
    "separated, once": (separated(stop_after_first=True), ["", "<a>q</a>"]),
    "separated, by nothing": (separated(separator=""), ["", "<a>q</a><b></b>"]),
    "dispatch": (dispatch(("<x>", "1"), ("<y>", "2")), ["a<x>1b<y>2", "<", "<x>1<x>1"]),
    "dispatch, once": (dispatch(("<x>", "1"), loop=False), ["a<x>1", "a"]),
    "dispatch, without": (dispatch(("<x>", "1"), excludes=["b", "<z"]), ["a<x>1a", "<"]),
    "dispatch, suffix": (dispatch(("b", "1"), ("ab", "2")), ["ab2", "xb1ab2"]),
    "dispatch, inside": (dispatch(("abc", "1"), ("b", "2")), ["abc1", "ab2abc1"]),
    "dispatch, prefix": (dispatch(("a", "1"), ("ab", "2")), ["a1", "ab2", "ab2a1"]),
    "dispatch, of one kind": (dispatch(("aa", "1")), ["aa1", "a", "baa1aa1"]),
    "dispatch, excluded": (dispatch(("ab", "1"), excludes=["b"]), ["a"]),
    "json": (schema(PLACE), ['{"city":"a","days":-12}', '{ "city" : "b"\n}']),
    "json, any": (schema(True), ["[1, {}]", '"x"', "null"]),
}
for _style, _texts in {
    "qwen_xml": [
        "<parameter=city>Rome</parameter>\n<parameter=days> 12 </parameter>",
        "<parameter=city> </parameter>",
    ],
    "minimax_xml": [
        '<parameter name="city">Rome</parameter><parameter name="days">12</parameter>',
        '\n<parameter name="city"></parameter>\n',
    ],
    "minimax_m3_xml": [
        "]<]minimax[>[<city>Rome]<]minimax[>[</city>]<]minimax[>[<days>12]<]minimax[>[</days>",
        " ]<]minimax[>[<city>]<]minimax[>[</city> ",
    ],
    "deepseek_xml": [
        '<｜DSML｜parameter name="city" string="true">Rome</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="days" string="false"> 3</｜DSML｜parameter>',
    ],
    "deepseek_v4_1_xml": [
        '<｜DSML｜ parameter name="city" string="true">Rome</｜DSML｜ parameter>\n'
        '<｜DSML｜ parameter name="days" string="false"> 3</｜DSML｜ parameter>',
    ],
    "glm_xml": [
        "<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>"
        "<arg_key>days</arg_key><arg_value>12</arg_value>",
    ],
    "cohere_xml": [
        '<cofl:value name="city" type="raw">Rome</cofl:value>'
        '<cofl:value name="days" type="json">12</cofl:value>',
    ],
    "kimi_k3_xml": [
        '<|open|>argument key="city" type="string"<|sep|>Rome<|close|>argument<|sep|>'
        '<|open|>argument key="days" type="number"<|sep|>12<|close|>argument<|sep|>',
    ],
}.items():
    CASES[_style] = (schema(PLACE, style=_style), _texts)

NESTED = {
    "type": "object",
    "properties": {
        "l": {"type": "array", "items": {"type": "integer"}},
        "o": {"$ref": "#/$defs/O"},
        "e": {"enum": ["a", "b c", 3, None]},
        "u": {"anyOf": [{"type": "string", "minLength": 2}, {"type": "null"}]},
    },
    "additionalProperties": False,
    "$defs": {
        "O": {
            "type": "object",
            "properties": {"x": {"type": "boolean"}},
            "additionalProperties": False,
        }
    },
}
for _style, _texts in {
    "qwen_xml": [
        '<parameter=l>[1, 2]</parameter><parameter=o>{"x":true}</parameter>',
        "<parameter=e>b c</parameter><parameter=u>null</parameter>",
        "<parameter=e>3</parameter><parameter=u>xyz</parameter>",
        "",
    ],
    "deepseek_xml": [
        '<｜DSML｜parameter name="l" string="false">[1]</｜DSML｜parameter>',
        '<｜DSML｜parameter name="e" string="true">a</｜DSML｜parameter>',
        '<｜DSML｜parameter name="e" string="false">3</｜DSML｜parameter>',
    ],
    "cohere_xml": [
        '<cofl:value name="l" type="list"><cofl:value type="json">1</cofl:value>'
        '<cofl:value type="json">2</cofl:value></cofl:value>',
        '<cofl:value name="o" type="dict"><cofl:value name="x" type="json">true</cofl:value>'
        "</cofl:value>",
        '<cofl:value name="e" type="raw">b c</cofl:value>',
    ],
}.items():
    CASES[f"{_style}, nested"] = (schema(NESTED, style=_style), _texts)

# What XGrammar writes for Kimi K3 itself: no marks within values.
MARKS = ["<|open|>", "<|close|>", "<|sep|>"]
OPENED, CLOSED = '<|open|>argument key="', "<|close|>argument<|sep|>"
EXCLUDING = {
    "type": "object",
    "properties": {
        "s": {"type": "string"},
        "e": {"enum": ["ab", "a<|sep|>b", "c"]},
        "n": {"type": "integer"},
        "l": {"type": "array", "items": {"type": "string"}},
    },
}
CASES["kimi_k3_xml, without"] = (
    schema({**EXCLUDING, "additionalProperties": False}, style="kimi_k3_xml", excludes=MARKS),
    [
        f'{OPENED}s" type="string"<|sep|>ab{CLOSED}{OPENED}n" type="number"<|sep|>1{CLOSED}',
        f'{OPENED}e" type="string"<|sep|>ab{CLOSED}',
        f'{OPENED}l" type="array"<|sep|>["ab"]{CLOSED}',
    ],
)
CASES["qwen_xml, without"] = (
    schema({**EXCLUDING, "additionalProperties": False}, style="qwen_xml", excludes=["ab", "<|"]),
    [
        "<parameter=s>ba</parameter><parameter=n>1</parameter>",
        '<parameter=l>["ba", "a"]</parameter>',
    ],
)
# XGrammar takes free text in such a tag only where something is excluded from it.
ENDLESS = tag("<x>", {"type": "any_text", "excludes": ["k"]}, "")
CASES["any text to the end"] = (ENDLESS, ["<x>ab", "<x>", "<x>a<x>b"])
CASES["any text at the end"] = (
    {"type": "sequence", "elements": [const("a"), ENDLESS]},
    ["a<x>ab", "a<x>"],
)
CASES["any text before a text"] = (
    {"type": "sequence", "elements": [ENDLESS, const("z")]},
    ["<x>abz", "<x>zz"],
)
