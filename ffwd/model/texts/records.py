"""Records: facts with the keys that they may have in JSON, and sentences that say the same."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ffwd.model.texts.words import CURRENCIES, EVENTS, JOBS, Words


@dataclass(frozen=True)
class Fact:
    """One fact of a record.

    Attributes:
        keys: What it may be called in JSON; the first is the usual name.
        value: Its value in JSON.
        question: What asks for it.
        schema: The JSON Schema of such values.
        other: The key that stands in this one's place in records that are identified otherwise.

    """

    keys: tuple[str, ...]
    value: Any
    question: str
    schema: dict[str, Any]
    other: str | None = None


@dataclass(frozen=True)
class Record:
    """Facts, and the text that states all of them."""

    kind: str
    facts: tuple[Fact, ...]
    text: str


STRING = {"type": "string", "minLength": 1, "maxLength": 40}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
BOOLEAN = {"type": "boolean"}
ORDER_STATES = {
    "new": ("is new", "has just come in", "is not paid yet"),
    "paid": ("is paid", "has been paid", "was paid today"),
    "returned": ("came back", "was sent back", "was returned"),
    "refunded": ("was paid back", "was refunded", "got the money back"),
    "refused": ("was refused", "was not accepted", "was turned down"),
}


def _put(source: random.Random, first: str, others: list[str]) -> str:
    """Return the sentences as a text, those after the first in any order."""
    source.shuffle(others)
    return " ".join([first, *others])


def _identity(words: Words, noun: str, named: Callable[[], str]) -> tuple[Fact, str]:
    """Return the identity of a record, a number or a name, and its form in a sentence."""
    source = words.source
    number, name = words.number(source.choice((3, 4, 4, 5))), named()
    if source.random() < 0.5:
        fact = Fact((f"{noun}Id",), number, f"Which {noun} is it?", INTEGER, other=f"{noun}Name")
        subject = source.choice((f"{noun} {number}", f"{noun} number {number}"))
        return fact, subject
    fact = Fact((f"{noun}Name",), name, f"Which {noun} is it?", STRING, other=f"{noun}Id")
    return fact, source.choice((f"the {noun} {name}", f"the {noun} called {name}"))


def _start(text: str) -> str:
    return text[0].upper() + text[1:]


def order(words: Words) -> Record:
    """Return an order in a shop."""
    source = words.source
    identity, subject = _identity(words, "order", words.thing)
    customer, state, total = words.name(), source.choice(list(ORDER_STATES)), words.amount()
    says = source.choice(ORDER_STATES[state])
    facts = [
        identity,
        Fact(("customer", "customerName", "buyer"), customer, "Who is the customer?", STRING),
        Fact(("status", "state"), state, "What is its status?", {"enum": list(ORDER_STATES)}),
    ]
    first, others = source.choice(
        (
            (f"{_start(subject)} {says}.", [f"{customer} bought it."]),
            (f"{customer} placed {subject}.", [f"It {says}."]),
            (f"{_start(subject)} of {customer} {says}.", []),
            (f"Hello, this is {customer}. I write about {subject}.", [f"It {says}."]),
        )
    )
    if source.random() < 0.6:
        facts.append(Fact(("total", "price"), total, "What did it cost?", NUMBER))
        others.append(source.choice((f"It cost {total}.", f"The total is {total}.")))
    return Record("order", tuple(facts), _put(source, first, others))


def person(words: Words) -> Record:
    """Return a person."""
    source = words.source
    name, age, city, job = (
        words.name(), source.randrange(18, 90), words.city(), source.choice(JOBS),
    )  # fmt: skip
    facts = [
        Fact(("name", "person", "fullName"), name, "What is the name?", STRING),
        Fact(("age", "years"), age, f"How old is {name}?", INTEGER),
    ]
    first, others = source.choice(
        (
            (f"{name} is {age} years old.", []),
            (f"{name}, {age}, is our guest.", []),
            (f"My name is {name}.", [f"I am {age} years old."]),
            (f"This is {name}, aged {age}.", []),
        )
    )
    me = first.startswith("My")
    if source.random() < 0.75:
        facts.append(Fact(("city", "town", "home"), city, f"Where does {name} live?", STRING))
        if me:
            others.append(f"I live in {city}.")
        else:
            others.append(source.choice((f"{name} lives in {city}.", f"The home town is {city}.")))
    if source.random() < 0.5:
        facts.append(Fact(("job", "profession"), job, f"What does {name} do?", STRING))
        others.append(f"I work as a {job}." if me else f"{name} works as a {job}.")
    return Record("person", tuple(facts), _put(source, first, others))


def event(words: Words) -> Record:
    """Return an event."""
    source = words.source
    what, city, date, time = (
        source.choice(EVENTS), words.city(), words.date(), words.time(),
    )  # fmt: skip
    host, seats = words.name(), words.number(source.choice((2, 3)))
    dated = source.random() < 0.5
    start = (
        Fact(("startDate",), date, "When does it start?", STRING, other="startTime")
        if dated
        else Fact(("startTime",), time, "When does it start?", STRING, other="startDate")
    )
    when = f"on {date}" if dated else f"at {time}"
    facts = [
        Fact(("event", "title"), what, "What takes place?", STRING),
        start,
        Fact(("city", "place"), city, "Where is it?", STRING),
    ]
    first, others = source.choice(
        (
            (f"The {what} in {city} starts {when}.", []),
            (f"There is a {what} {when}.", [f"It is in {city}."]),
            (f"Come to {city} for the {what}!", [f"It starts {when}."]),
        )
    )
    if source.random() < 0.5:
        facts.append(Fact(("host", "speaker"), host, "Who is the host?", STRING))
        others.append(source.choice((f"{host} is the host.", f"The host is {host}.")))
    if source.random() < 0.4:
        facts.append(Fact(("seats", "capacity"), seats, "How many seats are there?", INTEGER))
        others.append(f"There are {seats} seats.")
    return Record("event", tuple(facts), _put(source, first, others))


def product(words: Words) -> Record:
    """Return an article for sale."""
    source = words.source
    identity, subject = _identity(words, "product", words.invented)
    color, price, stock = words.color(), words.amount(), source.random() < 0.5
    facts = [identity, Fact(("price", "cost"), price, "What does it cost?", NUMBER)]
    first, others = source.choice(
        (
            (f"{_start(subject)} costs {price}.", []),
            (f"We sell {subject} for {price}.", []),
            (f"Look at {subject}!", [f"The price is {price}."]),
        )
    )
    if source.random() < 0.7:
        facts.append(Fact(("color", "colour"), color, "Which color is it?", STRING))
        others.append(source.choice((f"It is {color}.", f"The color is {color}.")))
    if source.random() < 0.7:
        facts.append(Fact(("inStock", "available"), stock, "Can one buy it?", BOOLEAN))
        others.append("It is in stock." if stock else "It is sold out.")
    return Record("product", tuple(facts), _put(source, first, others))


def invoice(words: Words) -> Record:
    """Return a bill."""
    source = words.source
    number, date, company = words.number(5), words.date(), words.company()
    amount, currency = words.amount(), source.choice(CURRENCIES)
    numbered = source.random() < 0.5
    key = (
        Fact(("invoiceNumber",), number, "Which invoice is it?", INTEGER, other="invoiceDate")
        if numbered
        else Fact(("invoiceDate",), date, "Of which day is it?", STRING, other="invoiceNumber")
    )
    subject = f"invoice {number}" if numbered else f"the invoice of {date}"
    facts = [
        key,
        Fact(("company", "supplier"), company, "Who sent it?", STRING),
        Fact(("amount", "total"), amount, "How much is it?", NUMBER),
        Fact(("currency",), currency, "In which currency?", {"enum": list(CURRENCIES)}),
    ]
    first, others = source.choice(
        (
            (f"{company} sent {subject} over {amount} {currency}.", []),
            (f"{_start(subject)} is from {company}.", [f"It is over {amount} {currency}."]),
            (f"We owe {company} {amount} {currency} for {subject}.", []),
        )
    )
    return Record("invoice", tuple(facts), _put(source, first, others))


def trip(words: Words) -> Record:
    """Return a journey."""
    source = words.source
    name, start, end = words.name(), words.city(), words.city()
    date, count = words.date(), source.randrange(1, 10)
    facts = [
        Fact(("traveler", "passenger", "name"), name, "Who travels?", STRING),
        Fact(("from", "origin"), start, "Where does it begin?", STRING),
        Fact(("to", "destination"), end, "Where does it end?", STRING),
    ]
    first, others = source.choice(
        (
            (f"{name} goes from {start} to {end}.", []),
            (f"A train to {end} leaves {start}.", [f"{name} takes it."]),
            (f"{name} wants to go to {end}.", [f"The trip begins in {start}."]),
        )
    )
    if source.random() < 0.6:
        facts.append(Fact(("date", "day"), date, "On which day?", STRING))
        others.append(f"The day is {date}.")
    if source.random() < 0.4:
        facts.append(Fact(("tickets", "seats"), count, "How many tickets?", INTEGER))
        others.append(f"That makes {count} tickets." if count > 1 else "That makes 1 ticket.")
    return Record("trip", tuple(facts), _put(source, first, others))


def account(words: Words) -> Record:
    """Return a user of a service."""
    source = words.source
    identity, subject = _identity(words, "user", words.first_name)
    plan, friends = (
        source.choice(("free", "basic", "premium")),
        [words.first_name() for _ in range(source.randrange(1, 4))],
    )
    active = source.random() < 0.5
    facts = [
        identity,
        Fact(("plan",), plan, "Which plan is it?", {"enum": ["free", "basic", "premium"]}),
    ]
    first, others = source.choice(
        (
            (f"{_start(subject)} has the {plan} plan.", []),
            (f"{_start(subject)} signed in.", [f"The plan is {plan}."]),
        )
    )
    if source.random() < 0.6:
        friend_schema = {"type": "array", "items": STRING, "minItems": 1, "maxItems": 4}
        facts.append(Fact(("friends", "contacts"), friends, "Who are the friends?", friend_schema))
        *most, last = friends
        listed = f"{', '.join(most)} and {last}" if most else last
        others.append(f"Friends: {listed}.")
    if source.random() < 0.5:
        facts.append(Fact(("active",), active, "Is the account active?", BOOLEAN))
        others.append("The account is active." if active else "The account is closed.")
    return Record("account", tuple(facts), _put(source, first, others))


KINDS: dict[str, Callable[[Words], Record]] = {
    "order": order,
    "person": person,
    "event": event,
    "product": product,
    "invoice": invoice,
    "trip": trip,
    "account": account,
}
"""The kinds of records by name."""
