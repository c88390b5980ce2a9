"""What ends a command with a message instead of a traceback."""

from __future__ import annotations


class InputError(Exception):
    """What a command is given cannot be used; the message says what and why."""
