"""What several engines share: requests as grammars, their cache, vocabularies and matchers."""
