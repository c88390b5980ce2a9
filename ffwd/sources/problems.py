"""The support of each keyword of a schema, and suspicious parts of a grammar, with positions."""

from __future__ import annotations

from typing import Any

from ffwd.grammar import JsonSchema, fidelity_report, unused_rules
from ffwd.sources.places import locate_all
from ffwd.sources.text import SourceText


def keywords(source: SourceText) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return every keyword of a schema, and the problems of some; other grammars have none.

    A keyword has `pointer`, `keyword`, `fidelity`, `reason`, `suggestion`, `line` and `column`. A
    problem has `severity`, `message` and the position. Lines and columns count from 1, and are
    None in other documents than the schema.

    Raises:
        InvalidSchemaError: A value that is no JSON Schema.
        LimitExceededError: A limit was exceeded.

    """
    if not isinstance(source.grammar, JsonSchema):
        return [], []
    report = fidelity_report(source.grammar)
    places = locate_all(source.text, [entry.pointer for entry in report])
    lines, problems = [], []
    for entry in report:
        line, column = places.get(entry.pointer, (None, None))
        place = {
            "pointer": entry.pointer,
            "keyword": entry.keyword,
            "line": line,
            "column": column,
        }
        lines.append(
            {
                "pointer": entry.pointer,
                "keyword": entry.keyword,
                "fidelity": entry.fidelity,
                "reason": entry.reason,
                "suggestion": entry.suggestion,
                "line": line,
                "column": column,
            }
        )
        if entry.fidelity == "refused":
            severity, message = "error", f"`{entry.keyword}` is refused: {entry.reason}"
        elif entry.fidelity == "widened":
            severity, message = "warning", f"`{entry.keyword}` is left out: {entry.reason}"
        elif entry.suggestion is not None:
            severity = "warning"
            message = (
                f"`{entry.keyword}` is no keyword and asks for nothing: "
                f"did you mean `{entry.suggestion}`?"
            )
        else:
            continue
        problems.append({"severity": severity, "message": message, **place})
    return lines, problems


def unused(source: SourceText) -> list[dict[str, Any]]:
    """Return a problem for each rule that the start of a grammar does not reach.

    Raises:
        GrammarError: The grammar cannot be parsed.
        LimitExceededError: A limit was exceeded.

    """
    if source.language in ("json-schema", "regex"):
        return []
    return [
        {
            "severity": "warning",
            "message": f"the rule `{rule.name}` is not used",
            "line": rule.line,
            "column": rule.column,
        }
        for rule in unused_rules(source.grammar)
    ]
