"""The common parts of engines: requests as grammars, their cache, vocabularies and matchers."""
