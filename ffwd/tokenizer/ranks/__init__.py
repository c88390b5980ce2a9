"""Tokenizers that are lists of ranks: tiktoken's encodings, Mistral's tekken.json."""
