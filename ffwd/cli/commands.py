"""The commands by name, each in a file of its own that is imported on demand."""

import importlib

import click

import ffwd
from ffwd.cli.output import wants_no_colour

COMMANDS = {
    # Name: where it is, and what it does, for the list of all commands.
    "bench": ("ffwd.cli.bench:bench", "Time a grammar and a tokenizer on this machine."),
    "chat": ("ffwd.cli.chat:chat", "Render conversations as prompts."),
    "check": ("ffwd.cli.check:check", "Say whether a schema or grammar can be used."),
    "count": ("ffwd.cli.tokenize:count", "Count the tokens of a text."),
    "demo": ("ffwd.cli.demo.command:demo", "Write JSON with the model in the box, in four ways."),
    "doctor": ("ffwd.cli.doctor:doctor", "Say whether vLLM or SGLang can use ffwd here."),
    "explain": ("ffwd.cli.explain:explain", "Say why a text is refused, and what may come."),
    "fuzz-schema": (
        "ffwd.cli.sample:fuzz_schema",
        "Write valid documents at the edges of a schema.",
    ),
    "generate": ("ffwd.cli.generate:generate", "Generate with a model, by a grammar."),
    "mask": ("ffwd.cli.mask:mask", "Show which tokens may come next."),
    "play": ("ffwd.cli.play:play", "Try a grammar, a tokenizer and a text on a page."),
    "sample": ("ffwd.cli.sample:sample", "Write valid documents at random."),
    "serve": ("ffwd.cli.serve:serve", "Serve a model with OpenAI's interface."),
    "split": ("ffwd.cli.tokenize:split", "Cut a text after so many tokens."),
    "tokenize": ("ffwd.cli.tokenize:tokenize", "Show the tokens of a text."),
}


class LazyGroup(click.Group):
    """A group that loads a command when it is needed, with all that the command needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ffwd.__version__, prog_name="ffwd")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Constrained decoding: structured output that follows a grammar.

    \b
    Examples:
      ffwd check schema.json
      ffwd explain schema.json '{"name": 3'
      ffwd generate path/of/a/model schema.json --prompt 'Ada is 36.'
      ffwd play schema.json

    Data goes to standard output and everything else to standard error. With --json every command
    writes JSON. Colours are only for terminals, and NO_COLOR switches them off.

    \b
    Exit status:
      0  success, and the checked input is good
      1  the checked input is bad
      2  usage
      3  generate, sample, fuzz-schema: the limit of tokens or bytes is too small
      4  a package is not installed
      5  a model or tokenizer cannot be used
    """
    if wants_no_colour():
        ctx.color = False
