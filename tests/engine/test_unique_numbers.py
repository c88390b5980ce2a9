"""Unique items that are numbers with several spellings, against all texts of short arrays.

The twin lists the arrays that a schema allows, by brute force, and the spellings of each number.
A text is alive if some array can be written with it as its beginning.
"""

import itertools
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import jsonschema_rs
import pytest

import ffwd

NUMBERS = (0, 1, -1, 5, 10, 12, 0.5, -0.5, 1.5, 0.05, 100, -10, 2.25)
OTHERS = ("a", "ab", "1", True, False, None)
DIGITS = b"-+.0123456789eE"
JOINED = (
    *("e-1", "E-1", "5e-1", "0.5", "e0", "1e1", "e1", "1.0", "e-1,", "e-1]", "5e-1]", "5e-1,"),
    *(",5", ",5e-1", ",-5e-1", "1,", "1]", "0,1", "1,1", ".5", "0.5]", "0]", "0,", "e0]", "e0,"),
    *('"a",', ',"a"', "true,", ",true", ",-", "5e-1,5", "1e0,1.", "1,1.0", "00", ".0", ".50", "E0"),
    *('{"k":', '},{"k":5', "5e-1}", '1},{"k":1', "e0}", '"k":0.5', "1.0}", "e-1},"),
)
TEXTS = [*(bytes([byte]) for byte in range(256)), None, *map(str.encode, JOINED)]
LEFT_OUT = re.compile(rb"[eE][-+]?([0-9]*[3-9]|[0-9]{3})")
"""Exponents that are not listed: large ones, and three digits, which some items cannot have."""
LONGEST_TEXT = 10
"""Spellings are listed up to this length."""
LONGEST_PREFIX = 5
"""A prefix this long has a spelling of each of its values, of the values above, in the list."""


@pytest.fixture(scope="module")
def vocabulary() -> ffwd.Vocabulary:
    return ffwd.Vocabulary(TEXTS, eos_token_ids=[256])


def identity(value: Any) -> Any:
    """Return a key that equal values share, and no others."""
    if isinstance(value, dict):
        return ("object", tuple((name, identity(member)) for name, member in value.items()))
    if isinstance(value, list):
        return ("array", tuple(map(identity, value)))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return (type(value), value)
    return ("number", Decimal(str(value)))


@dataclass
class Case:
    schema: Any
    """Of a root that holds an array."""
    arrays: list[Any]
    """What the array can be."""
    places: list[Any]
    """The schemas of its first items, the last of which is that of all others."""
    before: str = ""
    after: str = ""
    has_contains: bool = False


def draw_item(source: random.Random) -> tuple[Any, list[Any]]:
    """Return the schema of an item, and its values."""
    kind = source.random()
    if kind < 0.15:
        step = source.choice([0.5, 0.05, 1, 5])
        low, count = source.randint(-2, 1), source.randint(1, 4)
        values: list[Any] = [float(Decimal(str(step)) * (low + at)) for at in range(count)]
        return {
            "type": "number",
            "multipleOf": step,
            "minimum": values[0],
            "maximum": values[-1],
        }, values
    values = source.sample(NUMBERS, source.randint(2, 4))
    values += source.sample(list(OTHERS), source.randint(0, 2))
    source.shuffle(values)
    if kind < 0.3:
        at = source.randint(1, len(values) - 1)
        return {"anyOf": [{"enum": values[:at]}, {"enum": values[at:]}]}, values
    return {"enum": values}, values


def draw(source: random.Random) -> Case:
    """Return a schema, of which at most three items are looked at."""
    in_objects = source.random() < 0.2
    kinds = [draw_item(source) for _ in range(source.choice([1, 1, 2, 3]))]
    if in_objects:
        kinds = [
            (
                {
                    "type": "object",
                    "properties": {"k": item},
                    "required": ["k"],
                    "additionalProperties": False,
                },
                [{"k": value} for value in values],
            )
            for item, values in kinds
        ]
    places = [item for item, _ in kinds]
    schema: Any = {"type": "array", "uniqueItems": True, "items": places[-1]}
    if len(places) > 1:
        schema["prefixItems"] = places[:-1]
    schema["minItems"] = source.choice([0, 0, 1, 2, 3])
    schema["maxItems"] = 3
    contains = source.random() < 0.25
    if contains:
        item, values = source.choice(kinds)
        schema["contains"] = source.choice([item, {"enum": values[:2]}, {"const": values[0]}])
        schema["minContains"] = source.choice([1, 1, 2])
        if source.random() < 0.3:
            schema["maxContains"] = 2
    all_values = [values for _, values in kinds]
    arrays: list[list[Any]] = []
    for length in range(4):
        choices = [all_values[min(place, len(kinds) - 1)] for place in range(length)]
        arrays += map(list, itertools.product(*choices))
    # The judge compares floats, which these values are apart as.
    judge = jsonschema_rs.Draft202012Validator(schema)
    found = [array for array in arrays if judge.is_valid(array)]
    before, after, root = "", "", schema
    if source.random() < 0.3:
        before, after = '{"a":', "}"
        root = {
            "type": "object",
            "properties": {"a": schema},
            "required": ["a"],
            "additionalProperties": False,
        }
    return Case(root, found, places, before, after, contains)


class Spellings:
    """The values that a beginning of a number can become, for one item."""

    def __init__(self, schema: Any, numbers: str, vocabulary: ffwd.Vocabulary) -> None:
        """List the spellings, from the masks of arrays that have no other item."""
        array = {"type": "array", "uniqueItems": True, "items": schema, "maxItems": 2}
        options: Any = {"numbers": numbers, "whitespace": "compact"}
        matcher = ffwd.compile(ffwd.json_schema(array, **options), vocabulary).matcher()
        assert matcher.accept_tokens(list(b"["))
        self._ends = b"]"
        if schema.get("type") == "object":
            assert matcher.accept_tokens(list(b'{"k":'))
            self._ends = b"}"
        self.values: dict[bytes, set[Decimal]] = {}
        self._list(b"", matcher)

    def _list(self, text: bytes, matcher: ffwd.Matcher) -> None:
        if text and matcher.validate_tokens(list(self._ends)):
            value = Decimal(text.decode())
            for end in range(len(text) + 1):
                self.values.setdefault(text[:end], set()).add(value)
            self.values.setdefault(text + b"!", set()).add(value)
        if len(text) == LONGEST_TEXT:
            return
        for byte in b"-+.012" if b"e" in text else b"-.0123456789e":
            if matcher.accept_token(byte):
                self._list(text + bytes([byte]), matcher)
                matcher.rollback(1)

    def of(self, text: bytes) -> set[Decimal]:
        """Return the values of the spellings that begin with a text."""
        return self.values.get(text.replace(b"E", b"e"), set())

    def ends(self, text: bytes) -> bool:
        """Return whether a text is a spelling."""
        return text.replace(b"E", b"e") + b"!" in self.values


def parts(value: Any, place: int) -> Iterator[bytes | tuple[Decimal, int]]:
    """Return the text of a value, with its numbers and the places of their items."""
    if isinstance(value, dict):
        for at, (name, member) in enumerate(value.items()):
            yield b"%c%s:" % (b"{,"[at > 0], json.dumps(name).encode())
            yield from parts(member, place)
        yield b"}"
    elif isinstance(value, bool) or not isinstance(value, int | float):
        yield json.dumps(value).encode()
    else:
        yield (Decimal(str(value)), place)


def written(case: Case) -> list[list[bytes | tuple[Decimal, int]]]:
    found = []
    for array in case.arrays:
        text: list[bytes | tuple[Decimal, int]] = [case.before.encode() + b"["]
        for place, item in enumerate(array):
            text += [b","] if place else []
            text += parts(item, min(place, len(case.places) - 1))
        found.append([*text, b"]" + case.after.encode()])
    return found


def goes_on(
    text: bytes, document: list[bytes | tuple[Decimal, int]], spellings: list[Spellings]
) -> bool | None:
    """Return whether a document can be written beginning with a text; `None` if the text is all."""
    at = 0
    for part in document:
        if at == len(text):
            return True
        if isinstance(part, bytes):
            here = text[at : at + len(part)]
            if not part.startswith(here):
                return False
            at += len(here)
            if len(here) < len(part):
                return True
            continue
        number, place = part
        end = at
        while end < len(text) and text[end] in DIGITS:
            end += 1
        spelt = text[at:end]
        if end == len(text):
            assert len(spelt) <= LONGEST_PREFIX
            return number in spellings[place].of(spelt)
        if not spellings[place].ends(spelt) or Decimal(spelt.decode()) != number:
            return False
        at = end
    return None if at == len(text) else False


def open_number(text: bytes) -> int:
    """Return how many bytes of a number a text ends with."""
    return len(text) - len(text.rstrip(DIGITS))


def check_walk(
    case: Case, numbers: str, matcher: ffwd.Matcher, spellings: list[Spellings], seed: str
) -> int:
    """Compare each mask of a walk with the texts; return the number of steps."""
    source = random.Random(seed)
    left, text, steps = written(case), b"", 0
    while True:
        allowed, expected, left_out = set(matcher.allowed_token_ids()), set(), set()
        for token, more in enumerate(TEXTS):
            if more is None:
                if any(goes_on(text, document, spellings) is None for document in left):
                    expected.add(token)
                continue
            after = text + more
            if open_number(after) > LONGEST_PREFIX or LEFT_OUT.search(after):
                left_out.add(token)
            elif any(goes_on(after, document, spellings) is not False for document in left):
                expected.add(token)
        left_out &= allowed
        allowed -= left_out
        shown = {TEXTS[token] for token in allowed ^ expected}
        side = "allows" if allowed - expected else "lacks"
        assert allowed == expected, f"{text!r} {side} {shown} {numbers} {json.dumps(case.schema)}"
        for token in expected:
            fork = matcher.fork()
            assert fork.accept_token(token), (text, TEXTS[token], json.dumps(case.schema))
        steps += 1
        if left_out and not expected:
            return steps
        token = source.choice(sorted(expected))
        if source.random() < 0.7:
            # Spellings that are not plain are few among all.
            unusual = [t for t in expected if set(TEXTS[t] or b"") & set(b"eE.5")]
            token = source.choice(sorted(unusual) or sorted(expected))
        assert matcher.accept_token(token)
        more = TEXTS[token]
        if more is None:
            return steps
        text += more
        left = [document for document in left if goes_on(text, document, spellings) is not False]


def check_completions(
    case: Case, matcher: ffwd.Matcher, seed: str, text: bytes = b"", steps: int = 20
) -> int:
    """Check that each allowed token of a walk has a valid completion; return the steps."""
    source = random.Random(seed)
    judge = jsonschema_rs.Draft202012Validator(case.schema)
    for step in range(steps):
        allowed = matcher.allowed_token_ids()
        assert allowed, (text, json.dumps(case.schema))
        for token, more in enumerate(TEXTS):
            assert (matcher.validate_tokens([token]) == 1) == (token in allowed), (text, more)
            if more is None or token not in allowed:
                continue
            fork = matcher.fork()
            assert fork.accept_token(token), (text, more, json.dumps(case.schema))
            rest = b"".join(TEXTS[t] or b"" for t in fork.shortest_completion())
            document = text + more + rest
            value = json.loads(document)
            # The judge cannot be asked about a number that is none of its floats.
            is_finite = "Infinity" not in json.dumps(value)
            assert not is_finite or judge.is_valid(value), (document, json.dumps(case.schema))
        token = source.choice(allowed)
        more = TEXTS[token]
        assert matcher.accept_token(token)
        if more is None:
            return step
        text += more
    return steps


def run(number: int, vocabulary: ffwd.Vocabulary) -> int:
    source = random.Random(f"unique numbers {number}")
    case = draw(source)
    numbers: Any = source.choice(["any", "plain"])
    options: Any = {"numbers": numbers, "whitespace": "compact"}
    grammar = ffwd.json_schema(case.schema, **options)
    if not case.arrays:
        with pytest.raises(ffwd.UnsatisfiableSchemaError):
            ffwd.compile(grammar, vocabulary)
        return 0
    compiled = ffwd.compile(grammar, vocabulary)
    steps = 0
    if not case.has_contains:
        spellings = [Spellings(place, numbers, vocabulary) for place in case.places]
        for walk in range(4):
            seed = f"{number} {walk}"
            steps += check_walk(case, numbers, compiled.matcher(), spellings, seed)
    for walk in range(2):
        steps += check_completions(case, compiled.matcher(), f"{number} {walk}")
    return steps


@pytest.mark.parametrize("block", range(4))
def test_masks_have_the_beginnings_of_arrays_of_other_numbers(
    vocabulary: ffwd.Vocabulary, block: int
) -> None:
    steps = sum(run(number, vocabulary) for number in range(15 * block, 15 * (block + 1)))
    assert steps > 500


@pytest.mark.parametrize("numbers", ["any", "plain"])
def test_a_number_that_only_an_exponent_completes(
    vocabulary: ffwd.Vocabulary, numbers: Literal["any", "plain"]
) -> None:
    schema = {"type": "array", "items": {"enum": [True, "ab", -1, -0.5]}, "uniqueItems": True}
    grammar = ffwd.json_schema(schema, numbers=numbers, whitespace="compact")
    matcher = ffwd.compile(grammar, vocabulary).matcher()
    assert matcher.accept_tokens(list(b"[-5e-1,true,-"))
    assert b"5"[0] not in matcher.allowed_token_ids()
    assert matcher.fork().accept_token(ord("1"))
    other = ffwd.compile(grammar, vocabulary).matcher()
    assert other.accept_tokens(list(b"[true,-5e-1]"))


FREE = {"type": "number"}
BOUNDED = {"type": "number", "minimum": 0, "maximum": 10}
STEPS = {"type": "number", "multipleOf": 0.5}


@pytest.mark.parametrize("numbers", ["any", "plain"])
@pytest.mark.parametrize("number", [FREE, BOUNDED, STEPS], ids=["free", "bounded", "steps"])
@pytest.mark.parametrize("other", [[1, 2], ["a"]])
def test_members_that_are_any_of_many_numbers(
    vocabulary: ffwd.Vocabulary,
    number: dict[str, Any],
    other: list[Any],
    numbers: Literal["any", "plain"],
) -> None:
    """A number with an exponent may equal an earlier one, or have too many digits to compare."""
    item = {
        "type": "object",
        "properties": {"k": number, "l": {"enum": other}},
        "required": ["k", "l"],
        "additionalProperties": False,
    }
    for items in (item, {"type": "array", "items": number, "minItems": 1, "maxItems": 1}, number):
        schema = {"type": "array", "uniqueItems": True, "items": items, "minItems": 2}
        grammar = ffwd.json_schema(schema, numbers=numbers, whitespace="compact")
        compiled = ffwd.compile(grammar, vocabulary)
        rest = "" if items is number else "]"
        member = f',"l":{json.dumps(other[0])}}}'
        begin, end = ('{"k":', member) if items is item else ("[", rest)
        begin = "" if items is number else begin
        for came, text in (("1", "1"), ("0.5", "5"), ("0.5", "5e"), ("10", "1"), ("0", "0.0")):
            matcher = compiled.matcher()
            start = f"[{begin}{came}{end},{begin}{text}"
            if not matcher.accept_tokens(list(start.encode())):
                continue
            check_completions(Case(schema, [], []), matcher, f"{start}", start.encode(), 6)
