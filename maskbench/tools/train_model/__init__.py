"""Trains the model in the box, `ffwd.model`, on texts that are generated."""
