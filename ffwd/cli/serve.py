"""`ffwd serve MODEL`: a model of transformers behind OpenAI's interface."""

from pathlib import Path
from typing import Literal

import click

from ffwd import FfwdError, Limits
from ffwd.cli import exits
from ffwd.cli.grammars import takes_writing
from ffwd.cli.output import Failure
from ffwd.grammar import Writing

_NEEDED = "ffwd serve needs more than is installed ({}): pip install 'ffwd[serve]'"


@click.command(context_settings={"show_default": True})
@click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--host", default="127.0.0.1", help="Where to listen.")
@click.option("--port", default=8000, type=click.IntRange(0, 65535), help="0 for a free one.")
@click.option("--served-model-name", help="What clients call the model.  [default: its directory]")
@click.option("--device", default="auto", help="As torch names it.")
@click.option("--dtype", default="auto", help="As torch names it; auto: what the weights are in.")
@click.option(
    "--max-model-len",
    type=click.IntRange(1),
    help="Tokens of a prompt and its answer.  [default: what the model was made for]",
)
@click.option(
    "--max-cached-tokens",
    type=click.IntRange(1),
    help="Tokens that the KV cache has room for.  [default: 131072]",
)
@click.option(
    "--chat-template",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A .jinja file instead of the model's own.",
)
@click.option(
    "--tool-format", help="One of ffwd.tools.FORMATS.  [default: what the template shows]"
)
@click.option(
    "--tool-strictness",
    default="auto",
    type=click.Choice(["auto", "always", "strict", "off"]),
    help="Which arguments follow their schema if the model decides whether it calls: those of"
    " functions without `strict: false`, all, those with `strict: true`, none.",
)
@click.option("--max-batch", default=64, type=click.IntRange(1), help="Answers at the same time.")
@click.option("--max-queue", default=256, type=click.IntRange(0), help="Requests that may wait.")
@click.option(
    "--default-max-tokens",
    default=4096,
    type=click.IntRange(1),
    help="Tokens of an answer where the request does not say.",
)
@click.option(
    "--max-texts",
    default=64,
    type=click.IntRange(1),
    help="Prompts of a completion, times its `n`.",
)
@click.option(
    "--max-body-bytes", default=4 << 20, type=click.IntRange(1), help="The longest request."
)
@click.option(
    "--max-prompt-values",
    default=1 << 16,
    type=click.IntRange(1),
    help="Messages, parts, fields and items that a prompt is rendered from.",
)
@click.option("--deadline", default=600.0, type=click.FloatRange(0.1), help="Seconds of a request.")
@click.option(
    "--shutdown-grace",
    default=30.0,
    type=click.FloatRange(0),
    help="Seconds that answers in progress have when the server is told to stop.",
)
@click.option(
    "--grammar-cache-mb",
    default=1024,
    type=click.IntRange(1),
    help="Memory of the compiled grammars that are kept.",
)
@click.option(
    "--max-grammar-bytes",
    default=Limits().source_bytes,
    type=click.IntRange(1),
    help="The longest schema or grammar, with all that it refers to.",
)
@click.option(
    "--max-compile-seconds",
    default=Limits().compile_seconds,
    type=click.FloatRange(0.001),
    help="Seconds that one grammar may take to be compiled.",
)
@click.option(
    "--max-mask-seconds",
    default=Limits().call_seconds,
    type=click.FloatRange(0.001),
    help="Seconds that one mask, or one step of a text, may take.",
)
@click.option(
    "--warm",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="FFWD_WARM",
    show_envvar=True,
    help="A file of grammars to compile at the start, in JSON Lines.  [default: nothing]",
)
@click.option("--threads", type=click.IntRange(1), help="Of torch.  [default: torch's own]")
@click.option(
    "--api-key",
    envvar="FFWD_API_KEY",
    show_envvar=True,
    help="What clients must give.  [default: nothing]",
)
@click.option(
    "--api-keys",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of keys with limits, in JSON Lines.  [default: nothing]",
)
@click.option(
    "--cors-origin",
    "cors_origins",
    multiple=True,
    help="An origin whose pages may use the server, or *; repeatable.  [default: none]",
)
@click.option("--protect-metrics", is_flag=True, help="Have /metrics need the key, too.")
@click.option(
    "--log-level",
    default="info",
    type=click.Choice(["critical", "error", "warning", "info", "debug"]),
)
@takes_writing
def serve(
    model: Path,
    host: str,
    port: int,
    served_model_name: str | None,
    device: str,
    dtype: str,
    max_model_len: int | None,
    max_cached_tokens: int | None,
    chat_template: Path | None,
    tool_format: str | None,
    tool_strictness: Literal["auto", "always", "strict", "off"],
    max_batch: int,
    max_queue: int,
    default_max_tokens: int,
    max_texts: int,
    max_body_bytes: int,
    max_prompt_values: int,
    deadline: float,
    shutdown_grace: float,
    grammar_cache_mb: int,
    max_grammar_bytes: int,
    max_compile_seconds: float,
    max_mask_seconds: float,
    warm: Path | None,
    threads: int | None,
    api_key: str | None,
    api_keys: Path | None,
    cors_origins: tuple[str, ...],
    protect_metrics: bool,
    log_level: str,
    writing: Writing,
) -> None:
    """Serve the model in the directory MODEL with OpenAI's interface.

    Chats with `response_format`, `tools`, streams; docs/server.md has all of it.

    Exit status: 0 stopped; 2 usage; 4 a package is not installed; 5 the model, its tokenizer or its
    template cannot be used.
    """
    try:
        import torch

        from ffwd.adapters.server import (
            ServerOptions,
            WarmingError,
            load_model,
            read_api_keys,
            run,
        )
    except ImportError as error:
        message = _NEEDED.format(error)
        raise Failure(message, exit_code=exits.MISSING, kind="MissingPackage") from None
    if threads is not None:
        torch.set_num_threads(threads)
    try:
        options = ServerOptions(
            tool_strictness=tool_strictness,
            max_batch=max_batch,
            max_queue=max_queue,
            default_max_tokens=default_max_tokens,
            max_texts=max_texts,
            max_body_bytes=max_body_bytes,
            max_prompt_values=max_prompt_values,
            deadline=deadline,
            shutdown_grace=shutdown_grace,
            grammar_cache_bytes=grammar_cache_mb << 20,
            limits=Limits(
                source_bytes=max_grammar_bytes,
                compile_seconds=max_compile_seconds,
                call_seconds=max_mask_seconds,
            ),
            writing=writing,
            warm=warm,
            api_key=api_key,
            api_keys=() if api_keys is None else read_api_keys(api_keys),
            cors_origins=cors_origins,
            protect_metrics=protect_metrics,
        )
    except (FfwdError, ValueError) as error:
        kind = type(error).__name__
        raise Failure(str(error), exit_code=exits.USAGE, kind=kind) from None
    try:
        loaded = load_model(
            model,
            name=served_model_name,
            device=device,
            dtype=dtype,
            max_model_len=max_model_len,
            max_cached_tokens=max_cached_tokens,
            chat_template=chat_template,
            tool_format=tool_format,
        )
    except FfwdError as error:
        kind = type(error).__name__
        raise Failure(str(error), exit_code=exits.UNUSABLE, kind=kind) from None
    try:
        run(loaded, options, host=host, port=port, log_level=log_level)
    except WarmingError as error:
        raise Failure(str(error), exit_code=exits.USAGE, kind="WarmingError") from None
