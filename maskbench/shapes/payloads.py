"""What services and models exchange: API requests and answers, events, tool calls."""

from __future__ import annotations

from maskbench.shapes.shape import (
    BOOL,
    DROP,
    INT,
    NUM,
    STR,
    Shape,
    array,
    enum,
    form,
    integer,
    number,
    obj,
    pattern,
    ref,
    text,
    words,
)

SHAPES = [
    Shape(
        "tool_call_weather",
        obj(
            {
                "name": {"const": "get_weather"},
                "arguments": obj(
                    {"location": text(1), "unit": words("celsius", "fahrenheit")},
                    optional=["unit"],
                ),
            }
        ),
        lambda d: {
            "name": "get_weather",
            "arguments": {"location": d.city(), "unit": d.pick(("celsius", "fahrenheit"))},
        },
        (
            ("name", "get_time"),
            ("arguments/location", ""),
            ("arguments/unit", "kelvin"),
            ("arguments/when", "now"),
            ("arguments", DROP),
        ),
        optional=("arguments/unit",),
    ),
    Shape(
        "tool_call_choice",
        {
            "anyOf": [
                obj(
                    {
                        "tool": {"const": "search"},
                        "query": text(1, 200),
                        "limit": integer(1, 50),
                    },
                    optional=["limit"],
                ),
                obj({"tool": {"const": "open_page"}, "url": form("uri")}),
                obj({"tool": {"const": "finish"}, "answer": STR, "confidence": number(0, 1)}),
            ]
        },
        lambda d: d.pick(
            (
                {"tool": "search", "query": d.title(), "limit": d.int(1, 50)},
                {"tool": "open_page", "url": d.uri()},
                {"tool": "finish", "answer": d.sentence(), "confidence": d.num(0, 1)},
            )
        ),
        (
            ("", {"tool": "search", "query": ""}),
            ("", {"tool": "search", "url": "https://example.com/"}),
            ("", {"tool": "open_page", "url": "two words"}),
            ("", {"tool": "finish", "answer": "x", "confidence": 1.01}),
            ("", {"tool": "close"}),
            ("", {}),
        ),
    ),
    Shape(
        "chat_completion_request",
        obj(
            {
                "model": STR,
                "messages": array(
                    obj(
                        {
                            "role": words("system", "user", "assistant"),
                            "content": STR,
                            "name": pattern("^[A-Za-z0-9_-]{1,64}$"),
                        },
                        optional=["name"],
                    ),
                    1,
                ),
                "temperature": number(0, 2),
                "max_tokens": integer(1),
                "stop": {"anyOf": [STR, array(STR, 1, 4)]},
                "stream": BOOL,
            },
            optional=["temperature", "max_tokens", "stop", "stream"],
        ),
        lambda d: {
            "model": d.slug(),
            "messages": [
                {"role": "system", "content": d.sentence(), "name": d.word()},
                {"role": "user", "content": d.sentence()},
            ],
            "temperature": d.num(0, 2, 1),
            "max_tokens": d.int(1, 4096),
            "stop": d.pick(("\n", ["###", "END"])),
            "stream": d.bool(),
        },
        (
            ("messages", []),
            ("messages/0/role", "tool"),
            ("messages/0/content", None),
            ("messages/0/name", "two words"),
            ("temperature", 2.1),
            ("max_tokens", 0),
            ("stop", []),
            ("stop", ["a", "b", "c", "d", "e"]),
            ("model", DROP),
        ),
        optional=("messages/0/name", "temperature", "max_tokens", "stop", "stream"),
    ),
    Shape(
        "order_event",
        obj(
            {
                "eventId": form("uuid"),
                "type": {"const": "order.created"},
                "occurredAt": form("date-time"),
                "order": obj(
                    {
                        "orderId": pattern("^ORD-[0-9]{6}$"),
                        "orderName": STR,
                        "order": integer(0),
                        "lines": array(
                            obj({"sku": STR, "quantity": integer(1, 999), "unitPrice": number(0)}),
                            1,
                            50,
                        ),
                        "coupon": {"type": ["string", "null"]},
                    },
                    optional=["coupon"],
                ),
            }
        ),
        lambda d: {
            "eventId": d.uuid(),
            "type": "order.created",
            "occurredAt": d.instant(),
            "order": {
                "orderId": f"ORD-{d.digits(6)}",
                "orderName": d.title(),
                "order": d.int(0, 99),
                "lines": [
                    {"sku": d.slug(), "quantity": d.int(1, 9), "unitPrice": d.num(0, 99)}
                    for _ in range(d.int(1, 4))
                ],
                "coupon": d.pick((None, "SPRING")),
            },
        },
        (
            ("eventId", "123"),
            ("type", "order.deleted"),
            ("occurredAt", "2024-01-01T00:00:00"),
            ("order/orderId", "ORD-12345"),
            ("order/order", -1),
            ("order/lines", []),
            ("order/lines/0/quantity", 0),
            ("order/lines/0/quantity", 1000),
            ("order/coupon", 5),
        ),
        optional=("order/coupon",),
    ),
    Shape(
        "paged_answer",
        obj(
            {
                "items": array(obj({"id": INT, "name": STR})),
                "page": integer(1),
                "perPage": enum(10, 20, 50, 100),
                "total": integer(0),
                "next": {"anyOf": [form("uri"), {"type": "null"}]},
            }
        ),
        lambda d: {
            "items": d.list(0, 5, lambda: {"id": d.int(1, 9999), "name": d.title()}),
            "page": d.int(1, 30),
            "perPage": d.pick((10, 20, 50, 100)),
            "total": d.int(0, 3000),
            "next": d.pick((None, d.uri())),
        },
        (
            ("items/+", {"id": 1}),
            ("page", 0),
            ("perPage", 30),
            ("total", -1),
            ("next", "page two"),
            ("next", DROP),
        ),
    ),
    Shape(
        "error_answer",
        obj(
            {
                "error": obj(
                    {
                        "code": integer(400, 599),
                        "status": pattern("^[A-Z]+(_[A-Z]+)*$"),
                        "message": text(1, 300),
                        "details": array(obj({"field": STR, "issue": STR}, closed=False), None, 20),
                    },
                    optional=["details"],
                )
            }
        ),
        lambda d: {
            "error": {
                "code": d.int(400, 599),
                "status": d.pick(("NOT_FOUND", "INVALID_ARGUMENT", "GONE")),
                "message": d.sentence(),
                "details": [{"field": d.ident(), "issue": d.sentence(), "hint": None}],
            }
        },
        (
            ("error/code", 399),
            ("error/code", 600),
            ("error/status", "Not_Found"),
            ("error/status", "NOT__FOUND"),
            ("error/message", ""),
            ("error/details/0/issue", DROP),
            ("warning", {}),
        ),
        optional=("error/details",),
    ),
    Shape(
        "geo_feature",
        obj(
            {
                "type": {"const": "Feature"},
                "geometry": {
                    "anyOf": [
                        obj(
                            {
                                "type": {"const": "Point"},
                                "coordinates": {
                                    "type": "array",
                                    "prefixItems": [number(-180, 180), number(-90, 90)],
                                    "minItems": 2,
                                    "items": False,
                                },
                            }
                        ),
                        obj(
                            {
                                "type": {"const": "LineString"},
                                "coordinates": array(array(NUM, 2, 3), 2),
                            }
                        ),
                    ]
                },
                "properties": {"type": ["object", "null"]},
            }
        ),
        lambda d: {
            "type": "Feature",
            "geometry": d.pick(
                (
                    {
                        "type": "Point",
                        "coordinates": [d.num(-180, 180, 4), d.num(-90, 90, 4)],
                    },
                    {
                        "type": "LineString",
                        "coordinates": d.list(
                            2, 5, lambda: [d.num(-180, 180, 3), d.num(-90, 90, 3)]
                        ),
                    },
                )
            ),
            "properties": d.pick((None, {"name": d.city(), "depth": d.int(0, 90)})),
        },
        (
            ("type", "feature"),
            ("geometry", {"type": "Point", "coordinates": [181, 0]}),
            ("geometry", {"type": "Point", "coordinates": [0, -90.25]}),
            ("geometry", {"type": "Point", "coordinates": [0]}),
            ("geometry", {"type": "Point", "coordinates": [0, 0, 0]}),
            ("geometry", {"type": "LineString", "coordinates": [[0, 0]]}),
            ("geometry", None),
            ("properties", DROP),
        ),
    ),
    Shape(
        "webhook_delivery",
        obj(
            {
                "id": form("uuid"),
                "url": form("uri"),
                "attempt": integer(1, 10),
                "headers": {"type": "object", "additionalProperties": {"type": "string"}},
                "body": {},
                "sourceIp": {"anyOf": [form("ipv4"), form("ipv6")]},
                "signature": pattern("^sha256=[0-9a-f]{64}$"),
            }
        ),
        lambda d: {
            "id": d.uuid(),
            "url": d.uri(),
            "attempt": d.int(1, 10),
            "headers": {"Content-Type": "application/json"},
            "body": d.pick((None, [1, 2.5], {"a": {"b": [True, "x"]}}, d.sentence(), -3)),
            "sourceIp": d.pick((d.ipv4(), d.ipv6())),
            "signature": f"sha256={d.hex(64)}",
        },
        (
            ("url", "no scheme"),
            ("attempt", 11),
            ("sourceIp", "256.1.1.1"),
            ("sourceIp", "2001:db8:::1"),
            ("signature", "sha256=" + "a" * 63),
            ("signature", "sha256=" + "A" * 64),
            ("body", DROP),
            ("headers/Retry", 3),
        ),
    ),
    Shape(
        "telemetry_batch",
        obj(
            {
                "device": pattern("^[0-9a-f]{2}(:[0-9a-f]{2}){5}$"),
                "samples": array(
                    {
                        "type": "array",
                        "prefixItems": [integer(0), number(), words("ok", "stale")],
                        "minItems": 3,
                        "maxItems": 3,
                    },
                    1,
                    100,
                ),
                "battery": number(0, 1),
            },
            optional=["battery"],
        ),
        lambda d: {
            "device": ":".join(d.hex(2) for _ in range(6)),
            "samples": d.list(
                1, 8, lambda: [d.int(0, 10**9), d.num(-50, 50, 3), d.pick(("ok", "stale"))]
            ),
            "battery": d.num(0, 1),
        },
        (
            ("device", "00:11:22:33:44"),
            ("device", "00:11:22:33:44:GG"),
            ("samples", []),
            ("samples/0", [1, 2.0]),
            ("samples/0", [1, 2.0, "ok", "ok"]),
            ("samples/0/0", -1),
            ("samples/0/2", "bad"),
            ("battery", 1.5),
        ),
        optional=("battery",),
    ),
    Shape(
        "search_request",
        obj(
            {
                "query": text(1, 500),
                "filters": array(
                    obj(
                        {
                            "field": STR,
                            "op": enum("eq", "ne", "lt", "gt", "in"),
                            "value": {"type": ["string", "number", "boolean", "array"]},
                        }
                    ),
                    None,
                    10,
                ),
                "sort": array(pattern("^-?[a-z_]+$"), None, 3),
                "from": integer(0, 10000),
                "size": integer(1, 100),
            },
            optional=["filters", "sort", "from", "size"],
        ),
        lambda d: {
            "query": d.sentence(),
            "filters": [
                {"field": d.ident(), "op": "in", "value": d.list(1, 3, d.word)},
                {"field": d.ident(), "op": "gt", "value": d.num(0, 9)},
            ],
            "sort": [d.ident(), f"-{d.word()}"],
            "from": d.int(0, 10000),
            "size": d.int(1, 100),
        },
        (
            ("query", ""),
            ("filters/0/op", "like"),
            ("filters/0/value", None),
            ("filters/0/value", {}),
            ("sort", ["--x"]),
            ("sort", ["a", "b", "c", "d"]),
            ("from", 10001),
            ("size", 0),
        ),
        optional=("filters", "sort", "from", "size"),
    ),
    Shape(
        "extraction_result",
        {
            "$defs": {
                "evidence": obj({"quote": text(1, 200), "page": integer(1)}),
                "entity": obj(
                    {
                        "name": STR,
                        "kind": words("person", "organisation", "place", "date", "sum"),
                        "evidence": array(ref("evidence"), 1, 3),
                    }
                ),
            },
            "type": "object",
            "properties": {
                "reasoning": text(None, 600),
                "entities": array(ref("entity"), None, 20),
                "summary": text(10, 400),
            },
            "required": ["reasoning", "entities", "summary"],
            "additionalProperties": False,
        },
        lambda d: {
            "reasoning": " ".join(d.list(1, 4, d.sentence)),
            "entities": [
                {
                    "name": d.name(),
                    "kind": d.pick(("person", "organisation", "place", "date", "sum")),
                    "evidence": [{"quote": d.sentence(), "page": d.int(1, 300)}],
                }
                for _ in range(d.int(1, 3))
            ],
            "summary": f"{d.sentence()} {d.sentence()}",
        },
        (
            ("summary", "too short"),
            ("entities/0/kind", "animal"),
            ("entities/0/evidence", []),
            ("entities/0/evidence/0/page", 0),
            ("entities/0/evidence/0/quote", ""),
            ("reasoning", DROP),
            ("reasoning", "y" * 601),
        ),
    ),
    Shape(
        "rpc_message",
        {
            "anyOf": [
                obj(
                    {
                        "jsonrpc": {"const": "2.0"},
                        "method": pattern("^[a-z]+(/[a-zA-Z]+)*$"),
                        "params": {"type": ["object", "array"]},
                        "id": {"type": ["integer", "string"]},
                    },
                    optional=["params", "id"],
                ),
                obj({"jsonrpc": {"const": "2.0"}, "result": {}, "id": INT}),
                obj(
                    {
                        "jsonrpc": {"const": "2.0"},
                        "error": obj({"code": INT, "message": STR}),
                        "id": {"type": ["integer", "null"]},
                    }
                ),
            ]
        },
        lambda d: d.pick(
            (
                {"jsonrpc": "2.0", "method": "text/didOpen", "params": [d.word()], "id": 7},
                {"jsonrpc": "2.0", "method": "exit"},
                {"jsonrpc": "2.0", "result": d.pick((None, [], {"ok": True})), "id": d.int(0, 9)},
                {"jsonrpc": "2.0", "error": {"code": -32601, "message": d.title()}, "id": None},
            )
        ),
        (
            ("", {"jsonrpc": "1.0", "method": "exit"}),
            ("", {"jsonrpc": "2.0", "method": "Exit"}),
            ("", {"jsonrpc": "2.0", "method": "exit", "params": 3}),
            ("", {"jsonrpc": "2.0", "result": 1}),
            ("", {"jsonrpc": "2.0", "error": {"code": 1}, "id": 1}),
            ("", {"jsonrpc": "2.0", "result": 1, "error": {"code": 1, "message": ""}, "id": 1}),
        ),
    ),
]
