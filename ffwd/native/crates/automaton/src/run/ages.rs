//! The parts with limits after a token: their ages, and the parts that have ended.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::error::Result;
use crate::rules::limit_tables::{Aged, Change, Limit, OpenPart, Rewritten, FRESH, UNOPENED};
use crate::rules::limits::PartLimits;
use crate::rules::tables::Rules;
use crate::run::limits::{Limited, Parts};
use crate::stacks::frame::Frame;
use crate::stacks::ids::StackId;
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_regular::expr::Verdict;

/// The ends of reported parts on a stack, the topmost first.
type Marks = SmallVec<[Frame; 2]>;

/// A thread after some parts have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Closed {
    /// It goes on.
    GoesOn(Thread),
    /// Its lexeme ends here, and so do the parts: what follows, as a stack.
    Ends(Thread, StackId),
}

impl Limited<'_> {
    /// Returns the result of a token, with ages for the parts that started with it.
    pub fn aged(&self, threads: &[Thread]) -> Result<Aged> {
        let unchanged = |kept| Aged { threads: Threads::from_slice(threads), kept, fresh: false };
        let Some(parts) = &self.parts else { return Ok(unchanged(SmallVec::new())) };
        let PartLimits { limits, .. } = *parts;
        let mut found: Vec<Limit> = Vec::new();
        for thread in threads {
            let on_stack = parts.on_stack(thread.stack);
            found.extend(on_stack.limits.iter().map(|&limit| *limits.frames.get(limit)));
        }
        found.retain(|limit| limit.age != UNOPENED);
        found.sort_unstable_by_key(|limit| (limit.node, limit.age));
        found.dedup();
        let several = found.windows(2).any(|pair| pair[0].node == pair[1].node);
        let mut threads = Threads::from_slice(threads);
        if several {
            threads = self.youngest(parts, &threads)?;
            found.clear();
            for thread in &threads {
                let on_stack = parts.on_stack(thread.stack);
                found.extend(on_stack.limits.iter().map(|&limit| *limits.frames.get(limit)));
            }
        }
        let mut ages: SmallVec<[u32; 2]> = found.iter().map(|limit| limit.age).collect();
        ages.retain(|age| *age != UNOPENED);
        ages.sort_unstable();
        ages.dedup();
        let fresh = ages.last() == Some(&FRESH);
        let is_same = ages.iter().enumerate().all(|(place, &age)| age == place as u32);
        if !is_same {
            let change = |limit: &Limit| match ages.binary_search(&limit.age) {
                Ok(place) if place as u32 != limit.age => Change::Age(place as u32),
                _ => Change::Keep,
            };
            threads = self.rewritten_threads(parts, &threads, &change)?;
        }
        if fresh {
            ages.pop();
        }
        Ok(Aged { threads, kept: ages, fresh })
    }

    fn rewritten_threads(
        &self,
        parts: &Parts<'_>,
        threads: &[Thread],
        change: &impl Fn(&Limit) -> Change,
    ) -> Result<Threads> {
        let mut known = Rewritten::default();
        let mut next = Threads::new();
        for thread in threads {
            if let Some(stack) = parts.rewritten(thread.stack, change, &mut known)? {
                next.push(Thread { stack, ..*thread });
            }
        }
        self.automaton.settle(&mut next)?;
        Ok(next)
    }

    /// If two parses differ only in the start of one part, the later start leaves it more tokens,
    /// so the other parse is dropped.
    fn youngest(&self, parts: &Parts<'_>, threads: &[Thread]) -> Result<Threads> {
        let PartLimits { rules, limits, .. } = *parts;
        let mut pending: Vec<StackId> = threads.iter().map(|thread| thread.stack).collect();
        let mut seen: FxHashSet<StackId> = FxHashSet::default();
        // Redundant members of unions, by their union.
        let mut outdone: FxHashMap<StackId, SmallVec<[StackId; 4]>> = FxHashMap::default();
        let alike = |limit: &Limit| match limit.age {
            UNOPENED => Change::Keep,
            0 => Change::Keep,
            _ => Change::Age(0),
        };
        let mut shapes = Rewritten::default();
        while let Some(stack) = pending.pop() {
            meter::charge(1)?;
            let on_stack = parts.on_stack(stack);
            if on_stack.limits.len() < 2 || !seen.insert(stack) {
                continue;
            }
            let below = rules.below(self.automaton, stack);
            if matches!(self.automaton.cell(stack).frame, Frame::Union(_)) {
                let mut best: FxHashMap<StackId, (u32, StackId)> = FxHashMap::default();
                for &member in &below {
                    let on_member = parts.on_stack(member);
                    let [limit] = on_member.limits[..] else { continue };
                    let age = limits.frames.get(limit).age;
                    if age == UNOPENED {
                        continue;
                    }
                    let Some(shape) = parts.rewritten(member, &alike, &mut shapes)? else {
                        continue;
                    };
                    match best.get_mut(&shape) {
                        None => {
                            best.insert(shape, (age, member));
                        }
                        Some(known) => {
                            let worse = if known.0 < age {
                                std::mem::replace(known, (age, member)).1
                            } else {
                                member
                            };
                            outdone.entry(stack).or_default().push(worse);
                        }
                    }
                }
            }
            pending.extend(below);
        }
        if outdone.is_empty() {
            return Ok(Threads::from_slice(threads));
        }
        let mut known = Rewritten::default();
        let mut next = Threads::new();
        for thread in threads {
            let stack = self.without_members(rules, thread.stack, &outdone, &mut known)?;
            next.push(Thread { stack, ..*thread });
        }
        self.automaton.settle(&mut next)?;
        Ok(next)
    }

    /// The stack without some members of its unions; each union keeps at least one.
    fn without_members(
        &self,
        rules: &Rules,
        root: StackId,
        outdone: &FxHashMap<StackId, SmallVec<[StackId; 4]>>,
        known: &mut Rewritten,
    ) -> Result<StackId> {
        let mut pending = vec![root];
        while let Some(&top) = pending.last() {
            meter::charge(1)?;
            if known.contains_key(&top) {
                pending.pop();
                continue;
            }
            let mut below = rules.below(self.automaton, top);
            if let Some(outdone) = outdone.get(&top) {
                below.retain(|member| !outdone.contains(member));
            }
            let before = pending.len();
            pending.extend(below.iter().copied().filter(|stack| !known.contains_key(stack)));
            if pending.len() > before {
                continue;
            }
            let now: SmallVec<[StackId; 4]> = below
                .iter()
                .map(|stack| known.get(stack).copied().flatten().unwrap_or(*stack))
                .collect();
            let cell = self.automaton.cell(top);
            let stack = match (cell.frame, &now[..]) {
                (Frame::Union(_), _) => rules.union(self.automaton, &now)?,
                (Frame::Row(_), _) => rules.push_row(self.automaton, now)?,
                (frame, &[parent]) if parent != cell.parent => {
                    self.automaton.push(frame, parent)?
                }
                _ => top,
            };
            known.insert(top, Some(stack));
            pending.pop();
        }
        Ok(known.get(&root).copied().flatten().unwrap_or(root))
    }

    /// A configuration whose parts at these ages may have no more tokens. Such a part ends if it
    /// can end there, even if its lexeme could continue. A thread whose part cannot end is left
    /// out.
    pub fn closed(
        &self,
        threads: &[Thread],
        is_over: &impl Fn(&OpenPart) -> bool,
    ) -> Result<Threads> {
        let mut next = Threads::new();
        self.close(threads, is_over, &mut |closed| {
            match closed {
                Closed::GoesOn(thread) => next.push(thread),
                Closed::Ends(thread, after) => {
                    next.extend(self.automaton.following(after, thread.transcript)?);
                }
            }
            Ok(())
        })?;
        self.automaton.settle(&mut next)?;
        Ok(next)
    }

    /// As [`Self::closed`], thread by thread.
    pub(crate) fn close(
        &self,
        threads: &[Thread],
        is_over: &impl Fn(&OpenPart) -> bool,
        out: &mut dyn FnMut(Closed) -> Result<()>,
    ) -> Result<()> {
        let Some(parts) = &self.parts else {
            return threads.iter().try_for_each(|&thread| out(Closed::GoesOn(thread)));
        };
        let PartLimits { rules, limits, .. } = *parts;
        let over = |limit: &Limit| {
            let max_tokens = rules.program.limits.get(&limit.node).copied().unwrap_or(u32::MAX);
            let part = OpenPart { node: limit.node, max_tokens, age: limit.age };
            limit.age < FRESH && is_over(&part)
        };
        let change = |limit: &Limit| if over(limit) { Change::Drop } else { Change::Keep };
        let mut known = Rewritten::default();
        for thread in threads {
            let on_stack = parts.on_stack(thread.stack);
            if !on_stack.limits.iter().any(|&limit| over(limits.frames.get(limit))) {
                out(Closed::GoesOn(*thread))?;
                continue;
            }
            if let Some(stack) = parts.rewritten(thread.stack, &change, &mut known)? {
                if let Some(thread) = self.without_ended(rules, thread, stack)? {
                    out(Closed::GoesOn(thread))?;
                }
            }
            let ThreadLexeme::Lexeme(index) = thread.lexeme else { continue };
            if !thread.lex_state().accepts() {
                continue;
            }
            let accept = self.automaton.lexeme(index).accept(thread.lex_state());
            let ended = self.automaton.exit_thread(thread, accept)?;
            let mut seen: FxHashSet<(StackId, Marks, bool)> = FxHashSet::default();
            // The continuations start side by side: their lexemes compete for the longest match.
            let mut after: SmallVec<[StackId; 4]> = SmallVec::new();
            let mut pending = vec![(ended, Marks::new(), false)];
            while let Some((stack, marks, left)) = pending.pop() {
                meter::charge(1)?;
                if !seen.insert((stack, marks.clone(), left)) {
                    continue;
                }
                if left {
                    if let Some(stack) = parts.rewritten(stack, &change, &mut known)? {
                        let push = |stack, &frame| self.automaton.push(frame, stack);
                        after.push(marks.iter().rev().try_fold(stack, push)?);
                    }
                }
                let cell = self.automaton.cell(stack);
                match cell.frame {
                    Frame::Union(_) => {
                        let below = rules.below(self.automaton, stack);
                        pending.extend(below.iter().map(|&member| (member, marks.clone(), left)));
                    }
                    Frame::Limit(limit) => {
                        let left = left || over(limits.frames.get(limit));
                        pending.push((cell.parent, marks, left));
                    }
                    Frame::Mark(_) => {
                        let marks = marks.iter().copied().chain([cell.frame]).collect();
                        pending.push((cell.parent, marks, left));
                    }
                    _ if rules.may_be_empty(self.automaton, stack) => {
                        pending.push((cell.parent, marks, left))
                    }
                    _ => {}
                }
            }
            if !after.is_empty() {
                let stack = rules.union(self.automaton, &after)?;
                out(Closed::Ends(*thread, stack))?;
            }
        }
        Ok(())
    }

    /// A thread on a stack on which some parts have ended: their lexemes no longer compete with the
    /// others.
    fn without_ended(
        &self,
        rules: &Rules,
        thread: &Thread,
        stack: StackId,
    ) -> Result<Option<Thread>> {
        let now = Thread { stack, ..*thread };
        let frames = (self.automaton.cell(thread.stack).frame, self.automaton.cell(stack).frame);
        let (ThreadLexeme::Lexeme(index), (Frame::Row(before), Frame::Row(after))) =
            (thread.lexeme, frames)
        else {
            return Ok(Some(now));
        };
        let (before, after) = (&rules.rows.get(before).0, &rules.rows.get(after).0);
        let mut ended: Verdict = 0;
        for (place, (&before, &after)) in before.iter().zip(after).enumerate() {
            let ends = self.automaton.leads_nowhere(after) && !self.automaton.leads_nowhere(before);
            ended |= Verdict::from(ends) << place;
        }
        if ended == 0 {
            return Ok(Some(now));
        }
        let state = self.automaton.lexeme(index).without(thread.lex_state(), ended)?;
        Ok(state.map(|state| Thread { state: state.0, ..now }))
    }
}
