"""SentencePiece: its model files, its library, and tokenizers of both."""
