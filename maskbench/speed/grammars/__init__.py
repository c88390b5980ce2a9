"""Masks of real grammars, timed: `python -m maskbench speed grammars`."""
