//! One stage of a pre-tokenizer: the matches of a pattern, and the resulting splits.

use super::classes::{ClassSet, Classes};
use super::dfa::{Dfa, Memo};
use super::error::PreTokenizerError;
use super::program::{Draft, Program};
use super::syntax::{literal, parse, Dialect, Syntax};

/// The treatment of a pattern's matches. The text between two matches stays together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Behavior {
    /// Each match is a piece.
    Isolated,
    /// Matches are removed. Supported only if inverted and if the matches cover everything.
    Removed,
    /// A match is joined to the text before it.
    MergedWithPrevious,
    /// A match is joined to the text after it.
    MergedWithNext,
    /// Matches without text between them are one piece.
    Contiguous,
}

/// One stage, as a tokenizer's file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StageSpec {
    /// Splits where a pattern matches.
    Split {
        /// The regular expression.
        pattern: String,
        /// The syntax of the pattern.
        dialect: Dialect,
        /// Treats the text between matches as the matches, and the other way round.
        invert: bool,
        /// What becomes of the matches.
        behavior: Behavior,
    },
    /// Like `Split`, for a verbatim text.
    SplitText {
        /// What is looked for.
        text: String,
        /// As in `Split`.
        invert: bool,
        /// The treatment of the text's occurrences.
        behavior: Behavior,
    },
    /// The pattern of GPT-2.
    ByteLevelRegex,
    /// Digits are pieces, one by one or as runs.
    Digits {
        /// Makes each digit a separate piece; otherwise each run of digits is one.
        individual: bool,
    },
    /// Punctuation marks are pieces, or what the behavior makes of them.
    Punctuation {
        /// What becomes of each mark.
        behavior: Behavior,
    },
    /// A piece begins at each space, or U+2581 which stands for one.
    Metaspace,
}

pub(super) const GPT2: &str =
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The digits of `tokenizers`, from a later version of Unicode than that of `regex-syntax`.
const DIGITS: &str = r"[\p{N}\u{11DE0}-\u{11DE9}\u{16FF4}-\u{16FF6}]";

/// The punctuation of `tokenizers`: that of Unicode 8, which had two more.
const PUNCTUATION: &str = r"[[:punct:][\p{P}&&\p{age:8.0}]\u{166D}\u{111C9}]";

/// One part of a text as a stage sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Segment {
    Match,
    /// One character at which no match begins.
    Gap,
}

/// The pairs of segments between which a piece ends. Two gaps are never separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cuts {
    /// Between two matches.
    matches: bool,
    /// Before a gap that follows a match.
    before_gap: bool,
    /// Behind a gap that a match follows.
    after_gap: bool,
}

impl Cuts {
    fn new(behavior: Behavior, invert: bool) -> Self {
        let (matches, before_gap, after_gap) = match (behavior, invert) {
            (Behavior::Isolated | Behavior::Removed, _) => (true, true, true),
            (Behavior::Contiguous, _) => (false, true, true),
            (Behavior::MergedWithPrevious, false) | (Behavior::MergedWithNext, true) => {
                (true, true, false)
            }
            (Behavior::MergedWithPrevious, true) | (Behavior::MergedWithNext, false) => {
                (true, false, true)
            }
        };
        Self { matches, before_gap, after_gap }
    }

    pub fn between(self, left: Segment, right: Segment) -> bool {
        match (left, right) {
            (Segment::Match, Segment::Match) => self.matches,
            (Segment::Match, Segment::Gap) => self.before_gap,
            (Segment::Gap, Segment::Match) => self.after_gap,
            (Segment::Gap, Segment::Gap) => false,
        }
    }

    /// Whether a piece always ends behind such a segment, whatever follows.
    fn always_after(self, left: Segment) -> bool {
        self.between(left, Segment::Match) && self.between(left, Segment::Gap)
    }
}

/// A stage whose pattern is read, before the classes of characters are known.
pub(super) struct StageDraft {
    pub draft: Draft,
    cuts: Cuts,
    /// The pattern, if text that it does not match would be lost.
    must_cover: Option<String>,
}

impl StageDraft {
    pub fn new(spec: &StageSpec) -> Result<Self, PreTokenizerError> {
        let of = |pattern: &str, node: &Syntax, invert: bool, behavior: Behavior| {
            let must_cover = (behavior == Behavior::Removed).then(|| pattern.to_owned());
            if behavior == Behavior::Removed && !invert {
                return Err(PreTokenizerError::RemovesText { pattern: pattern.to_owned() });
            }
            let draft = Draft::new(pattern, node)?;
            Ok(Self { draft, cuts: Cuts::new(behavior, invert), must_cover })
        };
        let own =
            |pattern, behavior| of(pattern, &parse(pattern, Dialect::FancyRegex)?, false, behavior);
        match spec {
            StageSpec::Split { pattern, dialect, invert, behavior } => {
                of(pattern, &parse(pattern, *dialect)?, *invert, *behavior)
            }
            StageSpec::SplitText { text, invert, behavior } => {
                of(text, &literal(text), *invert, *behavior)
            }
            StageSpec::ByteLevelRegex => own(GPT2, Behavior::Isolated),
            StageSpec::Digits { individual: true } => own(DIGITS, Behavior::Isolated),
            StageSpec::Digits { individual: false } => own(DIGITS, Behavior::Contiguous),
            StageSpec::Punctuation { behavior } => own(PUNCTUATION, *behavior),
            StageSpec::Metaspace => own("[ \u{2581}]", Behavior::MergedWithNext),
        }
    }

    pub fn finish(
        &self,
        classes: &Classes,
        unions: &[ClassSet],
    ) -> Result<Stage, PreTokenizerError> {
        let program = self.draft.finish(unions)?;
        let dfa = Dfa::new(&program, classes)?;
        match &self.must_cover {
            Some(pattern) if !dfa.covers() => {
                Err(PreTokenizerError::RemovesText { pattern: pattern.clone() })
            }
            _ => Ok(Stage { program, dfa, cuts: self.cuts }),
        }
    }
}

#[derive(Debug)]
pub(super) struct Stage {
    pub program: Program,
    dfa: Dfa,
    pub cuts: Cuts,
}

impl Stage {
    /// The end of the piece that begins at `from`.
    #[inline]
    pub fn cut(&self, classes: &Classes, text: &[u8], from: usize, memo: &mut Memo) -> usize {
        let (left, end) = self.segment(classes, text, from, memo);
        if self.cuts.always_after(left) {
            return end;
        }
        self.cut_on(classes, text, left, end, memo)
    }

    /// Continues after the first segment.
    fn cut_on(
        &self,
        classes: &Classes,
        text: &[u8],
        mut left: Segment,
        mut end: usize,
        memo: &mut Memo,
    ) -> usize {
        while end < text.len() && !self.cuts.always_after(left) {
            let skipped = match left {
                Segment::Gap => self.skip(classes, text, end),
                Segment::Match => None,
            };
            if let Some(until) = skipped {
                end = until;
                continue;
            }
            let (right, next) = self.segment(classes, text, end, memo);
            if self.cuts.between(left, right) {
                break;
            }
            (left, end) = (right, next);
        }
        end
    }

    /// The end of a run of gaps at `at` that the classes of their characters alone show, if there
    /// are any.
    #[inline]
    fn skip(&self, classes: &Classes, text: &[u8], at: usize) -> Option<usize> {
        let idle = self.dfa.count_idle(&text[at..]);
        if idle > 0 {
            return Some(at + idle);
        }
        let (class, length) = classes.decode(text, at);
        (!self.dfa.may_begin(class)).then_some(at + length)
    }

    /// Returns the segment that starts at `from`, and its end.
    #[inline]
    fn segment(
        &self,
        classes: &Classes,
        text: &[u8],
        from: usize,
        memo: &mut Memo,
    ) -> (Segment, usize) {
        match self.dfa.find(classes, text, from, memo) {
            Some(end) => (Segment::Match, end),
            None => (Segment::Gap, from + classes.decode(text, from).1),
        }
    }
}
