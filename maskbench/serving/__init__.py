"""Measures what a server asks of a tokenizer: texts in, texts out while they come, many at once."""
