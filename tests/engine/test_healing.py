"""Where a text was cut: how many of its last tokens are others once it goes on.

The measure is brute force: encode the text up to the cut, encode the whole text, and count the
tokens of the first that the second does not begin with.
"""

import json
import random
from functools import cache
from pathlib import Path

import pytest
from cases import real_vocabulary, token_bytes
from realtokenizers import load

import ffwd.tokenizer
from ffwd.tokenizer import Bpe

TOKENIZERS = ("llama3", "tekken", "qwen", "deepseek", "gpt2", "mistral-v3")
ROOT = Path(__file__).resolve().parents[2]
CUTS = 250
LENGTH = 1500


@cache
def texts() -> tuple[str, ...]:
    """Prose and code of this project, and documents of the built-in corpus in three layouts."""
    written = [
        (ROOT / name).read_text(encoding="utf-8")
        for name in ("docs/architecture.md", "maskbench/conformance/gates/walks.py", "CHANGELOG.md")
    ]
    lines = (ROOT / "maskbench/corpus/builtin.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines[::6]:
        for test in json.loads(line)["tests"][:3]:
            written += (
                json.dumps(test["data"], ensure_ascii=False, **layout)
                for layout in ({"separators": (",", ":")}, {}, {"indent": 2})
            )
    return tuple(text for text in written if len(text) > 1)


def cuts(seed: int):
    """Texts and a place in each that is inside."""
    source = random.Random(seed)
    for _ in range(CUTS):
        text = source.choice(texts())
        start = source.randrange(max(1, len(text) - LENGTH))
        text = text[start : start + LENGTH]
        yield text, source.randrange(1, len(text))


def bpe_of(name: str) -> Bpe:
    bpe = real_vocabulary(name).bpe
    assert isinstance(bpe, Bpe)
    return bpe


@cache
def encoder_of(name: str):
    return ffwd.tokenizer.text_encoder(load(name).tokenizer)


def needed(before: list[int], whole: list[int]) -> int:
    """How many of the last tokens before a cut are not those of the whole text."""
    same = 0
    for one, other in zip(before, whole, strict=False):
        if one != other:
            break
        same += 1
    return len(before) - same


def where(text: str, cut: int) -> str:
    left, right = text[cut - 1], text[cut]
    if left.isalnum() and right.isalnum():
        return "inside a word"
    if left.isalnum():
        return "after a word"
    if right.isalnum():
        return "before a word"
    return "between others"


def encodings(name: str, text: str, cut: int) -> tuple[list[int], list[int]]:
    encode = encoder_of(name)
    return encode(text[:cut].encode()), encode(text.encode())


@pytest.mark.parametrize("name", TOKENIZERS)
def test_how_many_tokens_are_others_once_a_text_goes_on(name: str) -> None:
    """Two at most, except inside a word and in runs of punctuation; there up to four."""
    found: dict[str, list[int]] = {}
    for text, cut in cuts(1):
        count = needed(*encodings(name, text, cut))
        found.setdefault(where(text, cut), []).append(count)
    worst = {place: max(counts) for place, counts in found.items()}
    assert worst["after a word"] == 0
    assert worst["before a word"] <= 1
    assert worst["between others"] <= 3
    assert worst["inside a word"] <= 4
    everything = [count for counts in found.values() for count in counts]
    assert sum(count <= 2 for count in everything) >= 0.97 * len(everything)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_what_healing_keeps_is_the_beginning_of_the_whole_text(name: str) -> None:
    bpe = bpe_of(name)
    pieces = token_bytes(name)
    for text, cut in cuts(2):
        before, whole = encodings(name, text, cut)
        for limit in (2, len(before)):
            kept, rest = bpe.heal(before, max_rollback=limit)
            assert before[: len(kept)] == kept
            assert len(before) - len(kept) <= limit
            spelled = b"".join(pieces[token] or b"" for token in before[len(kept) :])
            assert rest == spelled
            if needed(before, whole) <= limit:
                assert whole[: len(kept)] == kept, (text[max(0, cut - 20) : cut + 20], cut)
