"""Random schemas and grammars, two engines side by side, and others who say who is right."""
