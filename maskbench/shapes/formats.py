"""Every format of 2020-12: what is just one, and what is just none."""

from __future__ import annotations

from maskbench.shapes.shape import Shape, array, form, listed, obj, text


def _format(name: str, valid: tuple[str, ...], invalid: tuple[str, ...]) -> Shape:
    return listed(f"format_{name.replace('-', '_')}", form(name), valid, (*invalid, 3), name)


SHAPES = [
    _format(
        "date",
        ("2024-02-29", "1999-12-31", "0001-01-01"),
        ("2023-02-29", "2024-13-01", "2024-1-1", "20240101"),
    ),
    _format(
        "date-time",
        ("2024-02-29T23:59:59Z", "1985-04-12T23:20:50.52+02:30"),
        ("2024-02-30T00:00:00Z", "2024-02-29 23:59:59", "2024-02-29T23:59:59"),
    ),
    _format(
        "time",
        ("00:00:00Z", "23:59:59.999-11:00"),
        ("24:00:00Z", "12:60:00Z", "12:00:00", "12:00Z"),
    ),
    _format(
        "duration", ("P1Y2M3DT4H5M6S", "P4W", "PT0S", "P1D"), ("P", "PT", "1D", "P1S", "P1Y2W")
    ),
    _format(
        "email",
        ("a@example.com", "first.last+tag@example.org"),
        ("a", "@example.com", "a@", "a b@example.com", "a..b@example.com"),
    ),
    _format("idn-email", ("a@example.com", "jörg@example.com"), ("a", "@", "a@b@example.com")),
    _format(
        "hostname",
        ("example.com", "a-1.b.c", "localhost"),
        ("-a.com", "a_b.com", "a..b", "a." + "x" * 64),
    ),
    _format("idn-hostname", ("example.com", "münchen.de"), ("-a.com", "a..b", "a b.de")),
    _format(
        "ipv4",
        ("0.0.0.0", "255.255.255.255", "192.168.1.10"),
        ("256.0.0.1", "1.2.3", "1.2.3.4.5", "01.2.3.4"),
    ),
    _format(
        "ipv6",
        ("::", "::1", "2001:db8::8a2e:370:7334", "::ffff:192.0.2.1"),
        (":", "1::2::3", "12345::", "1:2:3:4:5:6:7", "::g"),
    ),
    _format(
        "uri",
        ("https://example.com/a?b=c#d", "urn:isbn:0451450523", "mailto:a@example.com"),
        ("//example.com", "/a/b", "a b", "http://[::1"),
    ),
    _format("uri-reference", ("/a/b?c", "#x", "https://example.com", ""), ("a b", "\\a", "#a#b")),
    _format(
        "iri",
        ("https://example.com/日本", "http://bücher.example/"),
        ("/日本", "a b", "http://exa mple.com"),
    ),
    _format("iri-reference", ("/日本#é", "x", ""), ("a b", "\\\\x")),
    _format(
        "uri-template",
        ("/users/{id}{?page,size}", "plain", "{+path}/x"),
        ("/users/{id", "{}x}", "/a b{"),
    ),
    _format(
        "uuid",
        ("123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000"),
        (
            "123e4567-e89b-12d3-a456-42661417400",
            "123e4567e89b12d3a456426614174000",
            "123e4567-e89b-12d3-a456-42661417400g",
        ),
    ),
    _format("json-pointer", ("", "/a/b~1c/~0", "/0"), ("a", "/a~", "/~2")),
    _format("relative-json-pointer", ("0", "1/a/b", "2#"), ("/a", "-1", "01/a", "1a")),
    _format("regex", ("^[a-z]+$", "(a|b){1,2}", "\\d"), ("(", "[a", "*a", "a{2,1}")),
    listed("format_unknown", form("x-colour"), ("red", "", "#fff"), (1, None), "an annotation"),
    listed(
        "format_with_length",
        {**form("date"), "maxLength": 10},
        ("2024-01-01",),
        ("2024-01-1", "2024-01-011"),
    ),
    listed(
        "format_of_any_type", {"format": "ipv4"}, ("1.2.3.4", 1, None, []), ("1.2.3", ""), "format"
    ),
    listed(
        "format_in_union",
        {"anyOf": [form("ipv4"), form("ipv6"), {"const": "any"}]},
        ("10.0.0.1", "fe80::1", "any"),
        ("10.0.0", "all", "fe80"),
    ),
    listed(
        "format_not",
        {**text(1), "not": {"format": "date"}},
        ("2024-02-30", "today"),
        ("2024-02-29", ""),
        "not",
    ),
    listed(
        "format_and_pattern",
        {**form("date"), "pattern": "^20"},
        ("2024-05-01", "2000-01-31"),
        ("1999-01-01", "20-01-01", "2024-04-31"),
    ),
    listed(
        "format_keys",
        {
            "type": "object",
            "propertyNames": {"format": "uuid"},
            "additionalProperties": form("date-time"),
        },
        ({"123e4567-e89b-12d3-a456-426614174000": "2024-01-01T00:00:00Z"}, {}),
        ({"a": "2024-01-01T00:00:00Z"}, {"123e4567-e89b-12d3-a456-426614174000": "now"}),
        "propertyNames",
    ),
    listed(
        "format_list",
        obj({"hosts": array(form("hostname"), 1, 3), "at": form("time")}),
        (
            {"hosts": ["a.example"], "at": "10:00:00Z"},
            {"hosts": ["a", "b"], "at": "00:00:00+01:00"},
        ),
        (
            {"hosts": [], "at": "10:00:00Z"},
            {"hosts": ["a b"], "at": "10:00:00Z"},
            {"hosts": ["a"], "at": "10"},
        ),
    ),
]
