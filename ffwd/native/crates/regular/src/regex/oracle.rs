//! A slow matcher for [`Ast`], by sets of end positions, for comparison in tests.

#![allow(clippy::panic, clippy::unwrap_used, reason = "only tests use it")]

use std::collections::HashMap;

use super::{Ast, CharClass};

/// Positions in a text of at most 639 characters.
type Positions = [u64; 10];

/// Whether the whole text belongs to the language.
pub fn matches(ast: &Ast, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    assert!(text.len() < 640, "the text is too long for the oracle");
    let mut matcher = Matcher { text: &text, memo: HashMap::new() };
    contains(&matcher.ends(ast, 0), text.len())
}

/// The number of nodes of the tree, written out.
pub fn size(ast: &Ast) -> usize {
    match ast {
        Ast::Empty
        | Ast::Epsilon
        | Ast::Class(_)
        | Ast::Literal(_)
        | Ast::Magnitude(_)
        | Ast::Finite(_)
        | Ast::Substring(_) => 1,
        Ast::Concat(parts) | Ast::Alternation(parts) | Ast::Intersection(parts) => {
            1 + parts.iter().map(size).sum::<usize>()
        }
        Ast::Repeat { inner, .. }
        | Ast::Complement(inner)
        | Ast::Before(inner)
        | Ast::After(inner) => 1 + size(inner),
        Ast::Approximate { known, possible } => 1 + size(known) + size(possible),
    }
}

fn contains(set: &Positions, position: usize) -> bool {
    set[position / 64] >> (position % 64) & 1 == 1
}

fn insert(set: &mut Positions, position: usize) {
    set[position / 64] |= 1 << (position % 64);
}

fn merge(into: &mut Positions, from: &Positions) {
    into.iter_mut().zip(from).for_each(|(a, b)| *a |= b);
}

struct Matcher<'t> {
    text: &'t [char],
    memo: HashMap<(*const Ast, usize), Positions>,
}

impl Matcher<'_> {
    /// Returns the possible ends of a match of `ast` that begins at `from`.
    fn ends(&mut self, ast: &Ast, from: usize) -> Positions {
        if let Some(known) = self.memo.get(&(ast as *const Ast, from)) {
            return *known;
        }
        let mut ends = [0; 10];
        match ast {
            Ast::Empty => {}
            Ast::Epsilon => insert(&mut ends, from),
            Ast::Class(class) => {
                if self.text.get(from).is_some_and(|&c| CharClass::contains(class, c)) {
                    insert(&mut ends, from + 1);
                }
            }
            Ast::Literal(literal) => {
                let length = literal.chars().count();
                if literal.chars().eq(self.text[from..].iter().copied().take(length)) {
                    insert(&mut ends, from + length);
                }
            }
            Ast::Magnitude(magnitude) => {
                let mut state = Some((**magnitude).clone());
                for position in from..=self.text.len() {
                    let Some(now) = state else { break };
                    if now.accepts() {
                        insert(&mut ends, position);
                    }
                    let byte = self.text.get(position).and_then(|&c| u8::try_from(c).ok());
                    state = byte.and_then(|byte| now.derive(byte));
                }
            }
            Ast::Finite(finite) => {
                let mut state = Some(*finite);
                for position in from..=self.text.len() {
                    let Some(now) = state else { break };
                    if now.accepts() {
                        insert(&mut ends, position);
                    }
                    let byte = self.text.get(position).and_then(|&c| u8::try_from(c).ok());
                    state = byte.and_then(|byte| now.derive(byte));
                }
            }
            Ast::Substring(chunks) => {
                let rest: String = self.text[from..].iter().collect();
                let texts = chunks.texts();
                for first in 0..texts.len() {
                    for last in first..=texts.len() {
                        let run = texts[first..last].concat();
                        if rest.starts_with(&run) {
                            insert(&mut ends, from + run.chars().count());
                        }
                    }
                }
            }
            Ast::Concat(parts) => {
                insert(&mut ends, from);
                for part in parts.iter() {
                    ends = self.step(part, &ends);
                }
            }
            Ast::Alternation(parts) => {
                for part in parts.iter() {
                    let more = self.ends(part, from);
                    merge(&mut ends, &more);
                }
            }
            Ast::Repeat { inner, min, max } => {
                let mut now = [0; 10];
                insert(&mut now, from);
                for _ in 0..*min {
                    let next = self.step(inner, &now);
                    if next == now {
                        break;
                    }
                    now = next;
                }
                ends = now;
                for _ in *min..max.unwrap_or(u32::MAX) {
                    now = self.step(inner, &now);
                    let before = ends;
                    merge(&mut ends, &now);
                    if ends == before {
                        break;
                    }
                }
            }
            Ast::Intersection(parts) => {
                ends = [u64::MAX; 10];
                for part in parts.iter() {
                    let more = self.ends(part, from);
                    ends.iter_mut().zip(&more).for_each(|(a, b)| *a &= b);
                }
            }
            Ast::Complement(inner) => {
                let inside = self.ends(inner, from);
                for position in from..=self.text.len() {
                    if !contains(&inside, position) {
                        insert(&mut ends, position);
                    }
                }
            }
            Ast::Approximate { known, .. } => ends = self.ends(known, from),
            Ast::Before(inner) => {
                if contains(&self.ends(inner, 0), from) {
                    insert(&mut ends, from);
                }
            }
            Ast::After(inner) => {
                if contains(&self.ends(inner, from), self.text.len()) {
                    insert(&mut ends, from);
                }
            }
        }
        self.memo.insert((ast as *const Ast, from), ends);
        ends
    }

    fn step(&mut self, ast: &Ast, starts: &Positions) -> Positions {
        let mut ends = [0; 10];
        for position in 0..=self.text.len() {
            if contains(starts, position) {
                let more = self.ends(ast, position);
                merge(&mut ends, &more);
            }
        }
        ends
    }
}

#[test]
fn the_oracle_knows_every_operator() {
    let letter = || Ast::class(CharClass::new([('a' as u32, 'z' as u32)]));
    let word = Ast::repeat(letter(), 2, Some(3));
    let not_abc = Ast::intersection([word.clone(), Ast::complement(Ast::literal("abc"))]);
    let list = Ast::concat([not_abc, Ast::repeat(Ast::concat([Ast::literal(","), word]), 0, None)]);
    for (text, expected) in [
        ("ab", true),
        ("abc", false),
        ("abd,abc", true),
        ("abc,ab", false),
        ("ab,a", false),
        ("", false),
    ] {
        assert_eq!(matches(&list, text), expected, "{text}");
    }
    assert!(matches(&Ast::optional(Ast::literal("é")), "é"));
    assert!(!matches(&Ast::Empty, ""));
    assert_eq!(size(&list), 11);
}
