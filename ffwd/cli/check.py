"""`ffwd check`: whether a schema or a grammar can be used, and the support of its keywords."""

import time
import warnings
from collections import Counter
from typing import Any

import click

import ffwd
from ffwd import CompiledGrammar, FfwdError
from ffwd.cli import exits
from ffwd.cli.grammars import GrammarSource, takes_grammar
from ffwd.cli.output import (
    Failure,
    command,
    counted,
    milliseconds,
    on_terminal,
    printable,
    size,
    write_json,
)
from ffwd.cli.tokenizers import ShownTokens, vocabulary_option
from ffwd.sources import LANGUAGES, caret, keywords, unused

_COLOURS = {"error": "red", "warning": "yellow"}
# The most lines of enforced or ignored keywords; --all lists the rest.
_MOST_LINES = 40


@command()
@takes_grammar
@vocabulary_option
@click.option("--strict", is_flag=True, help="Warnings make the exit status 1, too.")
@click.option("--all", "everything", is_flag=True, help="List every keyword of a schema.")
def check(
    source: GrammarSource,
    tokenizer_source: str | None,
    strict: bool,
    everything: bool,
    as_json: bool,
) -> None:
    """Check whether GRAMMAR compiles, and list the support of its keywords.

    GRAMMAR is a file with a JSON Schema or a grammar; - is standard input. The name of the file
    determines its notation, unless an option does.

    Every keyword of a schema is enforced, ignored (an annotation, or unknown), widened (dropped,
    with --lenient) or refused. Unknown keywords that resemble known ones cause a warning. Errors
    have their line, column and JSON pointer.

    \b
    Examples:
      ffwd check schema.json
      ffwd check schema.json --all --tokenizer path/of/a/model
      ffwd check --lark - < grammar.txt
      ffwd check schema.json --json --strict

    Exit status: 0 it compiles; 1 it is refused, or, with --strict, there are warnings; 2 usage; 5
    the tokenizer cannot be used.
    """
    tokens = ShownTokens(tokenizer_source)
    listed, problems = _keywords(source)
    compiled: CompiledGrammar | None = None
    times: dict[str, float] = {}
    if not any(problem["severity"] == "error" for problem in problems):
        try:
            with warnings.catch_warnings():
                # The warnings are among the problems already.
                warnings.simplefilter("ignore")
                compiled, times = _timed(source, tokens)
        except FfwdError as error:
            problems.insert(0, _error(source, error))
        else:
            problems += unused(source)
    bad = any(problem["severity"] == "error" or strict for problem in problems)
    data = {
        "file": source.name,
        "language": source.language,
        "ok": not bad,
        "bytes": len(source.text.encode()),
        "tokenizer": tokens.source,
        "problems": problems,
        "keywords": listed,
        "counts": dict(Counter(line["fidelity"] for line in listed)),
        **times,
    }
    if compiled is not None:
        stats = compiled.stats()
        names = ("states", "stacks", "lexemes", "key_nodes", "memory_bytes")
        data["compiled"] = {name: stats[name] for name in names}
    if as_json:
        write_json(data)
    else:
        _write(data, source, everything)
    if bad:
        click.get_current_context().exit(exits.BAD)


def _keywords(source: GrammarSource) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return every keyword of a schema, and what is wrong with some."""
    try:
        return keywords(source)
    except FfwdError as error:
        return [], [_error(source, error)]


def _error(source: GrammarSource, error: FfwdError) -> dict[str, Any]:
    made = error if isinstance(error, Failure) else source.failure(error)
    line, column = made.data.get("line"), made.data.get("column")
    data = {
        "severity": "error",
        "type": made.kind,
        "message": str(error),
        "line": line,
        "column": column,
    }
    return data | {name: made.data[name] for name in ("pointer", "keyword") if name in made.data}


def _timed(source: GrammarSource, tokens: ShownTokens) -> tuple[CompiledGrammar, dict[str, float]]:
    started = time.perf_counter_ns()
    compiled = ffwd.compile(source.grammar, tokens.vocabulary)
    ready = time.perf_counter_ns()
    bitmask = ffwd.allocate_bitmask(1, tokens.vocabulary.vocab_size)
    compiled.matcher().fill_bitmask(bitmask, 0)
    done = time.perf_counter_ns()
    return compiled, {"compile_ms": (ready - started) / 1e6, "first_mask_ms": (done - ready) / 1e6}


# ------------------------------------------------------------------------------------- for people


def _write(data: dict[str, Any], source: GrammarSource, everything: bool) -> None:
    what = LANGUAGES[data["language"]][0]
    verdict = click.style("ok", fg="green") if data["ok"] else click.style("bad", fg="red")
    click.echo(f"{printable(data['file'])}: {verdict}: {what}, {size(data['bytes'])}")
    if "compiled" in data:
        compiled = data["compiled"]
        compile_time, first = (milliseconds(data[k] * 1e6) for k in ("compile_ms", "first_mask_ms"))
        click.echo(
            f"  compiled in {compile_time}, first mask in {first} ({printable(data['tokenizer'])})"
        )
        click.echo(
            f"  {counted(compiled['states'], 'state')} so far, "
            f"{counted(compiled['lexemes'], 'lexeme')}, {size(compiled['memory_bytes'])}"
        )
    if data["keywords"]:
        counts = [f"{number} {name}" for name, number in data["counts"].items()]
        click.echo(f"  keywords: {', '.join(counts)}")
    if everything:
        for line in data["keywords"]:
            reason = f": {line['reason']}" if line["reason"] else ""
            click.echo(f"    {line['fidelity']:9}{printable(line['pointer'] + reason)}")
    problems = data["problems"] if everything else data["problems"][:_MOST_LINES]
    for problem in problems:
        _write_problem(problem, source)
    rest = len(data["problems"]) - len(problems)
    if rest:
        click.echo(f"and {counted(rest, 'more problem')}: --all lists them")


def _write_problem(problem: dict[str, Any], source: GrammarSource) -> None:
    place, shown = source.name, ""
    if problem["line"] is not None:
        place = f"{place}:{problem['line']}:{problem['column']}"
        # Errors of grammars show it themselves.
        if "\n" not in problem["message"]:
            shown = "\n" + caret(source.text, problem["line"], problem["column"])
    severity = problem["severity"]
    label = click.style(f"{severity}: ", fg=_COLOURS[severity], bold=True)
    message = printable(problem["message"])
    # The places of schemas are pointers, which editors cannot jump to, but scripts can follow.
    if problem.get("pointer") and problem["pointer"] not in message:
        message += f" (at {printable(problem['pointer'])})"
    text = f"{printable(place)}: {label}{message}{printable(shown)}"
    click.echo(text if not on_terminal() else f"\n{text}")
