//! The formats of JSON Schema 2020-12 as languages of whole texts.
//!
//! They follow the jsonschema-rs validator. If its decision is not regular, or would not be worth
//! its size, the language is narrower, never wider:
//!
//! * `hostname` (and the domain of `email`) has no label with hyphens as both its third and fourth
//!   character, so none in Punycode;
//! * `email` has no display name before the address;
//! * `idn-hostname` and `idn-email` support the larger scripts (see `international`);
//! * `regex` has few levels of groups, without names (see `pattern`).

mod international;
mod network;
mod pattern;
mod reference;
mod text;
mod time;

use ffwd_regular::regex::{Ast, CharClass};

/// The names of all formats that the 2020-12 dialect defines.
pub const KNOWN_2020_12: &[&str] = &[
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// The language of a format; none if it is not known.
pub fn format(name: &str) -> Option<Ast> {
    let known = known(name)?;
    Some(match possible(name) {
        Some(possible) => Ast::approximate(known, possible),
        None => known,
    })
}

/// All texts that may be of a format whose language here is narrower.
fn possible(name: &str) -> Option<Ast> {
    let address = || Ast::concat([Ast::any_text(), literal("@"), Ast::any_text()]);
    let beyond_ascii = CharClass::new([(0, 0x7F)]).negate();
    Some(match name {
        "hostname" => some(one_of("azAZ09--..")),
        "idn-hostname" => some(Ast::class(class("azAZ09--..").union(&beyond_ascii))),
        "email" | "idn-email" => address(),
        // Nothing to repeat, or to close.
        "regex" => {
            let first = Ast::class(class("**++??{{))}}]]").negate());
            Ast::optional(Ast::concat([first, Ast::any_text()]))
        }
        _ => return None,
    })
}

fn known(name: &str) -> Option<Ast> {
    Some(match name {
        "date" => time::date(),
        "date-time" => time::date_time(),
        "duration" => time::duration(),
        "email" => network::email(),
        "hostname" => network::hostname(),
        "idn-email" => network::international_email(),
        "idn-hostname" => international::hostname_or_international(),
        "ipv4" => network::ipv4(),
        "ipv6" => network::ipv6(),
        "iri" => reference::absolute(reference::Repertoire::Iri),
        "iri-reference" => reference::reference(reference::Repertoire::Iri),
        "json-pointer" => text::json_pointer(),
        "regex" => pattern::pattern(),
        "relative-json-pointer" => text::relative_json_pointer(),
        "time" => time::time(),
        "uri" => reference::absolute(reference::Repertoire::Uri),
        "uri-reference" => reference::reference(reference::Repertoire::Uri),
        "uri-template" => text::uri_template(),
        "uuid" => text::uuid(),
        _ => return None,
    })
}

/// A class from the first and last characters of its ranges: `"azAZ__"`.
fn class(ranges: &str) -> CharClass {
    let bounds: Vec<u32> = ranges.chars().map(u32::from).collect();
    CharClass::new(bounds.chunks_exact(2).map(|pair| (pair[0], pair[1])))
}

fn one_of(ranges: &str) -> Ast {
    Ast::class(class(ranges))
}

fn literal(text: &str) -> Ast {
    Ast::literal(text)
}

fn digit() -> Ast {
    one_of("09")
}

fn hexadecimal() -> Ast {
    one_of("09afAF")
}

fn exactly(inner: Ast, count: u32) -> Ast {
    Ast::repeat(inner, count, Some(count))
}

fn many(inner: Ast) -> Ast {
    Ast::repeat(inner, 0, None)
}

fn some(inner: Ast) -> Ast {
    Ast::repeat(inner, 1, None)
}

/// `%` and two hexadecimal digits.
fn percent_encoded() -> Ast {
    Ast::concat([literal("%"), exactly(hexadecimal(), 2)])
}

#[cfg(test)]
mod tests;
