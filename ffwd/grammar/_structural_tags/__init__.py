"""Structural tags: XGrammar's JSON, read into grammars."""

from ffwd.grammar._structural_tags.errors import StructuralTagError as StructuralTagError
from ffwd.grammar._structural_tags.read import structural_tag as structural_tag
