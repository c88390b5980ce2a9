"""Pages, docstrings and messages are written in the words of CONTRIBUTING; `make lint` runs it.

Sentences have at most 35 words, start with their subject and use the field's terms. Blocks of code
and the targets of links are not read; lines of code fit beside the navigation.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ffwd import _native

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 35
WIDEST = 110
# Output that a command prints in one line.
WIDE = ('{"[orderId]":',)
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
    r"no texts? belongs?|texts? (?:that )?there are": "accepted text",
    r"this time|by now|at last|for the first time": "history belongs to CHANGELOG",
    r"likewise": "say it",
    r"without a word|in silence": "silently",
    r"works? on\.|everything works on": "remains usable",
    r"in the place of": "instead of",
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

# What stands for good reason: a part of the sentence.
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
            for sentence in re.split(
                r"(?<=[.!?:])(?<!e\.g\.)(?<!i\.e\.) +(?=[\"'(]?[A-Z0-9]|ffwd)", part
            )
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


def named(page: Path) -> str:
    """The page's path, as a test is named."""
    return page.relative_to(ROOT).with_suffix("").as_posix().removeprefix("docs/")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_page_is_written_plainly(page: Path) -> None:
    """No sentence of more than 35 words, no house word, no clause turned inside out."""
    found = faults(page.read_text(encoding="utf-8"))
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_code_fits_beside_the_navigation(page: Path) -> None:
    """No block of code scrolls sideways at 1280 pixels."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^( *```).*?\n(.*?)^\1 *$", text, re.DOTALL | re.MULTILINE)
    lines = [line for _, block in blocks for line in block.splitlines()]
    wide = [line for line in lines if len(line) > WIDEST]
    assert not [line for line in wide if not any(said in line for said in WIDE)]


def python_messages() -> Iterator[str]:
    """The texts of exceptions that are raised, with CODE for what is filled in."""
    for path in [*(ROOT / "ffwd").rglob("*.py"), *(ROOT / "adapters").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                for value in [*node.exc.args, *(word.value for word in node.exc.keywords)]:
                    parts = value.values if isinstance(value, ast.JoinedStr) else [value]
                    yield "".join(
                        str(part.value) if isinstance(part, ast.Constant) else "CODE"
                        for part in parts
                    )


def docstrings() -> Iterator[tuple[str, str]]:
    """Those of the package, the adapters and maskbench, with their places; click's `\\b` apart."""
    for folder in ("ffwd", "adapters", "maskbench"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(
                    node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
                ) and (text := ast.get_docstring(node)):
                    verbatim = re.compile(r"^\x08\n.*?(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
                    line = node.body[0].lineno
                    yield f"{path.relative_to(ROOT)}:{line}", verbatim.sub("", text)


def native_docstrings() -> Iterator[tuple[str, str, bool]]:
    """Those of the core that Python sees: the name, the text, and whether it is called."""
    for name in _native.__all__:
        found = getattr(_native, name)
        if not callable(found):
            continue
        yield name, found.__doc__ or "", inspect.isroutine(found)
        for member, value in vars(found).items() if isinstance(found, type) else ():
            shown = getattr(found, member) if isinstance(value, staticmethod) else value
            called = inspect.isroutine(shown)
            if not member.startswith("__") and (called or inspect.isgetsetdescriptor(shown)):
                yield f"{name}.{member}", shown.__doc__ or "", called


# Comments, raw strings and characters, in which quotes begin nothing, and literals.
RUST = re.compile(
    r'''//[^\n]*|\bb?r(#*)".*?"\1|'(?:\\'|\\[^']+|[^\\'])'|"((?:[^"\\]|\\.)*)"''', re.DOTALL
)


def literals(source: str) -> Iterator[str]:
    """Those of Rust, its module of tests apart, with CODE for what is filled in."""
    source = re.split(r"#\[cfg\(test\)\]\nmod \w+ \{", source, maxsplit=1)[0]
    for found in RUST.finditer(source):
        if found[2]:
            yield re.sub(r"\{[^}]*\}", "CODE", re.sub(r"\\\n\s*", "", found[2]))


def rust_messages() -> Iterator[str]:
    """The literals of the core, files of tests apart."""
    for path in (ROOT / "ffwd/native").rglob("src/**/*.rs"):
        if not ("test" in path.stem or {"target", "fuzz", "tests"} & set(path.parts)):
            yield from literals(path.read_text(encoding="utf-8"))


def test_messages_are_written_plainly() -> None:
    """Those of at least four words, in Python and in Rust."""
    messages = {text for text in [*python_messages(), *rust_messages()] if text.count(" ") >= 3}
    assert len(messages) > 1000
    found = [fault for message in sorted(messages) for fault in faults(message)]
    assert not found, "\n" + "\n".join(found)


def test_docstrings_are_written_plainly() -> None:
    """No sentence of more than 35 words, no house word, no clause turned inside out."""
    written = [*docstrings(), *((name, text) for name, text, _ in native_docstrings())]
    assert len(written) > 2500
    found = [f"{place}: {fault}" for place, text in written for fault in faults(text)]
    assert not found, "\n" + "\n".join(found)


def test_docstrings_of_the_core_have_the_form_of_all_others() -> None:
    """First one sentence on a line of its own, in the imperative for what is called."""
    checked = 0
    for name, text, called in native_docstrings():
        first, *rest = text.split("\n")
        assert first.endswith("."), (name, first)
        assert not rest or not rest[0], (name, first)
        if called:
            checked += 1
            assert re.match(r"[A-Z][a-z]*[a-rt-z] ", first), (name, first)
            assert not re.match(r"(?:The|How|Whether|An|Any|One) ", first), (name, first)
    assert checked > 100


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The model never sees a tokenization that its tokenizer would not produce.", 0),
        ("A text that is let through is valid.", 1),
        ("Who comes while a fork is under way waits.", 2),
        ("Where there is no room for another token, grow by 1/32.", 1),
        ("What does it cost?", 0),
        ("Such a text cannot be gone on with by that matcher.", 1),
        ("A keyword with a typo is told:\n\n```python\nlet_through = 1\n```\n", 1),
        ("| a | b |\n| --- | --- |\n| the page it comes from | nobody |\n", 2),
        ("word " * 35 + "ends.", 1),
        ("word " * 34 + "ends.", 0),
        ("`let through` is [code](let_go_of.md).", 0),
    ],
)
def test_faults_are_seen(text: str, found: int) -> None:
    """And only these."""
    assert len(faults(text)) == found, faults(text)


def test_literals_of_rust_are_found() -> None:
    """Beside quotes that begin none, and behind one of two lines."""
    source = """
#[cfg(test)]
mod testing; // says "nothing
fn f<'a>(of: &'a str) -> &'static str {
    g('"', '\\'', b'"', r#"a "raw" one"#, r"\\", "http://host", "one \\" {0:?} \\
        line")
}
#[cfg(test)]
mod tests {
    const NONE: &str = "of tests";
}
"""
    assert list(literals(source)) == ["http://host", 'one \\" CODE line']
