//! Several stacks as one, factored by their tops.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::error::Result;
use crate::rules::parts::Union;
use crate::rules::tables::Rules;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LayoutId, StackId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, Threads};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// How many stacks with different tops one union may have.
const MAX_UNION: usize = 100_000;
/// How deep unions are factored.
const MAX_DEPTH: usize = 200;
/// The most stacks that the factoring of one union examines. Factoring finds one stack for each set
/// of stacks that can be below some tops, like the states of a determinized automaton. Usually
/// these are few, but in some ambiguous texts they double with each byte.
const MAX_FACTORED: usize = 256;
/// Unions that were not factored are spliced into others up to this length.
const MAX_SPLICED: usize = 16;

/// The common top of merged threads: a frame, and the layout of the value below it.
type Top = (Frame, Option<LayoutId>);

type UnionMembers = SmallVec<[StackId; 8]>;

/// The unions found during one factoring, and how many stacks may still be examined.
struct Factoring {
    known: FxHashMap<UnionMembers, StackId>,
    left: usize,
}

impl Rules {
    /// Returns one stack for any of several. Those with the same top are merged on the union of
    /// their parents, so that texts with the same continuations are in the same state. If that
    /// takes too long they stay separate, and so do all unions with such a union. A text then has
    /// as many stacks as there are symbols for each of its positions, instead of one for each set
    /// of these.
    pub(crate) fn union(&self, on: &impl On, stacks: &[StackId]) -> Result<StackId> {
        if let [one] = stacks {
            return Ok(*one);
        }
        let Some(members) = self.spliced(on, stacks)? else {
            return self.wide_union(on, stacks);
        };
        let mut factoring = Factoring { known: FxHashMap::default(), left: MAX_FACTORED };
        match self.factor(on, members, &mut factoring, MAX_DEPTH)? {
            Some(stack) => Ok(stack),
            None => self.wide_union(on, stacks),
        }
    }

    /// The members of several stacks; `None` where one of them is a union that is not factored.
    fn spliced(&self, on: &impl On, stacks: &[StackId]) -> Result<Option<UnionMembers>> {
        let mut members = UnionMembers::new();
        for &stack in stacks {
            match on.cell(stack).frame {
                Frame::Union(union) => {
                    let union = self.unions.get(union);
                    if union.is_wide {
                        return Ok(None);
                    }
                    members.extend_from_slice(&union.members);
                }
                _ => members.push(stack),
            }
        }
        meter::charge(members.len())?;
        members.sort_unstable();
        members.dedup();
        Ok(Some(members))
    }

    /// A union whose members are not factored.
    fn wide_union(&self, on: &impl On, stacks: &[StackId]) -> Result<StackId> {
        let mut members = UnionMembers::new();
        for &stack in stacks {
            match on.cell(stack).frame {
                Frame::Union(union) => {
                    let union = self.unions.get(union);
                    if union.is_wide && union.members.len() > MAX_SPLICED {
                        members.push(stack);
                    } else {
                        members.extend_from_slice(&union.members);
                    }
                }
                _ => members.push(stack),
            }
        }
        meter::charge(members.len())?;
        members.sort_unstable();
        members.dedup();
        self.intern_union(on, members, true)
    }

    fn intern_union(
        &self,
        on: &impl On,
        mut members: UnionMembers,
        is_wide: bool,
    ) -> Result<StackId> {
        // A symbol that may be empty already implies its successors.
        let mut implied: UnionMembers = members
            .iter()
            .filter(|&&member| self.may_be_empty(on, member))
            .map(|&member| on.cell(member).parent)
            .collect();
        implied.sort_unstable();
        members.retain(|member| implied.binary_search(member).is_err());
        match members[..] {
            [one] => Ok(one),
            _ if members.len() > MAX_UNION => Err(LimitExceeded::new("parses", MAX_UNION).into()),
            _ => {
                let members = members.as_slice().into();
                let union = self.unions.intern(Union { members, is_wide })?;
                on.push(Frame::Union(union), StackId::END)
            }
        }
    }

    /// Whether the top of a stack may be the empty text.
    pub(crate) fn may_be_empty(&self, on: &impl On, stack: StackId) -> bool {
        match on.cell(stack).frame {
            Frame::Symbol(symbol) => self.symbols.is_nullable(symbol),
            Frame::Count(count) => self.counts.get(count).min == 0,
            _ => false,
        }
    }

    /// One stack for several, no two of which have the same top; `None` if that takes too long.
    fn factor(
        &self,
        on: &impl On,
        members: UnionMembers,
        factoring: &mut Factoring,
        depth: usize,
    ) -> Result<Option<StackId>> {
        let top = |member: &StackId| match on.cell(*member).frame {
            frame @ (Frame::Symbol(_) | Frame::Count(_) | Frame::Mark(_)) => Some(frame),
            _ => None,
        };
        let mut by_top: FxHashMap<Frame, SmallVec<[StackId; 4]>> = FxHashMap::default();
        for member in &members {
            if let Some(frame) = top(member) {
                by_top.entry(frame).or_default().push(*member);
            }
        }
        if by_top.values().all(|same| same.len() == 1) {
            return self.intern_union(on, members, false).map(Some);
        }
        if let Some(&known) = factoring.known.get(&members) {
            return Ok(Some(known));
        }
        let left = factoring.left.checked_sub(members.len());
        let (Some(left), Some(depth)) = (left, depth.checked_sub(1)) else { return Ok(None) };
        factoring.left = left;
        let mut factored = UnionMembers::new();
        for member in &members {
            let same =
                top(member).and_then(|frame| by_top.remove(&frame).map(|same| (frame, same)));
            match same {
                Some((_, same)) if same.len() == 1 => factored.push(*member),
                Some((frame, same)) => {
                    let below: SmallVec<[StackId; 4]> =
                        same.iter().map(|&member| on.cell(member).parent).collect();
                    let Some(below) = self.spliced(on, &below)? else { return Ok(None) };
                    let below = self.factor(on, below, factoring, depth)?;
                    let Some(below) = below else { return Ok(None) };
                    factored.push(on.push(frame, below)?);
                }
                None if top(member).is_none() => factored.push(*member),
                None => {}
            }
        }
        factored.sort_unstable();
        factored.dedup();
        let found = self.intern_union(on, factored, false)?;
        factoring.known.insert(members, found);
        Ok(Some(found))
    }

    /// Merges threads that are in the same state of the same lexeme.
    pub(crate) fn merge(&self, on: &impl On, threads: &mut Threads) -> Result<()> {
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
                let cell = on.cell(thread.stack);
                let top: Top = match cell.frame {
                    // All rows of one lexeme have as many stacks.
                    Frame::Row(_) => (Frame::Row(0), None),
                    Frame::Lexeme(_) | Frame::Tokens(_) | Frame::Begun => (cell.frame, None),
                    // A frame that waits for the verdict of a value must stay directly below it.
                    Frame::Value(_) => match on.cell(cell.parent).frame {
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
                let parent = |stack: StackId| on.cell(stack).parent;
                let stack = match (frame, &stacks[..]) {
                    (_, &[one]) => one,
                    ((Frame::Row(_), _), all) => self.union_of_rows(on, all)?,
                    ((frame, layout), all) => {
                        let below = all.iter().map(|&stack| match layout {
                            None => parent(stack),
                            Some(_) => parent(parent(stack)),
                        });
                        let below: SmallVec<[StackId; 4]> = below.collect();
                        let below = self.union(on, &below)?;
                        let below = match layout {
                            None => below,
                            Some(layout) => on.push(Frame::Layout(layout), below)?,
                        };
                        on.push(frame, below)?
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
