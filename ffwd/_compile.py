"""Compilation of grammars for a vocabulary."""

from ffwd._limits import Limits
from ffwd._native import (
    Cancellation,
    CompiledGrammar,
    CompileMeter,
    Vocabulary,
    compile_choice,
    compile_grammar,
    compile_json_schema,
    compile_language,
    compile_regex,
)
from ffwd.grammar import Grammar, JsonSchema

DEFAULT_LIMITS = Limits()


def compile(
    grammar: Grammar,
    vocabulary: Vocabulary,
    *,
    limits: Limits = DEFAULT_LIMITS,
    cancellation: Cancellation | None = None,
) -> CompiledGrammar:
    """Compile a grammar for a vocabulary.

        grammar = ffwd.compile(ffwd.regex("[0-9]+"), vocabulary)
        matcher = grammar.matcher()

    The automaton is built as matchers reach its states, and all matchers of the result share it, on
    any number of threads. Compile a grammar once, and make one matcher of it per request.

    Args:
        grammar: From `json_schema`, `regex`, `choice`, or any other function of `ffwd.grammar`.
        vocabulary: The token bytes, from `ffwd.tokenizer`.
        limits: The bounds on time and memory of the compilation, and of each call of its matchers.
        cancellation: Another thread can cancel the compilation with it. Matchers take one of their
            own.

    Raises:
        GrammarError: A regular expression or grammar that cannot be parsed, with `line` and
            `column`; a rule that is undefined or accepts no text; a token that the vocabulary
            lacks; JSON Schemas with different writing options in one grammar.
        InvalidSchemaError: A value that is no JSON Schema, with the `pointer` to the position.
        UnsupportedSchemaError: An unsupported keyword, with `keyword` and `pointer`.
        UnsatisfiableSchemaError: No JSON value is valid against the schema.
        LimitExceededError: A limit was exceeded, with `limit`, `maximum`, and the `pointer`, or
            `line` and `column`, if the position is known.
        DeadlineExceededError: The compilation took longer than `limits.compile_seconds`.
        CancellationError: The compilation was cancelled.
        TypeError: An argument of another type.

    """
    meter = CompileMeter(limits, cancellation)
    if not isinstance(vocabulary, Vocabulary):
        raise TypeError(f"vocabulary must be a Vocabulary, not {type(vocabulary).__name__}")
    if isinstance(grammar, JsonSchema):
        return compile_json_schema(
            grammar.schema,
            vocabulary,
            writing=grammar,
            registry=grammar.registry,
            meter=meter,
        )
    # Only here: a process that compiles nothing but JSON Schemas does not load the other grammars.
    from ffwd.grammar import Choice, Complement, Intersection, Regex, Substring
    from ffwd.grammar._lower import lower

    if isinstance(grammar, Regex):
        return compile_regex(
            grammar.pattern,
            vocabulary,
            dialect=grammar.dialect,
            flags=grammar.flags,
            search=grammar.search,
            characters=grammar.characters,
            meter=meter,
        )
    if isinstance(grammar, Choice) and grammar.texts is not None:
        return compile_choice(grammar.texts, vocabulary, meter=meter)
    if not isinstance(grammar, Grammar):
        raise TypeError(
            f"grammar must be a grammar, such as ffwd.lit(text), not {type(grammar).__name__}"
        )
    names = vocabulary.token_names
    ends = {name for name, token in names.items() if token in vocabulary.eos_token_ids}
    builder, start, schemas = lower(grammar, names, ends, meter)
    if isinstance(grammar, (Substring, Intersection, Complement)):
        return compile_language(builder, start, vocabulary, meter=meter)
    return compile_grammar(builder, start, vocabulary, meter=meter, **schemas.native())


async def compile_async(
    grammar: Grammar, vocabulary: Vocabulary, *, limits: Limits = DEFAULT_LIMITS
) -> CompiledGrammar:
    """Run `compile` on a thread, so that the event loop stays responsive.

        grammar = await ffwd.compile_async(ffwd.json_schema(schema), vocabulary)

    Errors are those of `compile`. The interpreter lock is released meanwhile. Cancelling the task
    cancels the compilation.
    """
    import asyncio  # Its caller has loaded it; nothing else of ffwd needs it.

    cancellation = Cancellation()
    try:
        return await asyncio.to_thread(
            compile, grammar, vocabulary, limits=limits, cancellation=cancellation
        )
    except asyncio.CancelledError:
        cancellation.cancel()
        raise
