"""A model's reasoning before its answer."""

from ffwd.grammar._free_text import any_text
from ffwd.grammar._grammar import Grammar, GrammarLike, as_grammar
from ffwd.grammar._regex import regex
from ffwd.grammar._repeat import check_count
from ffwd.grammar._sequence import lit, seq
from ffwd.grammar._spans import limit, span
from ffwd.grammar._tokens import Tokens

# The text that models write between their reasoning and their answer.
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
    """Return a grammar for free text up to a closing tag, and then for the answer.

    Args:
        then: The grammar of the answer.
        open: The tag that begins the reasoning: a text, in which names of control tokens of the
            vocabulary mean these tokens, or a token.
        close: The tag that ends it, in the same form. The reasoning contains neither its text nor
            any control token.
        opened: The prompt already contains the opening tag, so the output starts with the
            reasoning.
        optional: The answer may come without any reasoning.
        max_tokens: The most tokens of the reasoning without its tags: each that has a byte of it,
            see `limit`. Then the closing tag follows.
        max_chars: The most characters (code points) of the reasoning.
        between: The grammar between the closing tag and the answer; by default up to eight
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
    """Return the text of a tag, which the reasoning must not contain."""
    if isinstance(tag, Tokens):
        return ()
    if not isinstance(tag, str):
        raise TypeError(f"{what} must be a str or a token, not {type(tag).__name__}")
    return any_text(excluding=tag).excluding
