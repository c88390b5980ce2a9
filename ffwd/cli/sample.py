"""`ffwd sample` and `ffwd fuzz-schema`: valid documents, at random and at the edges of a schema."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

import ffwd
from ffwd import BudgetError, FfwdError
from ffwd.cli import exits
from ffwd.cli.grammars import GrammarSource, takes_grammar
from ffwd.cli.output import Failure, command, write_json

_MAX_BYTES = click.option(
    "--max-bytes",
    default=4096,
    show_default=True,
    type=click.IntRange(1),
    help="The most bytes of a document.",
)


@command()
@takes_grammar
@click.option(
    "--count", "-n", default=10, show_default=True, type=click.IntRange(0), help="So many."
)
@click.option("--seed", default=0, show_default=True, help="Of the choices.")
@_MAX_BYTES
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    help="The directory of a model of transformers, which chooses, at temperature 1.",
)
@click.option(
    "--prompt", default="", help="What the model reads before.  [default: its first token]"
)
@click.option(
    "--max-tokens",
    default=512,
    show_default=True,
    type=click.IntRange(1),
    help="The most tokens of a document of --model.",
)
@click.option("--device", default="auto", show_default=True, help="Of --model, as torch names it.")
@click.option("--dtype", default="auto", show_default=True, help="Of --model, as torch names it.")
def sample(
    source: GrammarSource,
    count: int,
    seed: int,
    max_bytes: int,
    model: Path | None,
    prompt: str,
    max_tokens: int,
    device: str,
    dtype: str,
    as_json: bool,
) -> None:
    """Write valid documents of GRAMMAR at random, for tests and as data.

    The output is JSON Lines: a document of a JSON Schema is a line, and a text of another grammar
    is a JSON string. Choices are uniform, and the same seed gives the same documents everywhere.
    With --model, a model chooses under the masks.

    \b
    Examples:
      ffwd sample schema.json --count 100 > documents.jsonl
      ffwd sample date.regex --seed 1
      ffwd sample schema.json --model path/of/a/model --prompt 'An order: '

    Exit status: 0 done; 1 the grammar is refused, or a document meets a limit; 2 usage; 3 no
    document fits in --max-bytes or --max-tokens. 4 means that torch or transformers is not
    installed; 5 that the model cannot be used. Lines before an error are valid.
    """
    if model is None:

        def documents() -> Iterator[str]:
            return ffwd.sample_documents(source.grammar, count, seed=seed, max_bytes=max_bytes)

    else:
        directory = model

        def documents() -> Iterator[str]:
            return _of_model(
                directory, source, prompt, count, seed, max_tokens, device=device, dtype=dtype
            )

    _write(documents, source, as_json, {"seed": seed}, in_bytes=model is None)


@command()
@takes_grammar
@click.option(
    "--count", "-n", default=100, show_default=True, type=click.IntRange(0), help="At most so many."
)
@_MAX_BYTES
def fuzz_schema(source: GrammarSource, count: int, max_bytes: int, as_json: bool) -> None:
    """Write valid documents at the edges of a JSON Schema, all of them different.

    The first is the shortest. Others have all properties, one property alone, each listed value and
    each branch, empty and long arrays and strings, deep nesting, unusual characters, and numbers at
    the bounds of the schema and of common types. The output is JSON Lines.

    \b
    Examples:
      ffwd fuzz-schema schema.json > edges.jsonl
      ffwd fuzz-schema schema.json --count 1000 --any-escapes

    Exit status: 0 done; 1 the schema is refused, or a document meets a limit; 2 usage; 3 no
    document fits in --max-bytes. Lines before an error are valid.
    """
    schema = source.grammar
    if not isinstance(schema, ffwd.JsonSchema):
        raise click.UsageError("GRAMMAR must be a JSON Schema: ffwd sample takes other grammars")

    def documents() -> Iterator[str]:
        return ffwd.boundary_documents(schema, count, max_bytes=max_bytes)

    _write(documents, source, as_json, {})


def _write(
    documents: Callable[[], Iterator[str]],
    source: GrammarSource,
    as_json: bool,
    data: dict[str, Any],
    *,
    in_bytes: bool = True,
) -> None:
    is_schema = isinstance(source.grammar, ffwd.JsonSchema)
    written = []
    try:
        for text in documents():
            if as_json:
                written.append(text)
            else:
                line = text if is_schema else json.dumps(text, ensure_ascii=False)
                click.echo(line.encode())
    except click.ClickException:
        raise
    except BudgetError as error:
        raise Failure(
            f"{source.name}: {_too_small(error, in_bytes=in_bytes)}",
            exit_code=exits.CUT,
            kind="BudgetError",
        ) from error
    except FfwdError as error:
        raise source.failure(error) from error
    if as_json:
        write_json({**data, "documents": written})


def _too_small(error: BudgetError, *, in_bytes: bool) -> str:
    if not in_bytes:
        return f"{error}; give a larger --max-tokens"
    # The budget counts the end of a document, too.
    return (
        f"no document has at most {error.max_tokens - 1:,} bytes: give a --max-bytes of "
        f"{error.needed - 1:,} or more"
    )


def _of_model(
    directory: Path,
    source: GrammarSource,
    prompt: str,
    count: int,
    seed: int,
    max_tokens: int,
    *,
    device: str,
    dtype: str,
) -> Iterator[str]:
    from ffwd.cli.generate import load_model

    loaded = load_model(directory, device, dtype)
    import torch

    from ffwd.adapters.transformers import fast_forward_generate

    if isinstance(source.grammar, ffwd.JsonSchema) and source.grammar.whitespace != "compact":
        # A line end would end the line of the document.
        grammar = dataclasses.replace(source.grammar, whitespace="single-space")
        source = dataclasses.replace(source, grammar=grammar)
    vocabulary = loaded.vocabulary()
    compiled = source.compile(vocabulary)
    prompt_ids = loaded.tokenizer.encode(prompt, add_special_tokens=True)
    if not prompt_ids:
        first = loaded.model.config.bos_token_id
        prompt_ids = [vocabulary.eos_token_ids[0] if first is None else first]
    given = torch.tensor([prompt_ids], device=loaded.model.device)
    torch.manual_seed(seed)
    for _ in range(count):
        output = loaded.model.generate(
            given,
            attention_mask=torch.ones_like(given),
            custom_generate=fast_forward_generate,
            grammar=compiled,
            complete=True,
            max_new_tokens=max_tokens,
            do_sample=True,
            temperature=1.0,
            # Without these, transformers leaves out the less likely tokens.
            top_k=0,
            top_p=1.0,
            eos_token_id=vocabulary.eos_token_ids,
            pad_token_id=vocabulary.eos_token_ids[0],
        )
        tokens = output[0, given.shape[1] :].tolist()
        yield b"".join(vocabulary.token_bytes(token) or b"" for token in tokens).decode()
