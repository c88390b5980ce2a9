//! Grammars of rules: the lexemes that may begin on a stack of symbols.
//!
//! A stack is a list of the symbols that must follow. Several possible lists form one *union*,
//! factored by their tops. An ambiguous text then has few threads and not one for each parse: all
//! threads in the same state of a lexeme are merged, on the union of their stacks. Graph-structured
//! stacks work in this way.
//!
//! Lexemes that end wherever they can are a thread each. Those that end at their longest match run
//! side by side as one lexeme, a *row*: its verdict names those that have ended, and the exit is
//! the union of their exits.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::interning::intern::Interner;
use crate::interning::memory::Held;
use crate::json::keys::TextId;
use crate::rules::begun::Firsts;
use crate::rules::dead_ends::DeadEnds;
use crate::rules::limits::Limits;
use crate::rules::rows::{families, Beginning, Families, Family, Row};
use crate::rules::swallowed::Swallowing;
use crate::rules::unions::Union;
use crate::run::automaton::{Automaton, RootValue};
use crate::stacks::frame::{Frame, StackId};
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_grammar::symbols::{Symbol, SymbolId, Symbols};
use ffwd_grammar::{Lexing, Live, Longest, NodeId, ScopeId, Span};
use ffwd_regular::expr::{LexState, LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// The kind of a leaf of the symbols.
#[derive(Clone, Debug)]
pub enum Leaf {
    /// A language without the empty text.
    Lexeme {
        /// Its texts, which are spelled in UTF-8.
        language: Ast,
        /// Where a text of it may end.
        lexing: Lexing,
    },
    /// Sorted ranges of token ids, from the first to the last.
    Tokens(Arc<[(u32, u32)]>),
    /// One of the schemas, by its place.
    Json(usize),
}

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
    /// Whether what follows a row is found when it begins, and not when it has ended.
    pub eager_rows: bool,
    /// Lexemes that take in the beginnings of what follows them.
    pub swallowing: Swallowing,
}

impl Program {
    /// Returns a reported part that can start with itself, and so has no position on stacks.
    pub(crate) fn unreported(&self) -> Option<&Span> {
        self.symbols.unmarked.iter().find_map(|node| self.spans.get(node))
    }
}

/// A number of repetitions of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Count {
    pub(crate) inner: SymbolId,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

impl Held for Count {}

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
    has_tokens: bool,
    /// The limits, if some part has one.
    pub(crate) limits: Option<Limits>,
}

const MAX_PARTS: usize = 8_000_000;

impl Rules {
    pub(crate) fn new(program: Arc<Program>, values: Vec<RootValue>) -> Self {
        let limit = "grammar_stacks";
        let families = families(&program);
        let firsts = match families.values().next() {
            Some(family) if families.len() == 1 && !program.eager_rows => {
                Firsts::new(&program, family)
            }
            _ => None,
        };
        let has_tokens = program.leaves.values().any(|leaf| matches!(leaf, Leaf::Tokens(_)));
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

/// The lexemes that may begin on a stack, before they become threads.
#[derive(Default)]
pub(crate) struct Beginnings {
    end: bool,
    /// Lexemes and sets of tokens, with the stacks after them.
    pub(crate) leaves: BTreeMap<NodeId, SmallVec<[StackId; 2]>>,
    /// Threads of JSON values.
    threads: Threads,
}

/// Symbols, by their ranks, with the stacks after them.
pub(crate) struct Expanding<'r> {
    rules: &'r Rules,
    /// If given, only what can begin with one of these is looked at.
    languages: Option<Verdict>,
    pending: BTreeMap<(u32, SymbolId), SmallVec<[StackId; 2]>>,
}

impl<'r> Expanding<'r> {
    pub(crate) fn new(rules: &'r Rules, languages: Option<Verdict>) -> Self {
        Self { rules, languages, pending: BTreeMap::new() }
    }

    fn add(&mut self, symbol: SymbolId, after: StackId) {
        if let (Some(languages), Some((_, firsts))) = (self.languages, self.rules.firsts()) {
            if !firsts.begins_with(symbol, languages) {
                return;
            }
        }
        let rank = self.rules.symbols.rank(symbol);
        self.pending.entry((rank, symbol)).or_default().push(after);
    }
}

impl Automaton {
    /// As [`Self::starts`], of a stack of symbols.
    pub(crate) fn rule_starts(
        &self,
        rules: &Rules,
        stack: StackId,
    ) -> Result<Threads, EngineError> {
        if let Some(threads) = self.begin_unfollowed(rules, stack)? {
            return Ok(threads);
        }
        let mut found = Beginnings::default();
        let mut symbols = Expanding::new(rules, None);
        self.add_stack(rules, stack, &mut symbols, &mut found)?;
        self.expand(rules, symbols, &mut found)?;
        self.threads_of(rules, found)
    }

    /// Adds the symbols on top of a stack, and what is no symbol.
    pub(crate) fn add_stack(
        &self,
        rules: &Rules,
        stack: StackId,
        symbols: &mut Expanding<'_>,
        found: &mut Beginnings,
    ) -> Result<(), EngineError> {
        let mut pending: Vec<StackId> = vec![stack];
        let mut seen: FxHashSet<StackId> = FxHashSet::default();
        while let Some(stack) = pending.pop() {
            meter::charge(1)?;
            if !seen.insert(stack) {
                continue;
            }
            let cell = self.cell(stack);
            let parent = cell.parent;
            match cell.frame {
                Frame::End => found.end = true,
                Frame::Union(union) => {
                    pending.extend(rules.unions.get(union).members.iter().rev().copied());
                }
                Frame::Symbol(symbol) => {
                    if rules.symbols.is_nullable(symbol) {
                        pending.push(parent);
                    }
                    symbols.add(symbol, parent);
                }
                Frame::Count(count) => {
                    let Count { inner, min, max } = *rules.counts.get(count);
                    if min == 0 {
                        pending.push(parent);
                    }
                    let fewer = self.push_count(rules, inner, min, max, parent)?;
                    symbols.add(inner, fewer);
                }
                // The content has ended.
                Frame::Limit(_) | Frame::Mark(_) => pending.push(parent),
                _ => found.threads.extend_from_slice(self.starts(stack)?),
            }
        }
        Ok(())
    }

    /// Finds what symbols can begin with, each on the stacks after it. A symbol comes after all that
    /// can begin with it, so that it is looked at once, on the union of its stacks.
    pub(crate) fn expand(
        &self,
        rules: &Rules,
        mut pending: Expanding<'_>,
        found: &mut Beginnings,
    ) -> Result<(), EngineError> {
        let (symbols, leaves) = (&rules.symbols, &rules.program.leaves);
        while let Some(((_, symbol), stacks)) = pending.pending.pop_last() {
            meter::charge(1 + stacks.len())?;
            let parent = self.union(rules, &stacks)?;
            match symbols.get(symbol) {
                Symbol::Empty => {}
                &Symbol::Seq(first, then) => {
                    if symbols.is_nullable(first) {
                        pending.add(then, parent);
                    }
                    let after = self.push_symbol(rules, then, parent)?;
                    pending.add(first, after);
                }
                Symbol::Choice(parts) => {
                    parts.iter().for_each(|&part| pending.add(part, parent));
                }
                &Symbol::Star(inner) => {
                    let after = self.push_symbol(rules, symbol, parent)?;
                    pending.add(inner, after);
                }
                &Symbol::Repeat { inner, min, max } => {
                    let after = self.push_count(rules, inner, min, max, parent)?;
                    pending.add(inner, after);
                }
                &Symbol::Marked(node, inner) => {
                    if let Some(parent) = self.push_limit(rules, node, parent)? {
                        pending.add(inner, parent);
                    }
                }
                &Symbol::NonEmpty(inner) => pending.add(inner, parent),
                &Symbol::Part(part) => pending.add(symbols.meaning(part), parent),
                &Symbol::Later(part) => pending.add(symbols.later(part)?, parent),
                Symbol::Leaf(node) => match leaves.get(node) {
                    Some(&Leaf::Json(schema)) => {
                        if let Some(&value) = rules.values.get(schema) {
                            let below = self.below_value(value, parent)?;
                            let value = self.push(Frame::Value(value.query), below)?;
                            found.threads.extend_from_slice(self.starts(value)?);
                        }
                    }
                    _ => found.leaves.entry(*node).or_default().push(parent),
                },
            }
        }
        Ok(())
    }

    /// The threads that begin lexemes. Lexemes with the same stacks after them are one.
    fn threads_of(&self, rules: &Rules, found: Beginnings) -> Result<Threads, EngineError> {
        let mut threads = found.threads;
        let mut apart: BTreeMap<StackId, Vec<Ast>> = BTreeMap::new();
        let mut longest: BTreeMap<ScopeId, Vec<Beginning>> = BTreeMap::new();
        for (node, stacks) in found.leaves {
            let after = self.union(rules, &stacks)?;
            match rules.program.leaves.get(&node) {
                Some(Leaf::Lexeme { language, lexing: Lexing::Anywhere }) => {
                    apart.entry(after).or_default().push(language.clone());
                }
                Some(Leaf::Lexeme { lexing: Lexing::Longest { scope, lexing }, .. }) => {
                    let beginning = Beginning { node, lexing: *lexing, after };
                    longest.entry(*scope).or_default().push(beginning);
                }
                Some(Leaf::Tokens(_)) => threads.push(Thread {
                    lexeme: ThreadLexeme::Tokens(node.0),
                    state: 0,
                    stack: self.push(Frame::Tokens(node), after)?,
                    text: TextId::NONE,
                    transcript: TextId::NONE,
                }),
                Some(Leaf::Json(_)) | None => {}
            }
        }
        for (after, languages) in apart {
            let spec = LexemeSpec::new(Spelling::Utf8, [Ast::alternation(languages)]);
            let lexeme = self.add_lexeme(&spec)?;
            let stack = self.push(Frame::Lexeme(lexeme), after)?;
            self.begin_lexeme(lexeme, stack, &mut threads);
        }
        let others = threads.iter().any(|thread| !self.is_plain_lexeme(thread));
        for (scope, row) in longest {
            let ignored_only = row.iter().all(|one| one.lexing == Longest::Ignored);
            if !ignored_only || others {
                self.begin_row(rules, scope, &row, &mut threads)?;
            }
        }
        if found.end {
            threads.push(Thread::END);
        }
        threads.sort_unstable();
        threads.dedup();
        Ok(threads)
    }

    pub(crate) fn is_plain_lexeme(&self, thread: &Thread) -> bool {
        matches!(self.cell(thread.stack).frame, Frame::Lexeme(_))
    }

    /// Whether nothing at all may follow, not even the end.
    pub fn leads_nowhere(&self, stack: StackId) -> bool {
        match (self.cell(stack).frame, self.rules()) {
            (Frame::Union(union), Some(rules)) => rules.unions.get(union).members.is_empty(),
            _ => false,
        }
    }

    pub(crate) fn begin_lexeme(&self, lexeme: u32, stack: StackId, threads: &mut Threads) {
        let known = self.lexeme(lexeme);
        if known.is_alive() {
            self.begin_lexeme_at(lexeme, known.start(), stack, threads);
        }
    }

    pub(crate) fn begin_lexeme_at(
        &self,
        lexeme: u32,
        start: LexState,
        stack: StackId,
        threads: &mut Threads,
    ) {
        threads.push(Thread {
            lexeme: ThreadLexeme::Lexeme(lexeme),
            state: start.0,
            stack,
            text: TextId::NONE,
            transcript: TextId::NONE,
        });
    }

    /// The stack with one symbol more.
    pub(crate) fn push_symbol(
        &self,
        rules: &Rules,
        symbol: SymbolId,
        parent: StackId,
    ) -> Result<StackId, EngineError> {
        let symbols = &rules.symbols;
        let mut symbol = symbol;
        while let &Symbol::Part(part) = symbols.get(symbol) {
            symbol = symbols.meaning(part);
        }
        match symbols.get(symbol) {
            Symbol::Empty => Ok(parent),
            // Any number of times, and then any number of times.
            Symbol::Star(_) if self.cell(parent).frame == Frame::Symbol(symbol) => Ok(parent),
            _ => self.push(Frame::Symbol(symbol), parent),
        }
    }

    /// The stack with a symbol one time less.
    pub(crate) fn push_count(
        &self,
        rules: &Rules,
        inner: SymbolId,
        min: u32,
        max: Option<u32>,
        parent: StackId,
    ) -> Result<StackId, EngineError> {
        let max = max.map(|max| max.saturating_sub(1));
        let min = min.saturating_sub(1);
        if max == Some(0) {
            return Ok(parent);
        }
        let count = Frame::Count(rules.counts.intern(Count { inner, min, max })?);
        if (min, max) == (0, None) && self.cell(parent).frame == count {
            return Ok(parent);
        }
        self.push(count, parent)
    }

    pub(crate) fn push_row(
        &self,
        rules: &Rules,
        after: SmallVec<[StackId; 4]>,
    ) -> Result<StackId, EngineError> {
        let row = rules.rows.intern(Row(after))?;
        self.push(Frame::Row(row), StackId::END)
    }

    /// Whether it is a grammar of rules.
    #[inline]
    pub fn has_rules(&self) -> bool {
        self.rules().is_some()
    }

    /// Returns whether a token that is taken as a whole may be allowed.
    #[inline]
    pub fn has_tokens(&self) -> bool {
        self.rules().is_some_and(|rules| rules.has_tokens)
    }

    /// Returns the leaves of a grammar of rules.
    pub fn leaves(&self) -> impl Iterator<Item = (&NodeId, &Leaf)> {
        self.rules().into_iter().flat_map(|rules| rules.program.leaves.iter())
    }
}
