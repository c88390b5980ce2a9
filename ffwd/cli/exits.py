"""The exit statuses of commands."""

OK = 0
"""Done, and what was checked is good."""
BAD = 1
"""What was checked is bad: a grammar that is refused, a text that may not come, a conversation."""
USAGE = 2
"""The command line is wrong: an unknown option, a file that is not there."""
CUT = 3
"""`generate`, `sample`, `fuzz-schema`: the limit of tokens or bytes is too small for a text."""
MISSING = 4
"""A package is not installed; the message says which command installs it."""
UNUSABLE = 5
"""A model or a tokenizer that cannot be used, or the two do not fit each other."""
