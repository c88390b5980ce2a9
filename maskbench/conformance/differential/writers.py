"""A drawn grammar as text: a regular expression, Lark, GBNF, and Lark as its own parser has it."""

from __future__ import annotations

import json
from collections.abc import Sequence as Rules
from typing import ClassVar

from maskbench.conformance.differential.draws import (
    Both,
    Chars,
    Choice,
    Lexed,
    Node,
    Not,
    Repeat,
    RuleNode,
    Sequence,
    Terminal,
    VerbatimText,
)


def as_regex(node: Node) -> str:
    """In the common subset of the dialects of Rust, Python and interegular."""
    match node:
        case VerbatimText(text):
            return "".join("\\" + char if char in "\\-" else char for char in text) or "()"
        case Chars(chars, negated):
            return f"[{'^' if negated else ''}{''.join(chars)}]" if chars else "."
        case Sequence(parts):
            return "".join(
                f"({as_regex(part)})" if isinstance(part, Choice) else as_regex(part)
                for part in parts
            )
        case Choice(options):
            return "|".join(as_regex(option) for option in options)
        case Repeat(inner, least, most):
            return f"({as_regex(inner)}){_quantifier(least, most)}"
        case _:
            raise TypeError(node)


def _quantifier(least: int, most: int | None) -> str:
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most))
    if short is not None:
        return short
    if least == most:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


class LarkWriter:
    """Rules in llguidance's variant of Lark."""

    def rules(self, rules: Rules[Node]) -> str:
        """Return all of them; the first is the start."""
        lines = [f"r{number}: {self.write(node)}" for number, node in enumerate(rules)]
        return "\n".join(["start: r0", *lines]) + "\n"

    def terminal(self, node: Node) -> str:
        """Return a grammar that is one terminal."""
        return f"start: T\nT: {self.write(node)}\n"

    def lexed(self, drawn: Lexed) -> str:
        """Return rules and terminals, and what is ignored."""
        lines = [f"T{number}: {self.write(node)}" for number, node in enumerate(drawn.terminals)]
        if drawn.ignored:
            lines.append("%ignore / +/")
        return self.rules(drawn.rules) + "\n".join(lines) + "\n"

    def write(self, node: Node) -> str:
        """Return one expression."""
        match node:
            case VerbatimText(text):
                return json.dumps(text, ensure_ascii=False)
            case Chars():
                return f"/{as_regex(node)}/"
            case Sequence(parts):
                return " ".join(self._part(part) for part in parts)
            case Choice(options):
                return " | ".join(self.write(option) for option in options)
            case Repeat(inner, least, most):
                return f"({self.write(inner)}){_quantifier(least, most)}"
            case Both(left, right):
                return f"({self.write(left)}) & ({self.write(right)})"
            case Not(inner):
                return f"~({self.write(inner)})"
            case RuleNode(number):
                return f"r{number}"
            case Terminal(number):
                return f"T{number}"

    def _part(self, node: Node) -> str:
        return f"({self.write(node)})" if isinstance(node, Choice | Both) else self.write(node)


class SingleWriter(LarkWriter):
    """The same with lexemes of one character, so that the longest match decides nothing."""

    def write(self, node: Node) -> str:
        """Return one expression."""
        match node:
            case VerbatimText(text) if text:
                return " ".join(json.dumps(char, ensure_ascii=False) for char in text)
            case _:
                return super().write(node)


class ParserWriter(SingleWriter):
    """The same for Lark itself, where nothing is no empty string."""

    def write(self, node: Node) -> str:
        """Return one expression."""
        match node:
            case VerbatimText(""):
                return "()"
            case Repeat(inner, least, most) if _quantifier(least, most).startswith("{"):
                written = f"({self.write(inner)})"
                times = f"{written}~{least}"
                return f"{times} {written}*" if most is None else f"{times}..{most}"
            case _:
                return super().write(node)


class GbnfWriter:
    """Rules in llama.cpp's GBNF."""

    _ESCAPES: ClassVar[dict[str, str]] = {'"': '\\"', "\\": "\\\\", "\n": "\\n"}

    def rules(self, rules: Rules[Node]) -> str:
        """Return all of them; the first is the root."""
        lines = [f"r{number} ::= {self.write(node)}" for number, node in enumerate(rules)]
        return "\n".join(["root ::= r0", *lines]) + "\n"

    def write(self, node: Node) -> str:
        """Return one expression."""
        match node:
            case VerbatimText(text):
                return '"' + "".join(self._ESCAPES.get(char, char) for char in text) + '"'
            case Chars(chars, negated):
                return f"[{'^' if negated else ''}{''.join(chars)}]" if chars else r"[^\n]"
            case Sequence(parts):
                return " ".join(
                    f"({self.write(part)})" if isinstance(part, Choice) else self.write(part)
                    for part in parts
                )
            case Choice(options):
                return " | ".join(self.write(option) for option in options)
            case Repeat(inner, least, most):
                return f"({self.write(inner)}){_quantifier(least, most)}"
            case RuleNode(number):
                return f"r{number}"
            case _:
                raise TypeError(node)
