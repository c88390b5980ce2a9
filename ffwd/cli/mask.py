"""`ffwd mask`: the tokens that are allowed next."""

import click

from ffwd.cli.grammars import GrammarSource, takes_grammar
from ffwd.cli.output import as_text, command, counted, shown, write_json
from ffwd.cli.tokenizers import ShownTokens, vocabulary_option
from ffwd.cli.walking import at


@command()
@takes_grammar
@click.argument("text", default="")
@vocabulary_option
@click.option("--ids", help="Token ids instead of TEXT, such as 1,2,3.")
@click.option(
    "--top", default=40, show_default=True, type=click.IntRange(0), help="List so many tokens."
)
def mask(
    source: GrammarSource,
    text: str,
    tokenizer_source: str | None,
    ids: str | None,
    top: int,
    as_json: bool,
) -> None:
    """Show the tokens that are allowed after TEXT, and the forced text.

    TEXT is what has been written so far; without it the text begins.

    \b
    Examples:
      ffwd mask schema.json
      ffwd mask schema.json '{"name": "Ada", ' --tokenizer path/of/a/model
      ffwd mask date.regex 2026- --top 10 --json

    Exit status: 0 done; 1 the grammar or the text is refused; 2 usage; 5 the tokenizer cannot be
    used.
    """
    tokens = ShownTokens(tokenizer_source)
    matcher = at(source.compile(tokens.vocabulary), text, ids, tokens)
    allowed = [] if matcher.is_terminated() else matcher.allowed_token_ids()
    forced = matcher.forced_bytes()
    forced_tokens = matcher.fast_forward_tokens()
    width = tokens.vocabulary.vocab_size
    data = {
        "num_tokens": matcher.num_tokens,
        "vocab_size": width,
        "num_allowed": len(allowed),
        "can_end": matcher.is_accepting(),
        "forced_text": as_text(forced),
        "forced_tokens": [tokens.data(token) for token in forced_tokens],
        "allowed": [tokens.data(token) for token in allowed[:top]],
    }
    if as_json:
        write_json(data)
        return
    share = f"{len(allowed):,} of {width:,} tokens may come"
    click.echo(f"after {counted(matcher.num_tokens, 'token')}, {click.style(share, bold=True)}")
    click.echo(f"the text may{'' if data['can_end'] else ' not'} end here")
    if forced:
        pieces = " ".join(map(tokens.piece, forced_tokens))
        count = counted(len(forced_tokens), "token")
        click.echo(f"forced next: {shown(forced)}")
        click.echo(f"  as {count}: {pieces}" if pieces else "  as no token yet: its end is open")
    for token in allowed[:top]:
        click.echo(f"{token:>8}  {tokens.piece(token)}")
    if len(allowed) > top:
        click.echo(f"and {len(allowed) - top:,} more: --top lists more of them")
