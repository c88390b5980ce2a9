"""A model's reasoning, and the answer after it."""

from ffwd.grammar._free_text import any_text
from ffwd.grammar._grammar import Grammar, GrammarLike, as_grammar
from ffwd.grammar._regex import regex
from ffwd.grammar._repeat import check_count
from ffwd.grammar._sequence import lit, seq
from ffwd.grammar._spans import limit, span
from ffwd.grammar._tokens import Tokens

# What models write between their reasoning and their answer.
BETWEEN = r"[ \t\r\n]{0,8}"


def reasoning(
    then: GrammarLike,
    *,
    open: str | Tokens = "<think>",
    close: str | Tokens = "</think>",
    opened: bool = False,
    optional: bool = False,
    max_tokens: int | None = None,
    max_chars: int | None = None,
    between: GrammarLike | None = None,
) -> Grammar:
    """Free text up to a closing tag, and then what a grammar says.

    Args:
        then: The grammar of the answer.
        open: What begins the reasoning: a text, in which names of control tokens of the vocabulary
            are these tokens, or a token.
        close: What ends it, likewise. Neither its text nor any control token comes in the
            reasoning.
        opened: The prompt has opened the reasoning already, so that the text begins within it.
        optional: The answer may come at once, without any reasoning.
        max_tokens: How many tokens the reasoning may take, without its tags: each that has a byte
            of it, see `limit`. Then the closing tag comes.
        max_chars: How many characters (code points) it may have.
        between: What comes between the closing tag and the answer; by default up to eight
            characters of whitespace.

    Raises:
        GrammarError: A tag is empty, or a bound negative.
        TypeError: An argument has another type.

    """
    for name, flag in (("opened", opened), ("optional", optional)):
        if not isinstance(flag, bool):
            raise TypeError(f"{name} must be a bool, not {type(flag).__name__}")
    answer = as_grammar(then, "then")
    space = regex(BETWEEN) if between is None else as_grammar(between, "between")
    free: Grammar = any_text(excluding=_written(close, "close"), max_chars=max_chars)
    if max_tokens is not None:
        check_count(max_tokens, "max_tokens")
        free = limit(free, max_tokens=max_tokens)
    thought = seq(span("reasoning", free), _tag(close), space)
    if not opened:
        _written(open, "open")
        thought = seq(_tag(open), thought)
    return seq(thought, answer) | answer if optional else seq(thought, answer)


def _tag(tag: str | Tokens) -> Grammar:
    return lit(tag, controls=True) if isinstance(tag, str) else tag


def _written(tag: str | Tokens, what: str) -> tuple[str, ...]:
    """The text that a tag has, which must not come before it."""
    if isinstance(tag, Tokens):
        return ()
    if not isinstance(tag, str):
        raise TypeError(f"{what} must be a str or a token, not {type(tag).__name__}")
    return any_text(excluding=tag).excluding
