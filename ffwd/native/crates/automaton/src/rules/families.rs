//! The families of a grammar: lexemes that end at their longest match.
//!
//! All such lexemes of a scope are one *family*: one automaton over bytes, with a language for each
//! lexeme. A row starts it with the lexemes that are allowed. So all rows share states and the
//! results cached on them, because most rows are in the same state after a few bytes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use crate::rules::leaf::Leaf;
use crate::rules::program::Program;
use crate::stacks::ids::{LexemeId, StackId};
use ffwd_grammar::{Lexing, Longest, NodeId, ScopeId};
use ffwd_regular::expr::lexeme::MAX_LANGUAGES;
use ffwd_regular::expr::Verdict;
use ffwd_regular::regex::Ast;

/// A lexeme that may begin, and the stack after it.
pub(crate) struct RowMember<L> {
    pub(crate) node: NodeId,
    pub(crate) lexing: Longest,
    pub(crate) label: L,
    pub(crate) after: StackId,
}

/// The lexemes of one scope that end at their longest match.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) languages: Vec<Ast>,
    /// The languages that end as soon as they can.
    pub(crate) lazy: Verdict,
    /// Those whose longest match never consumes all that can follow it: see `swallowed`.
    pub(crate) safe: Verdict,
    /// The ignored lexemes.
    pub(crate) ignored: Verdict,
    /// The language of each lexeme.
    pub(crate) places: FxHashMap<NodeId, usize>,
    /// Whether the grammar has nothing else.
    pub(crate) is_all: bool,
    /// The automaton of all, once something has begun.
    pub(crate) lexeme: OnceLock<LexemeId>,
}

/// By scope; a scope with more lexemes than one automaton can distinguish has no family.
pub(crate) type Families = FxHashMap<ScopeId, Family>;

pub(crate) fn families_of(program: &Program) -> Families {
    let mut families: FxHashMap<ScopeId, BTreeMap<NodeId, (&Ast, Longest)>> = FxHashMap::default();
    for (&node, leaf) in &program.leaves {
        if let Leaf::Lexeme { language, lexing: Lexing::Longest { scope, lexing } } = leaf {
            let of_scope = families.entry(*scope).or_default();
            of_scope.insert(node, (language, *lexing));
        }
    }
    let family = |(scope, members): (ScopeId, BTreeMap<NodeId, (&Ast, Longest)>)| {
        let mut family = Family { safe: Verdict::MAX, ..Family::default() };
        let mut known: FxHashMap<(&Ast, Longest), usize> = FxHashMap::default();
        for (node, (language, lexing)) in members {
            let place = *known.entry((language, lexing)).or_insert_with(|| {
                family.languages.push(language.clone());
                family.languages.len() - 1
            });
            if place >= MAX_LANGUAGES {
                return None;
            }
            family.lazy |= Verdict::from(lexing == Longest::Lazy) << place;
            family.ignored |= Verdict::from(lexing == Longest::Ignored) << place;
            if program.swallowing.has(node) {
                family.safe &= !(1 << place);
            }
            family.places.insert(node, place);
        }
        family.is_all = family.places.len() == program.leaves.len();
        Some((scope, family))
    };
    families.into_iter().filter_map(family).collect()
}

impl Family {
    /// The language of a lexeme.
    pub(crate) fn place(&self, node: NodeId) -> Option<usize> {
        self.places.get(&node).copied()
    }

    /// The first lexeme that is one of some languages.
    pub(crate) fn first_of(&self, languages: Verdict) -> Option<NodeId> {
        let of = |&(_, &place): &(&NodeId, &usize)| languages >> place & 1 == 1;
        self.places.iter().filter(of).map(|(&node, _)| node).min()
    }
}
