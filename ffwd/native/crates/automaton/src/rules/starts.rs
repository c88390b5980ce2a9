//! Grammars of rules: the lexemes that may begin on a stack of symbols.
//!
//! A stack is a list of the symbols that must follow. Several possible lists form one *union*,
//! factored by their tops. An ambiguous text then has few threads, and not one for each parse. All
//! threads in the same state of a lexeme are merged on the union of their stacks, as in
//! graph-structured stacks.
//!
//! Lexemes that end wherever they can are a thread each. Those that end at their longest match run
//! side by side as one lexeme, a *row*. Its verdict names those that have ended, and its exit is
//! the union of their exits.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::rules::families::RowMember;
use crate::rules::leaf::Leaf;
use crate::rules::parts::{Count, Row};
use crate::rules::tables::Rules;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{StackId, TextId};
use crate::stacks::on::{begin_alive, On};
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_grammar::symbols::{Symbol, SymbolId};
use ffwd_grammar::{Lexing, Longest, NodeId, ScopeId};
use ffwd_regular::expr::{LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// The lexemes that may begin on a stack, before they become threads.
#[derive(Default)]
pub(crate) struct Openings {
    end: bool,
    /// Lexemes and sets of tokens, with the stacks after them.
    pub(crate) leaves: BTreeMap<NodeId, SmallVec<[StackId; 2]>>,
    /// Threads of JSON values.
    threads: Threads,
}

/// Symbols, by their ranks, with the stacks after them.
pub(crate) struct Expanding<'r> {
    rules: &'r Rules,
    /// If given, only symbols that can start with one of these are examined.
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

impl Rules {
    /// The threads that begin on a stack of symbols.
    pub(crate) fn starts(&self, on: &impl On, stack: StackId) -> Result<Threads, EngineError> {
        if let Some(threads) = self.begin_unfollowed(on, stack)? {
            return Ok(threads);
        }
        let mut found = Openings::default();
        let mut symbols = Expanding::new(self, None);
        self.add_stack(on, stack, &mut symbols, &mut found)?;
        self.expand(on, symbols, &mut found)?;
        self.threads_of(on, found)
    }

    /// Adds the symbols on top of a stack, and its other frames.
    pub(crate) fn add_stack(
        &self,
        on: &impl On,
        stack: StackId,
        symbols: &mut Expanding<'_>,
        found: &mut Openings,
    ) -> Result<(), EngineError> {
        let mut pending: Vec<StackId> = vec![stack];
        let mut seen: FxHashSet<StackId> = FxHashSet::default();
        while let Some(stack) = pending.pop() {
            meter::charge(1)?;
            if !seen.insert(stack) {
                continue;
            }
            let cell = on.cell(stack);
            let parent = cell.parent;
            match cell.frame {
                Frame::End => found.end = true,
                Frame::Union(union) => {
                    pending.extend(self.unions.get(union).members.iter().rev().copied());
                }
                Frame::Symbol(symbol) => {
                    if self.symbols.is_nullable(symbol) {
                        pending.push(parent);
                    }
                    symbols.add(symbol, parent);
                }
                Frame::Count(count) => {
                    let Count { inner, min, max } = *self.counts.get(count);
                    if min == 0 {
                        pending.push(parent);
                    }
                    let fewer = self.push_count(on, inner, min, max, parent)?;
                    symbols.add(inner, fewer);
                }
                // The content has ended.
                Frame::Limit(_) | Frame::Mark(_) => pending.push(parent),
                _ => found.threads.extend_from_slice(on.starts(stack)?),
            }
        }
        Ok(())
    }

    /// Finds what symbols can start with, each on the stacks after it. A symbol is examined after
    /// all symbols that can start with it, so that it is examined once, on the union of its stacks.
    pub(crate) fn expand(
        &self,
        on: &impl On,
        mut pending: Expanding<'_>,
        found: &mut Openings,
    ) -> Result<(), EngineError> {
        let (symbols, leaves) = (&self.symbols, &self.program.leaves);
        while let Some(((_, symbol), stacks)) = pending.pending.pop_last() {
            meter::charge(1 + stacks.len())?;
            let parent = self.union(on, &stacks)?;
            match symbols.get(symbol) {
                Symbol::Empty => {}
                &Symbol::Seq(first, then) => {
                    if symbols.is_nullable(first) {
                        pending.add(then, parent);
                    }
                    let after = self.push_symbol(on, then, parent)?;
                    pending.add(first, after);
                }
                Symbol::Choice(parts) => {
                    parts.iter().for_each(|&part| pending.add(part, parent));
                }
                &Symbol::Star(inner) => {
                    let after = self.push_symbol(on, symbol, parent)?;
                    pending.add(inner, after);
                }
                &Symbol::Repeat { inner, min, max } => {
                    let after = self.push_count(on, inner, min, max, parent)?;
                    pending.add(inner, after);
                }
                &Symbol::Marked(node, inner) => {
                    if let Some(parent) = self.push_limit(on, node, parent)? {
                        pending.add(inner, parent);
                    }
                }
                &Symbol::NonEmpty(inner) => pending.add(inner, parent),
                &Symbol::Part(part) => pending.add(symbols.meaning(part), parent),
                &Symbol::Later(part) => pending.add(symbols.later(part)?, parent),
                Symbol::Leaf(node) => match leaves.get(node) {
                    Some(&Leaf::Json(schema)) => {
                        if let Some(&value) = self.values.get(schema) {
                            let value = on.push_root(value, parent)?;
                            found.threads.extend_from_slice(on.starts(value)?);
                        }
                    }
                    _ => found.leaves.entry(*node).or_default().push(parent),
                },
            }
        }
        Ok(())
    }

    /// The threads that begin lexemes. Lexemes with the same stacks after them are one.
    fn threads_of(&self, on: &impl On, found: Openings) -> Result<Threads, EngineError> {
        let mut threads = found.threads;
        let mut apart: BTreeMap<StackId, Vec<Ast>> = BTreeMap::new();
        let mut longest: BTreeMap<ScopeId, Vec<RowMember>> = BTreeMap::new();
        for (node, stacks) in found.leaves {
            let after = self.union(on, &stacks)?;
            match self.program.leaves.get(&node) {
                Some(Leaf::Lexeme { language, lexing: Lexing::Anywhere }) => {
                    apart.entry(after).or_default().push(language.clone());
                }
                Some(Leaf::Lexeme { lexing: Lexing::Longest { scope, lexing }, .. }) => {
                    let beginning = RowMember { node, lexing: *lexing, after };
                    longest.entry(*scope).or_default().push(beginning);
                }
                Some(Leaf::Tokens(_)) => threads.push(Thread {
                    lexeme: ThreadLexeme::Tokens(node.0),
                    state: 0,
                    stack: on.push(Frame::Tokens(node), after)?,
                    text: TextId::NONE,
                    transcript: TextId::NONE,
                }),
                Some(Leaf::Json(_)) | None => {}
            }
        }
        for (after, languages) in apart {
            let spec = LexemeSpec::new(Spelling::Utf8, [Ast::alternation(languages)]);
            let lexeme = on.add_lexeme(&spec)?;
            let stack = on.push(Frame::Lexeme(lexeme), after)?;
            threads.extend(begin_alive(on, lexeme, stack));
        }
        let others = threads.iter().any(|thread| !self.is_plain_lexeme(on, thread));
        for (scope, row) in longest {
            let ignored_only = row.iter().all(|one| one.lexing == Longest::Ignored);
            if !ignored_only || others {
                self.begin_row(on, scope, &row, &mut threads)?;
            }
        }
        if found.end {
            threads.push(Thread::END);
        }
        threads.sort_unstable();
        threads.dedup();
        Ok(threads)
    }

    pub(crate) fn is_plain_lexeme(&self, on: &impl On, thread: &Thread) -> bool {
        matches!(on.cell(thread.stack).frame, Frame::Lexeme(_))
    }

    /// Whether nothing at all may follow, not even the end.
    pub(crate) fn leads_nowhere(&self, on: &impl On, stack: StackId) -> bool {
        match on.cell(stack).frame {
            Frame::Union(union) => self.unions.get(union).members.is_empty(),
            _ => false,
        }
    }

    /// The stack with one more symbol.
    pub(crate) fn push_symbol(
        &self,
        on: &impl On,
        symbol: SymbolId,
        parent: StackId,
    ) -> Result<StackId, EngineError> {
        let symbols = &self.symbols;
        let mut symbol = symbol;
        while let &Symbol::Part(part) = symbols.get(symbol) {
            symbol = symbols.meaning(part);
        }
        match symbols.get(symbol) {
            Symbol::Empty => Ok(parent),
            // Any number of copies before any number of copies.
            Symbol::Star(_) if on.cell(parent).frame == Frame::Symbol(symbol) => Ok(parent),
            _ => on.push(Frame::Symbol(symbol), parent),
        }
    }

    /// The stack with one copy of a symbol less.
    pub(crate) fn push_count(
        &self,
        on: &impl On,
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
        let count = Frame::Count(self.counts.intern(Count { inner, min, max })?);
        if (min, max) == (0, None) && on.cell(parent).frame == count {
            return Ok(parent);
        }
        on.push(count, parent)
    }

    pub(crate) fn push_row(
        &self,
        on: &impl On,
        after: SmallVec<[StackId; 4]>,
    ) -> Result<StackId, EngineError> {
        let row = self.rows.intern(Row(after))?;
        on.push(Frame::Row(row), StackId::END)
    }
}
