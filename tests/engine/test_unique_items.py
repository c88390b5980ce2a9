"""Arrays of distinct items: work that does not grow, and items that no enumeration has."""

import itertools
import json
import random
from collections.abc import Iterator

import pytest
from cases import mask_bits

import ffwd

CHOSEN = random.Random(1)
WORDS = sorted({"".join(CHOSEN.choices("abcdefgh", k=CHOSEN.randint(2, 7))) for _ in range(2500)})
PIECES = sorted({word[:size] for word in WORDS for size in (2, 3)})
TEXTS = [
    *(bytes([byte]) for byte in range(256)),
    *(str(number).encode() for number in range(10, 1000)),
    *(piece.encode() for piece in PIECES),
    b'","',
    b'",',
    b'{"',
    # Several members begin and end in these.
    *(
        b'a","a',
        b'"a","b',
        b'b","b":',
        b'":"a',
        b'":"b","',
        b'","b":',
        b'a"}',
        b'"b"],"',
        b"],[",
        b'"],["a',
    ),
]
UNIQUE = {"type": "array", "uniqueItems": True}


@pytest.fixture(scope="module")
def vocabulary() -> ffwd.Vocabulary:
    return ffwd.Vocabulary([*TEXTS, None], eos_token_ids=[len(TEXTS)])


def longest_tokens(text: bytes) -> list[int]:
    """Return the tokens of a text, the longest that fits first."""
    ids = {token: at for at, token in enumerate(TEXTS)}
    found, at = [], 0
    while at < len(text):
        size = next(size for size in range(7, 0, -1) if text[at : at + size] in ids)
        found.append(ids[text[at : at + size]])
        at += size
    return found


def shuffled(values: list) -> list:
    return random.Random(2).sample(values, len(values))


def kinds() -> list:
    """Return strings, integers and objects."""
    chosen = random.Random(3)
    return [chosen.choice([word, at + 100, {"id": at}]) for at, word in enumerate(shuffled(WORDS))]


@pytest.mark.parametrize(
    ("items", "values"),
    [
        ({"enum": WORDS}, shuffled(WORDS)),
        ({"enum": list(range(1000, 3500))}, shuffled(list(range(1000, 3500)))),
        ({"type": "integer"}, shuffled(list(range(2500)))),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "object"}]}, kinds()),
    ],
    ids=["strings", "integers", "any integers", "kinds"],
)
def test_thousands_of_items_take_no_more_steps_each(
    vocabulary: ffwd.Vocabulary, items: dict, values: list
) -> None:
    """No call takes more than the steps that the first items take, however many came."""
    compiled = ffwd.json_schema({**UNIQUE, "items": items}, whitespace="compact")
    limits = ffwd.Limits(call_steps=2000)
    matcher = ffwd.compile(compiled, vocabulary, limits=limits).matcher()
    row = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    for token in longest_tokens(json.dumps(values, separators=(",", ":")).encode()):
        matcher.fill_bitmask(row, 0)
        assert matcher.accept_token(token)
    assert matcher.is_accepting()


FEW = WORDS[:60]
PAIRS = [list(pair) for pair in itertools.product(FEW, FEW)]
PAIR = {
    "type": "array",
    "prefixItems": [{"enum": FEW}, {"enum": FEW}],
    "minItems": 2,
    "maxItems": 2,
    "items": False,
}
OBJECT = {
    "type": "object",
    "properties": {"a": {"enum": FEW}, "b": {"enum": FEW}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("items", "values"),
    [
        (PAIR, shuffled(PAIRS)),
        (OBJECT, [{"a": one, "b": other} for one, other in shuffled(PAIRS)]),
    ],
    ids=["arrays", "objects"],
)
@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
def test_last_members_that_came_are_excluded_without_reading_them(
    vocabulary: ffwd.Vocabulary, whitespace: str, items: dict, values: list
) -> None:
    """About as many tokens are read byte by byte among 1,100 earlier items as among 200."""
    source = ffwd.json_schema({**UNIQUE, "items": items}, whitespace=whitespace)
    grammar = ffwd.compile(source, vocabulary)
    matcher = grammar.matcher()
    row = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    tokens = longest_tokens(json.dumps(values[:1200], separators=(",", ":")).encode())
    read = [0]
    for part in range(10):
        for token in tokens[part * len(tokens) // 10 : (part + 1) * len(tokens) // 10]:
            matcher.fill_bitmask(row, 0)
            assert matcher.accept_token(token)
        read.append(grammar.stats()["doubts_resolved"])
    tenths = [after - before for before, after in itertools.pairwise(read)]
    # Among the first few items, fewer members have come.
    assert tenths[-1] <= 1.2 * tenths[1], tenths


NUMBER = {"type": "integer", "minimum": 0, "maximum": 59}
BLANKS = [b" " * count for count in range(2, 60)] + [b"\n" + b" " * count for count in range(60)]


@pytest.mark.parametrize("kind", ["arrays", "objects"])
def test_blanks_between_numbers_are_not_read_byte_by_byte(kind: str) -> None:
    """A hundred tokens of blanks add few doubts to masks of distinct pairs of numbers."""
    pairs = shuffled(list(itertools.product(range(60), range(60))))[:300]
    read = []
    for blanks in ([], BLANKS):
        texts = [*TEXTS, *blanks, None]
        vocabulary = ffwd.Vocabulary(texts, eos_token_ids=[len(texts) - 1])
        if kind == "arrays":
            items = PAIR | {"prefixItems": [NUMBER, NUMBER]}
            values: list = [list(pair) for pair in pairs]
        else:
            items = OBJECT | {"properties": {"a": NUMBER, "b": NUMBER}}
            values = [{"a": one, "b": other} for one, other in pairs]
        source = ffwd.json_schema({**UNIQUE, "items": items}, whitespace="flexible")
        grammar = ffwd.compile(source, vocabulary)
        matcher = grammar.matcher()
        row = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
        tokens = longest_tokens(json.dumps(values, separators=(",", ":")).encode())
        for token in tokens:
            matcher.fill_bitmask(row, 0)
            assert matcher.accept_token(token)
        read.append(grammar.stats()["doubts_resolved"] / len(tokens))
    assert read[1] <= read[0] + 5, read


MARKS = [b'"', b'":', b'",', b'"}', b'"},', b'"]', b'"],', b"}", b"},", b"{", b"[", b",", b"]"]
THREE = ["ab", "abc", "b"]
PAIRS_OF_THREE = shuffled([list(pair) for pair in itertools.product(THREE, THREE)])
ENDED = [mark + blanks for mark in MARKS for blanks in (b"\n", b"\r\n\n", b" \t", b" ", b"\n  ")]


@pytest.mark.parametrize("whitespace", ["flexible", "consistent"])
@pytest.mark.parametrize("indent", [None, 1], ids=["flat", "indented"])
@pytest.mark.parametrize(
    ("items", "values"),
    [
        ({"enum": THREE}, THREE),
        (
            {"type": "array", "items": {"enum": THREE[:1]}, "maxItems": 2},
            [["ab"], ["ab", "ab"], []],
        ),
        (PAIR | {"prefixItems": [{"enum": THREE}] * 2}, PAIRS_OF_THREE),
        (
            OBJECT | {"properties": {"a": {"enum": THREE}, "b": {"enum": THREE}}},
            [{"a": one, "b": other} for one, other in PAIRS_OF_THREE],
        ),
    ],
    ids=["words", "lengths", "arrays", "objects"],
)
def test_tokens_that_differ_in_blanks_are_read_once(
    whitespace: str, indent: int | None, items: dict, values: list
) -> None:
    """A mask is what validating each token says, and blanks add few doubts."""
    read = []
    for ended in ([], ENDED):
        texts = [*TEXTS, *ended, None]
        vocabulary = ffwd.Vocabulary(texts, eos_token_ids=[len(texts) - 1])
        schema = {**UNIQUE, "items": items}
        grammar = ffwd.compile(ffwd.json_schema(schema, whitespace=whitespace), vocabulary)
        matcher = grammar.matcher()
        separators = (",", ":" if indent is None else ": ")
        text = json.dumps(values, separators=separators, indent=indent)
        tokens = longest_tokens(text.encode())
        for token in tokens:
            allowed = mask_bits(matcher)
            for other in range(len(TEXTS), len(texts) - 1):
                assert allowed[other] == matcher.validate_tokens([other]), texts[other]
            assert matcher.accept_token(token)
        read.append(grammar.stats()["doubts_resolved"] / len(tokens))
    assert read[1] <= read[0] + 2, read


RECORDS = [{"id": at, "n": WORDS[at % 50]} for at in range(200)]
RECORD = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "n": {"enum": WORDS[:50]}},
    "required": ["id", "n"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("indent", [None, 2, 8])
def test_layout_takes_no_steps_to_tell_records_apart(
    vocabulary: ffwd.Vocabulary, indent: int | None
) -> None:
    """Records take few steps, and as many however much white space lies between their members."""
    compiled = ffwd.json_schema({**UNIQUE, "items": RECORD}, whitespace="consistent")
    limits = ffwd.Limits(call_steps=5000)
    matcher = ffwd.compile(compiled, vocabulary, limits=limits).matcher()
    row = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    for token in longest_tokens(json.dumps(RECORDS, indent=indent).encode()):
        matcher.fill_bitmask(row, 0)
        assert matcher.accept_token(token)
    assert matcher.is_accepting()


def test_items_beside_a_long_enumeration_use_none_of_it_up(vocabulary: ffwd.Vocabulary) -> None:
    """Items that came and are in no enumeration leave all of it, however alike they are."""
    before = [f"zq{letter}" for letter in "bcdefg"]
    schema = {
        **UNIQUE,
        "prefixItems": [{"const": value} for value in before],
        "items": {"enum": [*WORDS, "zqa", "zqh"]},
    }
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), vocabulary)
    written = json.dumps(before, separators=(",", ":"))[:-1]
    for came, left in (([], b"ah"), (["zqa"], b"h"), (["zqh"], b"a")):
        matcher = grammar.matcher()
        text = written + "".join(f',"{value}"' for value in came) + ',"zq'
        assert matcher.accept_tokens(list(text.encode()))
        allowed = mask_bits(matcher)
        assert [byte for byte in range(256) if allowed[byte]] == list(left)


def closed(**properties: dict) -> dict:
    """Return the schema of objects with exactly these members."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


LETTERS = ["".join(text) for size in (1, 2, 3) for text in itertools.product("ab", repeat=size)]
TEXT = {"type": "string", "pattern": "^[ab]{1,3}$"}
FLAG = {"type": "boolean"}
PAIRS = list(itertools.permutations(LETTERS[:6], 2))


def every(name: str) -> tuple[dict, list]:
    """Return a schema of items and all of its values, as often as they can be written."""
    match name:
        case "members":
            schema = closed(a=TEXT, b={"type": "integer", "minimum": 0, "maximum": 12})
            values = [{"a": a, "b": b} for a in LETTERS for b in range(13)]
        case "within":
            schema = closed(a=closed(b=TEXT, c=FLAG), d={"enum": ["a", "ab", None]})
            within = [{"b": b, "c": c} for b in LETTERS for c in (False, True)]
            values = [{"a": a, "d": d} for a in within for d in ("a", "ab", None)]
        case "items":
            schema = {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 2}
            values = [list(t) for size in (1, 2) for t in itertools.product(LETTERS, repeat=size)]
        case "names":
            schema = {
                "type": "object",
                "propertyNames": {"pattern": "^[ab]{1,2}$"},
                "additionalProperties": {"enum": ["a", 1]},
                "minProperties": 1,
                "maxProperties": 2,
            }
            values = [{a: b} for a in LETTERS[:6] for b in ("a", 1)]
            values += [{a: b, c: d} for a, c in PAIRS for b in ("a", 1) for d in ("a", 1)]
        case "kinds":
            schema = {"anyOf": [TEXT, closed(a=TEXT), closed(a={"enum": [1, 10, 12]}), FLAG]}
            values = [*LETTERS, *({"a": a} for a in [*LETTERS, 1, 10, 12]), False, True]
        case "kinds within":
            schema = {
                **UNIQUE,
                "prefixItems": [{"enum": ["", "b"]}, {"enum": ["", ["a", "b"]]}],
                "items": False,
                "minItems": 2,
            }
            values = [["", ["a", "b"]], ["b", ""], ["b", ["a", "b"]]]
        case "pairs":
            items = {"enum": LETTERS[:6]}
            schema = {"type": "array", "items": items, "minItems": 2, "maxItems": 2}
            values = [list(pair) for pair in itertools.product(LETTERS[:6], repeat=2)]
        case "objects in objects":
            schema = closed(a=closed(a={"enum": LETTERS[:6]}, b={"enum": LETTERS[:6]}))
            values = [{"a": {"a": a, "b": b}} for a in LETTERS[:6] for b in LETTERS[:6]]
        case "arrays in objects":
            items = {"type": "array", "items": {"enum": LETTERS[:6]}, "maxItems": 2}
            schema = closed(a=items, b=TEXT)
            lists = [list(t) for n in range(3) for t in itertools.product(LETTERS[:6], repeat=n)]
            values = [{"a": a, "b": b} for a in lists for b in LETTERS]
        case "objects in arrays":
            schema = {
                "type": "array",
                "prefixItems": [closed(a=TEXT), closed(b={"enum": ["a", "b"]})],
                "items": False,
                "minItems": 1,
            }
            values = [
                [{"a": a}, *rest] for a in LETTERS for rest in ([], [{"b": "a"}], [{"b": "b"}])
            ]
        case "optional":
            schema = closed(a=TEXT, b=TEXT, c=FLAG) | {"required": []}
            parts = [[{}, *({name: a} for a in LETTERS)] for name in "ab"]
            parts.append([{}, {"c": False}, {"c": True}])
            values = [a | b | c for a, b, c in itertools.product(*parts)]
        case "members of kinds":
            kinds = ["", "a", 3, None, True]
            schema = closed(a={"enum": kinds}, b=closed(c={"enum": kinds}))
            values = [{"a": a, "b": {"c": c}} for a in kinds for c in kinds]
        case "enumeration":
            # More than one group of alternatives has.
            pairs = itertools.product(LETTERS, repeat=2)
            values = [{"a": a, "b": {"c": b}} for a, b in shuffled(list(pairs))[:150]]
            schema = {"enum": values}
        case "pairs within":
            schema = {**UNIQUE, "items": {"enum": ["a", "b", "c"]}, "minItems": 3, "maxItems": 3}
            values = [list(pair) for pair in itertools.permutations("abc")]
        case "unique within":
            within = {"type": "array", "uniqueItems": True, "items": TEXT, "maxItems": 2}
            schema = closed(a=within)
            values = [{"a": [a]} for a in LETTERS] + [{"a": []}]
            values += [{"a": list(pair)} for pair in itertools.permutations(LETTERS, 2)]
        case "unique between":
            # What follows a member must differ from an earlier item of the same array.
            few = {**UNIQUE, "items": {"enum": ["a", "b", ["a"], []]}, "minItems": 2, "maxItems": 2}
            schema = {
                "type": "array",
                "prefixItems": [{"enum": ["a", "b"]}, few, {"enum": ["a", 1]}],
                "items": False,
                "minItems": 3,
            }
            pairs = [list(pair) for pair in itertools.permutations(["a", "b", ["a"], []], 2)]
            values = [[a, pair, b] for a in "ab" for pair in pairs for b in ("a", 1)]
    return schema, values


def written(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def places(texts: list[str], chosen: random.Random) -> Iterator[str]:
    """Yield beginnings of texts."""
    for text in chosen.sample(texts, min(3, len(texts))):
        yield from (text[:size] for size in range(len(text)))


def test_enumeration_of_objects_is_used_up(vocabulary: ffwd.Vocabulary) -> None:
    """An enumeration of thousands of objects may be written in any order, once each."""
    values = [{"id": at, "name": word, "k": [at % 5]} for at, word in enumerate(WORDS[:2000])]
    schema = {**UNIQUE, "items": {"enum": values}}
    compiled = ffwd.json_schema(schema, whitespace="compact")
    matcher = ffwd.compile(compiled, vocabulary).matcher()
    row = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    chosen = shuffled(values)[:200]
    for token in longest_tokens(written(chosen)[:-1].encode()):
        matcher.fill_bitmask(row, 0)
        assert matcher.accept_token(token)
    again = matcher.fork()
    assert not again.accept_tokens(list(("," + written(chosen[50])).encode()))
    assert matcher.accept_tokens(list(("," + written(shuffled(values)[200]) + "]").encode()))
    assert matcher.is_accepting()


LAST_KINDS = [
    "members",
    "within",
    "items",
    "names",
    "kinds",
    "kinds within",
    "pairs",
    "objects in objects",
    "arrays in objects",
    "objects in arrays",
    "optional",
    "members of kinds",
    "enumeration",
    "pairs within",
    "unique within",
    "unique between",
]


@pytest.mark.parametrize("left", [1, 2, 5, 40, 100])
@pytest.mark.parametrize("name", LAST_KINDS)
@pytest.mark.parametrize("whitespace", ["compact", "flexible"])
def test_last_item_is_any_that_has_not_come(
    vocabulary: ffwd.Vocabulary, whitespace: str, name: str, left: int
) -> None:
    """The mask has a token exactly if an item that has not come begins with it."""
    items, values = every(name)
    chosen = random.Random(f"{name} {left}")
    distinct = list({json.dumps(value, sort_keys=True): value for value in values}.values())
    came = chosen.sample(distinct, max(0, len(distinct) - left))
    keys = {json.dumps(value, sort_keys=True) for value in came}
    others = [written(value) for value in values if json.dumps(value, sort_keys=True) not in keys]
    size = len(came) + 1
    schema = {**UNIQUE, "items": items, "minItems": size, "maxItems": size}
    compiled = ffwd.json_schema(schema, whitespace=whitespace)
    matcher = ffwd.compile(compiled, vocabulary).matcher()
    before = "[" + "".join(written(value) + "," for value in came)
    assert all(matcher.accept_token(byte) for byte in before.encode())
    for begun in places([text + "]" for text in others], chosen):
        assert matcher.accept_tokens(list(begun.encode()))
        rests = {(text + "]")[len(begun) :].encode() for text in others if text.startswith(begun)}
        expected = [
            at for at, token in enumerate(TEXTS) if any(rest.startswith(token) for rest in rests)
        ]
        found = [at for at, bit in enumerate(mask_bits(matcher)) if bit]
        assert [at for at in found if not TEXTS[at].isspace()] == expected, begun
        rest = matcher.shortest_completion()
        assert b"".join(TEXTS[token] for token in rest if token < len(TEXTS)) in rests, begun
        matcher.rollback(len(begun))


def sentences(count: int) -> list[str]:
    chosen = random.Random(4)
    return [" ".join(chosen.choices(WORDS, k=4)) for _ in range(count)]


LONG = {"type": "string", "pattern": "^[a-z ]{1,200}$"}
FIRST, SECOND = {"enum": WORDS[:40]}, {"enum": WORDS[40:80]}
PAIR = {"type": "array", "prefixItems": [FIRST, SECOND], "items": False, "minItems": 2}
COUPLES = shuffled(list(itertools.product(WORDS[:40], WORDS[40:80])))[:1200]


@pytest.mark.parametrize(
    ("items", "values"),
    [
        (closed(a=FLAG, b=LONG), [{"a": True, "b": text} for text in sentences(300)]),
        (
            closed(a=closed(b=LONG, c=FLAG), d=FLAG),
            [{"a": {"b": text, "c": True}, "d": True} for text in sentences(300)],
        ),
        (
            closed(a={"type": "integer", "minimum": 0, "maximum": 900}, b={"enum": WORDS[:9]}),
            [{"a": at // 2, "b": WORDS[at % 2]} for at in shuffled(list(range(1800)))],
        ),
        (
            {
                "type": "object",
                "propertyNames": {"pattern": "^[a-h]{1,12}$"},
                "additionalProperties": FLAG,
            },
            [{word: True, WORDS[0]: False} for word in shuffled(WORDS[1:601])],
        ),
        (
            {
                "type": "object",
                "propertyNames": {"pattern": "^[a-h]{1,12}$"},
                "additionalProperties": {"enum": [1, 2]},
                "maxProperties": 2,
            },
            [{word: 1} for word in shuffled(WORDS[:2000])],
        ),
        ({"type": "object"}, [{word: 1, "k": [word]} for word in shuffled(WORDS[:1000])]),
        (PAIR, [list(couple) for couple in COUPLES]),
        (closed(x=PAIR), [{"x": list(couple)} for couple in COUPLES]),
        (closed(x=closed(a=FIRST, b=SECOND)), [{"x": {"a": a, "b": b}} for a, b in COUPLES]),
        (
            closed(x=closed(a=FIRST), y=closed(b=SECOND)),
            [{"x": {"a": a}, "y": {"b": b}} for a, b in COUPLES],
        ),
        (
            closed(a=FIRST, b=SECOND) | {"required": []},
            [{"a": a, "b": b} for a, b in COUPLES],
        ),
        (
            {"type": "array", "items": {"enum": WORDS[:80]}, "minItems": 1, "maxItems": 3},
            [[a, b, a] for a, b in COUPLES],
        ),
    ],
    ids=[
        "texts",
        "texts within",
        "integers",
        "names",
        "bounded names",
        "any objects",
        "arrays",
        "arrays within",
        "objects within",
        "two objects within",
        "optional members",
        "arrays of any length",
    ],
)
def test_members_are_compared_with_those_of_earlier_items_alone(
    vocabulary: ffwd.Vocabulary, items: dict, values: list
) -> None:
    """Few tokens must be read byte by byte, and no call takes many steps, however many came."""
    compiled = ffwd.json_schema({**UNIQUE, "items": items}, whitespace="compact")
    limits = ffwd.Limits(call_steps=20_000)
    grammar = ffwd.compile(compiled, vocabulary, limits=limits)
    matcher = grammar.matcher()
    row = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    tokens = longest_tokens(written(values).encode())
    for token in tokens:
        matcher.fill_bitmask(row, 0)
        assert matcher.accept_token(token)
    assert matcher.is_accepting()
    assert grammar.stats()["doubts_resolved"] < 4 * len(tokens)


def test_names_that_are_not_ascii_tell_items_apart(vocabulary: ffwd.Vocabulary) -> None:
    """Byte by byte: an item may end within a character."""
    pattern = {"patternProperties": {"^(a|é)$": {"const": 1}}, "additionalProperties": False}
    few = {**UNIQUE, "items": {"type": "object", "minProperties": 1, **pattern}}
    matcher = ffwd.compile(ffwd.json_schema(few, whitespace="compact"), vocabulary).matcher()
    assert matcher.accept_tokens(list(b'[{"a":1},{"a":1,"' + "é".encode() + b'":1},{"'))
    # Only the object with this name alone is left.
    assert [token for token in matcher.allowed_token_ids() if token < 256] == [0xC3]
    assert matcher.accept_tokens(list('é":1}]'.encode()))

    text, array = {"type": "string", "pattern": "^.$"}, {"type": "array", "uniqueItems": True}
    patterns = {"^[a-cé]{0,2}$": text, "^(ab?)+$": array}
    many = {**UNIQUE, "items": {"type": "object", "patternProperties": patterns}}
    matcher = ffwd.compile(ffwd.json_schema(many, whitespace="compact"), vocabulary).matcher()
    assert matcher.accept_tokens(list('[{"":"b"},{},{"én":0.1},{"🐢":0}]'.encode()))
    assert matcher.is_accepting()
