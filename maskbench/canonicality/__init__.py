"""Whether forced tokens, and tokens under canonical masks, are those of the finished text."""
