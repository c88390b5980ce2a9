"""Adapters: one module per inference engine. Each is imported separately, with its engine.

An adapter uses only ffwd's public API and its engine's.
"""
