"""What web services answer, with components that are referred to."""

from __future__ import annotations

from maskbench.shapes.shape import (
    BOOL,
    DROP,
    NULL,
    STR,
    Schema,
    Shape,
    array,
    defs,
    form,
    integer,
    obj,
    pattern,
    ref,
    text,
    words,
)


def _component(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _components(root: str, **schemas: Schema) -> Schema:
    """As a service's description has them, with an answer that is one of them."""
    return {"components": {"schemas": schemas}, "$ref": f"#/components/schemas/{root}"}


SHAPES = [
    Shape(
        "api_pet",
        _components(
            "Pet",
            Category=obj({"id": integer(0), "name": STR}),
            Pet=obj(
                {
                    "id": integer(0),
                    "category": _component("Category"),
                    "photoUrls": array(form("uri")),
                    "status": words("available", "pending", "sold"),
                },
                optional=["category", "status"],
            ),
        ),
        lambda d: {
            "id": d.int(0, 9999),
            "category": {"id": d.int(0, 9), "name": d.word()},
            "photoUrls": d.list(0, 2, d.uri),
            "status": d.pick(("available", "sold")),
        },
        (
            ("id", -1),
            ("category/name", DROP),
            ("photoUrls/+", "a photo"),
            ("status", "lost"),
            ("photoUrls", DROP),
        ),
        optional=("category", "status"),
        features=("$ref",),
    ),
    Shape(
        "api_inheritance",
        _components(
            "Dog",
            Animal={
                "type": "object",
                "properties": {"species": STR, "age": integer(0, 40)},
                "required": ["species"],
            },
            Dog={
                "allOf": [
                    _component("Animal"),
                    {
                        "type": "object",
                        "properties": {"bark": words("woof", "arf")},
                        "required": ["bark"],
                    },
                ]
            },
        ),
        lambda d: {"species": "dog", "age": d.int(0, 40), "bark": d.pick(("woof", "arf"))},
        (("species", DROP), ("age", 41), ("bark", "meow"), ("bark", DROP)),
        optional=("age",),
        features=("allOf", "$ref"),
    ),
    Shape(
        "api_discriminated",
        _components(
            "Payment",
            Card=obj(
                {
                    "method": {"const": "card"},
                    "last4": pattern("^[0-9]{4}$"),
                    "network": words("A", "B"),
                }
            ),
            Transfer=obj(
                {
                    "method": {"const": "transfer"},
                    "iban": pattern("^[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}$"),
                }
            ),
            Cash=obj({"method": {"const": "cash"}}),
            Payment={
                "oneOf": [_component("Card"), _component("Transfer"), _component("Cash")],
                "discriminator": {"propertyName": "method"},
            },
        ),
        lambda d: d.pick(
            (
                {"method": "card", "last4": d.digits(4), "network": "A"},
                {"method": "transfer", "iban": f"CH93{d.digits(17)}"},
                {"method": "cash"},
            )
        ),
        (
            ("method", "cheque"),
            ("change", 1),
            ("", {"method": "card", "last4": "123", "network": "A"}),
            ("", {"method": "transfer", "iban": "CH93"}),
            ("", {}),
        ),
        features=("oneOf", "$ref"),
    ),
    Shape(
        "api_problem_details",
        {
            "type": "object",
            "properties": {
                "type": form("uri-reference"),
                "title": STR,
                "status": integer(100, 599),
                "detail": STR,
                "instance": form("uri-reference"),
            },
            "required": ["type", "title"],
        },
        lambda d: {
            "type": "/errors/quota",
            "title": d.title(),
            "status": d.int(400, 599),
            "detail": d.sentence(),
            "instance": f"/a/{d.slug()}",
            "balance": d.int(0, 9),
        },
        (
            ("status", 99),
            ("status", "404"),
            ("type", "two words"),
            ("title", DROP),
            ("detail", None),
        ),
        optional=("status", "detail", "instance", "balance"),
    ),
    Shape(
        "api_page_of_users",
        _components(
            "Page",
            User=obj(
                {
                    "id": form("uuid"),
                    "name": text(1, 80),
                    "createdAt": form("date-time"),
                    "lastSeen": {"anyOf": [form("date-time"), NULL]},
                }
            ),
            Page=obj(
                {
                    "items": array(_component("User"), None, 100),
                    "nextCursor": {"type": ["string", "null"], "minLength": 1},
                    "total": integer(0),
                }
            ),
        ),
        lambda d: {
            "items": d.list(
                0,
                3,
                lambda: {
                    "id": d.uuid(),
                    "name": d.name(),
                    "createdAt": d.instant(),
                    "lastSeen": d.pick((None, d.instant())),
                },
            ),
            "nextCursor": d.pick((None, d.hex(8))),
            "total": d.int(0, 999),
        },
        (
            (
                "items/+",
                {"id": "1", "name": "x", "createdAt": "2024-01-01T00:00:00Z", "lastSeen": None},
            ),
            ("nextCursor", ""),
            ("total", -1),
            ("items", None),
        ),
    ),
    Shape(
        "api_hypermedia",
        obj(
            {
                "_links": {
                    "type": "object",
                    "properties": {"self": ref("link")},
                    "required": ["self"],
                    "additionalProperties": {"anyOf": [ref("link"), array(ref("link"), 1)]},
                },
                "count": integer(0),
            },
            **defs(
                {
                    "link": obj(
                        {"href": form("uri-reference"), "templated": BOOL}, optional=["templated"]
                    )
                }
            ),
        ),
        lambda d: {
            "_links": {
                "self": {"href": f"/x/{d.int(1, 9)}"},
                "next": {"href": "/x?page=2", "templated": False},
                "items": [{"href": "/x/1"}],
            },
            "count": d.int(0, 9),
        },
        (
            ("_links/self", DROP),
            ("_links/next", []),
            ("_links/self/href", "a b"),
            ("_links/prev", "/x"),
            ("count", 0.5),
        ),
    ),
    Shape(
        "api_json_document",
        obj(
            {
                "data": array(
                    obj(
                        {
                            "type": {"const": "articles"},
                            "id": STR,
                            "attributes": {
                                "type": "object",
                                "properties": {"title": STR},
                                "required": ["title"],
                            },
                            "relationships": {
                                "type": "object",
                                "additionalProperties": obj(
                                    {
                                        "data": {
                                            "anyOf": [
                                                NULL,
                                                ref("identifier"),
                                                array(ref("identifier")),
                                            ]
                                        }
                                    }
                                ),
                            },
                        },
                        optional=["relationships"],
                    )
                )
            },
            **defs({"identifier": obj({"type": STR, "id": STR})}),
        ),
        lambda d: {
            "data": d.list(
                1,
                2,
                lambda: {
                    "type": "articles",
                    "id": d.digits(3),
                    "attributes": {"title": d.title(), "views": 3},
                    "relationships": {
                        "author": {"data": {"type": "people", "id": "9"}},
                        "tags": {"data": []},
                    },
                },
            )
        },
        (
            ("data/0/type", "books"),
            ("data/0/id", 1),
            ("data/0/attributes/title", DROP),
            ("data/0/relationships/author/data", {"type": "people"}),
            ("data/0/links", {}),
        ),
        optional=("data/0/relationships",),
    ),
    Shape(
        "api_patch_operations",
        array(
            {
                "oneOf": [
                    obj(
                        {
                            "op": words("add", "replace", "test"),
                            "path": form("json-pointer"),
                            "value": True,
                        }
                    ),
                    obj({"op": {"const": "remove"}, "path": form("json-pointer")}),
                    obj(
                        {
                            "op": words("move", "copy"),
                            "from": form("json-pointer"),
                            "path": form("json-pointer"),
                        }
                    ),
                ]
            },
            1,
        ),
        lambda d: d.list(
            1,
            4,
            lambda: d.pick(
                (
                    {"op": "add", "path": f"/{d.word()}", "value": d.pick((1, None, [d.word()]))},
                    {"op": "remove", "path": "/a/0"},
                    {"op": "move", "from": "/a", "path": "/b~1c"},
                )
            ),
        ),
        (
            ("", []),
            ("+", {"op": "add", "path": "/a"}),
            ("+", {"op": "remove", "path": "a"}),
            ("+", {"op": "move", "path": "/a"}),
            ("+", {"op": "merge", "path": "/a", "value": 1}),
        ),
        features=("oneOf",),
    ),
    Shape(
        "api_graphql_answer",
        {
            "type": "object",
            "properties": {
                "data": {"type": ["object", "null"]},
                "errors": array(
                    {
                        "type": "object",
                        "properties": {
                            "message": STR,
                            "path": array({"type": ["string", "integer"]}),
                        },
                        "required": ["message"],
                    },
                    1,
                ),
            },
            "anyOf": [{"required": ["data"]}, {"required": ["errors"]}],
            "additionalProperties": False,
        },
        lambda d: {
            "data": d.pick((None, {"user": {"name": d.name()}})),
            "errors": [{"message": d.sentence(), "path": ["user", 0, "name"]}],
        },
        (
            ("errors", []),
            ("errors/0/message", DROP),
            ("errors/0/path/+", 1.5),
            ("data", []),
            ("extensions", {}),
            ("", {}),
        ),
        optional=("errors",),
        features=("anyOf",),
    ),
    Shape(
        "api_token_answer",
        obj(
            {
                "access_token": text(8),
                "token_type": pattern("^[Bb]earer$"),
                "expires_in": integer(1),
                "scope": pattern("^[a-z:.]+( [a-z:.]+)*$"),
                "refresh_token": text(8),
            },
            optional=["scope", "refresh_token"],
        ),
        lambda d: {
            "access_token": d.hex(24),
            "token_type": "Bearer",
            "expires_in": 3600,
            "scope": "read:a write:b",
            "refresh_token": d.hex(12),
        },
        (
            ("access_token", "short"),
            ("token_type", "mac"),
            ("expires_in", 0),
            ("scope", "read  write"),
            ("scope", ""),
        ),
        optional=("scope", "refresh_token"),
    ),
]
