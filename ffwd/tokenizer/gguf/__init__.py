"""Tokenizers of GGUF files, llama.cpp's format of models."""
