"""Long lists of texts beside a pattern: their masks are found within the default limits."""

import random

from cases import mask_bits

import ffwd


def test_thousands_of_long_texts_beside_a_pattern() -> None:
    """The first mask has the beginnings of the texts that match, and the texts themselves."""
    chosen = random.Random(5)
    values = [
        "".join(chr(chosen.randrange(0x4E00, 0x9FA5)) for _ in range(60)) for _ in range(2000)
    ]
    values[::2] = [value + "x" for value in values[::2]]
    tokens = [*(bytes([byte]) for byte in range(256)), *(value.encode() for value in values)]
    vocabulary = ffwd.Vocabulary([*tokens, None], eos_token_ids=[len(tokens)])
    schema = {"enum": values, "pattern": "^[^x]*$"}
    grammar = ffwd.compile(ffwd.json_schema(schema, whitespace="compact"), vocabulary)
    matcher = grammar.matcher()
    assert matcher.accept_token(ord('"'))
    allowed = mask_bits(matcher)
    matching = [value.encode() for value in values if "x" not in value]
    first = {value[0] for value in matching}
    for token, text in enumerate(tokens):
        expected = text[0] in first if len(text) == 1 else text in matching
        assert allowed[token] == expected, text
