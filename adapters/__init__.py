"""Adapters: one module per inference engine. Each is imported on its own, with its engine.

An adapter knows ffwd's public API and its engine's, and nothing else.
"""
