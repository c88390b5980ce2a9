//! The tables of a grammar of rules.

use std::sync::Arc;

use crate::interning::intern::Interner;
use crate::rules::families::{families_of, Families, Family};
use crate::rules::firsts::Firsts;
use crate::rules::limit_tables::Limits;
use crate::rules::parts::{Count, Row, Union};
use crate::rules::program::Program;
use crate::rules::shapes::DeadEnds;
use crate::stacks::frame::RootValue;
use ffwd_grammar::Live;

/// The parts of the automaton that only grammars of rules have.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) program: Arc<Program>,
    pub(crate) symbols: Live,
    pub(crate) values: Vec<RootValue>,
    pub(crate) counts: Interner<Count>,
    pub(crate) unions: Interner<Union>,
    pub(crate) rows: Interner<Row>,
    pub(crate) families: Families,
    /// The first lexemes, in a grammar with one family.
    firsts: Option<Firsts>,
    pub(crate) dead_ends: DeadEnds,
    pub(crate) has_tokens: bool,
    /// The limits, if some part has one.
    pub(crate) limits: Option<Limits>,
}

const MAX_PARTS: usize = 8_000_000;

impl Rules {
    pub(crate) fn new(program: Arc<Program>, values: Vec<RootValue>) -> Self {
        let limit = "grammar_stacks";
        let families = families_of(&program);
        let firsts = match families.values().next() {
            Some(family) if families.len() == 1 && !program.eager_rows => {
                Firsts::new(&program, family)
            }
            _ => None,
        };
        let has_tokens = program.has_tokens();
        let limits = (!program.limits.is_empty()).then(Limits::default);
        Self {
            symbols: Live::new(program.symbols.clone()),
            program,
            values,
            counts: Interner::new(limit, MAX_PARTS),
            unions: Interner::new(limit, MAX_PARTS),
            rows: Interner::new(limit, MAX_PARTS),
            families,
            firsts,
            dead_ends: DeadEnds::default(),
            has_tokens,
            limits,
        }
    }

    /// Returns the only family of the grammar, and the first lexemes of its symbols.
    pub(crate) fn firsts(&self) -> Option<(&Family, &Firsts)> {
        Some((self.families.values().next()?, self.firsts.as_ref()?))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let limits = self.limits.as_ref().map_or(0, Limits::memory_bytes);
        let interned =
            self.counts.memory_bytes() + self.unions.memory_bytes() + self.rows.memory_bytes();
        interned + limits + self.symbols.memory_bytes()
    }
}
