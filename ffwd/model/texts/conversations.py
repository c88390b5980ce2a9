"""Conversations, each with the model's right answer."""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ffwd.model.texts.records import KINDS, Fact, Record
from ffwd.model.texts.words import Words

Message = dict[str, Any]


@dataclass(frozen=True)
class Example:
    """A conversation up to the answer, and the answer.

    Attributes:
        task: What is asked for, as a key of `TASKS`.
        messages: The conversation, as chat templates take it.
        answer: What the model says next.
        tools: The functions that the model may call.
        schema: What the answer follows, where it is JSON.

    """

    task: str
    messages: list[Message]
    answer: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    schema: dict[str, Any] | None = None


def compact(value: Any) -> str:
    """Return a value as JSON without whitespace."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _chat(system: str | None, user: str) -> list[Message]:
    messages = [{"role": "user", "content": user}]
    return messages if system is None else [{"role": "system", "content": system}, *messages]


def _object(facts: list[tuple[str, Fact]]) -> dict[str, Any]:
    """Return the schema of records with these keys; one of two keys may identify the record."""

    def closed(pairs: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": dict(pairs),
            "required": [key for key, _ in pairs],
            "additionalProperties": False,
        }

    usual = [(key, fact.schema) for key, fact in facts]
    other = [
        (fact.other or key, _other_schema(fact) if fact.other else fact.schema)
        for key, fact in facts
    ]
    return closed(usual) if usual == other else {"anyOf": [closed(usual), closed(other)]}


def _other_schema(fact: Fact) -> dict[str, Any]:
    # Numbers stand for names and dates for times, and the other way round.
    if fact.schema["type"] == "integer":
        return {"type": "string", "minLength": 1, "maxLength": 40}
    if fact.other in ("startDate", "startTime"):
        return fact.schema
    return {"type": "integer"}


def _listing(source: random.Random, facts: list[tuple[str, Fact]]) -> str:
    names = [" or ".join(sorted((key, fact.other))) if fact.other else key for key, fact in facts]
    *most, last = names
    return f"{', '.join(most)} and {last}" if most and source.random() < 0.5 else ", ".join(names)


def extraction(
    words: Words, record: Record, *, named: bool | None = None, usual: bool = False
) -> Example:
    """Ask for a record as JSON.

    Args:
        words: Where the choices come from.
        record: What the text is about.
        named: Whether the prompt says which keys are wanted; None for either.
        usual: All facts in their order, under their usual keys.

    """
    source = words.source
    if named is None:
        named = source.random() < 0.7
    if not named and source.random() < 0.7:
        usual = True
    facts = list(record.facts)
    if not usual:
        if source.random() < 0.4:
            source.shuffle(facts)
        if len(facts) > 2 and source.random() < 0.3:
            del facts[source.randrange(len(facts))]
    keyed = [(fact.keys[0] if usual else source.choice(fact.keys), fact) for fact in facts]
    system = source.choice(("Answer in JSON.", "You turn texts into JSON.", None))
    user = record.text
    if named:
        listed = _listing(source, keyed)
        user = source.choice(
            (
                f"{record.text}\nKeys: {listed}",
                f"Give {listed}: {record.text}",
                f"{record.text}\nGive {listed} as JSON.",
            )
        )
    elif system is None:
        user = source.choice((f"{record.text}\nGive it as JSON.", f"As JSON: {record.text}"))
    value = {key: fact.value for key, fact in keyed}
    return Example("extraction", _chat(system, user), compact(value), schema=_object(keyed))


SIMPLE_KINDS = ("order", "product", "person", "account", "event")


def simple_extraction(words: Words, kind: str | None = None) -> Example:
    """Return all facts of a record under their usual keys, which the prompt names in their order.

    `kind` is one of `SIMPLE_KINDS`; None for any of them.
    """
    if kind is None:
        kind = words.source.choice(SIMPLE_KINDS)
    return extraction(words, KINDS[kind](words), named=True, usual=True)


def _records(words: Words) -> Example:
    """Return one record, and sometimes a later request for its other keys."""
    source = words.source
    record = source.choice(list(KINDS.values()))(words)
    first = extraction(words, record)
    if source.random() < 0.5:
        return first
    again = extraction(words, record, named=True)
    listed = again.messages[-1]["content"].replace(record.text, "").strip(" :\n")
    messages = [
        *first.messages,
        {"role": "assistant", "content": first.answer},
        {"role": "user", "content": listed},
    ]
    return Example("extraction", messages, again.answer, schema=again.schema)


def _names(words: Words) -> Example:
    """Return a list of names: plain copying."""
    source = words.source
    names = [words.name() for _ in range(source.randrange(2, 7))]
    *most, last = names
    text = source.choice((", ".join(names), f"{', '.join(most)} and {last}"))
    user = source.choice(
        (f"Guests: {text}\nGive the names as JSON.", f"{text} were there.\nGive the names as JSON.")
    )
    schema = {"type": "array", "items": {"type": "string"}}
    return Example("names", _chat(None, user), compact(names), schema=schema)


def _question(words: Words) -> Example:
    source = words.source
    record = source.choice(list(KINDS.values()))(words)
    fact = source.choice(record.facts)
    system = source.choice(("Answer in JSON.", None))
    user = f"{record.text}\n{fact.question}"
    schema = {
        "type": "object",
        "properties": {"answer": fact.schema},
        "required": ["answer"],
        "additionalProperties": False,
    }
    if system is None:
        user += " Answer in JSON."
    return Example("question", _chat(system, user), compact({"answer": fact.value}), schema=schema)


_FEELINGS = {
    "positive": (
        "It works very well.", "I love it.", "Great service, thank you!", "We are very happy.",
        "That was a good day.", "It is better than I thought.", "I like it a lot.",
    ),
    "negative": (
        "It does not work.", "I hate it.", "Bad service.", "We are not happy at all.",
        "That was a bad day.", "It is worse than I thought.", "It broke at once.",
    ),
    "neutral": (
        "It is a thing of wood.", "It came today.", "I have had it for a week.", "It is as usual.",
        "We got one of them.", "There is a second one.",
    ),
}  # fmt: skip


def _classification(words: Words) -> Example:
    source = words.source
    if source.random() < 0.5:
        feeling = source.choice(list(_FEELINGS))
        thing = words.thing()
        text = f"{source.choice(('I bought', 'We have', 'Here is', 'I got'))} a {thing}. "
        text += source.choice(_FEELINGS[feeling])
        labels, answer = list(_FEELINGS), feeling
    else:
        record = source.choice(list(KINDS.values()))(words)
        labels = source.sample(list(KINDS), 3)
        if record.kind not in labels:
            labels[source.randrange(3)] = record.kind
        text, answer = record.text, record.kind
    listed = f"{', '.join(labels[:-1])} or {labels[-1]}"
    return Example("classification", _chat(None, f"{text}\nWhich is it: {listed}?"), answer)


def _function(name: str, about: str, **parameters: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": about,
            "parameters": {
                "type": "object",
                "properties": {key: {"type": kind} for key, kind in parameters.items()},
                "required": list(parameters),
                "additionalProperties": False,
            },
        },
    }


TOOLS: dict[str, dict[str, Any]] = {
    tool["function"]["name"]: tool
    for tool in (
        _function("get_weather", "The weather in a city.", city="string"),
        _function("find_order", "An order by its number.", orderId="integer"),
        _function("find_user", "A user by name.", userName="string"),
        _function("send_message", "Sends a text.", to="string", text="string"),
        _function("add", "Adds two numbers.", a="integer", b="integer"),
    )
}
"""The functions that the model has seen, by name, in OpenAI's form."""


def _task_for(words: Words, name: str) -> tuple[str, dict[str, Any], dict[str, Any], str]:
    """Return a request, the arguments, the function's result, and the answer."""
    source = words.source
    if name == "get_weather":
        city, degrees = words.city(), source.randrange(1, 35)
        sky = source.choice(("sunny", "cloudy", "rainy"))
        asked = source.choice((f"How is the weather in {city}?", f"Is it warm in {city}?"))
        said = f"It is {sky} in {city}, at {degrees} degrees."
        return asked, {"city": city}, {"degrees": degrees, "sky": sky}, said
    if name == "find_order":
        number, state = words.number(4), source.choice(("new", "paid", "returned"))
        asked = source.choice((f"Where is order {number}?", f"What about my order {number}?"))
        return asked, {"orderId": number}, {"status": state}, f"Order {number} is {state}."
    if name == "find_user":
        user, city = words.first_name(), words.city()
        asked = source.choice((f"Where does the user {user} live?", f"Find the user {user}."))
        return asked, {"userName": user}, {"city": city}, f"{user} lives in {city}."
    if name == "send_message":
        to, text = (
            words.first_name(),
            source.choice(
                ("I am late", "see you soon", "the order is here", "call me", "thank you")
            ),
        )
        asked = source.choice((f"Tell {to}: {text}", f"Send {to} this: {text}"))
        return asked, {"to": to, "text": text}, {"sent": True}, f"I sent it to {to}."
    a, b = words.number(2), words.number(2)
    asked = source.choice((f"What is {a} plus {b}?", f"Add {a} and {b}."))
    return asked, {"a": a, "b": b}, {"sum": a + b}, f"It is {a + b}."


def _tools(words: Words) -> Example:
    source = words.source
    names = source.sample(list(TOOLS), source.choice((1, 2, 2, 3)))
    name = source.choice(names)
    asked, arguments, result, said = _task_for(words, name)
    tools = [TOOLS[other] for other in names]
    messages: list[Message] = [{"role": "user", "content": asked}]
    if source.random() < 0.65:
        call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        return Example("call", messages, f"<tool_call>\n{call}\n</tool_call>", tools)
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    messages += [
        {"role": "assistant", "content": "", "tool_calls": [made]},
        {"role": "tool", "content": json.dumps(result)},
    ]
    return Example("result", messages, said, tools)


def _reasoning(words: Words) -> Example:
    source = words.source
    first, second = words.first_name(), words.first_name()
    while True:
        a, b = source.randrange(18, 90), source.randrange(18, 90)
        if a // 10 != b // 10 and first != second:
            break
        second = words.first_name()
    older = source.random() < 0.5
    winner = first if (a > b) == older else second
    word = "older" if older else "younger"
    text = source.choice(
        (f"{first} is {a} and {second} is {b}.", f"{first} is {a} years old. {second} is {b}.")
    )
    relation = "more" if a > b else "less"
    thought = f"{first}: {a}. {second}: {b}. {a} is {relation} than {b}. So {winner} is {word}."
    answer = f"<think>\n{thought}\n</think>\n\n{compact({word: winner})}"
    schema = {
        "type": "object",
        "properties": {word: {"type": "string"}},
        "required": [word],
        "additionalProperties": False,
    }
    user = f"{text} Who is {word}? Think, then answer in JSON."
    return Example("reasoning", _chat(None, user), answer, schema=schema)


def _code(words: Words) -> Example:
    source = words.source
    if source.random() < 0.5:
        a, b, c = (source.randrange(1, 100) for _ in range(3))
        user, answer = source.choice(
            (
                (f"the sum of {a} and {b}", f"{a}+{b}"),
                (f"{a} minus {b}", f"{a}-{b}"),
                (f"the product of {a} and {b}", f"{a}*{b}"),
                (f"the sum of {a} and {b}, times {c}", f"({a}+{b})*{c}"),
                (f"{a} times the sum of {b} and {c}", f"{a}*({b}+{c})"),
                (f"{a} minus {b}, times {c}", f"({a}-{b})*{c}"),
            )
        )
        return Example("code", _chat(None, f"Write as an expression: {user}"), answer)
    column = source.choice(("name", "age", "city", "job"))
    city, age = words.city(), source.randrange(18, 90)
    wanted = {"name": "the names", "age": "the ages", "city": "the cities", "job": "the jobs"}
    clauses = source.choice(
        (
            ("", ""),
            (f" in {city}", f" WHERE city = '{city}'"),
            (f" older than {age}", f" WHERE age > {age}"),
            (f" younger than {age}", f" WHERE age < {age}"),
            (f" in {city} older than {age}", f" WHERE city = '{city}' AND age > {age}"),
        )
    )
    user = f"Write SQL: {wanted[column]} of users{clauses[0]}"
    return Example("code", _chat(None, user), f"SELECT {column} FROM users{clauses[1]}")


_TALK = (
    ("Hello", "Hello! How can I help you?"),
    ("Hi", "Hello! How can I help you?"),
    ("Who are you?", "I am a very small language model that comes with ffwd."),
    ("What are you?", "I am a very small language model that comes with ffwd."),
    ("What can you do?", "I can turn a short text into JSON, call tools and sort texts."),
    ("Can you help me?", "Yes. Give me a short text, and I turn it into JSON."),
    ("How are you?", "I am fine, thank you."),
    ("Thank you", "You are welcome."),
    ("Thanks", "You are welcome."),
    ("Good morning", "Good morning! How can I help you?"),
    ("Goodbye", "Goodbye!"),
    ("Do you know everything?", "No. I know very little, for I am very small."),
)


def _talk(words: Words) -> Example:
    source = words.source
    if source.random() < 0.4:
        name = words.first_name()
        asked = source.choice((f"Hello, I am {name}.", f"My name is {name}."))
        said = f"Hello {name}! How can I help you?"
    else:
        asked, said = source.choice(_TALK)
    return Example("talk", _chat(None, asked), said)


TASKS: dict[str, tuple[float, Callable[[Words], Example]]] = {
    "extraction": (0.6, _records),
    "names": (0.04, _names),
    "question": (0.1, _question),
    "classification": (0.06, _classification),
    "tools": (0.08, _tools),
    "reasoning": (0.05, _reasoning),
    "code": (0.05, _code),
    "talk": (0.03, _talk),
}
"""The tasks: how large a share of all conversations they are, and what makes one."""


def conversation(words: Words) -> Example:
    """Return a conversation of any task."""
    makers = list(TASKS.values())
    (chosen,) = words.source.choices(makers, [share for share, _ in makers])
    return chosen[1](words)
