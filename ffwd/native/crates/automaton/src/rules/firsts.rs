//! The first lexemes of symbols.

use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use crate::rules::families::Family;
use crate::rules::program::Program;
use ffwd_grammar::symbols::{Symbol, SymbolId};
use ffwd_regular::expr::{LexState, Verdict};

/// In grammars of more symbols rows always know what follows.
pub(crate) const MAX_SYMBOLS: usize = 1 << 20;

/// The lexemes that can start a symbol.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct First {
    /// Lexemes of the family.
    pub(crate) languages: Verdict,
    /// Something else, too.
    pub(crate) others: bool,
}

/// The first lexemes of the symbols of a grammar with one family.
#[derive(Debug)]
pub(crate) struct Firsts {
    pub(crate) of_symbols: Vec<First>,
    /// The states in which the family has begun, by languages; `None` where these have no text.
    pub(crate) starts: RwLock<FxHashMap<Verdict, Option<LexState>>>,
}

impl Firsts {
    pub(crate) fn new(program: &Program, family: &Family) -> Option<Self> {
        let symbols = &program.symbols;
        if symbols.len() > MAX_SYMBOLS {
            return None;
        }
        let of_leaf = |symbol: &Symbol| match symbol {
            Symbol::Leaf(node) => match family.place(*node) {
                Some(place) => First { languages: 1 << place, others: false },
                None => First { languages: 0, others: true },
            },
            // Grammars with later parts have rows that know what follows.
            _ => First { languages: 0, others: true },
        };
        let of_symbols = symbols.beginnings(&symbols.by_rank(), of_leaf, |first, inner: &First| {
            first.languages |= inner.languages;
            first.others |= inner.others;
        });
        Some(Self { of_symbols, starts: RwLock::default() })
    }

    pub(crate) fn of(&self, symbol: SymbolId) -> First {
        self.of_symbols[symbol.0 as usize]
    }

    /// Whether a symbol can begin with one of the languages.
    pub(crate) fn begins_with(&self, symbol: SymbolId, languages: Verdict) -> bool {
        self.of(symbol).languages & languages != 0
    }
}
