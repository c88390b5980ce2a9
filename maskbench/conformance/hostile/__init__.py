"""Inputs made to cost as much as they can, and what they cost under the default limits."""
