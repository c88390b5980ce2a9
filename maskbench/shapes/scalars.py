"""Strings, numbers and enumerations at their limits."""

from __future__ import annotations

from maskbench.shapes.shape import (
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
    text,
    words,
)

_COUNTRIES = (
    "Algeria", "Argentina", "Australia", "Austria", "Bangladesh", "Belgium", "Bolivia", "Brazil",
    "Bulgaria", "Canada", "Chile", "Colombia", "Costa Rica", "Croatia", "Cuba", "Côte d'Ivoire",
    "Denmark", "Ecuador", "Egypt", "Estonia", "Ethiopia", "Finland", "France", "Germany", "Ghana",
    "Greece", "Hungary", "Iceland", "India", "Indonesia", "Ireland", "Italy", "Japan", "Kenya",
    "Latvia", "Lithuania", "Mexico", "Morocco", "Nepal", "New Zealand", "Nigeria", "Norway",
    "Peru", "Poland", "Portugal", "Romania", "Senegal", "Slovakia", "Slovenia", "Spain", "Sweden",
    "Switzerland", "Thailand", "Tunisia", "Türkiye", "Uganda", "Ukraine", "Uruguay", "Vietnam",
)  # fmt: skip

SHAPES = [
    Shape(
        "all_formats",
        obj(
            {
                name: form(name)
                for name in (
                    "date-time",
                    "date",
                    "time",
                    "email",
                    "uuid",
                    "ipv4",
                    "ipv6",
                    "uri",
                    "hostname",
                )
            }
        ),
        lambda d: {
            "date-time": d.instant(),
            "date": d.date(),
            "time": d.time(),
            "email": d.email(),
            "uuid": d.uuid(),
            "ipv4": d.ipv4(),
            "ipv6": d.ipv6(),
            "uri": d.uri(),
            "hostname": d.host(),
        },
        (
            ("date-time", "2024-06-31T10:00:00Z"),
            ("date", "2023-02-29"),
            ("date", "2024-6-1"),
            ("time", "24:00:00Z"),
            ("time", "10:00:00"),
            ("email", "a@b@c"),
            ("uuid", "00000000-0000-0000-0000-00000000000"),
            ("ipv4", "1.2.3"),
            ("ipv4", "1.2.3.04"),
            ("ipv6", "12345::"),
            ("uri", "//example.com"),
            ("hostname", "under_score.example.com"),
        ),
    ),
    Shape(
        "leap_days",
        array(form("date"), 1),
        lambda d: d.list(1, 4, lambda: d.pick(("2000-02-29", "2024-02-29", d.date()))),
        (("0", "1900-02-29"), ("0", "2023-02-29"), ("0", "2024-04-31"), ("0", "2024-00-10")),
    ),
    Shape(
        "number_bounds",
        obj(
            {
                "celsius": number(-273.15, 1000),
                "share": number(exclusiveMinimum=0, exclusiveMaximum=1),
                "count": integer(-128, 127),
                "big": integer(9007199254740000, 9007199254740991),
                "year": integer(1900, 2099),
                "tenths": number(-0.5, 0.5),
            }
        ),
        lambda d: {
            "celsius": d.num(-273, 1000),
            "share": d.num(0.01, 0.99, 3),
            "count": d.int(-128, 127),
            "big": d.int(9007199254740000, 9007199254740991),
            "year": d.int(1900, 2099),
            "tenths": d.num(-0.5, 0.5, 4),
        },
        (
            ("celsius", -273.16),
            ("celsius", 1000.001),
            ("share", 0),
            ("share", 1),
            ("count", 128),
            ("count", -129),
            ("count", 0.25),
            ("big", 9007199254739999),
            ("year", 2100),
            ("tenths", -0.5001),
            ("tenths", 5),
        ),
    ),
    Shape(
        "integers_of_all_signs",
        array(integer(-1234, 56789), 1, 30),
        lambda d: d.list(1, 12, lambda: d.int(-1234, 56789)),
        (("0", -1235), ("0", 56790), ("0", 1.5), ("0", None), ("", []), ("", [0] * 31)),
    ),
    Shape(
        "exact_numbers",
        obj({"answer": enum(42, 3.5, -7, 0), "constant": {"const": 1.5}, "flag": enum(True, 0)}),
        lambda d: {"answer": d.pick((42, 3.5, -7, 0)), "constant": 1.5, "flag": True},
        (("answer", 43), ("answer", "42"), ("constant", 1.25), ("constant", 15), ("flag", False)),
    ),
    Shape(
        "string_lengths",
        obj(
            {
                "code": text(4, 4),
                "short": text(None, 5),
                "long": text(20),
                "emoji": text(2, 3),
                "empty": text(0, 0),
            }
        ),
        lambda d: {
            "code": d.digits(4),
            "short": d.chars("abcé ", 0, 5),
            "long": d.sentence() + "-" * 20,
            "emoji": d.chars("🙂🚀日é", 2, 3),
            "empty": "",
        },
        (
            ("code", "123"),
            ("code", "12345"),
            ("short", "abcdef"),
            ("long", "x" * 19),
            ("emoji", "🙂"),
            ("emoji", "🙂🙂🙂🙂"),
            ("empty", " "),
        ),
    ),
    Shape(
        "patterns_anchored",
        obj(
            {
                "semver": pattern("^(0|[1-9]\\d*)\\.(0|[1-9]\\d*)\\.(0|[1-9]\\d*)$"),
                "hex": pattern("^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"),
                "phone": pattern("^\\+?[0-9]{1,3}[- ]?\\(?[0-9]{3}\\)?[- ]?[0-9]{4}$"),
                "slug": pattern("^[a-z0-9]+(?:-[a-z0-9]+)*$"),
                "clock": pattern("^([01]?[0-9]|2[0-3]):[0-5][0-9]$"),
                "plate": pattern("^[A-Z]{1,3}-[A-Z]{1,2} [1-9][0-9]{0,3}$"),
                "base64": pattern("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==)?$"),
            }
        ),
        lambda d: {
            "semver": d.version(),
            "hex": f"#{d.pick((d.hex(3), d.hex(6)))}",
            "phone": f"+41 ({d.digits(3)}) {d.digits(4)}",
            "slug": d.slug(),
            "clock": f"{d.int(0, 23)}:{d.int(10, 59)}",
            "plate": f"ZH-{d.chars('XYZ', 1, 2)} {d.int(1, 9999)}",
            "base64": d.chars("Ab9+/", 8) + d.pick(("", "QQ==")),
        },
        (
            ("semver", "01.2.3"),
            ("semver", "1.2"),
            ("hex", "#12345"),
            ("hex", "123456"),
            ("phone", "call me"),
            ("slug", "-a"),
            ("slug", "a--b"),
            ("clock", "24:00"),
            ("clock", "9:60"),
            ("plate", "ZH-A 0123"),
            ("base64", "abc"),
        ),
    ),
    Shape(
        "patterns_searched",
        obj(
            {
                "digit": pattern("[0-9]"),
                "suffix": pattern("\\.(png|jpe?g)$"),
                "prefix": pattern("^data:"),
                "inside": pattern("@", maxLength=40),
                "noSpace": pattern("^\\S+$"),
            }
        ),
        lambda d: {
            "digit": f"{d.word()} {d.digits(1)} {d.word()}",
            "suffix": f"{d.sentence()}.{d.pick(('png', 'jpg', 'jpeg'))}",
            "prefix": f"data:{d.sentence()}",
            "inside": d.email(),
            "noSpace": f"{d.slug()}…{d.hex(6)}",
        },
        (
            ("digit", "none here"),
            ("suffix", "photo.gif"),
            ("suffix", "photo.png "),
            ("prefix", " data:"),
            ("inside", "at"),
            ("inside", "@" * 41),
            ("noSpace", "a b"),
            ("noSpace", ""),
        ),
    ),
    Shape(
        "patterns_unicode",
        obj(
            {
                "greek": pattern("^[β-ω]+$"),
                "dot": pattern("^.{3}$"),
                "notAscii": pattern("^[^a-z]*$"),
                "quoted": pattern('^"[^"\\\\]*"$'),
            }
        ),
        lambda d: {
            "greek": d.chars("βγδλω", 1, 9),
            "dot": d.chars("aé日🙂", 3),
            "notAscii": d.chars("ABÄ12 ", 0, 9),
            "quoted": f'"{d.word()}"',
        },
        (
            ("greek", "alpha"),
            ("greek", "Ω"),
            ("dot", "ab"),
            ("dot", "a\nb"),
            ("dot", "abcd"),
            ("notAscii", "ABc"),
            ("quoted", '"a"b"'),
            ("quoted", "plain"),
        ),
    ),
    Shape(
        "word_limit",
        obj({"summary": pattern("^(?:\\S+\\s+){0,9}\\S+$", maxLength=120), "id": INT}),
        lambda d: {"summary": " ".join(d.list(1, 10, d.word)), "id": d.int(0, 9)},
        (
            ("summary", " ".join(["w"] * 11)),
            ("summary", ""),
            ("summary", " leading"),
            ("summary", "x" * 121),
        ),
    ),
    Shape(
        "large_enum",
        obj({"country": words(*_COUNTRIES), "code": integer(1, len(_COUNTRIES))}),
        lambda d: {"country": d.pick(_COUNTRIES), "code": d.int(1, len(_COUNTRIES))},
        (("country", "Atlantis"), ("country", "Peru "), ("country", ""), ("code", 0)),
    ),
    Shape(
        "enum_of_prefixes",
        array(words("re", "ret", "retry", "retries", "retrieve", "retrieveDate", "r"), 1, 9),
        lambda d: d.list(
            1, 9, lambda: d.pick(("re", "ret", "retry", "retries", "retrieve", "retrieveDate"))
        ),
        (("0", "retr"), ("0", "retrieveD"), ("0", ""), ("0", "R"), ("", [])),
    ),
    Shape(
        "enum_of_values",
        obj(
            {
                "mode": enum(None, False, 1, "one", [1, "one"], {"one": 1}),
                "escape": enum('"', "\\", "/", "\n", "\t", "é", "🙂", "</script>"),
            }
        ),
        lambda d: {
            "mode": d.pick((None, False, 1, "one", [1, "one"], {"one": 1})),
            "escape": d.pick(('"', "\\", "/", "\n", "\t", "é", "🙂", "</script>")),
        },
        (
            ("mode", True),
            ("mode", 2),
            ("mode", ["one", 1]),
            ("mode", {"one": 2}),
            ("mode", {}),
            ("escape", "'"),
            ("escape", "\r"),
            ("escape", "e"),
        ),
    ),
    Shape(
        "keys_that_share_tokens",
        obj(
            {
                "name": STR,
                "name_of_the_person": STR,
                "$schema": STR,
                "options": array(INT),
                "aggregationOptions": array(INT),
                "a b": NUM,
                "": NUM,
                'quote"d': NUM,
                "ключ": NUM,
            },
            optional=["name_of_the_person", "options", "", "ключ"],
        ),
        lambda d: {
            "name": d.name(),
            "name_of_the_person": d.name(),
            "$schema": d.uri(),
            "options": d.list(0, 2, lambda: d.int(0, 9)),
            "aggregationOptions": [],
            "a b": 1,
            "": d.num(0, 9),
            'quote"d': -2,
            "ключ": 0,
        },
        (
            ("name_of", "x"),
            ("aggregationOptions", DROP),
            ("a b", "1"),
            ('quote"d', DROP),
            ("ключ", None),
        ),
        optional=("name_of_the_person", "options", "", "ключ"),
    ),
    Shape(
        "multiples",
        obj({"cents": integer(0, multipleOf=5), "half": number(multipleOf=0.5)}),
        lambda d: {"cents": 5 * d.int(0, 400), "half": d.int(-40, 40) / 2},
        (("cents", 7), ("cents", -5), ("half", 0.25), ("half", "1")),
        features=("multipleOf",),
    ),
    Shape(
        "scalar_root",
        text(3, 12),
        lambda d: d.chars('abcdef é"\\', 3, 12),
        (("", "ab"), ("", "a" * 13), ("", 3), ("", None), ("", ["abc"])),
    ),
]
