"""Checks of the texts that engines accept; its generators and walkers also serve the tests."""
