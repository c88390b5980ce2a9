"""Single questions of speed, each a sub-command of `python -m maskbench speed`."""
