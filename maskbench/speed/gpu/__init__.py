"""Measures masks and forced tokens beside a model on an accelerator."""
