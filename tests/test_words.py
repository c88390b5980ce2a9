"""README and docs/ are written in the words of CONTRIBUTING; `make lint` runs this file, too.

Sentences have at most 35 words, start with their subject and use the field's terms. Code, links'
targets and quoted console output are not read.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 35
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]

# Each expression with what to write instead. Case does not count.
PHRASES = {
    r"lets? go of|is let go|are let go": "evict, free",
    r"texts? in progress|what has come so far": "the output so far, the sequence",
    r"(?:what|tokens? that|tokens?) may come|may come (?:next|after)": "the allowed set, allowed",
    r"(?:is|be|are) answered with|ends? in an error": "raises, returns an error",
    r"lets? \w+ through|let through": "accept, reject",
    r"cut into tokens|spell|spells|spelled|spelt": "tokenize, encode, write",
    r"under way": "concurrent",
    r"dear|dearer|dearest": "expensive",
    r"is not there|are not there": "missing, unsupported",
    r"(?:go|goes|gone|going|went) on with": "continue",
    r"nobody|somebody": "name who it is, or use the passive",
    r"is told|are told|being told": "is reported",
    r"so many|so much": "name the number",
    r"readings? of the text": "parse",
    r"texts? (?:there are|that there are|belongs?)": "accepted text",
    r"this time|by now|at last|for the first time": "history belongs to CHANGELOG",
    r"likewise": "say it",
    r"without a word|in silence": "silently",
    r"works? on\.|everything works on": "remains usable",
    r"no room|in the place of": "full; instead of",
    r"that all texts begin|where no text has been": "the longest shared prefix",
    r"has to have|have to have|is to be|are to be": "must",
    r"of the reader's own|of your own affair": "your",
    r"make the list of": "list",
    r"thereof|wherefrom|whereof": "of it",
}
# Sentences that open with a detached clause; questions do.
OPENINGS = re.compile(r"(?:Of|What|Who|Whose|Whoever|Where)\b(?!.*\?$)")
STRANDED = re.compile(r"\b(?:with|of|for|from|into|about|between|behind|beside)[.;:]?$")
HOUSE = re.compile("|".join(rf"\b(?:{phrase})(?!\w)" for phrase in PHRASES), re.IGNORECASE)

# What stands for good reason: the text of a sentence, or of a part of it.
ALLOWED: tuple[str, ...] = ()


def prose(text: str) -> Iterator[str]:
    """Paragraphs, items of lists, headings and cells of tables, without code."""
    text = re.sub(r"^---\n.*?^---\n", "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^( *)(```|~~~).*?^\1\2 *$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^(?: {4}|\t)(?! *[-*\d]).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"(`+)(.+?)\1", "CODE", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*|\*(.+?)\*", r"\1\2", text, flags=re.DOTALL)
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        row = stripped.startswith("|")
        starts = re.match(r"(?:[-*]|\d+\.|#+|>) +", stripped)
        if (row or starts or not stripped) and block:
            yield " ".join(block)
            block = []
        if row:
            yield from (cell.strip() for cell in re.split(r"(?<!\\)\|", stripped)[1:-1])
        elif starts and stripped.startswith("#"):
            yield stripped[starts.end() :]
        elif stripped:
            block.append(stripped[starts.end() :] if starts else stripped)


def sentences(text: str) -> Iterator[str]:
    """Those of prose, each on one line."""
    for part in prose(text):
        # Not after an abbreviation, and only before what a sentence starts with.
        yield from (
            sentence.strip()
            for sentence in re.split(r"(?<=[.!?:])(?<!e\.g\.)(?<!i\.e\.) +(?=[\"'(]?[A-Z0-9]|ffwd)", part)
            if re.search(r"[A-Za-z]", sentence)
        )


def faults(text: str) -> list[str]:
    """What is wrong with each sentence of a text, with the sentence."""
    found = []
    for sentence in sentences(text):
        if any(allowed in sentence for allowed in ALLOWED):
            continue
        count = len(re.findall(r"[^\s]*\w[^\s]*", sentence))
        if count > LONGEST:
            found.append(f"{count} words: {sentence}")
        if house := HOUSE.search(sentence):
            found.append(f"{house[0]!r}: {sentence}")
        if OPENINGS.match(sentence):
            found.append(f"opens with a detached clause: {sentence}")
        if count > 3 and STRANDED.search(sentence.rstrip(")")):
            found.append(f"ends in a preposition: {sentence}")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_is_written_plainly(page: Path) -> None:
    """No sentence of more than 35 words, no house word, no clause turned inside out."""
    found = faults(page.read_text(encoding="utf-8"))
    assert not found, "\n" + "\n".join(found)
