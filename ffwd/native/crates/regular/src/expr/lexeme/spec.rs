//! What tells lexemes apart.

use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxHasher;

use super::{first_bits, Spelling, Verdict};
use crate::expr::ByteSet;
use crate::regex::Ast;

/// The languages of a lexeme, with their hash: a format has thousands of nodes, and grammars look
/// the same lexemes up again and again.
#[derive(Clone, Debug)]
pub struct Languages {
    all: Arc<[Ast]>,
    hash: u64,
}

impl FromIterator<Ast> for Languages {
    fn from_iter<I: IntoIterator<Item = Ast>>(languages: I) -> Self {
        let all: Arc<[Ast]> = languages.into_iter().collect();
        let mut hasher = FxHasher::default();
        all.hash(&mut hasher);
        Self { hash: hasher.finish(), all }
    }
}

impl Deref for Languages {
    type Target = [Ast];

    fn deref(&self) -> &[Ast] {
        &self.all
    }
}

impl PartialEq for Languages {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(one, other): (&Ast, &Ast)| one.is_shared(other) || one == other;
        self.hash == other.hash
            && self.all.len() == other.all.len()
            && self.all.iter().zip(&*other.all).all(is_same)
    }
}

impl Eq for Languages {}

impl Hash for Languages {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// The identity of a lexeme.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LexemeSpec {
    /// How the characters of all languages are written as bytes.
    pub spelling: Spelling,
    /// At most 128 languages; bit `i` of a verdict belongs to the `i`-th.
    pub languages: Languages,
    /// The required languages: a text of the lexeme belongs to at least one of them. The others are
    /// observed: their bits only tell whether they hold too.
    pub required: Verdict,
    /// The possible next bytes after the end of the lexeme, if known: masks exclude tokens that
    /// continue with others.
    pub follow: Option<ByteSet>,
    /// Whether only the lexeme itself can follow it: then its own first bytes do.
    pub follows_itself: bool,
    /// The rule by which the lexeme ends among the positions that the languages allow.
    pub ends: Ends,
}

/// The rule for the end of a lexeme.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ends {
    /// Wherever a language allows it.
    #[default]
    Anywhere,
    /// Only where no language can continue. As soon as a lazy language can end, the lexeme ends
    /// with the lazy ones that do.
    Longest {
        /// The lazy languages.
        lazy: Verdict,
    },
}

impl LexemeSpec {
    /// A lexeme of the texts that belong to any of the languages.
    pub fn new(spelling: Spelling, languages: impl IntoIterator<Item = Ast>) -> Self {
        let languages: Languages = languages.into_iter().collect();
        let required = first_bits(languages.len());
        Self {
            spelling,
            languages,
            required,
            follow: None,
            follows_itself: false,
            ends: Ends::Anywhere,
        }
    }
}
