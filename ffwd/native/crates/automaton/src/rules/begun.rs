//! Rows whose exits are not yet computed.
//!
//! If every lexeme that may begin on a stack ends at its longest match, a row only needs the set of
//! these lexemes: the state of their family. Exits are computed when some have ended, and for these
//! alone. Most tokens end no lexeme, or one.

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::error::Result;
use crate::rules::starts::{Openings, Unlabelled};
use crate::rules::tables::Rules;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, Threads};
use ffwd_bounds::meter;
use ffwd_regular::expr::Verdict;

impl Rules {
    /// Returns the lexemes that may begin on a stack as a row without exits; `None` if other
    /// threads may begin as well.
    pub(crate) fn begin_unfollowed(&self, on: &impl On, stack: StackId) -> Result<Option<Threads>> {
        let Some((family, firsts)) = self.firsts() else { return Ok(None) };
        let mut languages: Verdict = 0;
        let mut end = false;
        let mut pending: SmallVec<[StackId; 16]> = SmallVec::from_slice(&[stack]);
        let mut seen: FxHashSet<StackId> = FxHashSet::default();
        while let Some(stack) = pending.pop() {
            meter::charge(1)?;
            let cell = on.cell(stack);
            let (symbol, may_be_empty) = match cell.frame {
                Frame::End => {
                    end = true;
                    continue;
                }
                Frame::Union(union) => {
                    if seen.insert(stack) {
                        pending.extend_from_slice(&self.unions.get(union).members);
                    }
                    continue;
                }
                Frame::Symbol(symbol) => (symbol, self.symbols.is_nullable(symbol)),
                Frame::Count(count) => {
                    let count = self.counts.get(count);
                    (count.inner, count.min == 0)
                }
                _ => return Ok(None),
            };
            let first = firsts.of(symbol);
            if first.others {
                return Ok(None);
            }
            languages |= first.languages;
            if may_be_empty && seen.insert(stack) {
                pending.push(cell.parent);
            }
        }
        let mut threads = Threads::new();
        if languages & !family.ignored != 0 {
            let lexeme = self.family_lexeme(on, family)?;
            let known = firsts.starts.read().get(&languages).copied();
            let start = match known {
                Some(known) => known,
                None => {
                    let start = on.lexeme(lexeme).start_of(languages)?;
                    firsts.starts.write().insert(languages, start);
                    start
                }
            };
            if let Some(start) = start {
                let stack = on.push(Frame::Begun, stack)?;
                threads.push(Thread::of_lexeme(lexeme, start, stack));
            }
        }
        if end {
            threads.push(Thread::END);
        }
        threads.sort_unstable();
        Ok(Some(threads))
    }

    /// Whether a continuation is certain wherever the lexeme of a thread ends, so that no search is
    /// needed. A row begins only with lexemes after which the text can be completed, unless the
    /// longest match consumes every continuation.
    pub(crate) fn goes_on_anyhow(&self, on: &impl On, thread: &Thread) -> bool {
        on.cell(thread.stack).frame == Frame::Begun && self.is_safe(on, thread)
    }

    /// Returns the exit of a row that began on a stack, after languages of it have ended.
    pub(crate) fn begun_exit(
        &self,
        on: &impl On,
        stack: StackId,
        ended: Verdict,
    ) -> Result<StackId> {
        let found = Openings::find(self, on, stack, Some(ended))?;
        self.after_ended(on, &found, ended)
    }

    fn after_ended(
        &self,
        on: &impl On,
        found: &Openings<'_, Unlabelled>,
        ended: Verdict,
    ) -> Result<StackId> {
        let Some((family, _)) = self.firsts() else { return self.union(on, &[]) };
        let mut stacks: SmallVec<[StackId; 8]> = SmallVec::new();
        for ((node, ()), after) in &found.leaves {
            if family.place(*node).is_some_and(|place| ended >> place & 1 == 1) {
                stacks.extend_from_slice(after);
            }
        }
        self.union(on, &stacks)
    }

    /// Computes the exits of a row without exits, for all of these verdicts at once: separate calls
    /// would search the stack for each of them.
    pub(crate) fn find_exits(
        &self,
        on: &impl On,
        thread: &Thread,
        ended: impl Iterator<Item = Verdict>,
    ) -> Result<()> {
        let cell = on.cell(thread.stack);
        if cell.frame != Frame::Begun {
            return Ok(());
        }
        let key = |accept: Verdict| (thread.lexeme, accept, TextId::NONE);
        let missing: SmallVec<[Verdict; 16]> = ended
            .filter(|&accept| on.stacks().known_exit(thread.stack, key(accept)).is_none())
            .collect();
        let [_, _, ..] = missing[..] else { return Ok(()) };
        let all = missing.iter().fold(0, |all, accept| all | accept);
        let found = Openings::find(self, on, cell.parent, Some(all))?;
        for accept in missing {
            meter::charge(2)?;
            let next = self.after_ended(on, &found, accept)?;
            on.stacks().keep_exit(thread.stack, key(accept), next);
        }
        Ok(())
    }
}
