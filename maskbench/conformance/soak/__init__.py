"""Whether memory grows: many tokens, many matchers and many grammars, in one process."""
