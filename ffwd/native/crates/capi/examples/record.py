"""Writes a JSON record token by token: forced tokens first, otherwise the lowest allowed one.

With the paths of the library, of a tokenizer.json and of a schema:

    python examples/record.py LIBRARY tokenizer.json schema.json
"""

import sys
from ctypes import c_void_p
from pathlib import Path

from ffwdc import C, CallError, CMatcher


def lowest(mask: list[int]) -> int:
    """Return the lowest token of a mask."""
    word = next(at for at, bits in enumerate(mask) if bits)
    bits = mask[word]
    return 32 * word + (bits & -bits).bit_length() - 1


def tokens_of(c: C, grammar: c_void_p, num_words: int) -> list[int]:
    """Return the tokens of a record, at most 1,000."""
    matcher = CMatcher(c, grammar, num_words, max_tokens=1000)
    written: list[int] = []
    while not matcher.is_terminated:
        tokens = matcher.forced_tokens()
        if not tokens and matcher.is_accepting:
            break  # An end token would do, too.
        tokens = tokens or [lowest(matcher.mask())]
        if not matcher.accept_all(tokens):
            raise AssertionError("an allowed token was refused")
        written += tokens
    matcher.free()
    return written


def main(library: str, tokenizer: str, schema: str) -> None:
    """Print the record, and on standard error the number of its tokens."""
    c = C(Path(library))
    vocabulary = c.vocabulary_from_file(tokenizer)
    grammar = c.compile(vocabulary, "json_schema", Path(schema).read_bytes(), whitespace=2)
    tokens = tokens_of(c, grammar, c.library.ffwd_vocabulary_mask_words(vocabulary))
    print(b"".join(c.token(vocabulary, token) for token in tokens).decode())
    print(len(tokens), "tokens", file=sys.stderr)
    c.library.ffwd_grammar_free(grammar)
    c.library.ffwd_vocabulary_free(vocabulary)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: record.py LIBRARY TOKENIZER SCHEMA")
    try:
        main(*sys.argv[1:])
    except CallError as error:
        sys.exit(f"{error.status}: {error}")
