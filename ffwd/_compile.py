"""From the description of a grammar to a compiled one."""

from ffwd._native import (
    CompiledGrammar,
    Vocabulary,
    compile_choice,
    compile_json_schema,
    compile_regex,
)
from ffwd.grammar import Choice, Grammar, JsonSchema, Regex


def compile(grammar: Grammar, vocabulary: Vocabulary) -> CompiledGrammar:
    """Compile a grammar for a vocabulary.

    The automaton is built as matchers reach its states, and all matchers of the result share it, on
    any number of threads. So compile once, and ask the result for one matcher per request.

    Args:
        grammar: From `json_schema`, `regex` or `choice`.
        vocabulary: The token bytes, from `ffwd.tokenizer`.

    Raises:
        GrammarError: A regular expression that cannot be read, with `line` and `column`.
        InvalidSchemaError: A schema that is not one, with the `pointer` to the place.
        UnsupportedSchemaError: A keyword that is not supported, with `keyword` and `pointer`.
        UnsatisfiableSchemaError: No JSON value is valid against the schema.
        LimitExceededError: A budget ran out, with `limit`, `maximum`, and the `pointer` if the
            place is known.
        TypeError: An argument of another type.

    """
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(f"vocabulary must be a Vocabulary, not {type(vocabulary).__name__}")
    if isinstance(grammar, JsonSchema):
        return compile_json_schema(
            grammar.schema,
            vocabulary,
            whitespace=grammar.whitespace,
            max_whitespace=grammar.max_whitespace,
            separators=grammar.layout_separators,
            indent=grammar.layout_indent,
            any_order=grammar.property_order == "any",
            registry=grammar.registry,
            lenient=grammar.policy == "lenient",
        )
    if isinstance(grammar, Regex):
        return compile_regex(grammar.pattern, vocabulary)
    if isinstance(grammar, Choice):
        return compile_choice(grammar.options, vocabulary)
    raise TypeError(
        "grammar must come from json_schema, regex or choice, "
        f"and is of type {type(grammar).__name__}"
    )
