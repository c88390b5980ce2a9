"""Measures how fast masks are put onto logits, ffwd's beside others."""
