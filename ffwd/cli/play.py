"""`ffwd play`: a page to try a grammar, a tokenizer and a text."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from ffwd.cli import exits
from ffwd.cli.grammars import GrammarSource, takes_optional_grammar
from ffwd.cli.output import Failure, command, note, write_json

_OF_A_GRAMMAR = ("language", "whitespace", "root", "dialect")
_FLAGS = ("any_order", "any_numbers", "any_escapes", "lenient")


@command(no_args_is_help=False)
@takes_optional_grammar
@click.option(
    "--tokenizer",
    "-t",
    metavar="PATH",
    help="A directory or file with a tokenizer.  [default: that of the model in the box]",
)
@click.option(
    "--model",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The directory of a model of transformers, which generates.  [default: that in the box]",
)
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="Of the page.  [default: a free one]"
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
def play(
    source: GrammarSource | None,
    tokenizer: str | None,
    model: Path | None,
    port: int,
    no_open: bool,
    as_json: bool,
) -> None:
    """Open a page that shows what GRAMMAR allows, while you edit it and a text.

    GRAMMAR is a schema, a grammar, or a file that the page saved (.ffwd.json). The page shows
    errors and keywords of the grammar, tokens of the text, and the allowed set at the cursor. It
    also has random documents, a model that generates, and the verdicts of llguidance and XGrammar.

    The server listens on this machine only, and its address has a random token. Ctrl-C ends it.

    \b
    Examples:
      ffwd play
      ffwd play schema.json --tokenizer path/of/a/model
      ffwd play bug.ffwd.json --no-open

    Exit status: 0 ended; 1 the .ffwd.json file is refused; 2 usage; 5 the tokenizer cannot be used.
    """
    from ffwd.play.server import PlayServer
    from ffwd.play.session import Session

    session = Session(_state(source), tokenizer=tokenizer, model=model)
    try:
        server = PlayServer(session, port)
    except OSError as error:
        raise Failure(
            f"port {port} cannot be used: {error.strerror}; give another --port",
            exit_code=exits.USAGE,
            kind="PortError",
        ) from error
    with server:
        if as_json:
            write_json({"address": server.address, "port": server.server_port})
        else:
            click.echo(server.address)
            note("the page is at this address while the command runs: Ctrl-C ends it")
        if not no_open:
            import webbrowser

            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            session.close()


def _state(source: GrammarSource | None) -> dict[str, Any] | None:
    from ffwd.play import share
    from ffwd.play.session import BOX
    from ffwd.play.state import grammar_of

    if source is None:
        return None
    if not source.name.endswith(share.SUFFIX):
        return {"grammar": grammar_of(source.grammar), "tokenizer": BOX, "text": ""}
    context = click.get_current_context()
    for name in (*_OF_A_GRAMMAR, *_FLAGS):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option} is for a grammar, and {source.name} has its options")
    return share.load(source.text)
