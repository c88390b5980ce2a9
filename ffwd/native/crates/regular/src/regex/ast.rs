//! The syntax tree of a regular language over Unicode code points.

use std::sync::Arc;

use super::finite::Finite;
use super::magnitude::{Magnitude, MagnitudeConstraint};
use super::substring::Chunks;

/// A set of Unicode scalar values: sorted, disjoint, non-adjacent inclusive ranges without
/// surrogates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CharClass {
    ranges: Arc<[(u32, u32)]>,
}

const SURROGATE_FIRST: u32 = 0xD800;
const SURROGATE_LAST: u32 = 0xDFFF;
const SCALAR_LAST: u32 = 0x10FFFF;

impl Default for CharClass {
    /// No character.
    fn default() -> Self {
        Self::new([])
    }
}

impl CharClass {
    /// The class of the given inclusive ranges, in any order, overlapping or not.
    /// Surrogates and values past U+10FFFF are dropped.
    pub fn new(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut sorted: Vec<(u32, u32)> = Vec::new();
        for (low, high) in ranges {
            let high = high.min(SCALAR_LAST);
            if low > high {
                continue;
            }
            if low < SURROGATE_FIRST {
                sorted.push((low, high.min(SURROGATE_FIRST - 1)));
            }
            if high > SURROGATE_LAST {
                sorted.push((low.max(SURROGATE_LAST + 1), high));
            }
        }
        sorted.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
        for (low, high) in sorted {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        Self { ranges: merged.into() }
    }

    /// Every Unicode scalar value.
    pub fn any() -> Self {
        Self::new([(0, SCALAR_LAST)])
    }

    /// One character.
    pub fn single(character: char) -> Self {
        Self::new([(character as u32, character as u32)])
    }

    /// The sorted inclusive ranges.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Whether no character belongs to it.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a character belongs to it.
    pub fn contains(&self, character: char) -> bool {
        let code = character as u32;
        self.ranges.iter().any(|&(low, high)| low <= code && code <= high)
    }

    /// The characters of either class.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.ranges.iter().chain(other.ranges.iter()).copied())
    }

    /// Every scalar value that is not in the class.
    pub fn negate(&self) -> Self {
        let mut gaps = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = 0;
        for &(low, high) in self.ranges.iter() {
            if low > next {
                gaps.push((next, low - 1));
            }
            next = high + 1;
        }
        if next <= SCALAR_LAST {
            gaps.push((next, SCALAR_LAST));
        }
        Self::new(gaps)
    }

    /// The characters of both classes.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        self.negate().union(&other.negate()).negate()
    }
}

/// A regular language over Unicode text. Cloning is cheap; equality and hashing are structural, so
/// that equal languages written the same way share one automaton.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Ast {
    /// No string at all.
    Empty,
    /// The empty string only.
    Epsilon,
    /// One character of the class.
    Class(CharClass),
    /// Exactly this text (not empty).
    Literal(Arc<str>),
    /// Unsigned decimals that satisfy arithmetic constraints.
    Magnitude(Arc<Magnitude>),
    /// Unsigned numbers that are finite in double precision.
    Finite(Finite),
    /// Runs of neighbouring pieces of a text.
    Substring(Arc<Chunks>),
    /// The operands one after the other.
    Concat(Arc<[Ast]>),
    /// Strings that belong to at least one operand.
    Alternation(Arc<[Ast]>),
    /// `min..=max` copies; `max` of `None` is unbounded. Never unrolled here.
    Repeat {
        /// What is repeated.
        inner: Arc<Ast>,
        /// The fewest copies.
        min: u32,
        /// The most copies; `None` if their number is not bounded.
        max: Option<u32>,
    },
    /// Strings that belong to every operand.
    Intersection(Arc<[Ast]>),
    /// Strings of Unicode scalar values that do not belong to the operand.
    Complement(Arc<Ast>),
    /// A language between `known` and `possible`. It stands for what is known, and so does its
    /// complement. Neither bound contains an approximation.
    Approximate {
        /// The texts that belong to the language for certain.
        known: Arc<Ast>,
        /// All texts that may belong to it.
        possible: Arc<Ast>,
    },
    /// The empty span where all the text before it belongs to the operand. Only in a language of
    /// whole texts.
    Before(Arc<Ast>),
    /// The empty span where all the text after it belongs to the operand. Only in a language of
    /// whole texts, and not within `Before`, an intersection or a complement of spans.
    After(Arc<Ast>),
}

/// The dependence of a language's spans on their context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Look {
    /// On nothing.
    Nowhere,
    /// On the text before them.
    Behind,
    /// On the text after them, and perhaps on that before.
    Ahead,
}

impl Ast {
    /// Whether both are surely equal, since they have the same operands in memory.
    pub fn is_shared(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Concat(one), Self::Concat(other))
            | (Self::Alternation(one), Self::Alternation(other))
            | (Self::Intersection(one), Self::Intersection(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// Any text whatever.
    pub fn any_text() -> Self {
        Self::repeat(Self::Class(CharClass::any()), 0, None)
    }

    /// This text and no other; it may be empty.
    pub fn literal(text: &str) -> Self {
        if text.is_empty() {
            Self::Epsilon
        } else {
            Self::Literal(text.into())
        }
    }

    /// The magnitudes that satisfy the constraint; [`Self::Empty`] if there are none.
    pub fn magnitude(constraint: &MagnitudeConstraint) -> Self {
        Magnitude::new(constraint).map_or(Self::Empty, |state| Self::Magnitude(Arc::new(state)))
    }

    /// One character of a class; [`Self::Empty`] if it has none.
    pub fn class(class: CharClass) -> Self {
        if class.is_empty() {
            Self::Empty
        } else {
            Self::Class(class)
        }
    }

    /// The parts one after the other, with nested sequences flattened.
    pub fn concat(parts: impl IntoIterator<Item = Ast>) -> Self {
        let mut kept = Vec::new();
        for part in parts {
            match part {
                Self::Empty => return Self::Empty,
                Self::Epsilon => {}
                Self::Concat(inner) => kept.extend(inner.iter().cloned()),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::Epsilon,
            1 => kept.swap_remove(0),
            _ => Self::Concat(kept.into()),
        }
    }

    /// The texts of any part, with nested alternations flattened.
    pub fn alternation(parts: impl IntoIterator<Item = Ast>) -> Self {
        let mut parts = parts.into_iter().filter(|part| !matches!(part, Self::Empty));
        // A single part is returned as it is: it may be a very large alternation.
        let Some(first) = parts.next() else { return Self::Empty };
        let Some(second) = parts.next() else { return first };
        let mut kept = Vec::with_capacity(2 + parts.size_hint().0);
        for part in [first, second].into_iter().chain(parts) {
            match part {
                Self::Alternation(inner) => kept.extend(inner.iter().cloned()),
                other => kept.push(other),
            }
        }
        match kept.len() {
            0 => Self::Empty,
            1 => kept.swap_remove(0),
            _ => Self::Alternation(kept.into()),
        }
    }

    /// From `min` to `max` copies; `None` for any number from `min` on. Empty if `min` is the greater.
    pub fn repeat(inner: Ast, min: u32, max: Option<u32>) -> Self {
        match (&inner, min, max) {
            (_, min, Some(max)) if min > max => Self::Empty,
            (_, _, Some(0)) => Self::Epsilon,
            (Self::Empty, 0, _) | (Self::Epsilon, _, _) => Self::Epsilon,
            (Self::Empty, _, _) => Self::Empty,
            (_, 1, Some(1)) => inner,
            _ => Self::Repeat { inner: Arc::new(inner), min, max },
        }
    }

    /// One copy or none.
    pub fn optional(inner: Ast) -> Self {
        Self::repeat(inner, 0, Some(1))
    }

    /// The texts that belong to all parts; any text if there is no part.
    pub fn intersection(parts: impl IntoIterator<Item = Ast>) -> Self {
        let mut kept: Vec<Ast> = Vec::new();
        for part in parts {
            match part {
                Self::Empty => return Self::Empty,
                other => kept.push(other),
            }
        }
        kept.sort();
        kept.dedup();
        match kept.len() {
            0 => Self::any_text(),
            1 => kept.swap_remove(0),
            _ => Self::Intersection(kept.into()),
        }
    }

    /// The empty span after a text of the language: see [`Self::Before`].
    pub fn before(text: Ast) -> Self {
        match text {
            Self::Empty => Self::Empty,
            other => Self::Before(Arc::new(other)),
        }
    }

    /// The empty span before a text of the language: see [`Self::After`].
    pub fn after(text: Ast) -> Self {
        match text {
            Self::Empty => Self::Empty,
            other => Self::After(Arc::new(other)),
        }
    }

    /// Whether a span of the language depends on the text around it, and on that after it.
    pub fn looks_around(&self) -> Look {
        match self {
            Self::Empty
            | Self::Epsilon
            | Self::Class(_)
            | Self::Literal(_)
            | Self::Magnitude(_)
            | Self::Finite(_)
            | Self::Substring(_) => Look::Nowhere,
            Self::Before(_) => Look::Behind,
            Self::After(_) => Look::Ahead,
            Self::Concat(parts) | Self::Alternation(parts) | Self::Intersection(parts) => {
                parts.iter().map(Self::looks_around).max().unwrap_or(Look::Nowhere)
            }
            Self::Repeat { inner, .. } | Self::Complement(inner) => inner.looks_around(),
            Self::Approximate { known, possible } => {
                known.looks_around().max(possible.looks_around())
            }
        }
    }

    /// Returns the complement of a language, simplified where possible.
    pub fn complement(inner: Ast) -> Self {
        match inner {
            Self::Complement(inner) => (*inner).clone(),
            Self::Approximate { known, possible } => Self::approximate(
                Self::complement((*possible).clone()),
                Self::complement((*known).clone()),
            ),
            other if other.is_approximate() => Self::approximate(
                Self::complement(other.bound(true)),
                Self::complement(other.bound(false)),
            ),
            // What is no alternative is each of those whose complements these are: the parts of an
            // intersection have lengths, and a complement of unknown parts has none.
            Self::Alternation(parts) if parts.iter().any(|p| matches!(p, Self::Complement(_))) => {
                let mut all = Vec::with_capacity(parts.len());
                let mut rest = Vec::new();
                for part in parts.iter() {
                    match part {
                        Self::Complement(inner) => all.push((**inner).clone()),
                        other => rest.push(other.clone()),
                    }
                }
                if !rest.is_empty() {
                    all.push(Self::complement(Self::alternation(rest)));
                }
                Self::intersection(all)
            }
            other => Self::Complement(Arc::new(other)),
        }
    }

    /// A language that contains `known` and is contained in `possible`.
    pub fn approximate(known: Ast, possible: Ast) -> Self {
        Self::Approximate { known: Arc::new(known), possible: Arc::new(possible) }
    }

    /// Whether the language or a part of it is [`Self::Approximate`].
    pub fn is_approximate(&self) -> bool {
        match self {
            Self::Approximate { .. } => true,
            Self::Empty
            | Self::Epsilon
            | Self::Class(_)
            | Self::Literal(_)
            | Self::Magnitude(_)
            | Self::Finite(_)
            | Self::Substring(_) => false,
            Self::Concat(parts) | Self::Alternation(parts) | Self::Intersection(parts) => {
                parts.iter().any(Self::is_approximate)
            }
            Self::Repeat { inner, .. }
            | Self::Complement(inner)
            | Self::Before(inner)
            | Self::After(inner) => inner.is_approximate(),
        }
    }

    /// The texts whose membership is known.
    pub fn decided(&self) -> Self {
        if self.is_approximate() {
            Self::alternation([self.bound(false), Self::complement(self.bound(true))])
        } else {
            Self::any_text()
        }
    }

    /// The language without approximations: what is known of it, or all that is possible.
    fn bound(&self, possible: bool) -> Self {
        let all = |parts: &[Ast]| parts.iter().map(|part| part.bound(possible)).collect::<Vec<_>>();
        match self {
            Self::Approximate { known, possible: all } => {
                (**if possible { all } else { known }).clone()
            }
            Self::Concat(parts) => Self::concat(all(parts)),
            Self::Alternation(parts) => Self::alternation(all(parts)),
            Self::Intersection(parts) => Self::intersection(all(parts)),
            Self::Repeat { inner, min, max } => Self::repeat(inner.bound(possible), *min, *max),
            // The complement of an approximation is an approximation, and conditions have no
            // complement.
            _ => self.clone(),
        }
    }
}
