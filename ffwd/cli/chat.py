"""`ffwd chat render`: a conversation as a model's prompt."""

import json
from pathlib import Path
from typing import Any

import click

import ffwd.tokenizer
from ffwd.chat import (
    FORMATS,
    ChatTemplate,
    ControlPart,
    MistralFormat,
    MistralVersion,
    Prompt,
)
from ffwd.chat.control import special_token_variables
from ffwd.cli import exits
from ffwd.cli.grammars import read_text
from ffwd.cli.output import Failure, command, counted, on_terminal, printable, write_json
from ffwd.sources import caret, syntax_error
from ffwd.tokenizer import Tokenizer

_MISTRAL = [version.value for version in MistralVersion]


@click.group()
def chat() -> None:
    """Render conversations as prompts."""


@command()
@click.argument("tokenizer_source", metavar="MODEL")
@click.argument(
    "messages", type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str)
)
@click.option(
    "--tools",
    type=click.Path(exists=True, dir_okay=False, path_type=str),
    help="A file with a JSON array of tools.",
)
@click.option(
    "--template",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A .jinja file instead of the model's own template.",
)
@click.option("--format", "format_name", type=click.Choice(sorted(FORMATS)), help="A named format.")
@click.option(
    "--mistral", type=click.Choice(["auto", *_MISTRAL]), help="A version of Mistral's format."
)
@click.option(
    "--generation-prompt/--no-generation-prompt",
    default=None,
    help="With what begins the assistant's answer.  [default: unless the last message is its]",
)
@click.option(
    "--continue", "go_on", is_flag=True, help="Without what ends the last message: it goes on."
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=JSON",
    help="A variable of the template, such as enable_thinking=false.",
)
@click.option("--ids", "only_ids", is_flag=True, help="Write only the ids, on one line.")
def render(
    tokenizer_source: str,
    messages: str,
    tools: str | None,
    template: Path | None,
    format_name: str | None,
    mistral: str | None,
    generation_prompt: bool | None,
    go_on: bool,
    settings: tuple[str, ...],
    only_ids: bool,
    as_json: bool,
) -> None:
    """Write the prompt that MODEL is given for MESSAGES, with its control tokens by name.

    MODEL is a directory, a .gguf or another file with a tokenizer. MESSAGES is a file with a JSON
    array, as in OpenAI's API, or - for standard input. On a terminal control tokens are coloured. A
    user's text never becomes a control token, whatever its characters.

    \b
    Examples:
      ffwd chat render path/of/a/model messages.json
      ffwd chat render path/of/a/model messages.json --tools tools.json --ids
      ffwd chat render tekken.json messages.json --mistral auto
      ffwd chat render path/of/a/model messages.json --set enable_thinking=false --json

    Exit status: 0 done; 1 the conversation is refused; 2 usage; 4 a package is missing; 5 the
    model has no template, or the template does not fit its tokenizer.
    """
    if sum(choice is not None for choice in (template, format_name, mistral)) > 1:
        raise click.UsageError("give one of --template, --format and --mistral")
    conversation = read_messages(messages)
    given_tools = None if tools is None else _array(read_text(tools), tools, "tools")
    variables = dict(map(_setting, settings))
    tokenizer = ffwd.tokenizer.load(tokenizer_source)
    if generation_prompt is None:
        generation_prompt = not go_on and conversation[-1].get("role") != "assistant"
    if mistral is not None:
        prompt = _mistral_format(mistral, tokenizer, tokenizer_source).render(
            conversation,
            tokenizer=tokenizer,
            tools=given_tools,
            settings=variables or None,
            continue_final_message=go_on,
        )
    elif format_name is not None:
        if given_tools or variables:
            raise click.UsageError("--tools and --set are for templates and --mistral")
        prompt = FORMATS[format_name].render(
            conversation,
            tokenizer=tokenizer,
            add_generation_prompt=generation_prompt,
            continue_final_message=go_on,
        )
    else:
        if template is None:
            written = ChatTemplate.for_tokenizer(tokenizer)
        else:
            known = special_token_variables(tokenizer)
            written = ChatTemplate.from_file(template, special_tokens=known)
        prompt = written.render(
            conversation,
            tokenizer=tokenizer,
            tools=given_tools,
            add_generation_prompt=generation_prompt,
            continue_final_message=go_on,
            **variables,
        )
    if as_json:
        write_json(_data(prompt))
    elif only_ids:
        click.echo(" ".join(map(str, prompt.ids)))
    else:
        _write(prompt)


chat.add_command(render)


def read_messages(path: str) -> list[dict[str, Any]]:
    """Return the conversation of a file: an array of messages, or an object with `messages`."""
    text = read_text(path)
    value = _json(text, path)
    if isinstance(value, dict) and "messages" in value:
        value = value["messages"]
    if not isinstance(value, list) or not value or not all(isinstance(m, dict) for m in value):
        raise _no_array(path, "messages", '[{"role": "user", "content": "Hello"}]')
    return value


def _array(text: str, path: str, what: str) -> list[Any]:
    value = _json(text, path)
    if not isinstance(value, list):
        raise _no_array(path, what, '[{"type": "function", "function": {…}}]')
    return value


def _no_array(path: str, what: str, example: str) -> Failure:
    return Failure(
        f"{path} must have a JSON array of {what}, such as {example}",
        exit_code=exits.BAD,
        kind="ConversationError",
    )


def _json(text: str, path: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        place = syntax_error(text)
        shown = "" if place is None else "\n" + caret(text, *place)
        raise Failure(
            f"{path} is not JSON: {error}{shown}", exit_code=exits.BAD, kind="ConversationError"
        ) from error


def _setting(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise click.UsageError(f"--set takes NAME=JSON, not {text!r}")
    try:
        return name, json.loads(value)
    except ValueError as error:
        raise click.UsageError(
            f"--set {name}=…: {value!r} is not JSON ({error}); a text stands in quotes"
        ) from error


def _mistral_format(version: str, tokenizer: Tokenizer, source: str) -> MistralFormat:
    if version == "auto":
        return MistralFormat.for_tokenizer(tokenizer, model=source)
    return MistralFormat(version=MistralVersion(version))


def _write(prompt: Prompt) -> None:
    if not on_terminal():
        click.echo(prompt.text, nl=False)
        return
    for part in prompt.parts:
        if isinstance(part, ControlPart):
            click.echo(click.style(part.content, fg="magenta", bold=True), nl=False)
        else:
            click.echo(printable(part.text), nl=False)
    click.echo()
    click.echo(counted(len(prompt), "token"), err=True)


def _data(prompt: Prompt) -> dict[str, Any]:
    thinking = prompt.thinking
    return {
        "text": prompt.text,
        "num_tokens": len(prompt),
        "ids": prompt.ids,
        "parts": [
            {"control": part.content, "id": part.token_id}
            if isinstance(part, ControlPart)
            else {"text": part.text, "message": part.message}
            for part in prompt.parts
        ],
        "end_token_ids": list(prompt.end_token_ids),
        "stop": list(prompt.stop),
        "prefill": prompt.prefill,
        "thinking": None if thinking is None else [thinking.opened_by, thinking.closed_by],
    }
