"""Types of every kind, with values of theirs; at the top of a module, where pickle finds them."""

import dataclasses
import datetime
import decimal
import enum
import ipaddress
import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import pydantic
from annotated_types import Ge, Len, MultipleOf
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, RootModel, StringConstraints
from typing_extensions import NotRequired, Required, TypedDict

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 9


class Point(NamedTuple):
    x: int
    y: float = 0.0


@dataclasses.dataclass
class Node:
    name: str
    children: list["Node"] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class Money:
    amount: Annotated[decimal.Decimal, Field(max_digits=6, decimal_places=2)]
    currency: Literal["EUR", "CHF"] = "EUR"


class Movie(TypedDict, total=False):
    title: Required[str]
    year: NotRequired[Annotated[int, Ge(1888)]]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=0, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool = True


class Owner(BaseModel):
    """Who has pets."""

    model_config = ConfigDict(extra="forbid")
    first_name: str = Field(alias="firstName", min_length=1, max_length=8)
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = Field(max_length=3)
    since: datetime.date | None = None
    nick: str = Field("", validation_alias=AliasChoices("nick", "alias"))


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class Box(BaseModel, Generic[T]):
    inside: T


class Names(RootModel[list[Annotated[str, StringConstraints(pattern="^[a-z]{1,4}$")]]]):
    pass


class Range(BaseModel):
    """What no schema says: a validator."""

    low: int
    high: int

    @pydantic.model_validator(mode="after")
    def ordered(self) -> "Range":
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


def weather(city: str, days: Annotated[int, Ge(1)] = 1, /, *, units: Literal["C", "F"]) -> str:
    """Tell the weather.

    Args:
        city: Where.
        days: For how
            long.
        units: Of the temperature.
    """
    return f"{city} {days} {units}"


# A type, values of it, and texts that are none though they are close.
CASES: dict[str, tuple[Any, list[Any], list[str]]] = {
    "model": (
        Owner,
        [
            Owner(firstName="Ada", pets=[Cat(kind="cat", lives=9), Dog(kind="dog")]),
            Owner(firstName="B", pets=[], since=datetime.date(2024, 2, 29)),
        ],
        [
            '{"first_name":"Ada","pets":[]}',
            '{"firstName":"Ada","pets":[{"kind":"cat","lives":10}]}',
            '{"firstName":"Ada","pets":[{"kind":"fish"}]}',
            '{"firstName":"Ada","pets":[],"more":1}',
            '{"firstName":"Ada","pets":[],"since":"2023-02-29"}',
            '{"firstName":""}',
        ],
    ),
    "closed": (Dog, [Dog(kind="dog", good=False)], ['{"kind":"dog","more":1}', "{}"]),
    "open": (Open, [Open(a=1), Open(a=2, more=[1])], ['{"a":"x"}']),
    "generic": (Box[Box[int]], [Box(inside=Box(inside=7))], ['{"inside":{"inside":"x"}}']),
    "root": (Names, [Names(["ab", "c"])], ['["ABC"]', "{}"]),
    "dataclass": (Node, [Node("a", [Node("b")])], ['{"name":"a","child":[]}', '{"name":1}']),
    "frozen": (
        Money,
        [Money(decimal.Decimal("1234.56"), "CHF"), Money(decimal.Decimal("-0.5"))],
        ['{"amount":"12345.6"}', '{"amount":"1.234"}', '{"amount":1.234}', '{"amount":"x"}'],
    ),
    "typed dict": (
        Movie,
        [{"title": "M"}, {"title": "M", "year": 1931}],
        ['{"year":1931}', '{"title":"M","year":1800}', '{"title":"M","director":"Lang"}'],
    ),
    "named tuple": (Point, [Point(1, 2.5)], ["[]", "[1,2,3]", '["a"]']),
    "enum": (Colour, list(Colour), ['"blue"', "1"]),
    "int enum": (list[Level], [[Level.LOW, Level.HIGH]], ["[2]"]),
    "literal": (Literal["a", 1, None, True], ["a", 1, None, True], ['"b"', "2", "false"]),
    "union": (int | str | None, [1, "x", None], ["[]", "1.5"]),
    "containers": (
        dict[str, tuple[list[int], frozenset[str]]],
        [{"a": ([1, 2], frozenset({"x", "y"}))}, {}],
        ['{"a":[[1],["x","x"]]}', '{"a":[[1]]}'],
    ),
    "tuples": (tuple[int, ...], [(), (1, 2)], ['["x"]', "{}"]),
    "integer keys": (dict[int, bool], [{1: True, -20: False}, {}], ['{"a":true}', '{"01":true}']),
    "enum keys": (dict[Literal["x", "y"], int], [{"x": 1, "y": 2}], ['{"z":1}']),
    "pattern keys": (
        dict[Annotated[str, Field(pattern="^k[0-9]$")], int],
        [{"k1": 1}],
        ['{"k":1}', '{"k1":"x"}'],
    ),
    "annotated": (
        Annotated[list[Annotated[int, MultipleOf(5)]], Len(1, 2)],
        [[5], [10, -15]],
        ["[]", "[5,5,5]", "[3]"],
    ),
    "times": (
        tuple[datetime.datetime, datetime.time, datetime.timedelta],
        [
            (
                datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
                datetime.time(3, 4, 5, tzinfo=datetime.timezone.utc),
                datetime.timedelta(days=3, hours=2),
            )
        ],
        ['["2024-13-01T00:00:00Z","03:04:05Z","P1D"]', '["2024-01-01","03:04:05Z","P1D"]'],
    ),
    "ids": (
        tuple[uuid.UUID, ipaddress.IPv4Address, bytes],
        [(uuid.UUID(int=7), ipaddress.IPv4Address("10.0.0.1"), b"abc")],
        ['["7","10.0.0.1","abc"]', '["00000000-0000-0000-0000-000000000007","10.0.0.256","a"]'],
    ),
    "any": (Any, [1, {"a": [None]}], []),
    "sequence": (Sequence[Mapping[str, int]], [[{"a": 1}]], ['[{"a":"x"}]']),
    "adapter": (pydantic.TypeAdapter(list[int]), [[1, 2]], ['["x"]']),
}
