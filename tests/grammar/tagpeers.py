"""XGrammar on whole texts, and texts that nearly belong to a grammar."""

import random
from collections.abc import Iterator
from typing import Any

import xgrammar

END = 256


class Peer:
    """XGrammar's verdicts on one format, over a vocabulary of the 256 bytes."""

    def __init__(self, form: dict[str, Any]) -> None:
        tokens = [bytes([byte]) for byte in range(END)] + [b"</s>"]
        information = xgrammar.TokenizerInfo(tokens, stop_token_ids=[END])
        compiler = xgrammar.GrammarCompiler(information, cache_enabled=False, max_threads=1)
        self.grammar = compiler.compile_structural_tag({"type": "structural_tag", "format": form})
        self.matcher = xgrammar.GrammarMatcher(self.grammar, terminate_without_stop_token=False)

    def accepts(self, text: str) -> bool:
        self.matcher.reset()
        return self.matcher.accept_string(text) and self.matcher.accept_token(END)


def variants(texts: list[str], seed: int, number: int) -> Iterator[str]:
    """The texts, and others that differ from them in a few places."""
    source = random.Random(seed)
    yield from texts
    letters = sorted(set("".join(texts)) | set("x\n "))
    for _ in range(number):
        text = source.choice(texts)
        for _ in range(source.choice([1, 1, 1, 2, 3])):
            at, to = sorted(source.randrange(len(text) + 1) for _ in range(2))
            other = source.choice(texts)
            piece = other[slice(*sorted(source.randrange(len(other) + 1) for _ in range(2)))]
            text = source.choice(
                [
                    text[:at] + source.choice(letters) + text[at:],
                    text[:at] + text[at + 1 :],
                    text[:at] + text[to:],
                    text[:at] + piece[:20] + text[at:],
                    text[:at] + source.choice(letters) + text[at + 1 :],
                ]
            )
        yield text
