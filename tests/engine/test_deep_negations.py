"""Negations within negations beside keywords that leave few values, which is known first."""

import json
import random
from typing import Any

import jsonschema_rs
import pytest
from cases import byte_vocabulary

import ffwd

Schema = dict[str, Any]
WORDS: list[Any] = ["a", "b", "ab", "n1", 1, 2, False, True, None]
LISTED: list[Any] = ["", "a", True, None, [], ["a"], ["b"], ["a", "b"], [1, "a", False], [[], "a"]]


def negated(rng: random.Random, depth: int) -> Schema:
    """Arrays with many keywords, except those of a deeper schema."""

    def few() -> Schema:
        return {"enum": rng.sample(WORDS, rng.randint(1, 4))}

    schema: Schema = {
        "type": "array",
        "items": few(),
        "uniqueItems": True,
        "contains": few(),
        "minContains": rng.randint(1, 2),
        "maxContains": 3,
        "allOf": [{"contains": few(), "minContains": rng.randint(1, 3)}],
    }
    if rng.random() < 0.5:
        schema["prefixItems"] = [few(), few(), few()]
    if rng.random() < 0.5:
        schema["minItems"] = rng.randint(1, 3)
    if rng.random() < 0.5:
        schema["maxItems"] = rng.randint(2, 4)
    if depth:
        schema["not"] = negated(rng, depth - 1)
    return schema


def accepts(grammar: ffwd.CompiledGrammar, value: Any) -> bool:
    matcher = grammar.matcher()
    text = json.dumps(value, separators=(",", ":")).encode()
    return matcher.accept_tokens(list(text)) and matcher.is_accepting()


@pytest.mark.parametrize("beside", [{"enum": LISTED}, {"type": ["string", "boolean", "null"]}])
@pytest.mark.parametrize("seed", range(40))
def test_what_few_values_a_deep_negation_leaves(beside: Schema, seed: int) -> None:
    schema = {"not": negated(random.Random(seed), 2), **beside}
    judge = jsonschema_rs.Draft202012Validator(schema)
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), byte_vocabulary())
    for value in LISTED:
        assert accepts(grammar, value) == judge.is_valid(value), value
