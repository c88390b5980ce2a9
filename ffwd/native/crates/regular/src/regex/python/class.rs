//! The sets of characters of Python's `re`, and its cases.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::regex::case::CaseMap;
use crate::regex::ecma::class::{digits, property, words};
use crate::regex::CharClass;

/// `\d`, `\s` or `\w`, as Python has them for text or with the flag `a`; none for other letters.
pub(super) fn category(letter: char, ascii: bool) -> Option<CharClass> {
    static UNICODE: OnceLock<[CharClass; 3]> = OnceLock::new();
    let [digit, space, word] = UNICODE.get_or_init(|| {
        let of = |name| property(name).unwrap_or_else(CharClass::any);
        // `str.isspace`: also the separators among the controls.
        let spaces = of("White_Space").union(&CharClass::new([(0x1C, 0x1F)]));
        // `str.isalnum`, and the low line.
        let words = of("L").union(&of("N")).union(&CharClass::single('_'));
        [of("Nd"), spaces, words]
    });
    Some(match (letter, ascii) {
        ('d', true) => digits(),
        ('d', false) => digit.clone(),
        ('s', true) => CharClass::new([(0x09, 0x0D), (0x20, 0x20)]),
        ('s', false) => space.clone(),
        ('w', true) => words(),
        ('w', false) => word.clone(),
        _ => return None,
    })
}

/// The characters that match the set when case is ignored: those whose lower case is that of a
/// member, or has the same upper case as a member's lower case.
pub(super) fn fold(class: &CharClass, ascii: bool) -> CharClass {
    if ascii {
        let both = ['a', 'A'].map(|first| {
            let (from, to) = (first as u32, first as u32 + 25);
            let letters = class.intersect(&CharClass::new([(from, to)]));
            CharClass::new(letters.ranges().iter().map(|&(low, high)| (low ^ 0x20, high ^ 0x20)))
        });
        return class.union(&both[0]).union(&both[1]);
    }
    cases().closure(class)
}

fn cases() -> &'static CaseMap {
    static CASES: OnceLock<CaseMap> = OnceLock::new();
    CASES.get_or_init(|| {
        let mut moved = Vec::new();
        let mut by_upper: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        // There are no letters with a case beyond.
        for character in (0..0x2_0000).filter_map(char::from_u32) {
            let small = match character {
                // The only one whose lower case has two characters; the first is its simple one.
                'İ' => 'i',
                _ => character.to_lowercase().next().unwrap_or(character),
            };
            if small != character {
                moved.push((character as u32, small as u32));
            }
            if small != character || character.to_uppercase().ne([character]) {
                by_upper.entry(character.to_uppercase().collect()).or_default().push(small as u32);
            }
        }
        for group in by_upper.values_mut() {
            group.sort_unstable();
            group.dedup();
        }
        CaseMap { moved, alike: by_upper.into_values().filter(|group| group.len() > 1).collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        let class = CharClass::new(text.chars().map(|c| (c as u32, c as u32)));
        let ranges = fold(&class, false);
        ranges.ranges().iter().flat_map(|&(a, b)| a..=b).filter_map(char::from_u32).collect()
    }

    #[test]
    fn cases_are_those_of_python() {
        // `[c for c in map(chr, range(0x110000)) if re.fullmatch(pattern, c, re.I)]`
        for (of, all) in [
            ("i", "Iiİı"),
            ("ſ", "Ssſ"),
            ("k", "Kk\u{212A}"),
            ("ß", "ßẞ"),
            ("ẞ", "ßẞ"),
            ("ς", "Σςσ"),
            ("ᾀ", "ᾀᾈ"),
            ("1_", "1_"),
            ("\u{345}", "\u{345}Ιι\u{1FBE}"),
            ("𐐀", "𐐀𐐨"),
        ] {
            assert_eq!(folded(of), all, "{of}");
        }
        let ascii = fold(&CharClass::new([(0x41, 0x43), (0x17F, 0x17F)]), true);
        assert_eq!(ascii.ranges(), [(0x41, 0x43), (0x61, 0x63), (0x17F, 0x17F)]);
    }
}
