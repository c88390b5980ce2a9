"""`ffwd demo`: the command, the four ways of writing, and what it says of them."""
