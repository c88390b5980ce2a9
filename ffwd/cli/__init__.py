"""The command line: `ffwd COMMAND`. Needs the extra `cli`; each command says what else it needs."""


def main() -> None:
    """Run the command that is named."""
    try:
        from ffwd.cli.commands import group
    except ImportError as error:
        if error.name != "click":
            raise
        raise SystemExit("the command line needs click: pip install 'ffwd[cli]'") from None
    group(prog_name="ffwd")
