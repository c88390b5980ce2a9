"""Keywords of numbers and strings, each at its limits: what is just inside and just outside."""

from __future__ import annotations

from maskbench.shapes.shape import array, integer, listed, number, obj, pattern, text

_NUM = {"type": "number"}
_STR = {"type": "string"}

SHAPES = [
    listed("kw_minimum", number(3), (3, 3.0001, 4, 1e9), (2.9999, 0, -3, "3"), "minimum"),
    listed("kw_minimum_negative", number(-2.5), (-2.5, -2.4, 0, 7), (-2.51, -3, -25), "minimum"),
    listed("kw_maximum", number(None, 12.5), (12.5, 12.49, -1, 0), (12.51, 13, 125), "maximum"),
    listed("kw_maximum_zero", number(None, 0), (0, -0.1, -5), (0.1, 1), "maximum"),
    listed(
        "kw_exclusive_minimum",
        number(exclusiveMinimum=10),
        (10.01, 11, 100),
        (10, 9.99, 1),
        "exclusiveMinimum",
    ),
    listed(
        "kw_exclusive_maximum",
        number(exclusiveMaximum=-1.5),
        (-1.51, -2, -15),
        (-1.5, -1, 0, 2),
        "exclusiveMaximum",
    ),
    listed(
        "kw_both_bounds_exclusive",
        integer(exclusiveMinimum=0, exclusiveMaximum=4),
        (1, 2, 3),
        (0, 4, 2.5, -1),
        "exclusiveMinimum",
        "exclusiveMaximum",
    ),
    listed(
        "kw_inclusive_beside_exclusive",
        number(5, 10, exclusiveMinimum=5, exclusiveMaximum=11),
        (5.5, 10),
        (5, 10.5, 11),
        "minimum",
        "exclusiveMinimum",
    ),
    listed("kw_integer_range", integer(-105, 98), (-105, -99, 0, 9, 98), (-106, 99, 1.5)),
    listed("kw_integer_wide", integer(999, 1000000), (999, 1000, 999999, 1000000), (998, 1000001)),
    listed("kw_integer_one", integer(7, 7), (7,), (6, 8, 70, -7, "7")),
    listed("kw_number_narrow", number(0.125, 0.126), (0.125, 0.1255, 0.126), (0.1249, 0.127, 1)),
    listed("kw_number_sign", number(-1, 1), (-1, -0.5, 0, 0.25, 1), (-1.5, 1.01, 10)),
    listed("kw_multiple_of_integer", integer(multipleOf=7), (0, 14, -21, 700), (1, 15, 71)),
    listed(
        "kw_multiple_of_decimal",
        number(multipleOf=0.25),
        (0.75, 3, -1.25),
        (0.3, 1.1),
        "multipleOf",
    ),
    listed(
        "kw_multiple_of_cents",
        number(0, 10, multipleOf=0.5),
        (0, 0.5, 9.5, 10),
        (0.25, 10.5, -0.5),
        "multipleOf",
    ),
    listed("kw_multiple_of_large", integer(multipleOf=360), (0, 360, 3600), (36, 180, 361)),
    listed(
        "kw_multiples_in_range",
        integer(100, 130, multipleOf=12),
        (108, 120),
        (96, 132, 110, 0),
        "multipleOf",
    ),
    listed(
        "kw_multiples_of_two",
        {"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}]},
        (0, 12, 24, -36),
        (4, 6, 8, 18),
        "multipleOf",
        "allOf",
    ),
    listed("kw_min_length", text(3), ("abc", "日本語", "a\tb", "🙂🙂🙂"), ("ab", "", "🙂🙂")),
    listed("kw_max_length", text(None, 3), ("", "abc", "日本語", '"\\"'), ("abcd", "🙂🙂🙂🙂")),
    listed("kw_length_exact", text(2, 2), ("ab", "é€", "\\\\", '""'), ("a", "abc", "")),
    listed("kw_length_long", text(100, 120), ("x" * 100, "ab " * 40), ("x" * 99, "x" * 121)),
    listed("kw_length_none", text(0, 0), ("",), ("a", " ", None)),
    listed("kw_pattern_class", pattern("^[a-f0-9]+$"), ("a0", "beef", "7"), ("", "g", "A0")),
    listed("kw_pattern_search", pattern("b.d"), ("abcd", "bad", "xbydz"), ("bd", "abc", "")),
    listed("kw_pattern_alternatives", pattern("^(GET|PUT|POST)$"), ("GET", "POST"), ("PO", "get")),
    listed("kw_pattern_prefix", pattern("^urn:"), ("urn:", "urn:isbn:1"), ("aurn:", "ur", "URN:")),
    listed("kw_pattern_suffix", pattern("\\.json$"), ("a.json", ".json"), ("a.json5", "json")),
    listed(
        "kw_pattern_counted",
        pattern("^[A-Z]{2}[0-9]{2,4}$"),
        ("AB12", "ZZ9999"),
        ("AB1", "AB12345", "A123"),
    ),
    listed(
        "kw_pattern_nested_counts",
        pattern("^([0-9a-f]{2}:){5}[0-9a-f]{2}$"),
        ("00:1b:44:11:3a:b7", "ff:ff:ff:ff:ff:ff"),
        ("00:1b:44:11:3a", "00-1b-44-11-3a-b7", "00:1b:44:11:3a:b7:"),
    ),
    listed(
        "kw_pattern_optional", pattern("^-?[0-9]+$"), ("-1", "0", "42"), ("", "-", "--1", "1.0")
    ),
    listed("kw_pattern_lazy", pattern('^".*?"$'), ('""', '"a"', '"a"b"'), ('"', "a", '"a')),
    listed(
        "kw_pattern_negated_class", pattern("^[^@ ]+@[^@ ]+$"), ("a@b",), ("@b", "a@b@c", "a b@c")
    ),
    listed(
        "kw_pattern_escapes",
        pattern("^\\d+\\.\\d+\\s\\w+$"),
        ("1.5 kg", "0.0\tm"),
        ("1,5 kg", "1.5kg"),
    ),
    listed("kw_pattern_unicode_escape", pattern("^\\u00e9t\\u00e9$"), ("été",), ("ete", "ÉTÉ")),
    listed(
        "kw_pattern_property",
        pattern("^\\p{Lu}\\p{Ll}*$"),
        ("Émile", "A", "Ω"),
        ("émile", "A1", ""),
    ),
    listed("kw_pattern_script", pattern("^\\p{Script=Greek}+$"), ("βγδ", "Ω"), ("abc", "β1", "")),
    listed(
        "kw_pattern_lookahead",
        pattern("^(?=.*[0-9])(?=.*[a-z]).{4,8}$"),
        ("abc1", "1234567a"),
        ("abcd", "1234", "ab1", "abcdefgh1"),
        "pattern",
    ),
    listed(
        "kw_pattern_negative_lookahead",
        pattern("^(?!con$|nul$)[a-z]+$"),
        ("conf", "file", "nuls"),
        ("con", "nul", "", "A"),
    ),
    listed(
        "kw_pattern_lookbehind",
        pattern("(?<=\\$)[0-9]+$"),
        ("$5", "cost: $12"),
        ("5", "€5", "$", "$5 "),
    ),
    listed(
        "kw_pattern_word_boundary",
        pattern("\\bcat\\b"),
        ("cat", "a cat.", "cat-like"),
        ("cats", "concat", "catalogue"),
    ),
    listed(
        "kw_pattern_back_reference",
        pattern("^(['|])[a-z]*\\1$"),
        ("'a'", "|bc|", "''"),
        ("'a|", "a", "'"),
        "refused by name",
    ),
    listed(
        "kw_pattern_with_length",
        pattern("^a+$", minLength=2, maxLength=4),
        ("aa", "aaaa"),
        ("a", "aaaaa", "ab"),
    ),
    listed(
        "kw_patterns_at_once",
        {"type": "string", "allOf": [pattern("[0-9]"), pattern("[a-z]"), pattern("^.{2,4}$")]},
        ("a1", "1bc2"),
        ("ab", "12", "a", "abc12"),
        "allOf",
    ),
    listed(
        "kw_pattern_of_any_type",
        {"pattern": "^a", "minLength": 2},
        ("ab", 3, None, [], {"b": 1}),
        ("a", "ba", ""),
    ),
    listed(
        "kw_bounds_of_any_type",
        {"minimum": 10, "maxLength": 2, "maxItems": 1, "required": ["a"]},
        (10, "ab", [1], {"a": 0}, False),
        (9, "abc", [1, 2], {}),
    ),
    listed(
        "kw_type_list", {"type": ["string", "integer"]}, ("a", 1, -2, ""), (1.5, None, True, [])
    ),
    listed("kw_type_integer_written_as_float", {"type": "integer"}, (1, 2.0, -3), (1.5, "1", None)),
    listed(
        "kw_type_three", {"type": ["null", "boolean", "array"]}, (None, True, []), ({}, 1.5, "")
    ),
    listed("kw_type_null", {"type": "null"}, (None,), (0, "", False, "null", [])),
    listed("kw_type_boolean", {"type": "boolean"}, (True, False), (0, "true", None)),
    listed("kw_type_object", {"type": "object"}, ({}, {"a": [1]}), ([], "{}", None)),
    listed("kw_type_array", {"type": "array"}, ([], [1, "a", None]), ({}, "[]", 0)),
    listed("kw_const_string", {"const": "v1"}, ("v1",), ("v", "v11", "V1", None)),
    listed(
        "kw_const_object", {"const": {"a": [1, None]}}, ({"a": [1, None]},), ({"a": [1]}, {}, [1])
    ),
    listed("kw_const_number", {"const": 10}, (10, 10.0), (1, 100, "10", 10.5)),
    listed(
        "kw_const_escaped", {"const": 'a"b\\c\n'}, ('a"b\\c\n',), ("abc", 'a"b\\c', 'a"b\\c\\n')
    ),
    listed(
        "kw_enum_mixed",
        {"enum": [1, "1", None, [1], {"1": 1}]},
        (1, "1", None, [1]),
        (2, "", [], {"1": 2}),
    ),
    listed(
        "kw_enum_filtered",
        {"type": "string", "enum": ["a", 1, "bb", None]},
        ("a", "bb"),
        (1, None, "b"),
    ),
    listed("kw_enum_with_bounds", {"enum": [1, 5, 9, "x"], "maximum": 6}, (1, 5, "x"), (9, 6, "y")),
    listed(
        "kw_enum_unicode",
        {"enum": ["naïve", "日本", "🙂", "é", "e\u0301"]},
        ("naïve", "日本", "🙂", "é", "e\u0301"),
        ("naive", "日", "🙃", "e"),
    ),
    listed(
        "kw_enum_of_numbers", {"enum": [0.1, 1, 1e3, -2]}, (0.1, 1, 1000, -2), (0.11, 10, 2, "1")
    ),
    listed(
        "kw_numbers_in_objects",
        obj({"a": _NUM, "b": integer(0)}),
        ({"a": 0.5, "b": 1},),
        ({"a": 1}, {"a": 1, "b": -1}),
    ),
    listed(
        "kw_strings_in_arrays", array(text(1, 2), 1), (["a"], ["ab", "c"]), ([], [""], ["abc"], [1])
    ),
    listed(
        "kw_annotations",
        {
            "title": "t",
            "description": "d",
            "default": 1,
            "examples": [2],
            "deprecated": True,
            "readOnly": True,
            "writeOnly": False,
            "$comment": "c",
            "type": "integer",
            "contentMediaType": "text/plain",
            "contentEncoding": "base64",
            "x-internal": {"minimum": 5},
        },
        (1, 4, -1),
        ("1", 1.5, None),
        "annotations",
    ),
    listed(
        "kw_content",
        {
            **_STR,
            "contentEncoding": "base64",
            "contentMediaType": "application/json",
            "contentSchema": {"type": "object"},
        },
        ("e30=", "any text"),
        (1, None),
        "contentSchema",
    ),
]
