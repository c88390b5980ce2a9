//! A grammar of rules, as it is compiled.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::rules::leaf::Leaf;
use crate::rules::swallowed::Swallowing;
use ffwd_grammar::symbols::Symbols;
use ffwd_grammar::{NodeId, Span};
use ffwd_regular::expr::ByteSet;

/// A grammar as the automaton follows it.
#[derive(Debug)]
pub struct Program {
    /// The grammar without left recursion.
    pub symbols: Arc<Symbols>,
    /// What each leaf of the symbols is.
    pub leaves: FxHashMap<NodeId, Leaf>,
    /// The parts that are reported.
    pub spans: FxHashMap<NodeId, Span>,
    /// The most tokens of parts with a limit.
    pub limits: FxHashMap<NodeId, u32>,
    /// Whether the continuations of a row are found when it begins, and not when it ends.
    pub eager_rows: bool,
    /// Lexemes that may consume the beginning of what follows them.
    pub swallowing: Swallowing,
    /// The bytes that may follow a JSON value.
    pub after_values: ByteSet,
}

impl Program {
    /// Whether some token is taken as a whole.
    pub fn has_tokens(&self) -> bool {
        self.leaves.values().any(|leaf| matches!(leaf, Leaf::Tokens(_)))
    }

    /// The ids of a set of tokens: sorted ranges, from the first to the last.
    pub(crate) fn token_set(&self, set: u32) -> &[(u32, u32)] {
        match self.leaves.get(&NodeId(set)) {
            Some(Leaf::Tokens(ranges)) => ranges,
            _ => &[],
        }
    }

    /// Whether a token is of a set.
    pub(crate) fn is_in_set(&self, set: u32, token: u32) -> bool {
        let ranges = self.token_set(set);
        let after = ranges.partition_point(|&(_, last)| last < token);
        ranges.get(after).is_some_and(|&(first, _)| first <= token)
    }

    /// Returns a reported part that can start with itself, and so has no position on stacks.
    pub fn unreported(&self) -> Option<&Span> {
        self.symbols.unmarked.iter().find_map(|node| self.spans.get(node))
    }
}
