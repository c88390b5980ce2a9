"""What many branches of `anyOf` evaluate, any number of which may hold, against jsonschema-rs."""

import json
import random
from typing import Any

import jsonschema_rs
import pytest
from cases import byte_vocabulary, mask_bits

import ffwd

ITEMS: list[dict[str, Any]] = [
    {"type": "string"},
    {"type": ["integer", "null"]},
    {"minimum": 1},
    {"maximum": 2},
    {"enum": ["a", 1]},
    {},
]


def branches(source: random.Random, keyword: str, count: int) -> list[dict[str, Any]]:
    if keyword == "unevaluatedItems":
        return [
            {"prefixItems": [source.choice(ITEMS) for _ in range(source.randint(1, 4))]}
            for _ in range(count)
        ]
    # Names that all branches share, each with a schema of its own.
    return [{"properties": {name: source.choice(ITEMS) for name in "pq"}} for _ in range(count)]


@pytest.mark.parametrize("keyword", ["unevaluatedItems", "unevaluatedProperties"])
@pytest.mark.parametrize("count", [3, 9, 24])
def test_many_branches(keyword: str, count: int) -> None:
    """Of branches that evaluate as much as others not every set is looked at on its own."""
    judged = {True: 0, False: 0}
    for seed in range(12):
        source = random.Random(seed)
        schema = {
            "type": "array" if keyword == "unevaluatedItems" else "object",
            "anyOf": branches(source, keyword, count),
            keyword: source.choice([False, {"type": "string"}]),
        }
        validator = jsonschema_rs.validator_for(schema)
        for order in ("declared", "any"):
            grammar = ffwd.json_schema(schema, whitespace="compact", property_order=order)
            compiled = ffwd.compile(grammar, byte_vocabulary())
            assert len(compiled.shortest_completion()) == 3
            for _ in range(25):
                drawn = [source.choice(["a", "b", 0, 1, 3, None]) for _ in range(4)]
                names = [name for name in "pqr" if source.random() < 0.6]
                instance: Any = (
                    drawn[: source.randint(0, 4)]
                    if keyword == "unevaluatedItems"
                    else dict(zip(names, drawn, strict=False))
                )
                matcher = compiled.matcher()
                accepted = True
                for byte in json.dumps(instance, separators=(",", ":")).encode():
                    allowed = bool(mask_bits(matcher)[byte])
                    assert matcher.accept_token(byte) == allowed
                    if not allowed:
                        accepted = False
                        break
                accepted = accepted and matcher.is_accepting()
                assert accepted == validator.is_valid(instance), (seed, order, instance, schema)
                judged[accepted] += 1
    assert min(judged.values()) > 25, judged
