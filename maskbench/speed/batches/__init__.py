"""Masks of many rows at once, on several threads."""
