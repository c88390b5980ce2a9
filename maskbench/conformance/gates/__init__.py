"""Gates for an engine's verdicts: random walks through masks, and fuzzing of keywords.

The accepted texts are compared with two validators, jsonschema-rs and Python's jsonschema.
"""
