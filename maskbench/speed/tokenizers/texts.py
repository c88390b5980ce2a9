"""Texts to encode: prose, code and many languages from Python's own files, and adversarial ones."""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Iterator
from pathlib import Path

MEGABYTE = 1_000_000

_MODULES = (
    "argparse", "ast", "asyncio.base_events", "collections", "concurrent.futures.process",
    "configparser", "csv", "dataclasses", "datetime", "difflib", "doctest", "email.message",
    "enum", "fractions", "ftplib", "functools", "http.client", "imaplib", "inspect", "ipaddress",
    "json.decoder", "logging", "mailbox", "multiprocessing.managers", "optparse", "pathlib", "pdb",
    "pickle", "pickletools", "platform", "plistlib", "pydoc", "random", "shutil", "smtplib",
    "socket", "sqlite3.dump", "ssl", "statistics", "subprocess", "tarfile", "tempfile", "textwrap",
    "threading", "tokenize", "traceback", "turtle", "typing", "unittest.case", "unittest.mock",
    "urllib.parse", "urllib.request", "uuid", "warnings", "weakref", "xml.dom.minidom", "zipfile",
)  # fmt: skip

# The first article of the Universal Declaration of Human Rights, a language a line.
_LANGUAGES = Path(__file__).with_name("languages.txt")


def builtin(size: int = MEGABYTE) -> dict[str, str]:
    """Return prose, code and text in many languages, about `size` bytes of each."""
    return {
        "prose": _take(_prose(), size),
        "code": _take(_code(), size),
        "languages": _take(_languages(), size),
    }


def read(path: Path, size: int = MEGABYTE) -> str:
    """Return the start of a file without bytes that are not UTF-8."""
    with path.open("rb") as file:
        return file.read(size).decode(errors="ignore")


def adversarial(size: int) -> dict[str, str]:
    """Return texts that make careless implementations quadratic or overflow their stack."""
    return {
        "a": "a" * size,
        "spaces, a letter": " " * (size - 1) + "a",
        "newlines": "\n" * size,
        "a newline, spaces": "\n" + " " * (size - 1),
        "digits": "1234567890" * (size // 10),
        "no cut": _letters(size),
    }


def _take(parts: Iterator[str], size: int) -> str:
    taken: list[str] = []
    left = size
    for part in parts:
        data = part.encode()[:left]
        taken.append(data.decode(errors="ignore"))
        left -= len(data)
        if left == 0:
            break
    return "".join(taken)


def _prose() -> Iterator[str]:
    topics = importlib.import_module("pydoc_data.topics").topics
    yield from topics.values()
    for name in _MODULES:
        yield inspect.getdoc(importlib.import_module(name)) or ""
        for _, value in inspect.getmembers(importlib.import_module(name)):
            if inspect.isclass(value) or inspect.isroutine(value):
                yield (inspect.getdoc(value) or "") + "\n\n"


def _code() -> Iterator[str]:
    for name in _MODULES:
        yield inspect.getsource(importlib.import_module(name))


def _languages() -> Iterator[str]:
    """Return paragraphs of a few dozen words of one language, in random order."""
    generator = random.Random(0)
    articles = _LANGUAGES.read_text(encoding="utf-8").splitlines()
    while True:
        words = generator.choice(articles).split(" ")
        yield " ".join(generator.choices(words, k=generator.randint(5, 60))) + ".\n"


def _letters(size: int) -> str:
    return "".join(random.Random(0).choices("etaoinshrdlucmfwypvbgkjqxz", k=size))
