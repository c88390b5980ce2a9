"""SQL for the tables that there are, and expressions that compute: code as a grammar has it.

python docs/examples/code_in_a_grammar.py
"""

import ast
import operator
import sqlite3
from collections.abc import Callable

from transformers import AutoModelForCausalLM, AutoTokenizer

import ffwd
import ffwd.model

USERS = [
    ("Grace", 47, "Lisbon", "engineer"),
    ("Felix", 23, "Tokyo", "baker"),
    ("Maria", 61, "Oslo", "pilot"),
    ("Tom", 35, "Lisbon", "nurse"),
]
QUERIES = [
    "the names of users in Lisbon",
    "the jobs of users older than 40",
    "the cities of users younger than 30",
    "the names of users in Lisbon older than 40",
]
EXPRESSIONS = ["the sum of 17 and 25", "12 times the sum of 30 and 14", "90 minus 48, times 11"]

# Nested as deep as one likes.
ARITHMETIC = r"""
start: sum
sum: product (("+" | "-") product)*
product: factor ("*" factor)*
factor: NUMBER | "(" sum ")"
NUMBER: /0|[1-9][0-9]{0,3}/
"""
OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def database() -> sqlite3.Connection:
    """Return a table of users."""
    made = sqlite3.connect(":memory:")
    made.execute("CREATE TABLE users (name TEXT, age INTEGER, city TEXT, job TEXT)")
    made.executemany("INSERT INTO users VALUES (?, ?, ?, ?)", USERS)
    return made


def queries(connection: sqlite3.Connection, table: str) -> ffwd.Grammar:
    """Return a grammar for queries of one column with conditions, which change nothing.

    The columns and their types are the database's own, so a query names only existing ones.
    """
    columns = [
        (name, kind)
        for _, name, kind, *_ in connection.execute("SELECT * FROM pragma_table_info(?)", [table])
    ]
    texts = [name for name, kind in columns if kind == "TEXT"]
    numbers = [name for name, kind in columns if kind == "INTEGER"]
    return ffwd.lark(
        rf"""
start: "SELECT " column " FROM {table}" (" WHERE " condition (" AND " condition)*)?
condition: text " = '" WORD "'" | number (" > " | " < ") NUMBER
column: {alternatives(texts + numbers)}
text: {alternatives(texts)}
number: {alternatives(numbers)}
WORD: /[A-Z][a-z]{{1,15}}/
NUMBER: /0|[1-9][0-9]{{0,2}}/
"""
    )


def alternatives(names: list[str]) -> str:
    """Return one of several texts, in Lark."""
    return " | ".join(f'"{name}"' for name in names)


def compute(text: str) -> int:
    """Return the value of an expression of the grammar."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.BinOp):
            return int(OPERATORS[type(node.op)](value(node.left), value(node.right)))
        return int(ast.literal_eval(node))

    return value(ast.parse(text, mode="eval").body)


def main() -> None:
    """Print what the model writes, and what comes of it."""
    model = AutoModelForCausalLM.from_pretrained(ffwd.model.path())
    tokenizer = AutoTokenizer.from_pretrained(ffwd.model.path())

    def write(request: str, grammar: ffwd.Grammar) -> str:
        messages = [{"role": "user", "content": request}]
        made = ffwd.generate(model, tokenizer, messages, grammar, max_new_tokens=60)
        return str(made.value)

    connection = database()
    grammar = queries(connection, "users")
    for asked in QUERIES:
        query = write(f"Write SQL: {asked}", grammar)
        print(f"{asked}\n  {query}\n  {connection.execute(query).fetchall()}")
    arithmetic = ffwd.lark(ARITHMETIC)
    for asked in EXPRESSIONS:
        expression = write(f"Write as an expression: {asked}", arithmetic)
        print(f"{asked}\n  {expression} = {compute(expression)}")


if __name__ == "__main__":
    main()
