"""A benchmark of constrained decoding on real JSON schemas.

Every engine gets the same schemas and the same tokens, computes one mask and accepts one token
per step, and is judged before it is timed. `python -m maskbench run --help` lists the options.
"""
