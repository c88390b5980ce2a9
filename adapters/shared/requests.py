"""The constraints of engines' requests as grammars: a kind and a text."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ffwd import (
    FfwdError,
    Grammar,
    GrammarError,
    choice,
    ebnf,
    gbnf,
    json_schema,
    lark,
    regex,
    structural_tag,
    unused_rules,
)
from ffwd.grammar import Writing

Kind = Literal["json", "json_object", "regex", "grammar", "choice", "structural_tag"]


class EngineRequestError(FfwdError):
    """A request with an unknown kind of grammar, or with one in another form."""


@dataclass(frozen=True)
class GrammarRequest(Writing):
    """A grammar as an engine names it, and how its JSON is written; equal ones share a grammar.

    Attributes:
        kind: `"json"`: a JSON Schema. `"json_object"`: any object; the text is not read.
            `"regex"`: an expression in the dialect of Python's `re`, of the whole output.
            `"grammar"`: Lark, EBNF or GBNF, told apart by `grammar_of_text`. `"choice"`: a JSON
            array of strings. `"structural_tag"`: XGrammar's JSON, in either form.
        text: What the client wrote.

    """

    kind: str
    text: str = ""


def grammar_of(request: GrammarRequest) -> Grammar:
    """Return the grammar of a request; `ffwd.compile` finds its remaining errors.

    Raises:
        EngineRequestError: Another kind, or a choice that is no JSON array of strings.
        GrammarError: A grammar that none of the three notations reads, with `line` and `column`.
        InvalidSchemaError: A schema that is not JSON, with the `pointer`.
        LimitExceededError: A schema that is too large or nested too deep.
        StructuralTagError: A structural tag that is none.

    """
    read = _READERS.get(request.kind)
    if read is None:
        raise EngineRequestError(
            f"there is no grammar of the kind {request.kind!r}, only {', '.join(_READERS)}"
        )
    if not isinstance(request.text, str):
        raise EngineRequestError(
            f"the {request.kind} of a request must be text, not {type(request.text).__name__}"
        )
    return read(request)


def grammar_of_text(text: str) -> Grammar:
    """Return a grammar in any notation: Lark, EBNF as XGrammar reads it, or GBNF.

    Rules that are defined by `::=` are EBNF or GBNF, all others are Lark. EBNF and GBNF are nearly
    the same: a text that is no EBNF is parsed as GBNF. If both fail, the error is that of EBNF.

    Raises:
        GrammarError: The text is none of them, with `line` and `column`.

    """
    if not _defines_by_bnf(text):
        return lark(text)
    grammar: Grammar = ebnf(text)
    try:
        unused_rules(grammar)
    except GrammarError as error:
        other = gbnf(text)
        try:
            unused_rules(other)
        except GrammarError:
            raise error from None
        return other
    return grammar


def _defines_by_bnf(text: str) -> bool:
    for line in text.splitlines():
        name, found, _ = line.partition("::=")
        # In Lark `::=` can only stand in a string, an expression or a comment.
        if found and not any(mark in name for mark in ("#", '"', "/", ":")):
            return True
    return False


def _json(request: GrammarRequest) -> Grammar:
    return json_schema(request.text, **request.options())


def _json_object(request: GrammarRequest) -> Grammar:
    return json_schema({"type": "object"}, **request.options())


def _regex(request: GrammarRequest) -> Grammar:
    return regex(request.text, dialect="python")


def _grammar(request: GrammarRequest) -> Grammar:
    return grammar_of_text(request.text)


def _choice(request: GrammarRequest) -> Grammar:
    try:
        options = json.loads(request.text)
    except (ValueError, RecursionError) as error:
        raise EngineRequestError(f"the choice of a request is not JSON: {error}") from None
    if not isinstance(options, list) or not all(isinstance(option, str) for option in options):
        raise EngineRequestError("the choice of a request must be a JSON array of strings")
    return choice(options)


def _structural_tag(request: GrammarRequest) -> Grammar:
    options = request.options()
    # It has bounds of its own.
    del options["max_whitespace"]
    return structural_tag(request.text, **options)


_READERS: dict[str, Callable[[GrammarRequest], Grammar]] = {
    "json": _json,
    "json_object": _json_object,
    "regex": _regex,
    "grammar": _grammar,
    "choice": _choice,
    "structural_tag": _structural_tag,
}
