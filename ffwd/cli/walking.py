"""From a text to the place of a grammar where it ends."""

import click

from ffwd import CompiledGrammar, Matcher
from ffwd.cli import exits
from ffwd.cli.output import Failure, shown
from ffwd.cli.tokenizers import ShownTokens


def encoded(text: str, tokens: ShownTokens) -> list[int]:
    """Return the tokens of a text as in an output: without a space before it or composition.

    An argument of the command line may contain bytes that are not UTF-8, which byte tokens encode.
    """
    if tokens.tokenizer is None:
        return list(text.encode("utf-8", "surrogateescape"))
    try:
        return tokens.vocabulary.encode(text.encode())
    except UnicodeEncodeError as error:
        raise click.UsageError(f"TEXT is not UTF-8 from character {error.start} on") from error


def at(compiled: CompiledGrammar, text: str, ids: str | None, tokens: ShownTokens) -> Matcher:
    """Return a matcher after a text, or after token ids in the form `1,2,3`.

    Raises `Failure` with the reasons where the grammar refuses it.
    """
    if text and ids is not None:
        raise click.UsageError("give a text or --ids, not both")
    given = encoded(text, tokens) if ids is None else parse_ids(ids)
    matcher = compiled.matcher()
    good = matcher.validate_tokens(given)
    if good == len(given):
        matcher.accept_tokens(given)
        return matcher
    matcher.accept_tokens(given[:good])
    before = b"".join(tokens.vocabulary.token_bytes(token) or b"" for token in given[:good])
    explanation = matcher.explain(given[good])
    raise Failure(
        f"the grammar refuses the text after {len(before)} bytes, {shown(before[-40:])}:\n"
        f"{explanation.answer}",
        exit_code=exits.BAD,
        kind="RefusedText",
        data={"good_tokens": good, "good_bytes": len(before), "token": tokens.data(given[good])},
    )


def parse_ids(text: str) -> list[int]:
    """Return token ids between commas or spaces."""
    try:
        return [int(part) for part in text.replace(",", " ").split()]
    except ValueError as error:
        raise click.UsageError(f"--ids takes token ids, such as 1,2,3: {error}") from error
