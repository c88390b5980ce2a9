//! URIs of RFC 3986 and IRIs of RFC 3987.

use super::network::ipv6;
use super::{class, hexadecimal, literal, many, one_of, percent_encoded, some};
use ffwd_regular::regex::{Ast, CharClass};

/// The characters of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repertoire {
    Uri,
    Iri,
}

/// Unreserved characters and sub-delimiters.
const NAME: &str = "azAZ09--..__~~!!$$&&''(())**++,,;;==";

impl Repertoire {
    /// One of the characters (beside those of names), or a percent-encoded one.
    fn unit(self, more: &str) -> Ast {
        Ast::alternation([Ast::class(self.name().union(&class(more))), percent_encoded()])
    }

    fn name(self) -> CharClass {
        let ascii = class(NAME);
        match self {
            Self::Uri => ascii,
            Self::Iri => ascii.union(&CharClass::new(
                [(0xA0, 0xD7FF), (0xF900, 0xFDCF), (0xFDF0, 0xFFEF)]
                    .into_iter()
                    .chain((1..=13).map(|plane| (plane << 16, (plane << 16) + 0xFFFD)))
                    .chain([(0xE1000, 0xEFFFD)]),
            )),
        }
    }

    /// Only queries may have private characters.
    fn query_unit(self) -> Ast {
        let unit = self.unit("::@@//??");
        match self {
            Self::Uri => unit,
            Self::Iri => {
                let private = [(0xE000, 0xF8FF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD)];
                Ast::alternation([unit, Ast::class(CharClass::new(private))])
            }
        }
    }

    /// A query and a fragment, each if there is one.
    fn suffix(self) -> Ast {
        let after = |mark: &str, unit: Ast| Ast::optional(Ast::concat([literal(mark), many(unit)]));
        Ast::concat([after("?", self.query_unit()), after("#", self.unit("::@@//??"))])
    }

    /// `//`, an authority, and a path that is empty or begins with a slash.
    fn with_authority(self) -> Ast {
        let user = Ast::optional(Ast::concat([many(self.unit("::")), literal("@")]));
        let future = Ast::concat([
            one_of("vvVV"),
            some(hexadecimal()),
            literal("."),
            some(Ast::class(class(NAME).union(&class("::")))),
        ]);
        let bracketed =
            Ast::concat([literal("["), Ast::alternation([ipv6(), future]), literal("]")]);
        let host = Ast::alternation([many(self.unit("")), bracketed]);
        let port = Ast::optional(Ast::concat([literal(":"), many(one_of("09"))]));
        let path = Ast::optional(Ast::concat([literal("/"), many(self.unit("::@@//"))]));
        Ast::concat([literal("//"), user, host, port, path])
    }
}

/// A reference with a scheme.
pub(super) fn absolute(repertoire: Repertoire) -> Ast {
    let scheme = Ast::concat([one_of("azAZ"), many(one_of("azAZ09++--..")), literal(":")]);
    // Without an authority the path does not begin with two slashes.
    let segment = || repertoire.unit("::@@");
    let rest = || many(repertoire.unit("::@@//"));
    let path = Ast::optional(Ast::alternation([
        Ast::concat([segment(), rest()]),
        Ast::concat([literal("/"), Ast::optional(Ast::concat([segment(), rest()]))]),
    ]));
    let hierarchy = Ast::alternation([repertoire.with_authority(), path]);
    Ast::concat([scheme, hierarchy, repertoire.suffix()])
}

/// A reference with a scheme or relative to one.
pub(super) fn reference(repertoire: Repertoire) -> Ast {
    let rest = || many(repertoire.unit("::@@//"));
    // A colon in the first segment would make it a scheme.
    let path = Ast::alternation([
        Ast::concat([
            some(repertoire.unit("@@")),
            Ast::optional(Ast::concat([literal("/"), rest()])),
        ]),
        Ast::optional(Ast::concat([
            literal("/"),
            Ast::optional(Ast::concat([repertoire.unit("::@@"), rest()])),
        ])),
    ]);
    let relative = Ast::alternation([repertoire.with_authority(), path]);
    Ast::alternation([absolute(repertoire), Ast::concat([relative, repertoire.suffix()])])
}

#[cfg(test)]
pub(super) const CASES: &[super::tests::Case] = &[
    (
        "uri",
        &[
            "http://example.com",
            "http://a:8080/b?c=d#e",
            "urn:a:b",
            "mailto:a@b.c",
            "a:",
            "a:/",
            "a:/b//c",
            "a://",
            "a:///b",
            "http://u:p@h:80",
            "http://[::1]:80/",
            "http://[v1.a:b]",
            "a+b-c.1:x",
            "http://%C3%A9/%20?%2F#%00",
            "http://a:/",
            "a:?/?#/?",
            "tag:x,2:y",
            "http://u@[::1]",
        ],
        &[
            "",
            "/a",
            "a",
            "//a/b",
            "1a:b",
            ":a",
            "http://a b",
            "http://é",
            "http://a:8a",
            "http://a@b@c",
            "a:%",
            "a:%2",
            "a:%GG",
            "http://[::1",
            "http://[::1]a",
            "http://[1::2::3]",
            "http://[v.a]",
            "a:#b#c",
            "a:\\b",
            "a:[",
            "a:{b}",
            "a:\"",
            "a:<b>",
            "a:^",
        ],
    ),
    (
        "uri-reference",
        &["", "a", "/a", "//a/b", "?a", "#a", "./a:b", "a/b:c", "a:b", "../a", "//", "a@b"],
        &["1a:b", ":a", "é", "//a:b", "%", "a b", "\\"],
    ),
    (
        "iri",
        &["http://é.fr/ü?ö#ä", "a:\u{10000}", "a:?\u{e000}", "a:b"],
        &["é", "a:\u{e000}", "a:#\u{e000}", "a:\u{fdd0}", "a:\u{80}", "a:\u{ffff}", "a:\u{e0001}"],
    ),
    ("iri-reference", &["é", "/é#ü", "", "?\u{f0000}"], &["é:a", "\u{e000}", "é b"]),
];
