"""Grammars that are no JSON Schema: a corpus with examples, and how engines compare on it."""
