"""Grammars: JSON Schemas, regular expressions, notations, and their combinations."""

from typing import TYPE_CHECKING

from ffwd._lazy import lazy_names

if TYPE_CHECKING:
    from ffwd.grammar._choice import Choice as Choice
    from ffwd.grammar._choice import choice as choice
    from ffwd.grammar._dispatch import Dispatch as Dispatch
    from ffwd.grammar._dispatch import dispatch as dispatch
    from ffwd.grammar._fidelity import Fidelity as Fidelity
    from ffwd.grammar._fidelity import KeywordFidelity as KeywordFidelity
    from ffwd.grammar._fidelity import fidelity_report as fidelity_report
    from ffwd.grammar._free_text import AnyText as AnyText
    from ffwd.grammar._free_text import TextUntil as TextUntil
    from ffwd.grammar._free_text import any_text as any_text
    from ffwd.grammar._free_text import text_until as text_until
    from ffwd.grammar._front_ends import Ebnf as Ebnf
    from ffwd.grammar._front_ends import Gbnf as Gbnf
    from ffwd.grammar._front_ends import Lark as Lark
    from ffwd.grammar._front_ends import ebnf as ebnf
    from ffwd.grammar._front_ends import gbnf as gbnf
    from ffwd.grammar._front_ends import lark as lark
    from ffwd.grammar._grammar import Grammar as Grammar
    from ffwd.grammar._grammar import GrammarLike as GrammarLike
    from ffwd.grammar._kinds import JsonSchema as JsonSchema
    from ffwd.grammar._kinds import json_schema as json_schema
    from ffwd.grammar._languages import Complement as Complement
    from ffwd.grammar._languages import Intersection as Intersection
    from ffwd.grammar._languages import complement as complement
    from ffwd.grammar._languages import intersection as intersection
    from ffwd.grammar._reasoning import reasoning as reasoning
    from ffwd.grammar._regex import Dialect as Dialect
    from ffwd.grammar._regex import Regex as Regex
    from ffwd.grammar._regex import regex as regex
    from ffwd.grammar._repeat import Repeat as Repeat
    from ffwd.grammar._repeat import optional as optional
    from ffwd.grammar._repeat import repeat as repeat
    from ffwd.grammar._rules import RuleReference as RuleReference
    from ffwd.grammar._rules import Rules as Rules
    from ffwd.grammar._rules import rule as rule
    from ffwd.grammar._rules import rules as rules
    from ffwd.grammar._sequence import Seq as Seq
    from ffwd.grammar._sequence import Text as Text
    from ffwd.grammar._sequence import lit as lit
    from ffwd.grammar._sequence import seq as seq
    from ffwd.grammar._spans import Limit as Limit
    from ffwd.grammar._spans import Span as Span
    from ffwd.grammar._spans import SpanKind as SpanKind
    from ffwd.grammar._spans import capture as capture
    from ffwd.grammar._spans import limit as limit
    from ffwd.grammar._spans import span as span
    from ffwd.grammar._structural_tags import StructuralTagError as StructuralTagError
    from ffwd.grammar._structural_tags import structural_tag as structural_tag
    from ffwd.grammar._substring import Substring as Substring
    from ffwd.grammar._substring import Unit as Unit
    from ffwd.grammar._substring import substring_of as substring_of
    from ffwd.grammar._template import template as template
    from ffwd.grammar._tokens import Tokens as Tokens
    from ffwd.grammar._tokens import token as token
    from ffwd.grammar._tokens import tokens as tokens
    from ffwd.grammar._typed import TypedSchema as TypedSchema
    from ffwd.grammar._typed import schema_of as schema_of
    from ffwd.grammar._typed_errors import ParseError as ParseError
    from ffwd.grammar._typed_errors import TruncatedError as TruncatedError
    from ffwd.grammar._typed_errors import UnsupportedTypeError as UnsupportedTypeError
    from ffwd.grammar._unknown_keywords import UnknownKeyword as UnknownKeyword
    from ffwd.grammar._unknown_keywords import UnknownKeywordWarning as UnknownKeywordWarning
    from ffwd.grammar._unknown_keywords import unknown_keywords as unknown_keywords
    from ffwd.grammar._unknown_keywords import warn_of_unknown_keywords as warn_of_unknown_keywords
    from ffwd.grammar._unused import UnusedRule as UnusedRule
    from ffwd.grammar._unused import unused_rules as unused_rules
    from ffwd.grammar._writing import Numbers as Numbers
    from ffwd.grammar._writing import Policy as Policy
    from ffwd.grammar._writing import PropertyOrder as PropertyOrder
    from ffwd.grammar._writing import Whitespace as Whitespace
    from ffwd.grammar._writing import Writing as Writing
    from ffwd.grammar._writing import WritingOptions as WritingOptions
else:
    _NAMES = {
        "ffwd.grammar._choice": "Choice choice",
        "ffwd.grammar._dispatch": "Dispatch dispatch",
        "ffwd.grammar._fidelity": "Fidelity KeywordFidelity fidelity_report",
        "ffwd.grammar._free_text": "AnyText TextUntil any_text text_until",
        "ffwd.grammar._front_ends": "Ebnf Gbnf Lark ebnf gbnf lark",
        "ffwd.grammar._grammar": "Grammar GrammarLike",
        "ffwd.grammar._kinds": "JsonSchema json_schema",
        "ffwd.grammar._languages": "Complement Intersection complement intersection",
        "ffwd.grammar._reasoning": "reasoning",
        "ffwd.grammar._regex": "Dialect Regex regex",
        "ffwd.grammar._repeat": "Repeat optional repeat",
        "ffwd.grammar._rules": "RuleReference Rules rule rules",
        "ffwd.grammar._sequence": "Seq Text lit seq",
        "ffwd.grammar._spans": "Limit Span SpanKind capture limit span",
        "ffwd.grammar._structural_tags": "StructuralTagError structural_tag",
        "ffwd.grammar._substring": "Substring Unit substring_of",
        "ffwd.grammar._template": "template",
        "ffwd.grammar._tokens": "Tokens token tokens",
        "ffwd.grammar._typed": "TypedSchema schema_of",
        "ffwd.grammar._typed_errors": "ParseError TruncatedError UnsupportedTypeError",
        "ffwd.grammar._unknown_keywords": (
            "UnknownKeyword UnknownKeywordWarning unknown_keywords warn_of_unknown_keywords"
        ),
        "ffwd.grammar._unused": "UnusedRule unused_rules",
        "ffwd.grammar._writing": "Numbers Policy PropertyOrder Whitespace Writing WritingOptions",
    }
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
