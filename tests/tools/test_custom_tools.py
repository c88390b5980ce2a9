"""Custom tools: the inputs that calls can have are those of the tool's grammar, one for one."""

import itertools
import json
import random

import pytest

import ffwd
from ffwd.tools import FORMATS, RefusedToolsError
from ffwd.tools.escaped_lark import escaped_lark
from ffwd.tools.escaped_regex import escaped, escaped_regex

BYTES = ffwd.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=[256])
TEXTS = [
    "".join(text) for size in range(4) for text in itertools.product('a"\\\nkK1é\x01/', repeat=size)
]


def accepts(compiled, text):
    matcher = compiled.matcher()
    return matcher.accept_tokens(list(text.encode())) and matcher.is_accepting()


def check(grammar, of_escaped):
    """The texts of the second are the escaped ones of the first."""
    plain = ffwd.compile(grammar, BYTES)
    inner = ffwd.compile(ffwd.seq('"', of_escaped, '"'), BYTES)
    accepted = {text for text in TEXTS if accepts(plain, text)}
    assert accepted == {text for text in TEXTS if accepts(inner, f'"{escaped(text)}"')}
    assert accepted
    for text in map(escaped, accepted):
        # Other ways to write a character are no texts.
        for one, other in (("a", "\\u0061"), ("/", "\\/"), ("\\n", "\\u000a")):
            assert one not in text or not accepts(inner, f'"{text.replace(one, other)}"')


@pytest.mark.parametrize(
    "pattern",
    [
        *(r".*", r"(?s).*", r"[^a]{1,2}", r'a|"b?', r"(?i)k\n+", r"\s*a", r'[\w"]+', r'[^"\\]*'),
        *(r"^a\\?$", r"\x22(?:a|\u{e9})\x22", r'[]a"]+', r"[[:alpha:]&&[^a]]*", r"\p{Lu}?/"),
        *(
            r"(?P<x>a)(?i:k)k",
            r"\PL{2}",
            '"\n',
            r"[\x00-\x1f]",
            r"(?i)[k\n]*(?-i)k",
            r"a(?:\n|k)*?",
        ),
        *(r"[\n]", r"\x01?a", "\\\\", r"[\[\]\\/]+", r"\A(k|\d)*\z", r"(?m)[a\n]*", r"[^]\n]"),
        *(r"\.?\/a?", r"(?i)\\?[k\-]", r"\x2f|\\\"", "(?i)(?:É|\n)+"),
    ],
)
def test_expressions(pattern):
    check(ffwd.regex(pattern), ffwd.regex(escaped_regex(pattern)))


@pytest.mark.parametrize(
    "grammar",
    [
        'start: "a"i B? | "\\x22" /k\\// | "1".."9"\nB: /"+/ & /["a]*/',
        'start: a~1..2\na: "k" | C  // "x"\n%import common (WS, INT)\n%ignore WS\nC: "a"',
        'start: sum\nsum: sum "/" sum | N | "(" sum ")"\nN: /[a1]/\n%import common.WS\n%ignore WS',
        'start: "a" ("1" "K"~1..2)\n%ignore "\\n"',
        'start: "a" ("1" "K")*\n%ignore /\\n+/',
        'start: "K\\n/"i | "a./-"i',
        'start: "a" ID | ID "1" ID\nID: /[ak]+/\n%ignore /\\n+/',
        'start: lines{"k"}\nlines{x}: x ("\\n" x)*',
        'start: /"[ak]*"/ | "\\"" "k"',
        'start: each::0\neach::_: "" | "\\u000a" each::set_bit(0) %if bit_clear(0)\n  | "a"',
        'start: _x\n_x: A\n  | (A B [A])\nA: "K"i\n%import common.LF -> B',
    ],
)
def test_grammars(grammar):
    check(ffwd.lark(grammar), ffwd.lark(escaped_lark(grammar)))


@pytest.mark.parametrize(
    ("grammar", "said"),
    [
        ('start: "a" %json {}', "`%json`"),
        ("start: a\na[lazy]: /b/", "an attribute"),
        ('start: "x" a\n?a{b}[max_chars=3]: b', "a"),
        ('start: A\nA: ~"b"', "a complement"),
        ("start: <[3]>", "<[3]>"),
        ('start: %lark { start: "a" }', "`%lark`"),
        ('start: "\\n" | "\\""', "more than one set of characters that JSON escapes"),
        ('start: /[^a]+/ "a" "\\n"', "more than one set"),
        ('start: "a" b', "no rule"),
    ],
)
def test_grammars_without_an_escaped_form(grammar, said):
    with pytest.raises(ffwd.GrammarError) as info:
        escaped_lark(grammar)
    assert said in str(info.value)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"a\b", "word boundary"),
        (r"(?m)a$", "of lines"),
        (r"(?x) a", "the flag `x`"),
        (r"(?R)a", "the flag `R`"),
        ("(", "unclosed group"),
        ("".join(f"[{chr(0x4E00 + i)}]" for i in range(257)), "more than 256 different classes"),
        (r"(?=a)a", "look"),
    ],
)
def test_expressions_without_an_escaped_form(pattern, said):
    with pytest.raises(ffwd.GrammarError, match=None) as info:
        escaped_regex(pattern)
    assert said in str(info.value)


def custom(name="f", flat=False, **format):
    """A custom tool of a request, in the form of chats or that of responses."""
    inner = {"name": name, **({"format": format} if format else {})}
    return {"type": "custom", **(inner if flat else {"custom": inner})}


REGEX = {"type": "grammar", "grammar": {"syntax": "regex", "definition": '"[a-c]\n"'}}
FLAT = {"type": "grammar", "syntax": "regex", "definition": '"[a-c]\n"'}


@pytest.mark.parametrize("style", sorted(FORMATS))
def test_calls_in_all_formats(style):
    """A call is written in the format's notation, and its arguments are the escaped input."""
    for tool in (custom(**REGEX), custom(flat=True, **FLAT)):
        grammar = ffwd.openai.tools([tool], "required", format=style, parallel_tool_calls=False)
        # In some formats the model may write texts without end before it calls.
        matcher = ffwd.compile(grammar, BYTES).matcher(max_tokens=300)
        while not matcher.is_accepting():
            bits = ffwd.allocate_bitmask(1, 257)
            matcher.fill_bitmask(bits, 0)
            byte = next(b for b in range(256) if int(bits[0, b // 32]) >> b % 32 & 1)
            assert matcher.accept_token(byte)
        events = list(matcher.events(finish=True))
        names = [e.name for e in events if e.kind == "tool_call" and e.action == "begin"]
        said = "".join(e.text for e in events if e.kind == "tool_arguments" and e.action == "delta")
        assert names == ["f"]
        assert json.loads(f'"{said}"') == '"a\n"'


def test_choices():
    tools = [custom("f"), custom("g", flat=True)]
    for choice in (
        {"type": "custom", "custom": {"name": "g"}},
        {"type": "custom", "name": "g"},
        {
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [{"type": "custom", "name": "g"}]},
        },
    ):
        compiled = ffwd.compile(ffwd.openai.tools(tools, choice, format="hermes"), BYTES)
        call = '<tool_call>\n{"name": "%s", "arguments": {"input": "a\\nb"}}\n</tool_call>'
        assert accepts(compiled, call % "g")
        assert not accepts(compiled, call % "f")


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        (custom(type="json"), "`text` or `grammar`"),
        (custom(type="grammar", grammar="a"), "is no object"),
        (custom(type="grammar", grammar={"syntax": "regex"}), "is no string"),
        (custom(type="grammar", grammar={"syntax": "gbnf", "definition": ""}), "'gbnf'"),
        (custom(type="grammar", grammar={"syntax": [], "definition": ""}), "not `lark`"),
        (custom(type="grammar", grammar={"syntax": "lark", "definition": "start"}), "expected"),
        ({"type": "custom", "custom": {"name": "f", "format": 3}}, "is no object"),
        ({"type": "custom", "custom": 3}, "`custom` is no object"),
        ({"type": "custom", "custom": {}}, "no name"),
    ],
)
def test_bad_tools_are_refused(tool, said):
    with pytest.raises(RefusedToolsError) as info:
        ffwd.openai.tools([tool], format="hermes")
    assert said in str(info.value)


def test_random_expressions_and_grammars():
    """Whatever has an escaped form has the same texts."""
    chance = random.Random(5)
    signs = 'ab"\\n[]()^$.*+?{}|-&~:1,ik \n\té/<>PpLudwsxU=!#'
    parts = [
        *(
            "a",
            "B",
            "|",
            "(",
            ")",
            "?",
            "*",
            "~1..2",
            "&",
            " ",
            "\n",
            "->z",
            "[",
            "]",
            "//c",
            "B: ",
        ),
        *('"x"', '"\\n"', '"k"i', "/[a-z\\n]+/", "/k+/", '"1".."9"', '%ignore " "', '"/"'),
        "%import common.WS",
    ]
    ends = ["", '\na: "k"', "\nB: /[k1]/", '\na: "1"\nB: "k\\n"']
    texts = [*chance.sample(TEXTS, 50), "1", "k", "1k", "k\n", "k k", "\n"]

    def compare(grammar, escape, text):
        try:
            plain, other = ffwd.compile(grammar(text), BYTES), escape(text)
        except ffwd.GrammarError:
            return False
        inner = ffwd.compile(ffwd.seq('"', grammar(other), '"'), BYTES)
        for given in texts:
            same = accepts(plain, given) == accepts(inner, f'"{escaped(given)}"')
            assert same, (text, given)
        return True

    expressions = ("".join(chance.choices(signs, k=chance.randrange(1, 9))) for _ in range(1000))
    grammars = (
        f"start: {''.join(chance.choices(parts, k=chance.randrange(1, 9)))}{chance.choice(ends)}"
        for _ in range(2000)
    )
    assert sum(compare(ffwd.regex, escaped_regex, text) for text in expressions) > 200
    assert sum(compare(ffwd.lark, escaped_lark, text) for text in grammars) > 100
