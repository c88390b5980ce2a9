//! The formats of JSON Schema 2020-12 as languages of whole texts.
//!
//! A format is a row of `FORMATS`, and a language with texts to test it in a submodule.
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

use std::sync::OnceLock;

use ffwd_regular::regex::{Ast, CharClass};
use reference::Repertoire;

/// A format that the 2020-12 dialect defines.
struct Format {
    name: &'static str,
    /// A text of it.
    example: &'static str,
    /// Texts of the format: all, or those whose language is small enough.
    language: fn() -> Ast,
    /// If `language` does not have all texts of the format, one that does.
    possible: Option<fn() -> Ast>,
}

/// A format whose language is exact.
const fn exact(name: &'static str, example: &'static str, language: fn() -> Ast) -> Format {
    Format { name, example, language, possible: None }
}

/// A format whose language is narrower.
const fn narrow(
    name: &'static str,
    example: &'static str,
    language: fn() -> Ast,
    possible: fn() -> Ast,
) -> Format {
    Format { name, example, language, possible: Some(possible) }
}

const FORMATS: &[Format] = &[
    exact("date", "2000-01-01", time::date),
    exact("date-time", "2000-01-01T00:00:00Z", time::date_time),
    exact("duration", "P1D", time::duration),
    narrow("email", "a@example.com", network::email, network::possible_email),
    narrow("hostname", "example.com", network::hostname, network::possible_hostname),
    narrow("idn-email", "a@example.com", network::international_email, network::possible_email),
    narrow(
        "idn-hostname",
        "example.com",
        international::hostname_or_international,
        international::possible_hostname,
    ),
    exact("ipv4", "127.0.0.1", network::ipv4),
    exact("ipv6", "::1", network::ipv6),
    exact("iri", "http://example.com/", || reference::absolute(Repertoire::Iri)),
    exact("iri-reference", "/path", || reference::reference(Repertoire::Iri)),
    exact("json-pointer", "/path", text::json_pointer),
    narrow("regex", "", pattern::pattern, pattern::possible_pattern),
    exact("relative-json-pointer", "0/path", text::relative_json_pointer),
    exact("time", "00:00:00Z", time::time),
    exact("uri", "http://example.com/", || reference::absolute(Repertoire::Uri)),
    exact("uri-reference", "/path", || reference::reference(Repertoire::Uri)),
    exact("uri-template", "/path", text::uri_template),
    exact("uuid", "00000000-0000-0000-0000-000000000000", text::uuid),
];

/// The languages of `FORMATS` that the process has used: building one takes longer than compiling
/// a small schema, and equal trees that are shared compare at once.
static BUILT: [OnceLock<Ast>; FORMATS.len()] = [const { OnceLock::new() }; FORMATS.len()];

fn entry(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The language of a format; none if it is not known.
pub fn format(name: &str) -> Option<Ast> {
    let place = FORMATS.iter().position(|format| format.name == name)?;
    Some(BUILT[place].get_or_init(|| build(&FORMATS[place])).clone())
}

fn build(format: &Format) -> Ast {
    let language = (format.language)();
    match format.possible {
        Some(possible) => Ast::approximate(language, possible()),
        None => language,
    }
}

/// A text of a format, so that no automaton is needed to see that there is one.
pub(crate) fn example(name: &str) -> Option<&'static str> {
    Some(entry(name)?.example)
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
