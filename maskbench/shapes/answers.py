"""What language models answer with: reasoning, extraction, judgements."""

from __future__ import annotations

from maskbench.shapes.shape import (
    BOOL,
    DROP,
    NULL,
    NUM,
    STR,
    Schema,
    Shape,
    array,
    form,
    integer,
    number,
    obj,
    pattern,
    ref,
    text,
    words,
)


def _nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, NULL]}


SHAPES = [
    Shape(
        "answer_with_steps",
        obj(
            {
                "steps": array(obj({"explanation": text(1), "output": STR}), 1, 12),
                "final_answer": STR,
            }
        ),
        lambda d: {
            "steps": d.list(1, 4, lambda: {"explanation": d.sentence(), "output": d.word()}),
            "final_answer": d.sentence(),
        },
        (
            ("steps", []),
            ("steps/0/explanation", ""),
            ("steps/0/output", 3),
            ("final_answer", DROP),
            ("confidence", 1),
        ),
    ),
    Shape(
        "answer_classified",
        obj(
            {
                "label": words("positive", "neutral", "negative"),
                "scores": obj(
                    {"positive": number(0, 1), "neutral": number(0, 1), "negative": number(0, 1)}
                ),
                "reason": text(None, 200),
            }
        ),
        lambda d: {
            "label": d.pick(("positive", "neutral", "negative")),
            "scores": {"positive": d.num(0, 1), "neutral": d.num(0, 1), "negative": 0},
            "reason": d.sentence(),
        },
        (
            ("label", "mixed"),
            ("scores/positive", 1.2),
            ("scores/neutral", DROP),
            ("reason", "x" * 201),
        ),
    ),
    Shape(
        "answer_cited",
        obj(
            {
                "answer": text(1),
                "citations": array(
                    obj(
                        {
                            "source": integer(1, 20),
                            "quote": text(5, 300),
                            "page": _nullable(integer(1)),
                        }
                    ),
                    0,
                    10,
                ),
                "insufficient": BOOL,
            }
        ),
        lambda d: {
            "answer": d.sentence(),
            "citations": d.list(
                0,
                3,
                lambda: {
                    "source": d.int(1, 20),
                    "quote": d.sentence(),
                    "page": d.pick((None, d.int(1, 400))),
                },
            ),
            "insufficient": d.bool(),
        },
        (
            ("answer", ""),
            ("citations/+", {"source": 0, "quote": "enough", "page": 1}),
            ("citations/+", {"source": 1, "quote": "four", "page": None}),
            ("citations/+", {"source": 1, "quote": "enough"}),
            ("insufficient", "no"),
        ),
    ),
    Shape(
        "extract_people",
        obj(
            {
                "people": array(
                    obj(
                        {
                            "name": STR,
                            "born": _nullable(form("date")),
                            "roles": array(
                                words("author", "editor", "translator"), 1, 3, uniqueItems=True
                            ),
                        }
                    ),
                    None,
                    20,
                )
            }
        ),
        lambda d: {
            "people": d.list(
                0,
                3,
                lambda: {
                    "name": d.name(),
                    "born": d.pick((None, d.date())),
                    "roles": d.some(("author", "editor", "translator"), 1, 3),
                },
            )
        },
        (
            ("people/+", {"name": "x", "born": "1990", "roles": ["author"]}),
            ("people/+", {"name": "x", "born": None, "roles": []}),
            ("people/+", {"name": "x", "born": None, "roles": ["editor", "editor"]}),
            ("people/+", {"name": "x", "roles": ["author"]}),
        ),
        features=("uniqueItems",),
    ),
    Shape(
        "extract_invoice",
        obj(
            {
                "number": pattern("^[A-Z]{2,4}-[0-9]{3,8}$"),
                "currency": pattern("^[A-Z]{3}$"),
                "lines": array(
                    obj(
                        {
                            "text": text(1),
                            "quantity": number(exclusiveMinimum=0),
                            "price": number(0, multipleOf=0.5),
                        }
                    ),
                    1,
                ),
                "total": number(0),
                "paid": BOOL,
            }
        ),
        lambda d: {
            "number": f"INV-{d.digits(5)}",
            "currency": d.pick(("EUR", "JPY")),
            "lines": d.list(
                1,
                3,
                lambda: {"text": d.title(), "quantity": d.num(0.5, 9), "price": d.int(0, 99) / 2},
            ),
            "total": d.num(0, 999),
            "paid": d.bool(),
        },
        (
            ("number", "inv-123"),
            ("currency", "EURO"),
            ("lines", []),
            ("lines/0/quantity", 0),
            ("lines/0/price", 0.3),
            ("total", None),
        ),
    ),
    Shape(
        "extract_relations",
        {
            "$defs": {
                "entity": obj(
                    {"id": integer(0), "type": words("person", "place", "work"), "mention": text(1)}
                )
            },
            **obj(
                {
                    "entities": array(ref("entity"), 1),
                    "relations": array(
                        {
                            "type": "array",
                            "prefixItems": [
                                integer(0),
                                words("wrote", "born_in", "met"),
                                integer(0),
                            ],
                            "items": False,
                            "minItems": 3,
                        }
                    ),
                }
            ),
        },
        lambda d: {
            "entities": d.list(
                1, 3, lambda: {"id": d.int(0, 9), "type": "person", "mention": d.name()}
            ),
            "relations": [[0, "wrote", 1], [1, "met", d.int(0, 9)]],
        },
        (
            ("entities", []),
            ("entities/0/type", "animal"),
            ("relations/0", [0, "wrote"]),
            ("relations/0/1", "likes"),
            ("relations/0/+", 2),
            ("relations/1/2", -1),
        ),
        features=("prefixItems",),
    ),
    Shape(
        "quiz_questions",
        obj(
            {
                "questions": array(
                    {
                        "anyOf": [
                            obj(
                                {
                                    "kind": {"const": "choice"},
                                    "text": STR,
                                    "options": array(text(1), 2, 6),
                                    "correct": integer(0, 5),
                                }
                            ),
                            obj(
                                {
                                    "kind": {"const": "number"},
                                    "text": STR,
                                    "answer": NUM,
                                    "tolerance": number(0),
                                }
                            ),
                            obj({"kind": {"const": "open"}, "text": STR, "points": integer(1, 10)}),
                        ]
                    },
                    1,
                    20,
                )
            }
        ),
        lambda d: {
            "questions": d.list(
                1,
                3,
                lambda: d.pick(
                    (
                        {
                            "kind": "choice",
                            "text": d.sentence(),
                            "options": ["a", "b"],
                            "correct": d.int(0, 5),
                        },
                        {
                            "kind": "number",
                            "text": d.sentence(),
                            "answer": d.num(0, 9),
                            "tolerance": 0.5,
                        },
                        {"kind": "open", "text": d.sentence(), "points": d.int(1, 10)},
                    )
                ),
            )
        },
        (
            ("questions", []),
            ("questions/+", {"kind": "choice", "text": "?", "options": ["a"], "correct": 0}),
            ("questions/+", {"kind": "number", "text": "?", "answer": "1", "tolerance": 0}),
            ("questions/+", {"kind": "open", "text": "?", "points": 11}),
            ("questions/+", {"kind": "essay", "text": "?"}),
        ),
        features=("anyOf",),
    ),
    Shape(
        "recipe_card",
        obj(
            {
                "title": text(1, 60),
                "serves": integer(1, 24),
                "ingredients": array(
                    obj(
                        {
                            "name": STR,
                            "amount": _nullable(NUM),
                            "unit": words("g", "ml", "tsp", "piece", "pinch"),
                        }
                    ),
                    1,
                ),
                "steps": array(text(3), 1, 30),
                "vegan": BOOL,
            }
        ),
        lambda d: {
            "title": d.title(),
            "serves": d.int(1, 24),
            "ingredients": d.list(
                1,
                3,
                lambda: {"name": d.word(), "amount": d.pick((None, d.num(1, 500))), "unit": "g"},
            ),
            "steps": d.list(1, 3, d.sentence),
            "vegan": d.bool(),
        },
        (
            ("serves", 0),
            ("ingredients", []),
            ("ingredients/0/unit", "cup"),
            ("steps/0", "ok"),
            ("vegan", None),
        ),
    ),
    Shape(
        "code_review",
        obj(
            {
                "verdict": words("approve", "request_changes"),
                "comments": array(
                    obj(
                        {
                            "file": pattern("^[^/].*\\.(py|rs|c)$"),
                            "line": integer(1),
                            "severity": words("nit", "bug"),
                            "text": text(1),
                            "suggestion": _nullable(STR),
                        }
                    )
                ),
            }
        ),
        lambda d: {
            "verdict": "approve",
            "comments": d.list(
                0,
                2,
                lambda: {
                    "file": f"src/{d.word()}.py",
                    "line": d.int(1, 900),
                    "severity": "bug",
                    "text": d.sentence(),
                    "suggestion": d.pick((None, 'print("x")\n\treturn')),
                },
            ),
        },
        (
            ("verdict", "reject"),
            (
                "comments/+",
                {"file": "/a.py", "line": 1, "severity": "nit", "text": "x", "suggestion": None},
            ),
            (
                "comments/+",
                {"file": "a.js", "line": 1, "severity": "nit", "text": "x", "suggestion": None},
            ),
            (
                "comments/+",
                {"file": "a.c", "line": 0, "severity": "nit", "text": "x", "suggestion": None},
            ),
        ),
    ),
    Shape(
        "translation_pairs",
        obj(
            {
                "source": words("en", "de", "ja"),
                "target": words("en", "de", "ja"),
                "segments": array(
                    {
                        "type": "array",
                        "prefixItems": [text(1), text(1)],
                        "items": False,
                        "minItems": 2,
                    },
                    1,
                ),
            }
        ),
        lambda d: {
            "source": "en",
            "target": d.pick(("de", "ja")),
            "segments": d.list(
                1, 3, lambda: [d.sentence(), d.pick(("Über die Brücke", "東京の橋"))]
            ),
        },
        (
            ("source", "fr"),
            ("segments", []),
            ("segments/0", ["a"]),
            ("segments/0/+", "c"),
            ("segments/0/0", ""),
        ),
        features=("prefixItems",),
    ),
    Shape(
        "chess_move",
        obj(
            {
                "san": pattern("^(O-O(-O)?|[KQRBN]?[a-h]?[1-8]?x?[a-h][1-8](=[QRBN])?)[+#]?$"),
                "think_ms": integer(0, 60000),
                "eval": {"anyOf": [number(-50, 50), pattern("^#-?[1-9][0-9]?$")]},
            }
        ),
        lambda d: {
            "san": d.pick(("e4", "Nf3", "O-O", "exd8=Q#", "Rxa7+")),
            "think_ms": d.int(0, 60000),
            "eval": d.pick((d.num(-5, 5), "#3")),
        },
        (("san", "e9"), ("san", "o-o"), ("think_ms", -1), ("eval", "#0"), ("eval", 51)),
        features=("anyOf",),
    ),
]
