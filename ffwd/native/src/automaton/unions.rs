//! Several stacks as one, factored by their tops.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::config::Automaton;
use super::error::EngineError;
use super::frame::{Frame, StackId};
use super::layouts::LayoutId;
use super::memory::Held;
use super::rules::Rules;
use super::thread::{Thread, Threads};
use crate::error::LimitExceeded;
use crate::meter;

/// How many stacks with different tops one union may have, and how deep unions are factored.
const MAX_UNION: usize = 100_000;
const FACTORED: usize = 200;

/// What threads that are made one have on top: a frame, and the layout of the value below it.
type Top = (Frame, Option<LayoutId>);

/// Several stacks; sorted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Union(pub(super) SmallVec<[StackId; 4]>);

impl Held for Union {
    fn held_bytes(&self) -> usize {
        if self.0.spilled() {
            self.0.capacity() * 4
        } else {
            0
        }
    }
}

impl Automaton {
    /// One stack for several: any of them.
    pub(super) fn union(&self, rules: &Rules, stacks: &[StackId]) -> Result<StackId, EngineError> {
        self.union_within(rules, stacks, FACTORED)
    }

    fn union_within(
        &self,
        rules: &Rules,
        stacks: &[StackId],
        depth: usize,
    ) -> Result<StackId, EngineError> {
        if let [one] = stacks {
            return Ok(*one);
        }
        let mut members: SmallVec<[StackId; 8]> = SmallVec::new();
        for &stack in stacks {
            match self.cell(stack).frame {
                Frame::Union(union) => members.extend_from_slice(&rules.unions.get(union).0),
                _ => members.push(stack),
            }
        }
        meter::charge(members.len())?;
        members.sort_unstable();
        members.dedup();
        if depth > 0 {
            self.factor(rules, &mut members, depth)?;
        }
        // What follows a symbol that may be empty is said already by the symbol.
        let mut implied: SmallVec<[StackId; 8]> = members
            .iter()
            .filter(|&&member| self.may_be_empty(rules, member))
            .map(|&member| self.cell(member).parent)
            .collect();
        implied.sort_unstable();
        members.retain(|member| implied.binary_search(member).is_err());
        match members[..] {
            [one] => Ok(one),
            _ if members.len() > MAX_UNION => {
                Err(LimitExceeded::new("readings of one text", MAX_UNION).into())
            }
            _ => {
                let union = rules.unions.intern(Union(members.as_slice().into()))?;
                self.push(Frame::Union(union), StackId::END)
            }
        }
    }

    /// Whether the top of a stack may be the empty text.
    pub(super) fn may_be_empty(&self, rules: &Rules, stack: StackId) -> bool {
        match self.cell(stack).frame {
            Frame::Symbol(symbol) => rules.symbols.is_nullable(symbol),
            Frame::Count(count) => rules.counts.get(count).min == 0,
            _ => false,
        }
    }

    /// Makes stacks with the same top one, on the union of what is below.
    fn factor(
        &self,
        rules: &Rules,
        members: &mut SmallVec<[StackId; 8]>,
        depth: usize,
    ) -> Result<(), EngineError> {
        let top = |member: &StackId| match self.cell(*member).frame {
            frame @ (Frame::Symbol(_) | Frame::Count(_) | Frame::Mark(_)) => Some(frame),
            _ => None,
        };
        let mut by_top: FxHashMap<Frame, SmallVec<[StackId; 4]>> = FxHashMap::default();
        for member in members.iter() {
            if let Some(frame) = top(member) {
                by_top.entry(frame).or_default().push(*member);
            }
        }
        if by_top.values().all(|same| same.len() == 1) {
            return Ok(());
        }
        let mut factored: SmallVec<[StackId; 8]> = SmallVec::new();
        for member in members.iter() {
            let same =
                top(member).and_then(|frame| by_top.remove(&frame).map(|same| (frame, same)));
            match same {
                Some((_, same)) if same.len() == 1 => factored.push(*member),
                Some((frame, same)) => {
                    let below: SmallVec<[StackId; 4]> =
                        same.iter().map(|&member| self.cell(member).parent).collect();
                    let below = self.union_within(rules, &below, depth - 1)?;
                    factored.push(self.push(frame, below)?);
                }
                None if top(member).is_none() => factored.push(*member),
                None => {}
            }
        }
        factored.sort_unstable();
        factored.dedup();
        *members = factored;
        Ok(())
    }

    /// Makes threads one that are in the same state of the same lexeme.
    pub(super) fn merge(&self, rules: &Rules, threads: &mut Threads) -> Result<(), EngineError> {
        let same = |a: &Thread, b: &Thread| {
            (a.lexeme, a.state, a.text, a.transcript) == (b.lexeme, b.state, b.text, b.transcript)
        };
        if !threads.windows(2).any(|pair| same(&pair[0], &pair[1])) {
            return Ok(());
        }
        let mut merged = Threads::new();
        meter::charge(threads.len())?;
        for run in threads.chunk_by(same) {
            let mut of_frames: SmallVec<[(Top, SmallVec<[StackId; 4]>); 2]> = SmallVec::new();
            for thread in run {
                let cell = self.cell(thread.stack);
                let top: Top = match cell.frame {
                    // All rows of one lexeme have as many stacks.
                    Frame::Row(_) => (Frame::Row(0), None),
                    Frame::Lexeme(_) | Frame::Tokens(_) | Frame::Begun => (cell.frame, None),
                    // What waits for the verdict of a value must stay right below it.
                    Frame::Value(_) => match self.cell(cell.parent).frame {
                        Frame::AwaitMember(_)
                        | Frame::AwaitItem(_)
                        | Frame::AwaitComparedItem(_) => {
                            merged.push(*thread);
                            continue;
                        }
                        Frame::Layout(layout) => (cell.frame, Some(layout)),
                        _ => (cell.frame, None),
                    },
                    _ => {
                        merged.push(*thread);
                        continue;
                    }
                };
                match of_frames.iter_mut().find(|(known, _)| *known == top) {
                    Some((_, stacks)) => stacks.push(thread.stack),
                    None => of_frames.push((top, SmallVec::from_slice(&[thread.stack]))),
                }
            }
            for (frame, stacks) in of_frames {
                let parent = |stack: StackId| self.cell(stack).parent;
                let stack = match (frame, &stacks[..]) {
                    (_, &[one]) => one,
                    ((Frame::Row(_), _), all) => self.union_of_rows(rules, all)?,
                    ((frame, layout), all) => {
                        let below = all.iter().map(|&stack| match layout {
                            None => parent(stack),
                            Some(_) => parent(parent(stack)),
                        });
                        let below: SmallVec<[StackId; 4]> = below.collect();
                        let below = self.union(rules, &below)?;
                        let below = match layout {
                            None => below,
                            Some(layout) => self.push(Frame::Layout(layout), below)?,
                        };
                        self.push(frame, below)?
                    }
                };
                merged.extend(run.first().map(|first| Thread { stack, ..*first }));
            }
        }
        *threads = merged;
        threads.sort_unstable();
        Ok(())
    }
}
