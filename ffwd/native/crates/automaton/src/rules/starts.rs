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
use std::hash::Hash;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::error::Result;
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

/// What tells ways to a lexeme apart, with the threads that begin after each: nothing here, and the
/// marks in between in [`crate::rules::beginnings`]. The first label is the default.
pub(crate) trait Labels: Default {
    type Label: Copy + Default + Ord + Hash;

    /// Whether rows are those of families.
    const HAS_FAMILIES: bool;

    /// The threads that begin after a label.
    fn threads(&mut self, label: Self::Label) -> &mut Threads;

    fn all_threads(&self) -> impl Iterator<Item = &Thread>;

    /// The label after the empty text of a symbol.
    fn past(&mut self, rules: &Rules, symbol: SymbolId, label: Self::Label) -> Result<Self::Label>;

    /// The label after a reported part.
    fn leave(&mut self, node: NodeId, label: Self::Label) -> Result<Self::Label>;

    /// The label and the stack within a reported or limited part; `None` if it may not begin.
    fn enter(
        &mut self,
        rules: &Rules,
        on: &impl On,
        node: NodeId,
        way: (Self::Label, StackId),
    ) -> Result<Option<(Self::Label, StackId)>>;

    /// The label of a JSON value, and the stack after it.
    fn enter_json(
        &mut self,
        on: &impl On,
        node: NodeId,
        way: (Self::Label, StackId),
    ) -> Result<(Self::Label, StackId)>;
}

/// All ways are one.
#[derive(Default)]
pub(crate) struct Unlabelled(Threads);

impl Labels for Unlabelled {
    type Label = ();
    const HAS_FAMILIES: bool = true;

    fn threads(&mut self, (): ()) -> &mut Threads {
        &mut self.0
    }

    fn all_threads(&self) -> impl Iterator<Item = &Thread> {
        self.0.iter()
    }

    fn past(&mut self, _: &Rules, _: SymbolId, (): ()) -> Result<()> {
        Ok(())
    }

    fn leave(&mut self, _: NodeId, (): ()) -> Result<()> {
        Ok(())
    }

    fn enter(
        &mut self,
        rules: &Rules,
        on: &impl On,
        node: NodeId,
        ((), parent): ((), StackId),
    ) -> Result<Option<((), StackId)>> {
        Ok(rules.push_limit(on, node, parent)?.map(|parent| ((), parent)))
    }

    fn enter_json(&mut self, _: &impl On, _: NodeId, way: ((), StackId)) -> Result<((), StackId)> {
        Ok(way)
    }
}

/// The lexemes that may begin on a stack, before they become threads.
pub(crate) struct Openings<'r, L: Labels> {
    rules: &'r Rules,
    /// If given, only symbols that can start with one of these are examined.
    languages: Option<Verdict>,
    /// Symbols, by their ranks, with the stacks after them.
    symbols: BTreeMap<(u32, SymbolId, L::Label), SmallVec<[StackId; 2]>>,
    /// Lexemes and sets of tokens, with the stacks after them.
    pub(crate) leaves: BTreeMap<(NodeId, L::Label), SmallVec<[StackId; 2]>>,
    labels: L,
}

impl<'r, L: Labels> Openings<'r, L> {
    fn add(&mut self, symbol: SymbolId, label: L::Label, after: StackId) {
        if let (Some(languages), Some((_, firsts))) = (self.languages, self.rules.firsts()) {
            if !firsts.begins_with(symbol, languages) {
                return;
            }
        }
        let rank = self.rules.symbols.rank(symbol);
        self.symbols.entry((rank, symbol, label)).or_default().push(after);
    }

    /// What may begin on a stack; with one of some languages only, if they are given.
    pub(crate) fn find(
        rules: &'r Rules,
        on: &impl On,
        stack: StackId,
        languages: Option<Verdict>,
    ) -> Result<Self> {
        let (symbols, leaves) = (BTreeMap::new(), BTreeMap::new());
        let mut found = Self { rules, languages, symbols, leaves, labels: L::default() };
        found.add_stack(on, stack)?;
        found.expand(on)?;
        Ok(found)
    }

    /// Adds the symbols on top of a stack, and its other frames.
    fn add_stack(&mut self, on: &impl On, stack: StackId) -> Result<()> {
        let rules = self.rules;
        let mut pending: Vec<(StackId, L::Label)> = vec![(stack, L::Label::default())];
        let mut seen: FxHashSet<(StackId, L::Label)> = FxHashSet::default();
        while let Some((stack, label)) = pending.pop() {
            meter::charge(1)?;
            if !seen.insert((stack, label)) {
                continue;
            }
            let cell = on.cell(stack);
            let parent = cell.parent;
            match cell.frame {
                Frame::End => self.labels.threads(label).push(Thread::END),
                Frame::Union(union) => {
                    let members = rules.unions.get(union).members.iter().rev();
                    pending.extend(members.map(|&member| (member, label)));
                }
                Frame::Symbol(symbol) => {
                    if rules.symbols.is_nullable(symbol) {
                        pending.push((parent, self.labels.past(rules, symbol, label)?));
                    }
                    self.add(symbol, label, parent);
                }
                Frame::Count(count) => {
                    let Count { inner, min, max } = *rules.counts.get(count);
                    if min == 0 {
                        pending.push((parent, label));
                    }
                    let fewer = rules.push_count(on, inner, min, max, parent)?;
                    self.add(inner, label, fewer);
                }
                // The content has ended.
                Frame::Limit(_) => pending.push((parent, label)),
                Frame::Mark(node) => pending.push((parent, self.labels.leave(node, label)?)),
                _ => self.labels.threads(label).extend_from_slice(on.starts(stack)?),
            }
        }
        Ok(())
    }

    /// Finds what symbols can begin with, each on the stacks after it. A symbol comes after all that
    /// can begin with it, so that it is looked at once for a label, on the union of its stacks.
    fn expand(&mut self, on: &impl On) -> Result<()> {
        let rules = self.rules;
        let symbols = &rules.symbols;
        while let Some(((_, symbol, label), stacks)) = self.symbols.pop_last() {
            meter::charge(1 + stacks.len())?;
            let parent = rules.union(on, &stacks)?;
            match symbols.get(symbol) {
                Symbol::Empty => {}
                &Symbol::Seq(first, then) => {
                    if symbols.is_nullable(first) {
                        let label = self.labels.past(rules, first, label)?;
                        self.add(then, label, parent);
                    }
                    let after = rules.push_symbol(on, then, parent)?;
                    self.add(first, label, after);
                }
                Symbol::Choice(parts) => {
                    parts.iter().for_each(|&part| self.add(part, label, parent));
                }
                &Symbol::Star(inner) => {
                    let after = rules.push_symbol(on, symbol, parent)?;
                    self.add(inner, label, after);
                }
                &Symbol::Repeat { inner, min, max } => {
                    let after = rules.push_count(on, inner, min, max, parent)?;
                    self.add(inner, label, after);
                }
                &Symbol::Marked(node, inner) => {
                    if let Some((label, parent)) =
                        self.labels.enter(rules, on, node, (label, parent))?
                    {
                        self.add(inner, label, parent);
                    }
                }
                &Symbol::NonEmpty(inner) => self.add(inner, label, parent),
                &Symbol::Part(part) => self.add(symbols.meaning(part), label, parent),
                &Symbol::Later(part) => self.add(symbols.later(part)?, label, parent),
                Symbol::Leaf(node) => match rules.program.leaves.get(node) {
                    Some(&Leaf::Json(schema)) => {
                        if let Some(&value) = rules.values.get(schema) {
                            let (label, after) =
                                self.labels.enter_json(on, *node, (label, parent))?;
                            let value = on.push_root(value, after)?;
                            self.labels.threads(label).extend_from_slice(on.starts(value)?);
                        }
                    }
                    _ => self.leaves.entry((*node, label)).or_default().push(parent),
                },
            }
        }
        Ok(())
    }

    /// The threads that begin lexemes. Lexemes with the same stacks after them are one. Lexemes
    /// compete for the longest match with all others that may begin here, whatever their labels.
    pub(crate) fn begin(self, on: &impl On) -> Result<L> {
        let Self { rules, leaves, mut labels, .. } = self;
        let mut apart: BTreeMap<(L::Label, StackId), Vec<Ast>> = BTreeMap::new();
        let mut longest: BTreeMap<ScopeId, Vec<RowMember<L::Label>>> = BTreeMap::new();
        for ((node, label), stacks) in leaves {
            let after = rules.union(on, &stacks)?;
            match rules.program.leaves.get(&node) {
                Some(Leaf::Lexeme { language, lexing: Lexing::Anywhere }) => {
                    apart.entry((label, after)).or_default().push(language.clone());
                }
                Some(Leaf::Lexeme { lexing: Lexing::Longest { scope, lexing }, .. }) => {
                    let beginning = RowMember { node, lexing: *lexing, label, after };
                    longest.entry(*scope).or_default().push(beginning);
                }
                Some(Leaf::Tokens(_)) => {
                    let stack = on.push(Frame::Tokens(node), after)?;
                    labels.threads(label).push(Thread {
                        lexeme: ThreadLexeme::Tokens(node.0),
                        state: 0,
                        stack,
                        text: TextId::NONE,
                        transcript: TextId::NONE,
                    });
                }
                Some(Leaf::Json(_)) | None => {}
            }
        }
        for ((label, after), languages) in apart {
            let spec = LexemeSpec::new(Spelling::Utf8, [Ast::alternation(languages)]);
            let lexeme = on.add_lexeme(&spec)?;
            let stack = on.push(Frame::Lexeme(lexeme), after)?;
            labels.threads(label).extend(begin_alive(on, lexeme, stack));
        }
        let others = labels
            .all_threads()
            .any(|thread| thread.lexeme != ThreadLexeme::End && !rules.is_plain_lexeme(on, thread));
        for (scope, row) in longest {
            let ignored_only = row.iter().all(|one| one.lexing == Longest::Ignored);
            if !ignored_only || others {
                rules.begin_row(on, scope, &row, &mut labels)?;
            }
        }
        Ok(labels)
    }
}

impl Rules {
    /// The threads that begin on a stack of symbols.
    pub(crate) fn starts(&self, on: &impl On, stack: StackId) -> Result<Threads> {
        if let Some(threads) = self.begin_unfollowed(on, stack)? {
            return Ok(threads);
        }
        let Unlabelled(mut threads) = Openings::find(self, on, stack, None)?.begin(on)?;
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
    ) -> Result<StackId> {
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
    ) -> Result<StackId> {
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

    pub(crate) fn push_row(&self, on: &impl On, after: SmallVec<[StackId; 4]>) -> Result<StackId> {
        let row = self.rows.intern(Row(after))?;
        on.push(Frame::Row(row), StackId::END)
    }
}
