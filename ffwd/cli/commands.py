"""The commands by name. Each is a file of its own, imported when it is called or asked for."""

import importlib

import click

import ffwd

COMMANDS = {
    # Name: where it is, and what it does, for the list of all commands.
    "demo": ("ffwd.cli.demo:demo", "Write JSON with the model in the box, in four ways."),
    "serve": ("ffwd.cli.serve:serve", "Serve a model with OpenAI's interface."),
}


class LazyGroup(click.Group):
    """A group that loads a command when it is needed, with all that the command needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, none of which is loaded for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup)
@click.version_option(ffwd.__version__, prog_name="ffwd")
def group() -> None:
    """Constrained decoding: structured output that follows a grammar."""
