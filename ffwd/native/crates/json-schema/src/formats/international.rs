//! Internationalized host names.
//!
//! The labels that IDNA 2008 allows depend on tables of all of Unicode, on normal forms, and on the
//! length of a label in Punycode. The language is narrower: letters of some larger scripts that are
//! their own normal form, in labels that are short enough in any encoding. The contextual rules of
//! RFC 5892 and the directions of RFC 5893 apply. It excludes labels in Punycode, as in `hostname`.

use super::network::{hostname, label};
use super::{class, literal, many, one_of, some};
use ffwd_regular::regex::property;
use ffwd_regular::regex::{Ast, CharClass};

/// The most labels of a host name with non-ASCII labels: together they stay below 253 octets.
const MAX_LABELS: u32 = 4;
/// Characters of an ASCII label among them. Four labels of 63 would pass the length of a name.
const MAX_ASCII: u32 = 61;
/// Characters of a label of any letters. A code point takes at most seven digits of Punycode.
const MAX_ANY: u32 = 8;
/// Characters of a label of one small script, where most take fewer.
const MAX_SCRIPT: u32 = 14;
/// Characters of a label that is mostly ASCII, with at most [`MAX_FOREIGN`] that are not.
const MAX_MIXED: u32 = 28;
const MAX_FOREIGN: u32 = 4;

pub(super) fn hostname_or_international() -> Ast {
    let separator = || one_of("..。。．．｡｡");
    let joined = |label: Ast| {
        let further = Ast::concat([separator(), label.clone()]);
        Ast::concat([label, Ast::repeat(further, 0, Some(MAX_LABELS - 1))])
    };
    // Beside labels from right to left, the others begin with a letter.
    let lettered =
        Ast::concat([one_of("azAZ"), Ast::repeat(Ast::Class(CharClass::any()), 0, None)]);
    let ascii = at_most(MAX_ASCII, label());
    let lettered = Ast::intersection([ascii.clone(), lettered]);
    Ast::alternation([
        hostname(),
        joined(Ast::alternation([ascii, left_to_right()])),
        joined(Ast::alternation([lettered, right_to_left()])),
    ])
}

pub(super) fn possible_hostname() -> Ast {
    let beyond_ascii = CharClass::new([(0, 0x7F)]).negate();
    some(Ast::class(class("azAZ09--..").union(&beyond_ascii)))
}

fn ranges(ranges: &[(u32, u32)]) -> Ast {
    Ast::class(CharClass::new(ranges.iter().copied()))
}

fn at_most(length: u32, ast: Ast) -> Ast {
    Ast::intersection([ast, Ast::repeat(Ast::Class(CharClass::any()), 1, Some(length))])
}

/// Units with single hyphens between them.
fn hyphenated(unit: Ast) -> Ast {
    let further = Ast::concat([Ast::optional(literal("-")), unit.clone()]);
    Ast::concat([unit, many(further)])
}

fn latin() -> CharClass {
    let extended = CharClass::new([(0x101, 0x132), (0x134, 0x13F), (0x141, 0x148), (0x14A, 0x17E)]);
    let lower = property("Ll").unwrap_or_else(|| CharClass::new([]));
    CharClass::new([(0xDF, 0xF6), (0xF8, 0xFF)]).union(&extended.intersect(&lower))
}

const GREEK: [(u32, u32); 2] = [(0x3AC, 0x3AF), (0x3B1, 0x3CE)];
const CYRILLIC: [(u32, u32); 1] = [(0x430, 0x45F)];
const KANA: [(u32, u32); 3] = [(0x3041, 0x3096), (0x30A1, 0x30FA), (0x30FC, 0x30FC)];
const HAN: [(u32, u32); 4] =
    [(0x3005, 0x3005), (0x3007, 0x3007), (0x3400, 0x4DB5), (0x4E00, 0x9FEF)];
const HANGUL: [(u32, u32); 1] = [(0xAC00, 0xD7A3)];

fn left_to_right() -> Ast {
    let keraia = Ast::concat([literal("\u{375}"), ranges(&GREEK)]);
    let catalan = literal("l·l");
    // A consonant with its vowel and its tone, or joined to the next one.
    let devanagari = {
        let vowel = Ast::optional(ranges(&[(0x93E, 0x94C)]));
        let nasal = Ast::optional(ranges(&[(0x902, 0x903)]));
        let joiner = Ast::optional(ranges(&[(0x200C, 0x200D)]));
        let joined = Ast::concat([literal("\u{94D}"), joiner]);
        let tail = Ast::alternation([Ast::concat([vowel, nasal]), joined]);
        Ast::concat([ranges(&[(0x904, 0x939)]), tail])
    };
    let thai = {
        let vowel = Ast::optional(ranges(&[(0xE31, 0xE31), (0xE34, 0xE39)]));
        let tone = Ast::optional(ranges(&[(0xE48, 0xE4B)]));
        let syllable = Ast::concat([ranges(&[(0xE01, 0xE2E)]), vowel, tone]);
        Ast::alternation([syllable, ranges(&[(0xE30, 0xE30), (0xE32, 0xE32), (0xE40, 0xE45)])])
    };
    let foreign = [
        Ast::class(latin()),
        ranges(&GREEK),
        ranges(&CYRILLIC),
        ranges(&KANA),
        ranges(&HAN),
        ranges(&HANGUL),
        ranges(&[(0xF0B, 0xF0B)]),
        keraia.clone(),
        devanagari.clone(),
        thai.clone(),
    ];
    let ascii = || one_of("az09");
    let any = Ast::alternation(foreign.into_iter().chain([ascii(), catalan.clone()]));
    let of_script =
        |script: Ast| at_most(MAX_SCRIPT, hyphenated(Ast::alternation([one_of("09"), script])));
    let latin_label = {
        let unit = Ast::alternation([ascii(), Ast::class(latin()), catalan]);
        let non_ascii = Ast::class(CharClass::new([(0, 0x7F)]).negate());
        let plain = || many(Ast::class(CharClass::new([(0, 0x7F)])));
        let few = Ast::repeat(Ast::concat([non_ascii, plain()]), 0, Some(MAX_FOREIGN));
        Ast::intersection([at_most(MAX_MIXED, hyphenated(unit)), Ast::concat([plain(), few])])
    };
    // The middle dot of Katakana, beside another letter of Japanese.
    let dotted = {
        let japanese = || Ast::alternation([ranges(&KANA), ranges(&HAN)]);
        let rest = || many(Ast::alternation([japanese(), literal("・")]));
        at_most(MAX_ANY, Ast::concat([rest(), japanese(), rest()]))
    };
    let extended_digits = {
        let digit = Ast::alternation([one_of("09"), ranges(&[(0x6F0, 0x6F9)])]);
        Ast::repeat(digit, 1, Some(MAX_ANY))
    };
    Ast::alternation([
        at_most(MAX_ANY, hyphenated(any)),
        latin_label,
        of_script(Ast::alternation([ranges(&GREEK), keraia])),
        of_script(ranges(&CYRILLIC)),
        of_script(devanagari),
        of_script(thai),
        dotted,
        extended_digits,
    ])
}

fn right_to_left() -> Ast {
    let hebrew = {
        let letter = ranges(&[(0x5D0, 0x5EA)]);
        let mark = Ast::optional(ranges(&[(0x5F3, 0x5F4)]));
        at_most(MAX_SCRIPT, hyphenated(Ast::concat([letter, mark])))
    };
    let arabic = {
        let joining = || {
            ranges(&[
                (0x628, 0x628),
                (0x62A, 0x62E),
                (0x633, 0x63A),
                (0x641, 0x647),
                (0x64A, 0x64A),
            ])
        };
        let letter = Ast::alternation([
            ranges(&[(0x620, 0x63A), (0x641, 0x64A), (0x679, 0x6D3), (0x6D5, 0x6D5)]),
            ranges(&[(0x6FD, 0x6FE)]),
        ]);
        let separated = Ast::concat([joining(), literal("\u{200C}"), joining()]);
        let unit = Ast::alternation([letter, separated]);
        let digit = ranges(&[(0x660, 0x669)]);
        let further = Ast::alternation([unit.clone(), digit]);
        at_most(MAX_SCRIPT - 4, Ast::concat([unit, many(further)]))
    };
    Ast::alternation([hebrew, arabic])
}

#[cfg(test)]
pub(super) const CASES: &[super::tests::Case] = &[(
    "idn-hostname",
    &[
        "example.com",
        "실례.테스트",
        "münchen.de",
        "я.рф",
        "ßς་〇",
        "۽۾",
        "l·l",
        "α͵β",
        "א׳ב",
        "א״ב.com",
        "・ぁ",
        "・ァ",
        "・丈",
        "ب٠ب",
        "۰0",
        "क\u{94D}\u{200D}ष",
        "हिन्दी",
        "بي\u{200C}بي",
        "a。b．c｡d",
        "ไทย",
        "straße-42.example",
    ],
    &[
        "",
        ".",
        "。",
        "-a",
        "ü-",
        "aü--b",
        "MÜNCHEN",
        "xn--X",
        "a·b",
        "l·a",
        "α͵S",
        "α͵",
        "׳ב",
        "・",
        "def・abc",
        "ب٠۰",
        "क\u{200D}ष",
        "\u{302E}실례",
        "בa",
        "1a.ב",
        "\u{640}",
        "실실실실실실실실실실실실실",
        "a_b.ü",
    ],
)];
