"""`ffwd tokenize`, `count` and `split`: texts as a tokenizer sees them."""

from typing import Any

import click

import ffwd.tokenizer
from ffwd.cli import exits
from ffwd.cli.output import Failure, command, counted, on_terminal, shown, write_json
from ffwd.cli.tokenizers import takes_text, tokenizer_option
from ffwd.tokenizer import Tokenizer

_special = click.option(
    "--special",
    default="text",
    show_default=True,
    type=click.Choice(["text", "allowed", "forbidden"]),
    help="What the name of a special token in the text is: text, that token, or an error.",
)
_added = click.option(
    "--add-special-tokens", is_flag=True, help="With what the tokenizer puts around a text."
)


@command()
@takes_text
@tokenizer_option
@_special
@_added
@click.option("--ids", "only_ids", is_flag=True, help="Write only the ids, on one line.")
def tokenize(
    text: str,
    tokenizer_source: str,
    special: Any,
    add_special_tokens: bool,
    only_ids: bool,
    as_json: bool,
) -> None:
    """Show the tokens of TEXT: the id, the characters from and to, and the piece.

    Without TEXT and --file, the text is read from standard input.

    \b
    Examples:
      ffwd tokenize -t path/of/a/model 'Hello, world'
      ffwd tokenize -t tokenizer.json --file notes.txt --ids
      echo 'Hello' | ffwd tokenize -t path/of/a/model --json

    Exit status: 0 done; 1 the text cannot be encoded; 2 usage; 5 the tokenizer cannot be used.
    """
    tokenizer = ffwd.tokenizer.load(tokenizer_source)
    encoding = tokenizer.encode_with_offsets(text, special=special)
    places: list[tuple[int, int] | None] = list(encoding.character_offsets)
    ids = encoding.ids
    if add_special_tokens:
        ids = [*tokenizer.prefix_ids, *ids, *tokenizer.suffix_ids]
        places = [
            *(None for _ in tokenizer.prefix_ids),
            *places,
            *(None for _ in tokenizer.suffix_ids),
        ]
    if as_json:
        tokens = [_data(tokenizer, i, place) for i, place in zip(ids, places, strict=True)]
        write_json({"num_tokens": len(ids), "ids": ids, "tokens": tokens})
        return
    if only_ids:
        click.echo(" ".join(map(str, ids)))
        return
    for token_id, place in zip(ids, places, strict=True):
        where = "-" if place is None else f"{place[0]}-{place[1]}"
        click.echo(f"{token_id}\t{where}\t{_piece(tokenizer, token_id)}")
    if on_terminal():
        click.echo(f"{counted(len(ids), 'token')}, {counted(len(text), 'character')}", err=True)


@command()
@takes_text
@tokenizer_option
@_special
@_added
def count(
    text: str, tokenizer_source: str, special: Any, add_special_tokens: bool, as_json: bool
) -> None:
    """Count the tokens of TEXT.

    Without TEXT and --file, the text is read from standard input.

    \b
    Examples:
      ffwd count -t path/of/a/model 'Hello, world'
      ffwd count -t tokenizer.json --file notes.txt

    Exit status: 0 done; 1 the text cannot be encoded; 2 usage; 5 the tokenizer cannot be used.
    """
    tokenizer = ffwd.tokenizer.load(tokenizer_source)
    number = tokenizer.count(text, add_special_tokens=add_special_tokens, special=special)
    if as_json:
        characters = {"num_characters": len(text), "num_bytes": len(text.encode())}
        write_json({"num_tokens": number, **characters})
    else:
        click.echo(number)


@command()
@takes_text
@tokenizer_option
@click.option("--tokens", required=True, type=click.IntRange(1), help="How many come first.")
@click.option("--rest", is_flag=True, help="Write the rest instead of the beginning.")
def split(text: str, tokenizer_source: str, tokens: int, rest: bool, as_json: bool) -> None:
    """Write the longest prefix of TEXT with at most this many tokens, or with --rest the rest.

    It ends between two characters. Without TEXT and --file, the text is read from standard input.

    \b
    Examples:
      ffwd split -t path/of/a/model --tokens 100 --file notes.txt > first.txt
      ffwd split -t path/of/a/model --tokens 100 --file notes.txt --rest > second.txt

    Exit status: 0 done; 1 the text cannot be encoded; 2 usage; 5 the tokenizer cannot be used.
    """
    tokenizer = ffwd.tokenizer.load(tokenizer_source)
    if tokenizer.bpe is None:
        raise Failure(
            f"a text is split with BPE only, and {tokenizer_source} is {tokenizer.model}",
            exit_code=exits.UNUSABLE,
            kind="UnsupportedTokenizerError",
        )
    first, last = tokenizer.bpe.split_at(text, tokens)
    if as_json:
        counts = {"first_tokens": tokenizer.count(first), "rest_tokens": tokenizer.count(last)}
        write_json({"first": first, "rest": last, **counts})
    else:
        # Unchanged: an added line end would belong to the text.
        click.echo(last if rest else first, nl=on_terminal())


def _piece(tokenizer: Tokenizer, token_id: int) -> str:
    name = tokenizer.id_to_token(token_id)
    if token_id in tokenizer.special_ids:
        return click.style(name or "", fg="magenta")
    return shown(tokenizer.token_bytes(token_id), name)


def _data(tokenizer: Tokenizer, token_id: int, place: tuple[int, int] | None) -> dict[str, Any]:
    return {
        "id": token_id,
        "token": tokenizer.id_to_token(token_id),
        "bytes": tokenizer.token_bytes(token_id),
        "characters": place,
    }
