"""Texts with fields, each of which is a grammar."""

import string

from ffwd.grammar._errors import grammar_error
from ffwd.grammar._grammar import Grammar, GrammarLike, as_grammar
from ffwd.grammar._sequence import lit, seq
from ffwd.grammar._spans import capture


def template(text: str, /, **fields: GrammarLike) -> Grammar:
    r"""Return a text with captured fields, as in an f-string; each field is a grammar.

        template("Name: {name}\nAge: {age}", name=regex("[A-Z][a-z]+"), age=regex("[0-9]+"))

    Args:
        text: The text. `{name}` is a field, `{{` and `}}` are braces. A field may be repeated:
            its grammar is repeated, and each of these texts is captured.
        fields: The grammar of each field, or a verbatim text.

    Raises:
        GrammarError: A brace without its counterpart, a field that is missing in the arguments
            or in the text, or one with an index, an attribute, a conversion or a format; with
            `line` and `column`.
        TypeError: A field is neither a grammar nor a str.

    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    grammars = {
        name: capture(name, as_grammar(value, f"the field {name!r}"))
        for name, value in fields.items()
    }
    parts: list[GrammarLike] = []
    unused = dict.fromkeys(grammars)
    for piece, name in _pieces(text):
        if piece:
            parts.append(lit(piece))
        if name is None:
            continue
        if name not in grammars:
            what = f"the field {name!r} is not given" if name else "a field needs a name"
            raise _error(text, "{" + name, f"{what}; `{{{{` is a brace")
        unused.pop(name, None)
        parts.append(grammars[name])
    if unused:
        raise grammar_error(f"the text has no field {', '.join(map(repr, unused))}")
    return seq(*parts)


def _pieces(text: str) -> list[tuple[str, str | None]]:
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise grammar_error(f"the template cannot be read: {error}; `{{{{` is a brace") from None
    for _, name, specification, conversion in pieces:
        if name is not None and (specification or conversion or not (name or "_").isidentifier()):
            raise _error(
                text, "{" + name, f"the field {name!r} must be a plain name, without `!`, `:`, `.`"
            )
    return [(piece, name) for piece, name, _, _ in pieces]


def _error(text: str, place: str, message: str) -> Exception:
    index = max(text.find(place), 0)
    before = text[:index]
    return grammar_error(message, line=before.count("\n") + 1, column=index - before.rfind("\n"))
