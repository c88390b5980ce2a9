"""What language models ask for: function calls and the plans of agents."""

from __future__ import annotations

from maskbench.shapes.shape import (
    BOOL,
    DROP,
    INT,
    NULL,
    NUM,
    STR,
    Schema,
    Shape,
    array,
    form,
    integer,
    obj,
    pattern,
    ref,
    text,
    words,
)


def _call(name: str, **arguments: Schema) -> Schema:
    return obj({"name": {"const": name}, "arguments": obj(arguments)})


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, NULL]}


SHAPES = [
    Shape(
        "call_send_mail",
        obj(
            {
                "to": array(form("email"), 1, 5),
                "cc": array(form("email"), 0, 5),
                "subject": text(1, 120),
                "body": STR,
                "urgent": BOOL,
            },
            optional=["cc", "urgent"],
            description="Sends a message.",
        ),
        lambda d: {
            "to": d.list(1, 2, d.email),
            "cc": [],
            "subject": d.title(),
            "body": d.sentence(),
            "urgent": d.bool(),
        },
        (("to", []), ("to/0", "nobody"), ("subject", ""), ("body", DROP), ("bcc", [])),
        optional=("cc", "urgent"),
    ),
    Shape(
        "call_calendar_event",
        obj(
            {
                "title": text(1),
                "start": form("date-time"),
                "minutes": integer(5, 1440, multipleOf=5),
                "attendees": array(obj({"name": STR, "required": BOOL}), 0, 8),
                "repeat": words("never", "daily", "weekly"),
            }
        ),
        lambda d: {
            "title": d.title(),
            "start": d.instant(),
            "minutes": 5 * d.int(1, 48),
            "attendees": d.list(0, 2, lambda: {"name": d.name(), "required": d.bool()}),
            "repeat": d.pick(("never", "daily")),
        },
        (
            ("minutes", 7),
            ("minutes", 0),
            ("start", "tomorrow"),
            ("attendees/+", {"name": "x"}),
            ("repeat", "hourly"),
        ),
        features=("multipleOf",),
    ),
    Shape(
        "call_sql_query",
        obj(
            {
                "table": pattern("^[a-z_][a-z0-9_]*$"),
                "columns": array(STR, 1),
                "where": array(
                    obj(
                        {
                            "column": STR,
                            "op": words("=", "<", ">", "like", "in"),
                            "value": {"type": ["string", "number", "boolean", "null"]},
                        }
                    )
                ),
                "limit": integer(1, 1000),
            },
            optional=["where", "limit"],
        ),
        lambda d: {
            "table": d.ident(),
            "columns": d.list(1, 3, d.word),
            "where": [{"column": d.word(), "op": "<", "value": d.num(0, 9)}],
            "limit": d.int(1, 1000),
        },
        (
            ("table", "1st"),
            ("columns", []),
            ("where/0/op", "<>"),
            ("where/0/value", []),
            ("limit", 0),
            ("offset", 1),
        ),
        optional=("where", "limit"),
    ),
    Shape(
        "call_one_of_many",
        {
            "oneOf": [
                _call("read_file", path=text(1)),
                _call("write_file", path=text(1), content=STR),
                _call("list_folder", path=text(1), depth=integer(1, 9)),
                _call("stop"),
            ]
        },
        lambda d: d.pick(
            (
                {"name": "read_file", "arguments": {"path": f"/tmp/{d.slug()}"}},
                {"name": "write_file", "arguments": {"path": "a.txt", "content": d.sentence()}},
                {"name": "list_folder", "arguments": {"path": ".", "depth": d.int(1, 9)}},
                {"name": "stop", "arguments": {}},
            )
        ),
        (
            ("name", "delete_file"),
            ("arguments", DROP),
            ("arguments/force", True),
            ("arguments", None),
        ),
        features=("oneOf",),
    ),
    Shape(
        "call_several_at_once",
        obj(
            {
                "calls": array(
                    obj(
                        {
                            "id": pattern("^call_[0-9a-f]{6}$"),
                            "function": words("add", "mul", "neg"),
                            "operands": array(NUM, 1, 2),
                        }
                    ),
                    1,
                    4,
                )
            }
        ),
        lambda d: {
            "calls": d.list(
                1,
                3,
                lambda: {
                    "id": f"call_{d.hex(6)}",
                    "function": d.pick(("add", "mul", "neg")),
                    "operands": d.list(1, 2, lambda: d.num(-9, 9)),
                },
            )
        },
        (
            ("calls", []),
            ("calls/0/id", "call_12"),
            ("calls/0/function", "div"),
            ("calls/0/operands", []),
            ("calls/0/operands/+", "1"),
        ),
    ),
    Shape(
        "agent_plan",
        {
            "$defs": {
                "task": obj(
                    {
                        "goal": text(1, 80),
                        "tool": _nullable(words("search", "code", "ask")),
                        "subtasks": array(ref("task"), None, 3),
                    }
                )
            },
            **obj({"plan": ref("task"), "budget": integer(1, 100)}),
        },
        lambda d: {
            "plan": {
                "goal": d.title(),
                "tool": None,
                "subtasks": d.list(
                    0,
                    2,
                    lambda: {"goal": d.title(), "tool": d.pick(("search", "code")), "subtasks": []},
                ),
            },
            "budget": d.int(1, 100),
        },
        (
            ("plan/goal", ""),
            ("plan/tool", "shell"),
            ("plan/subtasks/+", {"goal": "x", "tool": None}),
            ("budget", 0),
            ("plan/subtasks", [None]),
        ),
        features=("$ref",),
    ),
    Shape(
        "agent_thought_or_act",
        {
            "type": "object",
            "properties": {
                "thought": text(1),
                "action": {"anyOf": [_call("search", q=text(1)), _call("finish", answer=STR)]},
            },
            "required": ["thought", "action"],
            "additionalProperties": False,
        },
        lambda d: {
            "thought": d.sentence(),
            "action": d.pick(
                (
                    {"name": "search", "arguments": {"q": d.title()}},
                    {"name": "finish", "arguments": {"answer": d.sentence()}},
                )
            ),
        },
        (("thought", ""), ("action/name", "wait"), ("action/arguments", {}), ("action", DROP)),
        features=("anyOf",),
    ),
    Shape(
        "wide_tool_arguments",
        obj(
            {
                f"parameter_{number}": {
                    "type": ["integer", "null"],
                    "description": f"Parameter number {number}.",
                }
                for number in range(1, 31)
            },
            optional=[f"parameter_{number}" for number in range(2, 31)],
        ),
        lambda d: {
            f"parameter_{number}": d.pick((None, d.int(0, 9)))
            for number in (1, 2, 3, 7, 10, 11, 20, 30)
        },
        (("parameter_1", DROP), ("parameter_7", "7"), ("parameter_31", 1), ("parameter", 1)),
        optional=("parameter_2", "parameter_10", "parameter_30"),
    ),
    Shape(
        "string_encoded_numbers",
        obj(
            {
                "amount": pattern("^-?(0|[1-9][0-9]{0,17})(\\.[0-9]{1,9})?$"),
                "percent": pattern("^(100|[1-9]?[0-9])%$"),
                "hex": pattern("^0x[0-9a-f]{1,16}$"),
                "n": INT,
            }
        ),
        lambda d: {
            "amount": d.pick(("0", "-12.5", "1000000.000001")),
            "percent": f"{d.int(0, 100)}%",
            "hex": f"0x{d.hex(8)}",
            "n": d.int(0, 9),
        },
        (
            ("amount", "01"),
            ("amount", "1."),
            ("percent", "101%"),
            ("percent", "5"),
            ("hex", "0X1"),
            ("n", "1"),
        ),
    ),
]
