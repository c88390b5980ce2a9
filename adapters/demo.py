"""Deprecated: the command `ffwd demo` writes prompts in four ways."""

from ffwd._deprecated import moved_names

__getattr__ = moved_names(
    __name__,
    "ffwd.cli.demo.ways",
    dict.fromkeys(
        ("Demo", "MAX_TOKENS", "Outcome", "Task", "WAYS", "tasks"), "the command `ffwd demo --json`"
    ),
)
