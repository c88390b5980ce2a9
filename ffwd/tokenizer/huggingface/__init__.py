"""Tokenizers of Hugging Face's library and of its files."""
