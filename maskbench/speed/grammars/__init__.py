"""Masks of real grammars, timed: `python -m maskbench grammars-speed`."""
