"""Schemas that make engines slow, by name."""
