"""`ffwd explain`: the reason of a refusal, and the allowed continuations."""

from pathlib import Path
from typing import Any

import click

from ffwd import CompiledGrammar, Explanation, FfwdError
from ffwd.cli import exits
from ffwd.cli.grammars import GrammarSource, takes_grammar
from ffwd.cli.output import Failure, as_text, command, note, printable, write_json
from ffwd.cli.tokenizers import ShownTokens, vocabulary_option
from ffwd.cli.walking import encoded


@command()
@takes_grammar
@click.argument("text", default="")
@vocabulary_option
@click.option("--token", type=click.IntRange(0), help="Ask about this token after TEXT.")
@click.option("--next", "next_text", help="Ask about this text after TEXT.")
@click.option(
    "--view",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write a picture of the text, an HTML file: what was allowed at each token.",
)
@click.option(
    "--graph",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write a picture of the automaton's states that the text visits, an SVG file.",
)
def explain(
    source: GrammarSource,
    text: str,
    tokenizer_source: str | None,
    token: int | None,
    next_text: str | None,
    view: Path | None,
    graph: Path | None,
    as_json: bool,
) -> None:
    """Explain why TEXT is refused, or list what is allowed after it.

    If GRAMMAR rejects TEXT, the output names the first rejected byte, the JSON pointers or rules
    that forbid it, and the allowed alternatives. Otherwise it lists the allowed continuations.

    \b
    Examples:
      ffwd explain schema.json '{"name": 3'
      ffwd explain schema.json '{"name": "Ada"' --next '}'
      ffwd explain grammar.lark 'a = ' --tokenizer path/of/a/model --token 17
      ffwd explain schema.json '{"name": "Ada"}' --view text.html
      ffwd explain numbers.regex '1,23,456' --graph states.svg

    Exit status: 0 the text is accepted so far; 1 it is refused; 2 usage; 5 the tokenizer cannot be
    used.
    """
    if token is not None and next_text is not None:
        raise click.UsageError("give --token or --next, not both")
    tokens = ShownTokens(tokenizer_source)
    compiled = source.compile(tokens.vocabulary)
    if view is not None:
        _write_view(view, source, compiled, text, tokens)
    if graph is not None:
        _write_graph(graph, source, compiled, text, tokens)
    explanation, refused = _explain(compiled, text, token, next_text, tokens)
    if as_json:
        write_json({"refused": refused, **_data(explanation)})
    else:
        click.echo(printable(str(explanation)))
    if refused:
        click.get_current_context().exit(exits.BAD)


def _explain(
    compiled: CompiledGrammar,
    text: str,
    token: int | None,
    next_text: str | None,
    tokens: ShownTokens,
) -> tuple[Explanation, bool]:
    matcher = compiled.matcher()
    given = encoded(text, tokens)
    good = matcher.validate_tokens(given)
    matcher.accept_tokens(given[:good])
    if good < len(given):
        # The rest of the text, from the refused token on.
        rest = b"".join(tokens.vocabulary.token_bytes(one) or b"" for one in given[good:])
        return matcher.explain(text=rest), True
    if token is not None:
        explanation = matcher.explain(token)
    elif next_text is not None:
        explanation = matcher.explain(text=next_text)
    else:
        return matcher.explain(), False
    return explanation, explanation.answer is not None and not explanation.answer.allowed


def _data(explanation: Explanation) -> dict[str, Any]:
    """Return `Explanation.to_dict()` as JSON: sets of bytes as numbers, texts as text."""
    data = explanation.to_dict()
    data["next_bytes"] = list(explanation.next_bytes)
    if explanation.completion_text is not None:
        data["completion_text"] = as_text(explanation.completion_text)
    if explanation.answer is not None:
        data["answer"]["instead_bytes"] = list(explanation.answer.instead_bytes)
    return data


def _write_view(
    path: Path, source: GrammarSource, compiled: CompiledGrammar, text: str, tokens: ShownTokens
) -> None:
    from ffwd.view import replay

    ids = encoded(text, tokens)
    recording = replay(compiled, ids, names=tokens.name, title=source.name)
    recording.save(path)
    note(f"the picture is in {path}")


def _write_graph(
    path: Path, source: GrammarSource, compiled: CompiledGrammar, text: str, tokens: ShownTokens
) -> None:
    from ffwd.view import state_graph

    title = f"{source.name}: {printable(text[:60])}{'…' if len(text) > 60 else ''}"
    try:
        found = state_graph(compiled, encoded(text, tokens), title=title)
    except FfwdError:
        raise
    except ValueError as error:
        raise Failure(str(error), exit_code=exits.BAD, kind="ValueError") from error
    found.save(path)
    note(f"the picture is in {path}")
