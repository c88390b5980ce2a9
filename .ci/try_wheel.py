"""Tries an installed ffwd, with NumPy and nothing else: run it in a folder without a checkout."""

import json
import random
from pathlib import Path

import numpy as np

import ffwd
import ffwd.chat
import ffwd.tokenizer

CHECKOUT = Path(__file__).resolve().parent.parent
SCHEMA = {
    "type": "object",
    "properties": {
        "orderId": {"type": "integer", "minimum": 1, "maximum": 999},
        "status": {"enum": ["new", "paid", "shipped"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 3},
    },
    "required": ["orderId", "status"],
    "additionalProperties": False,
}


def main() -> None:
    """Write a hundred documents under masks, and read each of them back."""
    place = Path(ffwd.__file__).resolve()
    assert CHECKOUT not in place.parents or ".venv" in place.parts, f"the checkout's own: {place}"
    tokens = [bytes([byte]) for byte in range(256)] + [b'"orderId"', b'": "', b"paid", None]
    vocabulary = ffwd.Vocabulary(tokens, eos_token_ids=[len(tokens) - 1], encode=list)
    compiled = ffwd.compile(ffwd.json_schema(SCHEMA, whitespace="compact"), vocabulary)
    compiled = ffwd.CompiledGrammar.from_bytes(compiled.to_bytes(), vocabulary)
    bitmask = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    rng = random.Random(0)
    forced = 0
    for _ in range(100):
        matcher = compiled.matcher(max_tokens=60)
        while not matcher.is_terminated():
            if more := matcher.fast_forward_tokens():
                forced += len(more)
                matcher.accept_tokens(more)
                continue
            matcher.fill_bitmask(bitmask, 0)
            logits = np.zeros(vocabulary.vocab_size)
            ffwd.apply_token_bitmask_inplace(logits, bitmask[0])
            matcher.accept_token(rng.choice(np.flatnonzero(np.isfinite(logits)).tolist()))
        text = b"".join(vocabulary.token_bytes(token) or b"" for token in matcher.tokens)
        document = json.loads(text)
        assert 1 <= document["orderId"] <= 999, document
        assert document["status"] in SCHEMA["properties"]["status"]["enum"], document
    assert forced > 1000, forced
    print(f"ffwd {ffwd.__version__} of {place.parent}: 100 documents, {forced} forced tokens")


if __name__ == "__main__":
    main()
