"""`ffwd doctor`: whether an inference engine of this environment can use ffwd, and what to do."""

from dataclasses import asdict
from importlib import import_module
from typing import Any

import click

from ffwd.cli import exits
from ffwd.cli.output import command, printable, write_json

ENGINES = {"vllm": "ffwd.adapters.vllm.diagnosis", "sglang": "ffwd.adapters.sglang.diagnosis"}
"""Where each engine's findings come from."""

_COLOURS = {"ok": "green", "note": "yellow", "bad": "red"}


@command()
@click.argument("engine", type=click.Choice(list(ENGINES)))
@click.option(
    "--tokenizer", "-t", "source", metavar="MODEL", help="A model's directory; checked, too."
)
def doctor(engine: str, source: str | None, as_json: bool) -> None:
    """Check whether ENGINE can use ffwd in this environment, and say what to do if not.

    It looks at the engine's version, how the engine finds ffwd, whether it takes the backend's
    name, and the model's tokenizer. For vLLM it lists the functions that differ from those of the
    tested release.

    \b
    Examples:
      ffwd doctor vllm
      ffwd doctor sglang --tokenizer path/of/a/model

    Exit status: 0 it can; 1 it cannot; 2 usage; 4 a package is not installed; 5 the tokenizer
    cannot be loaded.
    """
    tokenizer = None if source is None else _tokenizer(source)
    findings = import_module(ENGINES[engine]).diagnose(tokenizer)
    bad = any(finding.status == "bad" for finding in findings)
    if as_json:
        write_json({"engine": engine, "ok": not bad, "findings": list(map(asdict, findings))})
    else:
        for finding in findings:
            status = click.style(f"{finding.status:5}", fg=_COLOURS[finding.status])
            click.echo(f"{status}{finding.topic:11}{printable(finding.text)}")
            if finding.advice:
                click.echo(f"{'':16}{printable(finding.advice)}")
    if bad:
        click.get_current_context().exit(exits.BAD)


def _tokenizer(source: str) -> Any:
    """Load a tokenizer as the engines do.

    Raises:
        Failure: It cannot be loaded.

    """
    from transformers import AutoTokenizer

    from ffwd.cli.output import Failure

    try:
        return AutoTokenizer.from_pretrained(source, trust_remote_code=False, local_files_only=True)
    # What transformers raises depends on what is wrong with which file.
    except Exception as error:
        text = f"{source}: {type(error).__name__}: {error}"
        raise Failure(text, exit_code=exits.UNUSABLE, kind="TokenizerError") from None
