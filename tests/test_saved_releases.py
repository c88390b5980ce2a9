"""Saved bytes of each release are read as they were meant, or refused by the number of the format.

tests/saved/ has a file for each release, which that release wrote:
`python tests/test_saved_releases.py > tests/saved/X.Y.Z.json`.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import ffwd
from ffwd import CompiledGrammar, Matcher, SerializationError, Vocabulary

ROOT = Path(__file__).resolve().parent.parent
RELEASES = sorted(
    (path.stem for path in (ROOT / "tests/saved").glob("*.json")),
    key=lambda release: [int(part) for part in release.split(".")],
)
OBJECT = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": [1, "ab"]}},
    "required": ["a"],
    "additionalProperties": False,
}
LARK = 'start: "(" (start | WORD)* ")"\nWORD: /[a-c]+/\n%ignore " "'
# The sources of the saved grammars, with options that mean what they meant in each release; and the
# text of each saved matcher with one that continues it.
SOURCES: dict[str, tuple[ffwd.Grammar, bytes, bytes]] = {
    "json_schema": (
        ffwd.json_schema(OBJECT, whitespace="flexible", numbers="any"),
        b'{ "a" : 2.',
        b'0, "b":1 }',
    ),
    "json_schema with options": (
        ffwd.json_schema(
            {"type": "array", "items": {"$ref": "http://x/y"}},
            registry={"http://x/y": {"type": "boolean"}},
            property_order="any",
            numbers="any",
            indent=2,
        ),
        b"[\n  true",
        b",\n  false\n]",
    ),
    # The default options of 0.2.0, which its bytes leave out.
    "json_schema of 0.2.0": (
        ffwd.json_schema(
            OBJECT,
            whitespace="consistent",
            numbers="plain",
            escapes="canonical",
            property_order="declared",
        ),
        b'{"a": 2',
        b', "b": 1}',
    ),
    "regex": (ffwd.regex("[a-c]{2,}(-[a-c]+)*"), b"ab-", b"c-abc"),
    "lark": (ffwd.lark(LARK), b"(ab (", b"c) a)"),
    "choice": (ffwd.choice(["ab", "true", "trueab"]), b"true", b"ab"),
    "tokens": (
        ffwd.token("<think>")
        + ffwd.text_until("!")
        + ffwd.json_schema({"type": "boolean"}, whitespace="flexible"),
        b"\xffab!",
        b"true",
    ),
}


@dataclass(frozen=True)
class Saved:
    """The bytes that a release wrote, and its vocabulary."""

    format: int
    vocabulary: Vocabulary
    controls: dict[str, int]
    grammars: dict[str, bytes]
    matchers: dict[str, bytes]

    def ids(self, text: bytes) -> list[int]:
        """One token for each byte; 255 stands for the control token."""
        return [self.controls["<think>"] if byte == 255 else byte for byte in text]


def read(release: str) -> Saved:
    """The file of a release."""
    data = json.loads((ROOT / f"tests/saved/{release}.json").read_text(encoding="utf-8"))
    assert data["release"] == release
    made = data["vocabulary"]
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    tokens += [None if text is None else text.encode() for text in made["tokens"]]

    def saved(kind: str) -> dict[str, bytes]:
        return {name: base64.b64decode(each[kind]) for name, each in data["grammars"].items()}

    return Saved(
        format=data["format"],
        vocabulary=Vocabulary(
            tokens, eos_token_ids=made["eos_token_ids"], token_names=made["token_names"]
        ),
        controls=made["token_names"],
        grammars=saved("grammar"),
        matchers=saved("matcher"),
    )


def number(data: bytes) -> int:
    """The number of the format, in the header."""
    return int.from_bytes(data[5:7], "little")


def format_of_this_release() -> int:
    saved = read(RELEASES[-1])
    return number(ffwd.compile(ffwd.choice(["a"]), saved.vocabulary).to_bytes())


def mask(matcher: Matcher) -> bytes:
    row = ffwd.allocate_bitmask(1, matcher.grammar.vocabulary.vocab_size)
    matcher.fill_bitmask(row, 0)
    return row.tobytes()


def check_refused(load: Callable[[], object], found: int) -> None:
    """By both numbers, with what to do."""
    with pytest.raises(SerializationError) as caught:
        load()
    assert caught.value.reason == "version"
    assert str(caught.value) == (
        f"the bytes have the format {found}, and this version of ffwd reads "
        f"{format_of_this_release()}: compile the grammar again from its source, and save it again"
    )


def check_read(saved: Saved, name: str) -> None:
    """The loaded grammar and matcher have the masks of the source that is compiled now."""
    source, text, rest = SOURCES[name]
    compiled = ffwd.compile(source, saved.vocabulary)
    loaded = CompiledGrammar.from_bytes(saved.grammars[name], saved.vocabulary)
    pairs = [
        (loaded.matcher(), compiled.matcher(), text + rest),
        (Matcher.from_bytes(saved.matchers[name], loaded), compiled.matcher(), rest),
    ]
    assert pairs[1][0].tokens == saved.ids(text)
    assert pairs[1][1].accept_tokens(saved.ids(text))
    for loaded_matcher, matcher, following in pairs:
        for token in [*saved.ids(following), saved.vocabulary.eos_token_ids[0]]:
            assert mask(loaded_matcher) == mask(matcher)
            assert loaded_matcher.accept_token(token)
            assert matcher.accept_token(token)
        assert loaded_matcher.is_terminated()


@pytest.mark.parametrize(
    ("release", "name"),
    [(release, name) for release in RELEASES for name in read(release).grammars],
)
def test_saved_bytes_are_read_as_they_were_meant_or_refused(release: str, name: str) -> None:
    saved = read(release)
    grammar, matcher = saved.grammars[name], saved.matchers[name]
    assert number(grammar) == number(matcher) == saved.format
    if saved.format == format_of_this_release():
        check_read(saved, name)
        return
    check_refused(lambda: CompiledGrammar.from_bytes(grammar, saved.vocabulary), saved.format)
    # A matcher belongs to a grammar that this release compiled.
    compiled = ffwd.compile(SOURCES[name][0], saved.vocabulary)
    check_refused(lambda: Matcher.from_bytes(matcher, compiled), saved.format)


def test_each_release_has_its_bytes() -> None:
    """Of the grammars above; the current format is among them, so both branches run."""
    formats = {release: read(release).format for release in RELEASES}
    assert formats["0.1.0"] == 1
    assert format_of_this_release() in formats.values()
    for release in RELEASES:
        assert SOURCES.keys() - read(release).grammars.keys() <= {"json_schema of 0.2.0"}
    assert read(RELEASES[-1]).grammars.keys() == SOURCES.keys()


def test_the_page_of_versions_has_the_formats() -> None:
    page = (ROOT / "docs/versioning.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+\.\d+\.\d+) \| (\d+) \|$", page, re.MULTILINE)
    assert dict(rows) == {release: str(read(release).format) for release in RELEASES}


def written() -> str:
    """The file of this release, with the vocabulary of the last one."""
    last = json.loads((ROOT / f"tests/saved/{RELEASES[-1]}.json").read_text(encoding="utf-8"))
    saved = read(RELEASES[-1])
    grammars = {}
    for name, (source, text, _) in SOURCES.items():
        compiled = ffwd.compile(source, saved.vocabulary)
        matcher = compiled.matcher()
        assert matcher.accept_tokens(saved.ids(text))
        both = {"grammar": compiled.to_bytes(), "matcher": matcher.to_bytes()}
        grammars[name] = {kind: base64.b64encode(data).decode() for kind, data in both.items()}
    made = {
        "release": ffwd.__version__,
        "format": format_of_this_release(),
        "vocabulary": last["vocabulary"],
        "grammars": grammars,
    }
    return json.dumps(made, indent=2)


if __name__ == "__main__":
    print(written())
