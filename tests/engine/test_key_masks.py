"""Masks within keys, where earlier keys, patterns of names and tokens' ends meet."""

import random
from typing import Any

import pytest
from cases import real_vocabulary

import ffwd

NOTHING: dict[str, Any] = {"type": "object", "required": ["a"], "properties": {"a": False}}
SCHEMAS: dict[str, dict[str, Any]] = {
    "numbers are no keys": {"patternProperties": {"^\\d+$": False}},
    "numbers have no value": {"patternProperties": {"^\\d+$": NOTHING}},
    "a kind for numbers": {
        "patternProperties": {"^\\d+$": {"type": "integer"}},
        "additionalProperties": {"type": "string"},
    },
    "kinds that overlap": {
        "patternProperties": {"^1": {"type": ["integer", "string"]}, "a$": {"type": "string"}},
    },
    "declared names": {
        "properties": {"1": {"type": "integer"}, "1ab": {"type": "string"}},
        "patternProperties": {"^\\d+$": {"type": "integer"}, "b$": False},
    },
    "names by a pattern": {"propertyNames": {"pattern": "^[1a']*$"}},
}
KEYS = ["1", "1'", "1ab", "12", "1a", "a1", "a", "'", "ab", "b", ""]


@pytest.mark.parametrize("order", ["declared", "any"])
@pytest.mark.parametrize("name", SCHEMAS)
def test_masks_of_keys_are_what_is_accepted(name: str, order: Any) -> None:
    """At every byte of objects whose keys begin alike, with all masks of the grammar known.

    Masks of keys share what follows them: each closing quote, with all that a token has after it.
    """
    vocabulary = real_vocabulary("llama3")
    texts = [vocabulary.token_bytes(token) for token in range(vocabulary.vocab_size)]
    single = {text: token for token, text in enumerate(texts) if text and len(text) == 1}
    ending = [token for token, text in enumerate(texts) if text and b'"' in text]
    schema = {"type": "object"} | SCHEMAS[name]
    grammar = ffwd.json_schema(schema, whitespace="compact", property_order=order)
    compiled = ffwd.compile(grammar, vocabulary)
    rng = random.Random(name)
    compared = 0
    for _ in range(6):
        matcher = compiled.matcher()
        keys = rng.sample(KEYS, 4)
        text = "{" + ",".join(f'"{key}":{rng.choice(["1", chr(34) * 2])}' for key in keys) + "}"
        for byte in text.encode():
            allowed = set(matcher.allowed_token_ids())
            for token in [*ending, *rng.sample(range(vocabulary.vocab_size), 100)]:
                fork = matcher.fork()
                assert fork.accept_token(token) == (token in allowed), (text, texts[token])
                compared += 1
            if not matcher.accept_token(single[bytes([byte])]):
                break
    assert compared > 10_000
