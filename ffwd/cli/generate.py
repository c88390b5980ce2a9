"""`ffwd generate`: an answer of a local model that follows a grammar."""

from __future__ import annotations

import codecs
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ffwd import BudgetError, FfwdError, JsonSchema, warn_of_unknown_keywords
from ffwd.chat import ChatTemplate, Prompt, Start
from ffwd.cli import exits
from ffwd.cli.chat import read_messages
from ffwd.cli.grammars import GrammarSource, takes_grammar
from ffwd.cli.output import (
    Failure,
    as_text,
    command,
    counted,
    milliseconds,
    missing,
    note,
    on_terminal,
    printable,
    write_json,
)
from ffwd.cli.progress import waiting

if TYPE_CHECKING:
    from ffwd.adapters.transformers import LocalModel


@command()
@click.argument("model", type=click.Path(path_type=Path))
@takes_grammar
@click.option("--prompt", help="What the user says.")
@click.option(
    "--messages",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=str),
    help="A file with a conversation as JSON; where an assistant's message is last, it goes on.",
)
@click.option("--raw", is_flag=True, help="--prompt is the whole text, without a chat template.")
@click.option(
    "--max-tokens", default=512, show_default=True, type=click.IntRange(1), help="Of the answer."
)
@click.option(
    "--may-be-cut",
    is_flag=True,
    help="Do not see to it that the answer is whole within --max-tokens.",
)
@click.option(
    "--temperature",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0),
    help="0 takes the likeliest token.",
)
@click.option("--seed", default=0, show_default=True, help="Of sampling.")
@click.option("--canonical", is_flag=True, help="Only tokens as the tokenizer itself cuts a text.")
@click.option("--no-fast-forward", is_flag=True, help="Masks only: ask the model for every token.")
@click.option("--device", default="auto", show_default=True, help="As torch names it.")
@click.option("--dtype", default="auto", show_default=True, help="As torch names it.")
@click.option(
    "--view",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write a picture of the generation, an HTML file.",
)
@click.option("--quiet", "-q", is_flag=True, help="No statistics.")
def generate(
    model: Path,
    source: GrammarSource,
    prompt: str | None,
    messages: str | None,
    raw: bool,
    max_tokens: int,
    may_be_cut: bool,
    temperature: float,
    seed: int,
    canonical: bool,
    no_fast_forward: bool,
    device: str,
    dtype: str,
    view: Path | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Generate an answer with MODEL that follows GRAMMAR.

    MODEL is the directory of a model of transformers; nothing is downloaded. The answer is streamed
    to standard output, and statistics go to standard error. Forced tokens skip the model, and the
    answer is complete within --max-tokens.

    \b
    Examples:
      ffwd generate path/of/a/model schema.json --prompt 'Ada is 36.'
      ffwd generate path/of/a/model schema.json --messages chat.json --temperature 0.7 --seed 1
      ffwd generate path/of/a/model date.regex --raw --prompt 'Today is ' --view out.html

    Exit status: 0 a complete answer; 1 the grammar or the conversation is refused; 2 usage; 3 the
    answer is truncated, or none fits in --max-tokens. 4 means that torch or transformers is not
    installed; 5 that the model, its tokenizer or its template cannot be used.
    """
    if (prompt is None) == (messages is None):
        raise click.UsageError("give --prompt or --messages, and not both")
    if raw and prompt is None:
        raise click.UsageError("--raw is about --prompt")
    conversation = None if messages is None else read_messages(messages)
    if isinstance(source.grammar, JsonSchema):
        warn_of_unknown_keywords([source.grammar])
    loaded = load_model(model, device, dtype)
    asked = _Asked(loaded, source, prompt, conversation, raw)
    if canonical and asked.grammar.vocabulary.bpe is None:
        raise Failure(
            "--canonical needs a tokenizer that is compiled, and this one is not: leave it out",
            exit_code=exits.UNUSABLE,
            kind="VocabularyError",
        )
    writer = None if as_json else _Writer(asked)
    answer = _answer(
        asked,
        writer,
        max_tokens=max_tokens,
        complete=not may_be_cut,
        temperature=temperature,
        seed=seed,
        canonical=canonical,
        fast_forward=not no_fast_forward,
        record=view is not None,
    )
    if view is not None:
        answer.recording.save(view)
        note(f"the picture is in {view}")
    if as_json:
        write_json(answer.data)
    elif not quiet:
        _write_stats(answer.data)
    if not answer.data["complete"]:
        if not as_json:
            note(
                f"the answer is cut off after {counted(max_tokens, 'token')}: give a larger "
                "--max-tokens, or leave out --may-be-cut, and it is whole within that",
                kind="warning",
            )
        click.get_current_context().exit(exits.CUT)


class _Asked:
    """A prompt, and the grammar that begins where it ends."""

    def __init__(
        self,
        loaded: LocalModel,
        source: GrammarSource,
        prompt: str | None,
        conversation: list[dict[str, Any]] | None,
        raw: bool,
    ) -> None:
        self.loaded = loaded
        self.title = source.name
        self.start: Start | None = None
        if raw:
            assert prompt is not None
            self.prompt_ids = loaded.tokenizer.encode(prompt, add_special_tokens=True)
            if not self.prompt_ids:
                raise click.UsageError("--prompt is empty, and the model needs a token to go on")
            self.grammar = source.compile(loaded.vocabulary())
            return
        rendered = _rendered(loaded, conversation or [{"role": "user", "content": prompt}])
        self.grammar = source.compile(loaded.vocabulary(rendered.end_token_ids))
        self.start = rendered.start(self.grammar)
        self.prompt_ids = list(self.start.prompt_ids)


def _rendered(loaded: LocalModel, conversation: list[dict[str, Any]]) -> Prompt:
    if not loaded.tokenizer.chat_templates:
        raise Failure(
            f"{loaded.tokenizer.source} has no chat template: give the whole text with --raw "
            "--prompt, or put a chat_template.jinja into the directory",
            exit_code=exits.UNUSABLE,
            kind="MissingTemplateError",
        )
    goes_on = conversation[-1].get("role") == "assistant"
    return ChatTemplate.for_tokenizer(loaded.tokenizer).render(
        conversation,
        tokenizer=loaded.tokenizer,
        add_generation_prompt=not goes_on,
        continue_final_message=goes_on,
    )


def load_model(model: Path, device: str, dtype: str) -> LocalModel:
    """Load a model from a directory; what is missing or unusable has its exit status."""
    try:
        with waiting("loading torch and transformers"):
            from transformers.utils import logging

            from ffwd.adapters.transformers import load_local
    except ImportError as error:
        raise missing(error) from error
    # Its bar would be drawn without a terminal, too.
    logging.disable_progress_bar()
    try:
        with waiting(f"loading {model}"):
            return load_local(model, device=device, dtype=dtype)
    except FfwdError as error:
        kind = type(error).__name__
        raise Failure(str(error), exit_code=exits.UNUSABLE, kind=kind) from error


class _Writer:
    """Writes the text of an answer as it is generated: a streamer of transformers."""

    def __init__(self, asked: _Asked) -> None:
        self._bytes = asked.grammar.vocabulary.token_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        # The prompt already contains these, or they are hidden.
        self._skip = 0 if asked.start is None else len(asked.start.prefix)
        self._prompt_is_past = False
        if asked.start is not None:
            self._write(asked.start.prefill)

    def put(self, value: Any) -> None:
        """Take token ids: of the prompt first, then each."""
        if not self._prompt_is_past:
            self._prompt_is_past = True
            return
        for token in value.flatten().tolist():
            piece = self._bytes(token) or b""
            skipped = min(self._skip, len(piece))
            self._skip -= skipped
            self._write(piece[skipped:])

    def end(self) -> None:
        """End the output."""
        click.echo(_visible(self._decoder.decode(b"", final=True)))

    def _write(self, data: bytes) -> None:
        text = self._decoder.decode(data)
        if text:
            click.echo(_visible(text), nl=False)


def _visible(text: str) -> str:
    return printable(text) if on_terminal() else text


class _Answer:
    """The numbers and the picture of an answer."""

    def __init__(self, data: dict[str, Any], recording: Any) -> None:
        self.data = data
        self.recording = recording


def _answer(
    asked: _Asked,
    writer: _Writer | None,
    *,
    max_tokens: int,
    complete: bool,
    temperature: float,
    seed: int,
    canonical: bool,
    fast_forward: bool,
    record: bool,
) -> _Answer:
    import torch

    from ffwd.adapters.transformers import (
        GenerationReport,
        GrammarLogitsProcessor,
        fast_forward_generate,
    )

    grammar = asked.start or asked.grammar
    model = asked.loaded.model
    prompt = torch.tensor([asked.prompt_ids], device=model.device)
    ends = asked.grammar.vocabulary.eos_token_ids
    options: dict[str, Any] = {
        "attention_mask": torch.ones_like(prompt),
        "max_new_tokens": max_tokens,
        "do_sample": temperature > 0,
        "eos_token_id": ends,
        "pad_token_id": ends[0],
    }
    if temperature > 0:
        options["temperature"] = temperature
    report = GenerationReport(record=record, title=asked.title, masses=record)
    processor = None
    if fast_forward:
        options |= {
            "custom_generate": fast_forward_generate,
            "grammar": grammar,
            "canonical": canonical,
            "complete": complete,
            "report": report,
            "token_streamer": writer,
        }
    else:
        processor = GrammarLogitsProcessor(
            grammar,
            canonical=canonical,
            max_tokens=max_tokens if complete else None,
            in_place=True,
        )
        options |= {"logits_processor": [processor], "streamer": writer}
    torch.manual_seed(seed)
    started = time.perf_counter()
    try:
        output = model.generate(prompt, **options)
    except BudgetError as error:
        raise Failure(
            f"no whole answer fits: {error}; give a larger --max-tokens",
            exit_code=exits.CUT,
            kind="BudgetError",
        ) from error
    seconds = time.perf_counter() - started
    ids = output[0, prompt.shape[1] :].tolist()
    stats = report.stats if processor is None else processor.stats
    data = {
        **_text(asked, ids),
        "prompt_tokens": prompt.shape[1],
        "tokens": len(ids),
        "forced_tokens": stats.forced_tokens,
        "forward_passes": stats.forward_passes,
        "seconds": seconds,
        "grammar_microseconds_per_token": stats.mask_nanoseconds / 1e3 / max(len(ids), 1),
        "token_ids": ids,
    }
    return _Answer(data, _recording(asked, ids, report) if record else None)


def _recording(asked: _Asked, ids: list[int], report: Any) -> Any:
    from ffwd.view import replay

    if report.recordings:
        return report.recordings[0]
    # Under masks alone the allowed tokens can be found afterwards, but not the model's part.
    start = asked.start
    return replay(
        asked.grammar,
        ids,
        matcher=None if start is None else start.matcher(),
        forced=False,
        title=asked.title,
        prompt_ids=asked.prompt_ids,
        taken_back=() if start is None else start.taken_back,
    )


def _text(asked: _Asked, ids: list[int]) -> dict[str, Any]:
    data = {"text": "", "reasoning": "", "complete": _is_whole(asked, ids)}
    if asked.start is not None:
        answer = asked.start.answer(ids)
        return data | {"text": answer.text, "reasoning": answer.reasoning}
    spelled = asked.grammar.vocabulary.token_bytes
    return data | {"text": as_text(b"".join(spelled(token) or b"" for token in ids))}


def _is_whole(asked: _Asked, ids: list[int]) -> bool:
    """Return whether the text is one of the grammar's, also where no token was left for its end."""
    matcher = asked.grammar.matcher() if asked.start is None else asked.start.matcher()
    matcher.accept_tokens(ids[: matcher.validate_tokens(ids)])
    return matcher.is_terminated() or matcher.is_accepting()


def _write_stats(data: dict[str, Any]) -> None:
    each = milliseconds(data["grammar_microseconds_per_token"] * 1e3)
    note(
        f"{counted(data['tokens'], 'token')}, {data['forced_tokens']:,} of them forced, "
        f"{data['forward_passes']:,} forward passes, {data['seconds']:.2f} s; "
        f"{each} a token for the grammar",
        kind="stats",
    )
