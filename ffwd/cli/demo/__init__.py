"""`ffwd demo`: the command, the four ways of writing, and the report."""
