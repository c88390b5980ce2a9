"""Constrained decoding: token bitmasks and fast-forward tokens from a grammar and a tokenizer.

    vocabulary = ffwd.tokenizer.from_huggingface("path/of/a/model")
    grammar = ffwd.compile(ffwd.json_schema({"type": "object"}), vocabulary)
    matcher = grammar.matcher()
    bitmask = ffwd.allocate_bitmask(1, vocabulary.vocab_size)
    matcher.fill_bitmask(bitmask, 0)

Threads may share a compiled grammar; a matcher belongs to one request.
"""

from typing import TYPE_CHECKING

from ffwd import _native as _native
from ffwd._lazy import lazy_names

if TYPE_CHECKING:
    from ffwd import chat as chat
    from ffwd import grammar as grammar
    from ffwd import metrics as metrics
    from ffwd import openai as openai
    from ffwd import streaming as streaming
    from ffwd import tokenizer as tokenizer
    from ffwd import tools as tools
    from ffwd import view as view
    from ffwd._bitmask import allocate_bitmask as allocate_bitmask
    from ffwd._compile import compile as compile
    from ffwd._compile import compile_async as compile_async
    from ffwd._documents import boundary_documents as boundary_documents
    from ffwd._documents import sample_documents as sample_documents
    from ffwd._events import Event as Event
    from ffwd._explain import Answer as Answer
    from ffwd._explain import Expected as Expected
    from ffwd._explain import Explanation as Explanation
    from ffwd._explain import Reason as Reason
    from ffwd._explain import RulePlace as RulePlace
    from ffwd._generate import generate as generate
    from ffwd._generate import generate_async as generate_async
    from ffwd._generate import stream as stream
    from ffwd._limits import Limits as Limits
    from ffwd._logits import apply_token_bitmask_inplace as apply_token_bitmask_inplace
    from ffwd._native import BitmaskError as BitmaskError
    from ffwd._native import BudgetError as BudgetError
    from ffwd._native import Cancellation as Cancellation
    from ffwd._native import CancellationError as CancellationError
    from ffwd._native import CompiledGrammar as CompiledGrammar
    from ffwd._native import DeadlineExceededError as DeadlineExceededError
    from ffwd._native import FfwdError as FfwdError
    from ffwd._native import GrammarError as GrammarError
    from ffwd._native import InvalidSchemaError as InvalidSchemaError
    from ffwd._native import LimitExceededError as LimitExceededError
    from ffwd._native import Matcher as Matcher
    from ffwd._native import SchemaError as SchemaError
    from ffwd._native import SerializationError as SerializationError
    from ffwd._native import TextError as TextError
    from ffwd._native import TokenError as TokenError
    from ffwd._native import UnsatisfiableSchemaError as UnsatisfiableSchemaError
    from ffwd._native import UnsupportedSchemaError as UnsupportedSchemaError
    from ffwd._native import Vocabulary as Vocabulary
    from ffwd._native import VocabularyError as VocabularyError
    from ffwd._native import __version__ as __version__
    from ffwd._native import fill_bitmasks as fill_bitmasks
    from ffwd._rejection import RejectionSample as RejectionSample
    from ffwd._rejection import sample_by_rejection as sample_by_rejection
    from ffwd.grammar import Choice as Choice
    from ffwd.grammar import Grammar as Grammar
    from ffwd.grammar import GrammarLike as GrammarLike
    from ffwd.grammar import JsonSchema as JsonSchema
    from ffwd.grammar import KeywordFidelity as KeywordFidelity
    from ffwd.grammar import ParseError as ParseError
    from ffwd.grammar import Regex as Regex
    from ffwd.grammar import StructuralTagError as StructuralTagError
    from ffwd.grammar import TruncatedError as TruncatedError
    from ffwd.grammar import TypedSchema as TypedSchema
    from ffwd.grammar import UnknownKeyword as UnknownKeyword
    from ffwd.grammar import UnknownKeywordWarning as UnknownKeywordWarning
    from ffwd.grammar import UnsupportedTypeError as UnsupportedTypeError
    from ffwd.grammar import UnusedRule as UnusedRule
    from ffwd.grammar import any_text as any_text
    from ffwd.grammar import capture as capture
    from ffwd.grammar import choice as choice
    from ffwd.grammar import complement as complement
    from ffwd.grammar import dispatch as dispatch
    from ffwd.grammar import ebnf as ebnf
    from ffwd.grammar import fidelity_report as fidelity_report
    from ffwd.grammar import gbnf as gbnf
    from ffwd.grammar import intersection as intersection
    from ffwd.grammar import json_schema as json_schema
    from ffwd.grammar import lark as lark
    from ffwd.grammar import limit as limit
    from ffwd.grammar import lit as lit
    from ffwd.grammar import optional as optional
    from ffwd.grammar import reasoning as reasoning
    from ffwd.grammar import regex as regex
    from ffwd.grammar import repeat as repeat
    from ffwd.grammar import rule as rule
    from ffwd.grammar import rules as rules
    from ffwd.grammar import schema_of as schema_of
    from ffwd.grammar import seq as seq
    from ffwd.grammar import span as span
    from ffwd.grammar import structural_tag as structural_tag
    from ffwd.grammar import substring_of as substring_of
    from ffwd.grammar import template as template
    from ffwd.grammar import text_until as text_until
    from ffwd.grammar import token as token
    from ffwd.grammar import tokens as tokens
    from ffwd.grammar import unknown_keywords as unknown_keywords
    from ffwd.grammar import unused_rules as unused_rules
    from ffwd.grammar import warn_of_unknown_keywords as warn_of_unknown_keywords
else:
    _NAMES = {
        "ffwd._bitmask": "allocate_bitmask",
        "ffwd._compile": "compile compile_async",
        "ffwd._documents": "boundary_documents sample_documents",
        "ffwd._events": "Event",
        "ffwd._explain": "Answer Expected Explanation Reason RulePlace",
        "ffwd._generate": "generate generate_async stream",
        "ffwd._limits": "Limits",
        "ffwd._logits": "apply_token_bitmask_inplace",
        "ffwd._native": (
            "BitmaskError BudgetError Cancellation CancellationError CompiledGrammar "
            "DeadlineExceededError FfwdError GrammarError InvalidSchemaError LimitExceededError "
            "Matcher SchemaError SerializationError TextError TokenError "
            "UnsatisfiableSchemaError UnsupportedSchemaError Vocabulary VocabularyError "
            "__version__ fill_bitmasks"
        ),
        "ffwd._rejection": "RejectionSample sample_by_rejection",
        "ffwd.grammar": (
            "Choice Grammar GrammarLike JsonSchema KeywordFidelity ParseError Regex "
            "StructuralTagError TruncatedError TypedSchema UnknownKeyword UnknownKeywordWarning "
            "UnsupportedTypeError UnusedRule any_text capture choice complement dispatch ebnf "
            "fidelity_report gbnf intersection json_schema lark limit lit optional reasoning "
            "regex repeat rule rules schema_of seq span structural_tag substring_of template "
            "text_until token tokens unknown_keywords unused_rules warn_of_unknown_keywords"
        ),
    }
    _MODULES = "chat grammar metrics openai streaming tokenizer tools view"
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES, _MODULES)
