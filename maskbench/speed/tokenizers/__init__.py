"""Measures tokenizers: how fast they encode and count text, ffwd's beside others."""
