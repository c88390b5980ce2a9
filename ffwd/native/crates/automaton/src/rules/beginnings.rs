//! The lexemes that may begin on a stack with marks: as in [`crate::rules::starts`], but grouped by the
//! marks between the ended part and the next one.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::error::Result;
use crate::rules::mark::Mark;
use crate::rules::starts::{Labels, Openings};
use crate::rules::tables::Rules;
use crate::stacks::frame::Frame;
use crate::stacks::ids::StackId;
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, Threads};
use ffwd_bounds::error::LimitExceeded;
use ffwd_grammar::symbols::{Symbol, SymbolId};
use ffwd_grammar::NodeId;

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

/// How many different sequences of marks may lie at one place.
const MAX_LABELS: usize = 20_000;

/// Sequences of marks by number, the empty one first, with the threads that begin after each.
struct MarkLabels {
    all: Vec<SmallVec<[Mark; 4]>>,
    ids: FxHashMap<SmallVec<[Mark; 4]>, u32>,
    threads: BTreeMap<u32, Threads>,
}

impl Default for MarkLabels {
    fn default() -> Self {
        let none = SmallVec::new();
        let ids = FxHashMap::from_iter([(none.clone(), 0)]);
        Self { all: vec![none], ids, threads: BTreeMap::new() }
    }
}

impl MarkLabels {
    fn and(&mut self, label: u32, more: &[Mark]) -> Result<u32> {
        if more.is_empty() {
            return Ok(label);
        }
        let mut marks = self.all[label as usize].clone();
        marks.extend_from_slice(more);
        if let Some(&known) = self.ids.get(&marks) {
            return Ok(known);
        }
        if self.all.len() >= MAX_LABELS {
            return Err(LimitExceeded::new("span_parses", MAX_LABELS).into());
        }
        let id = self.all.len() as u32;
        self.all.push(marks.clone());
        self.ids.insert(marks, id);
        Ok(id)
    }
}

impl Labels for MarkLabels {
    type Label = u32;
    const HAS_FAMILIES: bool = false;

    fn threads(&mut self, label: u32) -> &mut Threads {
        self.threads.entry(label).or_default()
    }

    fn all_threads(&self) -> impl Iterator<Item = &Thread> {
        self.threads.values().flatten()
    }

    fn past(&mut self, rules: &Rules, symbol: SymbolId, label: u32) -> Result<u32> {
        let empty = marks_of_empty(rules, symbol)?;
        self.and(label, &empty)
    }

    fn leave(&mut self, node: NodeId, label: u32) -> Result<u32> {
        self.and(label, &[Mark::Close(node)])
    }

    fn enter(
        &mut self,
        rules: &Rules,
        on: &impl On,
        node: NodeId,
        way: (u32, StackId),
    ) -> Result<Option<(u32, StackId)>> {
        let (label, parent) = way;
        let Some(parent) = rules.push_limit(on, node, parent)? else { return Ok(None) };
        match rules.program.spans.contains_key(&node) {
            true => self.enter_json(on, node, (label, parent)).map(Some),
            false => Ok(Some((label, parent))),
        }
    }

    fn enter_json(
        &mut self,
        on: &impl On,
        node: NodeId,
        (label, parent): (u32, StackId),
    ) -> Result<(u32, StackId)> {
        let after = on.push(Frame::Mark(node), parent)?;
        Ok((self.and(label, &[Mark::Open(node)])?, after))
    }
}

/// The marks of the empty text of a symbol.
fn marks_of_empty(rules: &Rules, symbol: SymbolId) -> Result<SmallVec<[Mark; 4]>> {
    fn find(
        rules: &Rules,
        symbol: SymbolId,
        seen: &mut FxHashSet<SymbolId>,
        marks: &mut SmallVec<[Mark; 4]>,
    ) -> Result<()> {
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

impl Rules {
    /// As [`Rules::starts`], with marks.
    pub(crate) fn find_beginnings(&self, on: &impl On, stack: StackId) -> Result<Vec<Beginning>> {
        let MarkLabels { all, threads, .. } = Openings::find(self, on, stack, None)?.begin(on)?;
        let beginning = |(label, mut threads): (u32, Threads)| {
            threads.sort_unstable();
            threads.dedup();
            Beginning { marks: all[label as usize].as_slice().into(), threads }
        };
        let mut beginnings: Vec<Beginning> = threads.into_iter().map(beginning).collect();
        beginnings.sort_unstable_by(|a, b| a.marks.cmp(&b.marks));
        Ok(beginnings)
    }
}
