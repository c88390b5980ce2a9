"""Gates for an engine's verdicts: random walks through masks, and fuzzing of keywords.

What an engine lets through is compared with two validators, jsonschema-rs and Python's jsonschema.
"""
