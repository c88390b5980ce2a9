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
        let mut order: Vec<SymbolId> = (0..symbols.len() as u32).map(SymbolId).collect();
        order.sort_unstable_by_key(|&symbol| symbols.rank(symbol));
        let mut of_symbols = vec![First::default(); symbols.len()];
        for id in order {
            let mut first = First::default();
            let mut add = |inner: SymbolId| {
                let inner: First = of_symbols[inner.0 as usize];
                first.languages |= inner.languages;
                first.others |= inner.others;
            };
            match symbols.get(id) {
                Symbol::Empty => {}
                Symbol::Leaf(node) => match family.place(*node) {
                    Some(place) => first.languages = 1 << place,
                    None => first.others = true,
                },
                &Symbol::Seq(inner, then) => {
                    add(inner);
                    if symbols.is_nullable(inner) {
                        add(then);
                    }
                }
                Symbol::Choice(parts) => parts.iter().for_each(|&part| add(part)),
                &Symbol::Star(inner)
                | &Symbol::Repeat { inner, .. }
                | &Symbol::Marked(_, inner)
                | &Symbol::NonEmpty(inner) => add(inner),
                &Symbol::Part(part) => add(symbols.meaning(part)),
                // Grammars with such parts have rows that know what follows.
                Symbol::Later(_) => first.others = true,
            }
            of_symbols[id.0 as usize] = first;
        }
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
