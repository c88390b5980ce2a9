//! Lexemes that end at their longest match, side by side as one lexeme.
//!
//! All such lexemes of a scope are one *family*: one automaton over bytes with a language for each,
//! which a row begins with those of them that may come. So rows of all places share their states,
//! and with these what is known about them: after a few bytes most of them are the same.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::interning::memory::Held;
use crate::rules::starts::{Leaf, Program, Rules};
use crate::run::automaton::Automaton;
use crate::stacks::frame::{Frame, StackId};
use crate::stacks::thread::Threads;
use ffwd_grammar::{Lexing, Longest, NodeId, ScopeId};
use ffwd_regular::expr::lexeme::{Ends, MAX_LANGUAGES};
use ffwd_regular::expr::{LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// For each language of a lexeme the stack after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row(pub(crate) SmallVec<[StackId; 4]>);

impl Held for Row {
    fn held_bytes(&self) -> usize {
        if self.0.spilled() {
            self.0.capacity() * 4
        } else {
            0
        }
    }
}

/// A lexeme that may begin, and the stack after it.
pub(crate) struct Beginning {
    pub(crate) node: NodeId,
    pub(crate) lexing: Longest,
    pub(crate) after: StackId,
}

/// The lexemes of one scope that end at their longest match.
#[derive(Debug, Default)]
pub(crate) struct Family {
    languages: Vec<Ast>,
    /// The languages that end as soon as they can.
    lazy: Verdict,
    /// Those whose longest match never takes all that can follow it: see `swallowed`.
    pub(crate) safe: Verdict,
    /// Those that are left out of what is read.
    pub(crate) ignored: Verdict,
    /// The language of each lexeme.
    places: FxHashMap<NodeId, usize>,
    /// Whether the grammar has nothing else.
    is_all: bool,
    /// The automaton of all, once something has begun.
    pub(crate) lexeme: OnceLock<u32>,
}

/// By scope; scopes of more lexemes than one automaton can tell apart have none.
pub(crate) type Families = FxHashMap<ScopeId, Family>;

pub(crate) fn families(program: &Program) -> Families {
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

impl Automaton {
    pub(crate) fn family_lexeme(&self, family: &Family) -> Result<u32, EngineError> {
        if let Some(&known) = family.lexeme.get() {
            return Ok(known);
        }
        let spec = LexemeSpec::new(Spelling::Utf8, family.languages.iter().cloned());
        let ends = Ends::Longest { lazy: family.lazy };
        let follows_itself = family.is_all;
        let lexeme = self.add_lexeme(&LexemeSpec { ends, follows_itself, ..spec })?;
        Ok(*family.lexeme.get_or_init(|| lexeme))
    }

    /// Begins lexemes of one scope side by side.
    pub(crate) fn begin_row(
        &self,
        rules: &Rules,
        scope: ScopeId,
        row: &[Beginning],
        threads: &mut Threads,
    ) -> Result<(), EngineError> {
        let Some(family) = rules.families.get(&scope) else {
            return self.begin_large_row(rules, row, threads);
        };
        let lexeme = self.family_lexeme(family)?;
        let nowhere = self.union(rules, &[])?;
        let mut after: SmallVec<[StackId; 4]> = SmallVec::new();
        after.resize(family.languages.len(), nowhere);
        let mut begun: Verdict = 0;
        for one in row {
            let Some(place) = family.place(one.node) else { continue };
            after[place] = match begun >> place & 1 {
                0 => one.after,
                _ => self.union(rules, &[after[place], one.after])?,
            };
            begun |= 1 << place;
        }
        let Some(start) = self.lexeme(lexeme).start_of(begun)? else { return Ok(()) };
        let row = rules.rows.intern(Row(after))?;
        let stack = self.push(Frame::Row(row), StackId::END)?;
        self.begin_lexeme_at(lexeme, start, stack, threads);
        Ok(())
    }

    /// As [`Self::begin_row`], for more lexemes than one automaton can have. Those with the same
    /// stacks after them are merged. If these are still too many, they are divided into parts, each
    /// of which has the others as one language without an exit.
    fn begin_large_row(
        &self,
        rules: &Rules,
        row: &[Beginning],
        threads: &mut Threads,
    ) -> Result<(), EngineError> {
        let mut by_stack: BTreeMap<(StackId, Longest), Vec<Ast>> = BTreeMap::new();
        for one in row {
            if let Some(Leaf::Lexeme { language, .. }) = rules.program.leaves.get(&one.node) {
                by_stack.entry((one.after, one.lexing)).or_default().push(language.clone());
            }
        }
        let row: Vec<((StackId, Longest), Ast)> =
            by_stack.into_iter().map(|(key, all)| (key, Ast::alternation(all))).collect();
        let size = if row.len() > MAX_LANGUAGES { MAX_LANGUAGES - 2 } else { MAX_LANGUAGES };
        for (place, own) in row.chunks(size).enumerate() {
            let mut lazy: Verdict = 0;
            let mut after: SmallVec<[StackId; 4]> = SmallVec::new();
            let mut languages: Vec<Ast> = Vec::new();
            let mut add = |stack: StackId, is_lazy: bool, language: Ast| {
                lazy |= Verdict::from(is_lazy) << languages.len();
                after.push(stack);
                languages.push(language);
            };
            for ((stack, lexing), language) in own {
                add(*stack, *lexing == Longest::Lazy, language.clone());
            }
            if own.len() < row.len() {
                let nowhere = self.union(rules, &[])?;
                for is_lazy in [false, true] {
                    let others = row.chunks(size).enumerate().filter(|(other, _)| *other != place);
                    let others = others.flat_map(|(_, others)| others);
                    let others =
                        others.filter(|((_, lexing), _)| (*lexing == Longest::Lazy) == is_lazy);
                    let language = Ast::alternation(others.map(|(_, language)| language.clone()));
                    add(nowhere, is_lazy, language);
                }
            }
            let spec = LexemeSpec::new(Spelling::Utf8, languages);
            let lexeme = self.add_lexeme(&LexemeSpec { ends: Ends::Longest { lazy }, ..spec })?;
            let row = rules.rows.intern(Row(after))?;
            let stack = self.push(Frame::Row(row), StackId::END)?;
            self.begin_lexeme(lexeme, stack, threads);
        }
        Ok(())
    }

    /// How many frames the shortest stack has that may follow a row.
    pub(crate) fn height_after(&self, rules: &Rules, stack: StackId) -> u32 {
        let cell = self.cell(stack);
        let after = match cell.frame {
            Frame::Row(row) => &rules.rows.get(row).0[..],
            _ => &[],
        };
        // Most languages of a family are followed by nothing where they may not come.
        let alive = after.iter().filter(|&&after| !self.leads_nowhere(after));
        alive.map(|&after| self.cell(after).height).min().unwrap_or(cell.height)
    }

    /// Returns the exit of a row after the languages of a verdict have ended.
    pub(crate) fn row_exit(
        &self,
        rules: &Rules,
        row: u32,
        verdict: Verdict,
    ) -> Result<StackId, EngineError> {
        let row = &rules.rows.get(row).0;
        let mut stacks: SmallVec<[StackId; 8]> = SmallVec::new();
        let mut left = verdict;
        while left != 0 {
            stacks.extend(row.get(left.trailing_zeros() as usize).copied());
            left &= left - 1;
        }
        self.union(rules, &stacks)
    }

    /// Returns the union of the stacks after each language, for rows of the same lexeme.
    pub(crate) fn union_of_rows(
        &self,
        rules: &Rules,
        stacks: &[StackId],
    ) -> Result<StackId, EngineError> {
        let rows = stacks.iter().filter_map(|&stack| match self.cell(stack).frame {
            Frame::Row(row) => Some(&rules.rows.get(row).0),
            _ => None,
        });
        let mut columns: SmallVec<[SmallVec<[StackId; 4]>; 8]> = SmallVec::new();
        for row in rows {
            columns.resize(row.len(), SmallVec::new());
            for (column, &stack) in columns.iter_mut().zip(row) {
                if !column.contains(&stack) {
                    column.push(stack);
                }
            }
        }
        let mut after = SmallVec::with_capacity(columns.len());
        for column in &columns {
            after.push(self.union(rules, column)?);
        }
        let row = rules.rows.intern(Row(after))?;
        self.push(Frame::Row(row), StackId::END)
    }
}
