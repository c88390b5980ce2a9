//! Identifiers, pointers and templates.

use super::{class, digit, exactly, hexadecimal, literal, many, one_of, percent_encoded, some};
use ffwd_regular::regex::Ast;

/// Hexadecimal digits in groups of 8, 4, 4, 4 and 12.
pub(super) fn uuid() -> Ast {
    let group = |length: u32| exactly(hexadecimal(), length);
    Ast::concat([
        group(8),
        exactly(Ast::concat([literal("-"), group(4)]), 3),
        literal("-"),
        group(12),
    ])
}

/// RFC 6901.
pub(super) fn json_pointer() -> Ast {
    let character = Ast::alternation([
        Ast::class(class("//~~").negate()),
        Ast::concat([literal("~"), one_of("01")]),
    ]);
    many(Ast::concat([literal("/"), many(character)]))
}

/// A number of levels, and a pointer or `#`.
pub(super) fn relative_json_pointer() -> Ast {
    let levels = Ast::alternation([literal("0"), Ast::concat([one_of("19"), many(digit())])]);
    Ast::concat([levels, Ast::alternation([literal("#"), json_pointer()])])
}

/// RFC 6570.
pub(super) fn uri_template() -> Ast {
    let plain = class("\0 \u{7f}\u{7f}\"\"<<>>%%\\\\^^``{{||}}").negate();
    let unit = Ast::alternation([one_of("azAZ09__"), percent_encoded()]);
    let name = Ast::concat([some(unit.clone()), many(Ast::concat([literal("."), some(unit)]))]);
    let prefix = Ast::concat([literal(":"), one_of("19"), Ast::repeat(digit(), 0, Some(3))]);
    let variable = Ast::concat([name, Ast::optional(Ast::alternation([prefix, literal("*")]))]);
    let operator = one_of("++##..//;;??&&==,,!!@@||");
    let further = many(Ast::concat([literal(","), variable.clone()]));
    let expression =
        Ast::concat([literal("{"), Ast::optional(operator), variable, further, literal("}")]);
    many(Ast::alternation([Ast::class(plain), percent_encoded(), expression]))
}

#[cfg(test)]
pub(super) const CASES: &[super::tests::Case] = &[
    (
        "uuid",
        &[
            "123e4567-e89b-12d3-a456-426614174000",
            "00000000-0000-0000-0000-000000000000",
            "ABCDEFab-ABCD-abcd-0000-FFFFFFFFFFFF",
        ],
        &[
            "123e4567e89b12d3a456426614174000",
            "123e4567-e89b-12d3-a456-42661417400",
            "g23e4567-e89b-12d3-a456-426614174000",
            "{123e4567-e89b-12d3-a456-426614174000}",
            "urn:uuid:123e4567-e89b-12d3-a456-426614174000",
            "",
        ],
    ),
    (
        "json-pointer",
        &["", "/", "/a/b", "/~0~1", "//", "/é \n"],
        &["a", "#/a", "/~", "/~2", "/a~", "a/b"],
    ),
    (
        "relative-json-pointer",
        &["0", "1/a", "10#", "0#", "120/"],
        &["", "01", "/a", "#", "1#/a", "0##", "-1", "1a"],
    ),
    (
        "uri-template",
        &[
            "",
            "http://a/{b}",
            "{a,b}",
            "{+a.b:3}",
            "{#a*}",
            "{?x,y*}",
            "é{%20}",
            "{|a}",
            "'",
            "{a:9999}",
        ],
        &[
            "{",
            "}",
            "{}",
            "{a",
            "{a b}",
            "a b",
            "{a:0}",
            "{a:10000}",
            "{a**}",
            "{.}",
            "%",
            "<a>",
            "{-}",
            "`",
        ],
    ),
];
