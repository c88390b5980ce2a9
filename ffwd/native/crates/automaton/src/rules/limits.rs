//! Parts of a text with a limited number of tokens.
//!
//! A part with a limit pushes a frame below its content. The frame is transparent: after the
//! content, the stack below continues. The stack does not hold the number of tokens of a part, so
//! that all texts share stacks and masks. The frame has an *age* instead. Open parts started at
//! different tokens, and the age is the rank of a part's first token among these, the oldest first.
//! The caller that follows a text has these tokens (`matcher::sections`).
//!
//! A part starts with its first byte, or with a token that is taken as a whole. Until then its
//! frame is *unopened*; with that byte it is *fresh*, and after the token it gets an age
//! (`Limited::aged`). Masks ignore ages, because they concern only the next token.
//!
//! A part needs no frame if it lies within a part with the same or a smaller limit. The number of
//! ages is therefore at most the number of different limits, except in ambiguous texts.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::error::Result;
use crate::interning::memory::map_entry;
use crate::rules::limit_tables::{
    Change, Limit, Limits, OnStack, OpenPart, Rewritten, FRESH, UNOPENED,
};
use crate::rules::tables::Rules;
use crate::stacks::frame::Frame;
use crate::stacks::ids::StackId;
use crate::stacks::on::On;
use ffwd_grammar::NodeId;

/// Limits of parts, on the stacks of a grammar of rules.
pub(crate) struct PartLimits<'a, O> {
    pub(crate) rules: &'a Rules,
    pub(crate) limits: &'a Limits,
    pub(crate) on: &'a O,
}

impl<O> Clone for PartLimits<'_, O> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<O> Copy for PartLimits<'_, O> {}

impl Rules {
    /// The limits of parts; `None` without any.
    pub(crate) fn part_limits<'a, O>(&'a self, on: &'a O) -> Option<PartLimits<'a, O>> {
        let limits = self.limits.as_ref()?;
        Some(PartLimits { rules: self, limits, on })
    }

    /// The stack on which a reported or limited part begins; `None` if nothing is allowed in it.
    pub(crate) fn push_limit(
        &self,
        on: &impl On,
        node: NodeId,
        parent: StackId,
    ) -> Result<Option<StackId>> {
        let (Some(parts), Some(&max)) = (self.part_limits(on), self.program.limits.get(&node))
        else {
            return Ok(Some(parent));
        };
        if max == 0 {
            return Ok(None);
        }
        if parts.on_stack(parent).tightest <= max {
            return Ok(Some(parent));
        }
        let limit = parts.limits.frames.intern(Limit { node, age: UNOPENED })?;
        Ok(Some(on.push(Frame::Limit(limit), parent)?))
    }

    /// The stacks on which a stack stands.
    pub(crate) fn below(&self, on: &impl On, stack: StackId) -> SmallVec<[StackId; 4]> {
        let cell = on.cell(stack);
        match cell.frame {
            Frame::End => SmallVec::new(),
            Frame::Union(union) => self.unions.get(union).members.clone(),
            Frame::Row(row) => self.rows.get(row).0.clone(),
            _ => SmallVec::from_slice(&[cell.parent]),
        }
    }

    /// The stacks below the limits on top of a stack that require nothing more above them.
    pub(crate) fn below_limits(&self, on: &impl On, stack: StackId) -> SmallVec<[StackId; 2]> {
        let mut found = SmallVec::new();
        if self.limits.is_none() {
            return found;
        }
        let mut seen: FxHashSet<StackId> = FxHashSet::default();
        let mut pending: SmallVec<[StackId; 4]> = SmallVec::from_slice(&[stack]);
        while let Some(stack) = pending.pop() {
            if !seen.insert(stack) {
                continue;
            }
            let cell = on.cell(stack);
            match cell.frame {
                Frame::Union(_) => pending.extend(self.below(on, stack)),
                Frame::Limit(_) => found.push(cell.parent),
                Frame::Mark(_) => pending.push(cell.parent),
                _ if self.may_be_empty(on, stack) => pending.push(cell.parent),
                _ => {}
            }
        }
        found
    }
}

impl<O: On> PartLimits<'_, O> {
    pub(crate) fn on_stack(&self, stack: StackId) -> OnStack {
        let known = |stack: StackId| self.limits.on_stacks.lock().get(&stack).cloned();
        let nothing = || OnStack { limits: self.limits.nothing.clone(), tightest: u32::MAX };
        let mut pending = vec![stack];
        while let Some(&top) = pending.last() {
            if known(top).is_some() {
                pending.pop();
                continue;
            }
            let below = self.rules.below(self.on, top);
            let before = pending.len();
            pending.extend(below.iter().copied().filter(|&stack| known(stack).is_none()));
            if pending.len() > before {
                continue;
            }
            let own = match self.on.cell(top).frame {
                Frame::Limit(limit) => Some(limit),
                _ => None,
            };
            let below: SmallVec<[OnStack; 4]> = below.iter().filter_map(|&s| known(s)).collect();
            let mut tightest = match below.iter().map(|below| below.tightest).max() {
                Some(tightest) => tightest,
                // The end, or an empty union, which leads nowhere.
                None if top == StackId::END => u32::MAX,
                None => 0,
            };
            let all = match (own, &below[..]) {
                (None, [one]) => one.limits.clone(),
                _ => {
                    let mut all: Vec<u32> = own.into_iter().collect();
                    below.iter().for_each(|below| all.extend_from_slice(&below.limits));
                    all.sort_unstable();
                    all.dedup();
                    if all.is_empty() {
                        self.limits.nothing.clone()
                    } else {
                        self.limits.held.add(all.len() * 4 + 16);
                        all.into()
                    }
                }
            };
            if let Some(limit) = own {
                tightest = tightest.min(self.part(limit).max_tokens);
            }
            self.limits.held.add(map_entry::<StackId, OnStack>());
            self.limits.on_stacks.lock().insert(top, OnStack { limits: all, tightest });
            pending.pop();
        }
        known(stack).unwrap_or_else(nothing)
    }

    pub(crate) fn part(&self, limit: u32) -> OpenPart {
        let &Limit { node, age } = self.limits.frames.get(limit);
        let max_tokens = self.rules.program.limits.get(&node).copied().unwrap_or(u32::MAX);
        OpenPart { node, max_tokens, age }
    }

    /// The stack with some of its limits changed; `None` if it then has no continuation.
    pub(crate) fn rewritten(
        &self,
        root: StackId,
        change: &impl Fn(&Limit) -> Change,
        known: &mut Rewritten,
    ) -> Result<Option<StackId>> {
        let changes = |limit: &u32| !matches!(change(self.limits.frames.get(*limit)), Change::Keep);
        let mut pending = vec![root];
        while let Some(&top) = pending.last() {
            if known.contains_key(&top) {
                pending.pop();
                continue;
            }
            if !self.on_stack(top).limits.iter().any(changes) {
                known.insert(top, Some(top));
                continue;
            }
            let below = self.rules.below(self.on, top);
            let before = pending.len();
            pending.extend(below.iter().copied().filter(|stack| !known.contains_key(stack)));
            if pending.len() > before {
                continue;
            }
            let of = |stack: StackId| known.get(&stack).copied().flatten();
            let parent = of(self.on.cell(top).parent);
            let frame = self.on.cell(top).frame;
            let now = match (frame, parent) {
                (Frame::Union(_), _) => {
                    let members: SmallVec<[StackId; 8]> =
                        below.iter().filter_map(|&stack| of(stack)).collect();
                    if members.is_empty() {
                        None
                    } else {
                        Some(self.rules.union(self.on, &members)?)
                    }
                }
                (Frame::Row(_), _) => {
                    let nowhere = self.rules.union(self.on, &[])?;
                    let after: SmallVec<[StackId; 4]> =
                        below.iter().map(|&stack| of(stack).unwrap_or(nowhere)).collect();
                    if after.iter().all(|&stack| self.rules.leads_nowhere(self.on, stack)) {
                        None
                    } else {
                        Some(self.rules.push_row(self.on, after)?)
                    }
                }
                (_, None) => None,
                (Frame::Limit(limit), Some(parent)) => {
                    let &Limit { node, age } = self.limits.frames.get(limit);
                    let age = match change(&Limit { node, age }) {
                        Change::Keep => Some(age),
                        Change::Age(age) => Some(age),
                        Change::Drop => None,
                    };
                    match age {
                        Some(age) => {
                            let limit = self.limits.frames.intern(Limit { node, age })?;
                            Some(self.on.push(Frame::Limit(limit), parent)?)
                        }
                        None => None,
                    }
                }
                (frame, Some(parent)) => Some(self.on.push(frame, parent)?),
            };
            known.insert(top, now);
            pending.pop();
        }
        Ok(known.get(&root).copied().flatten())
    }

    /// The stack after a byte of the lexeme on top of it: unopened parts begin.
    pub(crate) fn opened(&self, stack: StackId) -> Result<StackId> {
        if self.on_stack(stack).limits.is_empty() {
            return Ok(stack);
        }
        if let Some(&known) = self.limits.opened.lock().get(&stack) {
            return Ok(known);
        }
        let open = |limit: &Limit| match limit.age {
            UNOPENED => Change::Age(FRESH),
            _ => Change::Keep,
        };
        let opened = self.rewritten(stack, &open, &mut Rewritten::default())?;
        let opened = opened.unwrap_or(stack);
        self.limits.held.add(map_entry::<StackId, StackId>());
        self.limits.opened.lock().insert(stack, opened);
        Ok(opened)
    }
}
