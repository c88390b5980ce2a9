"""Random schemas and grammars on two engines side by side, and judges that decide who is right."""
