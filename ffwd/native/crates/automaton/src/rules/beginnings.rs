//! The lexemes that may begin on a stack with marks: as in [`crate::rules::starts`], but grouped by the
//! marks between the ended part and the next one.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::error::EngineError;
use crate::rules::leaf::Leaf;
use crate::rules::mark::Mark;
use crate::rules::parts::{Count, Row};
use crate::rules::program::Program;
use crate::rules::tables::Rules;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{StackId, TextId};
use crate::stacks::on::{begin_alive, On};
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_grammar::symbols::{Symbol, SymbolId};
use ffwd_grammar::{Lexing, Live, Longest, NodeId, ScopeId};
use ffwd_regular::expr::lexeme::{Ends, MAX_LANGUAGES};
use ffwd_regular::expr::{LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// The threads that may begin on a stack after certain marks.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// The marks before the threads begin, in order.
    pub marks: Box<[Mark]>,
    /// What begins after those marks.
    pub threads: Threads,
}

/// The beginnings of stacks, cached by stack.
pub(crate) type Beginnings = FxHashMap<StackId, Arc<[Beginning]>>;

/// The marks of an entry, by number.
type Label = u32;

/// The most sequences of marks at one place.
const MAX_LABELS: usize = 20_000;

#[derive(Default)]
struct Labels {
    all: Vec<SmallVec<[Mark; 4]>>,
    ids: FxHashMap<SmallVec<[Mark; 4]>, Label>,
}

impl Labels {
    fn id(&mut self, marks: SmallVec<[Mark; 4]>) -> Result<Label, EngineError> {
        if let Some(&known) = self.ids.get(&marks) {
            return Ok(known);
        }
        if self.all.len() >= MAX_LABELS {
            return Err(LimitExceeded::new("span_parses", MAX_LABELS).into());
        }
        self.all.push(marks.clone());
        let id = self.all.len() as Label - 1;
        self.ids.insert(marks, id);
        Ok(id)
    }

    fn and(&mut self, label: Label, more: &[Mark]) -> Result<Label, EngineError> {
        if more.is_empty() {
            return Ok(label);
        }
        let mut marks = self.all[label as usize].clone();
        marks.extend_from_slice(more);
        self.id(marks)
    }
}

/// Symbols, by their ranks, with the stacks after them.
type ExpandingMarked = BTreeMap<(u32, SymbolId, Label), SmallVec<[StackId; 2]>>;

/// The lexemes that may begin on a stack, before they become threads.
#[derive(Default)]
struct Found {
    labels: Labels,
    leaves: BTreeMap<(NodeId, Label), SmallVec<[StackId; 2]>>,
    threads: BTreeMap<Label, Threads>,
    symbols: ExpandingMarked,
}

impl Found {
    fn add(&mut self, symbols: &Live, symbol: SymbolId, label: Label, after: StackId) {
        let key = (symbols.rank(symbol), symbol, label);
        self.symbols.entry(key).or_default().push(after);
    }
}

/// The marks of the empty text of a symbol.
fn marks_of_empty(rules: &Rules, symbol: SymbolId) -> Result<SmallVec<[Mark; 4]>, EngineError> {
    fn find(
        rules: &Rules,
        symbol: SymbolId,
        seen: &mut FxHashSet<SymbolId>,
        marks: &mut SmallVec<[Mark; 4]>,
    ) -> Result<(), EngineError> {
        let (program, symbols) = (&rules.program, &rules.symbols);
        // Each part once: longer paths would only repeat it.
        if !symbols.is_nullable(symbol) || !seen.insert(symbol) {
            return Ok(());
        }
        match symbols.get(symbol) {
            &Symbol::Seq(first, then) => {
                find(rules, first, seen, marks)?;
                find(rules, then, seen, marks)?;
            }
            Symbol::Choice(parts) => {
                if let Some(&part) = parts.iter().find(|&&part| symbols.is_nullable(part)) {
                    find(rules, part, seen, marks)?;
                }
            }
            &Symbol::Marked(node, inner) => {
                let is_span = program.spans.contains_key(&node);
                marks.extend(is_span.then_some(Mark::Open(node)));
                find(rules, inner, seen, marks)?;
                marks.extend(is_span.then_some(Mark::Close(node)));
            }
            &Symbol::Part(part) => find(rules, symbols.meaning(part), seen, marks)?,
            &Symbol::Later(part) => find(rules, symbols.later(part)?, seen, marks)?,
            Symbol::Empty | Symbol::Star(_) | Symbol::Repeat { .. } => {}
            Symbol::Leaf(_) | Symbol::NonEmpty(_) => {}
        }
        Ok(())
    }
    let mut marks = SmallVec::new();
    if !rules.program.spans.is_empty() {
        find(rules, symbol, &mut FxHashSet::default(), &mut marks)?;
    }
    Ok(marks)
}

/// The position of a lexeme among its competitors.
type Competitor = (Label, StackId, Longest);

impl Rules {
    /// As [`Rules::starts`], with marks.
    pub(crate) fn find_beginnings(
        &self,
        on: &impl On,
        stack: StackId,
    ) -> Result<Vec<Beginning>, EngineError> {
        let symbols = &self.symbols;
        let mut found = Found::default();
        let none = found.labels.id(SmallVec::new())?;
        let mut pending: Vec<(StackId, Label)> = vec![(stack, none)];
        let mut seen: FxHashSet<(StackId, Label)> = FxHashSet::default();
        while let Some((stack, label)) = pending.pop() {
            meter::charge(1)?;
            if !seen.insert((stack, label)) {
                continue;
            }
            let cell = on.cell(stack);
            let parent = cell.parent;
            match cell.frame {
                Frame::Union(union) => {
                    let members = self.unions.get(union).members.iter().rev();
                    pending.extend(members.map(|&member| (member, label)));
                }
                Frame::Mark(node) => {
                    pending.push((parent, found.labels.and(label, &[Mark::Close(node)])?));
                }
                Frame::Symbol(symbol) => {
                    if symbols.is_nullable(symbol) {
                        let empty = marks_of_empty(self, symbol)?;
                        pending.push((parent, found.labels.and(label, &empty)?));
                    }
                    found.add(symbols, symbol, label, parent);
                }
                Frame::Count(count) => {
                    let Count { inner, min, max } = *self.counts.get(count);
                    if min == 0 {
                        pending.push((parent, label));
                    }
                    let fewer = self.push_count(on, inner, min, max, parent)?;
                    found.add(symbols, inner, label, fewer);
                }
                _ => {
                    let threads = on.starts(stack)?;
                    found.threads.entry(label).or_default().extend_from_slice(threads);
                }
            }
        }
        self.expand_marked(on, &mut found)?;
        self.begin_marked(on, found)
    }

    /// As [`Rules::expand`], with marks.
    fn expand_marked(&self, on: &impl On, found: &mut Found) -> Result<(), EngineError> {
        let Program { leaves, spans, .. } = &*self.program;
        let symbols = &self.symbols;
        while let Some(((_, symbol, label), stacks)) = found.symbols.pop_last() {
            meter::charge(1 + stacks.len())?;
            let parent = self.union(on, &stacks)?;
            match symbols.get(symbol) {
                Symbol::Empty => {}
                &Symbol::Seq(first, then) => {
                    if symbols.is_nullable(first) {
                        let empty = marks_of_empty(self, first)?;
                        let label = found.labels.and(label, &empty)?;
                        found.add(symbols, then, label, parent);
                    }
                    let after = self.push_symbol(on, then, parent)?;
                    found.add(symbols, first, label, after);
                }
                Symbol::Choice(parts) => {
                    parts.iter().for_each(|&part| found.add(symbols, part, label, parent));
                }
                &Symbol::Star(inner) => {
                    let after = self.push_symbol(on, symbol, parent)?;
                    found.add(symbols, inner, label, after);
                }
                &Symbol::Repeat { inner, min, max } => {
                    let after = self.push_count(on, inner, min, max, parent)?;
                    found.add(symbols, inner, label, after);
                }
                &Symbol::Marked(node, inner) if spans.contains_key(&node) => {
                    let after = on.push(Frame::Mark(node), parent)?;
                    let label = found.labels.and(label, &[Mark::Open(node)])?;
                    found.add(symbols, inner, label, after);
                }
                &Symbol::Marked(_, inner) | &Symbol::NonEmpty(inner) => {
                    found.add(symbols, inner, label, parent);
                }
                &Symbol::Part(part) => {
                    found.add(symbols, symbols.meaning(part), label, parent);
                }
                &Symbol::Later(part) => {
                    found.add(symbols, symbols.later(part)?, label, parent);
                }
                Symbol::Leaf(node) => match leaves.get(node) {
                    Some(&Leaf::Json(schema)) => {
                        if let Some(&value) = self.values.get(schema) {
                            let after = on.push(Frame::Mark(*node), parent)?;
                            let value = on.push_root(value, after)?;
                            let label = found.labels.and(label, &[Mark::Open(*node)])?;
                            let threads = found.threads.entry(label).or_default();
                            threads.extend_from_slice(on.starts(value)?);
                        }
                    }
                    _ => found.leaves.entry((*node, label)).or_default().push(parent),
                },
            }
        }
        Ok(())
    }

    /// As `Rules::threads_of`, with marks. All lexemes that may begin here compete for the longest
    /// match, whatever the marks before them.
    fn begin_marked(&self, on: &impl On, found: Found) -> Result<Vec<Beginning>, EngineError> {
        let Found { labels, leaves, mut threads, .. } = found;
        let mut apart: BTreeMap<(Label, StackId), Vec<Ast>> = BTreeMap::new();
        let mut longest: BTreeMap<ScopeId, BTreeMap<Competitor, Vec<Ast>>> = BTreeMap::new();
        for ((node, label), stacks) in leaves {
            let after = self.union(on, &stacks)?;
            match self.program.leaves.get(&node) {
                Some(Leaf::Lexeme { language, lexing: Lexing::Anywhere }) => {
                    apart.entry((label, after)).or_default().push(language.clone());
                }
                Some(Leaf::Lexeme { language, lexing: Lexing::Longest { scope, lexing } }) => {
                    let row = longest.entry(*scope).or_default();
                    row.entry((label, after, *lexing)).or_default().push(language.clone());
                }
                Some(Leaf::Tokens(_)) => threads.entry(label).or_default().push(Thread {
                    lexeme: ThreadLexeme::Tokens(node.0),
                    state: 0,
                    stack: on.push(Frame::Tokens(node), after)?,
                    text: TextId::NONE,
                    transcript: TextId::NONE,
                }),
                Some(Leaf::Json(_)) | None => {}
            }
        }
        for ((label, after), languages) in apart {
            let spec = LexemeSpec::new(Spelling::Utf8, [Ast::alternation(languages)]);
            let lexeme = on.add_lexeme(&spec)?;
            let stack = on.push(Frame::Lexeme(lexeme), after)?;
            threads.entry(label).or_default().extend(begin_alive(on, lexeme, stack));
        }
        let mut all = threads.values().flatten();
        let others = all
            .any(|thread| thread.lexeme != ThreadLexeme::End && !self.is_plain_lexeme(on, thread));
        for row in longest.into_values() {
            let ignored_only = row.keys().all(|&(_, _, lexing)| lexing == Longest::Ignored);
            if !ignored_only || others {
                self.begin_marked_row(on, row, &mut threads)?;
            }
        }
        let mut beginnings = Vec::with_capacity(threads.len());
        for (label, mut threads) in threads {
            threads.sort_unstable();
            threads.dedup();
            let marks = labels.all[label as usize].as_slice().into();
            beginnings.push(Beginning { marks, threads });
        }
        beginnings.sort_unstable_by(|a, b| a.marks.cmp(&b.marks));
        Ok(beginnings)
    }

    /// As [`Rules::begin_row`], with marks: one row for each label, in which the lexemes of the
    /// other labels lead nowhere.
    fn begin_marked_row(
        &self,
        on: &impl On,
        row: BTreeMap<Competitor, Vec<Ast>>,
        threads: &mut BTreeMap<Label, Threads>,
    ) -> Result<(), EngineError> {
        let row: Vec<(Competitor, Ast)> =
            row.into_iter().map(|(key, all)| (key, Ast::alternation(all))).collect();
        let size = if row.len() > MAX_LANGUAGES { MAX_LANGUAGES - 2 } else { MAX_LANGUAGES };
        let nowhere = self.union(on, &[])?;
        for (place, own) in row.chunks(size).enumerate() {
            let mut lazy: Verdict = 0;
            let mut languages: Vec<Ast> = Vec::new();
            let mut add = |is_lazy: bool, language: Ast| {
                lazy |= Verdict::from(is_lazy) << languages.len();
                languages.push(language);
            };
            for ((_, _, lexing), language) in own {
                add(*lexing == Longest::Lazy, language.clone());
            }
            if own.len() < row.len() {
                for is_lazy in [false, true] {
                    let others = row.chunks(size).enumerate().filter(|(other, _)| *other != place);
                    let others = others.flat_map(|(_, others)| others);
                    let others =
                        others.filter(|((_, _, lexing), _)| (*lexing == Longest::Lazy) == is_lazy);
                    add(is_lazy, Ast::alternation(others.map(|(_, language)| language.clone())));
                }
            }
            let size = languages.len();
            let spec = LexemeSpec::new(Spelling::Utf8, languages);
            let lexeme = on.add_lexeme(&LexemeSpec { ends: Ends::Longest { lazy }, ..spec })?;
            let labels: FxHashSet<Label> = own.iter().map(|((label, _, _), _)| *label).collect();
            for label in labels {
                let mut after: SmallVec<[StackId; 4]> = SmallVec::from_elem(nowhere, size);
                for (column, ((other, stack, _), _)) in own.iter().enumerate() {
                    if *other == label {
                        after[column] = *stack;
                    }
                }
                let row = self.rows.intern(Row(after))?;
                let stack = on.push(Frame::Row(row), StackId::END)?;
                threads.entry(label).or_default().extend(begin_alive(on, lexeme, stack));
            }
        }
        Ok(())
    }
}
