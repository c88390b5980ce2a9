"""How time and memory grow: with the length of an output, and with the size of a schema."""
