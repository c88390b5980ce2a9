"""The command line: `ffwd COMMAND`. Needs the extra `cli`; each command lists its other needs."""


def main() -> None:
    """Run the command of the arguments."""
    try:
        from ffwd.cli.commands import group
    except ImportError as error:
        if error.name != "click":
            raise
        raise SystemExit("the command line needs click: pip install 'ffwd[cli]'") from None
    group(prog_name="ffwd")
