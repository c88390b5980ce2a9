"""Measures logits processors of transformers, ffwd's beside others."""
