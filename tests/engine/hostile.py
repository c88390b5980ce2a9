"""What the tests of bad input run in a process of its own, so that a hang or a crash is seen."""

import json
import random
import resource
from typing import Any

import numpy as np
from cases import byte_vocabulary, mask_bits

import ffwd

MEMORY_BYTES = 4 << 30


def limit_memory() -> None:
    """Growth without bound ends the process, and with that the test."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def describe(kind: str, content: Any) -> ffwd.Grammar:
    if kind == "schema":
        return ffwd.json_schema(content)
    if kind == "regex":
        return ffwd.regex(content)
    assert kind == "choice"
    return ffwd.choice(content)


def use(kind: str, content: Any, begin: bytes = b"") -> dict[str, Any]:
    """Compiles and walks a little; the outcome: `error` with its attributes, or None if all went.

    `begin`: what a text begins with, as far as it is accepted.
    """
    try:
        matcher = ffwd.compile(describe(kind, content), byte_vocabulary()).matcher()
        accepted = matcher.validate_tokens(list(begin))
        matcher.accept_tokens(list(begin[:accepted]))
        source = random.Random(1)
        for _ in range(40):
            allowed = np.flatnonzero(mask_bits(matcher)[:256])
            matcher.forced_bytes()
            matcher.fast_forward_tokens()
            if not len(allowed):
                assert matcher.is_accepting(), "a dead end"
                break
            assert matcher.accept_token(int(source.choice(allowed)))
    except ffwd.FfwdError as error:
        attributes = json.loads(json.dumps(vars(error))) if hasattr(error, "__dict__") else {}
        return {"error": type(error).__name__, "message": str(error), **attributes}
    return {"error": None, "accepted": accepted, "count": matcher.num_tokens}
