"""Errors that end a command with a message instead of a traceback."""

from __future__ import annotations


class InputError(Exception):
    """An unusable argument of a command; the message says what and why."""
