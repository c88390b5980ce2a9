//! Addresses: IP, hosts, mail.

use super::international::hostname_or_international;
use super::{class, digit, exactly, hexadecimal, literal, many, one_of, some};
use ffwd_regular::regex::{Ast, CharClass};

/// Four numbers to 255 without leading zeros.
pub(super) fn ipv4() -> Ast {
    let octet = Ast::alternation([
        digit(),
        Ast::concat([one_of("19"), digit()]),
        Ast::concat([literal("1"), exactly(digit(), 2)]),
        Ast::concat([literal("2"), one_of("04"), digit()]),
        Ast::concat([literal("25"), one_of("05")]),
    ]);
    let further = Ast::concat([literal("."), octet.clone()]);
    Ast::concat([octet, exactly(further, 3)])
}

/// Eight groups of hexadecimal digits, of which `::` stands for one or more, and of which the last
/// two may be written as an IPv4 address.
pub(super) fn ipv6() -> Ast {
    let group = || Ast::repeat(hexadecimal(), 1, Some(4));
    let before =
        |min: u32, max: u32| Ast::repeat(Ast::concat([group(), literal(":")]), min, Some(max));
    let mut forms = vec![Ast::concat([before(7, 7), group()]), Ast::concat([before(6, 6), ipv4()])];
    for head in 0..=7 {
        let left = match head {
            0 => literal("::"),
            _ => Ast::concat([before(head, head), literal(":")]),
        };
        let mut tails = vec![Ast::Epsilon];
        if head <= 6 {
            tails.push(Ast::concat([before(0, 6 - head), group()]));
        }
        if head <= 5 {
            tails.push(Ast::concat([before(0, 5 - head), ipv4()]));
        }
        forms.push(Ast::concat([left, Ast::alternation(tails)]));
    }
    Ast::alternation(forms)
}

/// At most 253 characters in labels of at most 63 letters, digits and inner hyphens.
pub(super) fn hostname() -> Ast {
    Ast::intersection([labels(), Ast::repeat(Ast::Class(CharClass::any()), 1, Some(253))])
}

fn labels() -> Ast {
    let further = Ast::concat([literal("."), label()]);
    Ast::concat([label(), many(further)])
}

pub(super) fn label() -> Ast {
    let letter = || one_of("azAZ09");
    let inner = || one_of("azAZ09--");
    // Labels by the position of their end: the third and fourth character are not both hyphens.
    let rest = |max: u32| Ast::concat([Ast::repeat(inner(), 0, Some(max)), letter()]);
    Ast::concat([
        letter(),
        Ast::optional(Ast::alternation([
            letter(),
            Ast::concat([inner(), letter()]),
            Ast::concat([inner(), inner(), letter()]),
            Ast::concat([
                inner(),
                Ast::alternation([
                    Ast::concat([letter(), inner()]),
                    Ast::concat([literal("-"), letter()]),
                ]),
                rest(58),
            ]),
        ])),
    ])
}

pub(super) fn possible_hostname() -> Ast {
    some(one_of("azAZ09--.."))
}

/// A local part of at most 64 characters (words with dots between them, or quoted), and a host
/// name or a bracketed IP address.
pub(super) fn email() -> Ast {
    mail(&CharClass::new([]), hostname())
}

/// As `email`, with characters that are not ASCII before and after the at sign.
pub(super) fn international_email() -> Ast {
    mail(&CharClass::new([(0, 0x7F)]).negate(), hostname_or_international())
}

pub(super) fn possible_email() -> Ast {
    Ast::concat([Ast::any_text(), literal("@"), Ast::any_text()])
}

fn mail(more: &CharClass, host: Ast) -> Ast {
    let atom = class("azAZ09!!##$$%%&&''**++--//==??^^__``{{||}}~~").union(more);
    let word = || some(Ast::class(atom.clone()));
    let words = Ast::concat([word(), many(Ast::concat([literal("."), word()]))]);
    // White space, printable ASCII but for quote and backslash, and escaped printable ASCII.
    let plain = class("\t\t  !!#[]~").union(more);
    let escaped = Ast::concat([literal("\\"), one_of("!~")]);
    let quoted_text = many(Ast::alternation([Ast::class(plain), escaped]));
    let quoted = Ast::concat([literal("\""), quoted_text, literal("\"")]);
    // The text after ` <` would count as the address after a display name.
    let display = Ast::concat([Ast::any_text(), literal(" <"), Ast::any_text()]);
    let up_to_64 = || Ast::repeat(Ast::Class(CharClass::any()), 1, Some(64));
    let local = Ast::alternation([
        Ast::intersection([words, up_to_64()]),
        Ast::intersection([quoted, up_to_64(), Ast::complement(display)]),
    ]);
    let tag = Ast::concat([one_of("IIii"), one_of("PPpp"), one_of("VVvv"), literal("6:")]);
    let address = Ast::concat([
        literal("["),
        Ast::alternation([ipv4(), Ast::concat([tag, ipv6()])]),
        literal("]"),
    ]);
    Ast::concat([local, literal("@"), Ast::alternation([host, address])])
}

#[cfg(test)]
pub(super) const CASES: &[super::tests::Case] = &[
    (
        "idn-email",
        &["실례@실례.테스트", "joe.bloggs@example.com", "ü@[1.2.3.4]", "\"ü b\"@x.de"],
        &["2962", ".ü@x.de", "ü..ü@x.de", "a b@x.de", "ü@", "ü@-x.de"],
    ),
    (
        "email",
        &[
            "joe@example.com",
            "a@b",
            "te~st.1+x@a-b.c",
            "\"joe bloggs\"@example.com",
            "\"a@b\"@c",
            "\"\"@a.b",
            "\"\\\"\"@a",
            "\"a\tb\"@c",
            "x@[127.0.0.1]",
            "x@[IPv6:::1]",
            "x@[ipV6:::1]",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@b",
        ],
        &[
            "",
            "a",
            "@b",
            "a@",
            ".a@b",
            "a.@b",
            "a..b@c",
            "a@b@c",
            "a b@c",
            "é@b.c",
            "a@é",
            "a@-b",
            "a@b-",
            "a@b.",
            "\"a\"b\"@c",
            "\"a <b\"@c",
            "\"\\\"@c",
            "x@[127.0.0.256]",
            "x@[::1]",
            "x@[IPv6:1]",
            "a@b_c",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@b",
        ],
    ),
    (
        "hostname",
        &[
            "a",
            "example.com",
            "A-1.b",
            "1.2.3",
            "a-b",
            "ab-c",
            "a-b-c",
            "localhost",
            "a--b",
            "abc--d",
        ],
        &[
            "", ".", "a.", ".a", "a..b", "-a", "a-", "a_b", "é", "ab--c", "xn--X", "a b", "a.-b",
            "a.b-",
        ],
    ),
    (
        "ipv4",
        &["0.0.0.0", "255.255.255.255", "1.20.199.249"],
        &[
            "256.0.0.0",
            "1.2.3",
            "1.2.3.4.5",
            "01.2.3.4",
            "1.2.3.4 ",
            "1.2.3.",
            "0x1.2.3.4",
            "١.2.3.4",
            "",
        ],
    ),
    (
        "ipv6",
        &[
            "::",
            "::1",
            "1::",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::2:3:4:5:6:7:8",
            "1::3:4:5:6:7:8",
            "::1.2.3.4",
            "1:2:3:4:5:6:1.2.3.4",
            "1:2:3:4:5::1.2.3.4",
            "abcd:EF01::",
        ],
        &[
            ":",
            ":::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:9",
            "1::2::3",
            "12345::",
            "1:2:3:4:5:6:7:8::",
            "::1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7:1.2.3.4",
            "1:2:3:4:5:6::1.2.3.4",
            "1.2.3.4::",
            "::1.2.3",
            "::g",
            "fe80::1%eth0",
            "1:",
            ":1",
            "",
        ],
    ),
];
