"""Tokenizer benchmarks for serving stacks: `python -m maskbench serving`."""
