//! Lexemes that end at their longest match, side by side as one lexeme.
//! See [`crate::rules::families`] for what they share.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::error::Result;
use crate::rules::families::{Family, RowMember};
use crate::rules::leaf::Leaf;
use crate::rules::starts::Labels;
use crate::rules::tables::Rules;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LexemeId, StackId};
use crate::stacks::on::{begin_alive, On};
use crate::stacks::thread::Thread;
use ffwd_grammar::{Longest, ScopeId};
use ffwd_regular::expr::lexeme::{Ends, MAX_LANGUAGES};
use ffwd_regular::expr::{LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// What tells lexemes of one row apart.
type Competitor<L> = (L, StackId, Longest);

impl Rules {
    pub(crate) fn family_lexeme(&self, on: &impl On, family: &Family) -> Result<LexemeId> {
        if let Some(&known) = family.lexeme.get() {
            return Ok(known);
        }
        let spec = LexemeSpec::new(Spelling::Utf8, family.languages.iter().cloned());
        let ends = Ends::Longest { lazy: family.lazy };
        let follows_itself = family.is_all;
        let lexeme = on.add_lexeme(&LexemeSpec { ends, follows_itself, ..spec })?;
        Ok(*family.lexeme.get_or_init(|| lexeme))
    }

    /// Begins lexemes of one scope side by side.
    pub(crate) fn begin_row<L: Labels>(
        &self,
        on: &impl On,
        scope: ScopeId,
        row: &[RowMember<L::Label>],
        labels: &mut L,
    ) -> Result<()> {
        let Some(family) = self.families.get(&scope).filter(|_| L::HAS_FAMILIES) else {
            return self.begin_apart(on, row, labels);
        };
        let lexeme = self.family_lexeme(on, family)?;
        let nowhere = self.union(on, &[])?;
        let mut after: SmallVec<[StackId; 4]> = SmallVec::new();
        after.resize(family.languages.len(), nowhere);
        let mut begun: Verdict = 0;
        for one in row {
            let Some(place) = family.place(one.node) else { continue };
            after[place] = match begun >> place & 1 {
                0 => one.after,
                _ => self.union(on, &[after[place], one.after])?,
            };
            begun |= 1 << place;
        }
        let Some(start) = on.lexeme(lexeme).start_of(begun)? else { return Ok(()) };
        let stack = self.push_row(on, after)?;
        labels.threads(L::Label::default()).push(Thread::of_lexeme(lexeme, start, stack));
        Ok(())
    }

    /// As [`Self::begin_row`], without a family: of each label a row, in which lexemes of the others
    /// lead nowhere. Those with the same stacks after them are merged. If these are still too many for
    /// one automaton, they are divided into parts, each of which has the others as one language without
    /// an exit.
    fn begin_apart<L: Labels>(
        &self,
        on: &impl On,
        row: &[RowMember<L::Label>],
        labels: &mut L,
    ) -> Result<()> {
        let mut by_stack: BTreeMap<Competitor<L::Label>, Vec<Ast>> = BTreeMap::new();
        for one in row {
            if let Some(Leaf::Lexeme { language, .. }) = self.program.leaves.get(&one.node) {
                let key = (one.label, one.after, one.lexing);
                by_stack.entry(key).or_default().push(language.clone());
            }
        }
        let row: Vec<(Competitor<L::Label>, Ast)> =
            by_stack.into_iter().map(|(key, all)| (key, Ast::alternation(all))).collect();
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
            let begun: FxHashSet<L::Label> = own.iter().map(|((label, _, _), _)| *label).collect();
            for label in begun {
                let mut after: SmallVec<[StackId; 4]> = SmallVec::from_elem(nowhere, size);
                for (column, ((other, stack, _), _)) in own.iter().enumerate() {
                    if *other == label {
                        after[column] = *stack;
                    }
                }
                let stack = self.push_row(on, after)?;
                labels.threads(label).extend(begin_alive(on, lexeme, stack));
            }
        }
        Ok(())
    }

    /// How many frames the shortest stack has that may follow a row.
    pub(crate) fn height_after(&self, on: &impl On, stack: StackId) -> u32 {
        let cell = on.cell(stack);
        let after = match cell.frame {
            Frame::Row(row) => &self.rows.get(row).0[..],
            _ => &[],
        };
        // Most languages of a family have no continuation, because they are not allowed here.
        let alive = after.iter().filter(|&&after| !self.leads_nowhere(on, after));
        alive.map(|&after| on.cell(after).height).min().unwrap_or(cell.height)
    }

    /// Returns the exit of a row after the languages of a verdict have ended.
    pub(crate) fn row_exit(&self, on: &impl On, row: u32, verdict: Verdict) -> Result<StackId> {
        let row = &self.rows.get(row).0;
        let mut stacks: SmallVec<[StackId; 8]> = SmallVec::new();
        let mut left = verdict;
        while left != 0 {
            stacks.extend(row.get(left.trailing_zeros() as usize).copied());
            left &= left - 1;
        }
        self.union(on, &stacks)
    }

    /// Returns the union of the stacks after each language, for rows of the same lexeme.
    pub(crate) fn union_of_rows(&self, on: &impl On, stacks: &[StackId]) -> Result<StackId> {
        let rows = stacks.iter().filter_map(|&stack| match on.cell(stack).frame {
            Frame::Row(row) => Some(&self.rows.get(row).0),
            _ => None,
        });
        let mut columns: SmallVec<[SmallVec<[StackId; 4]>; 8]> = SmallVec::new();
        for row in rows {
            columns.resize(row.len(), SmallVec::new());
            for (column, &stack) in columns.iter_mut().zip(row) {
                if !column.contains(&stack) {
                    column.push(stack);
                }
            }
        }
        let mut after = SmallVec::with_capacity(columns.len());
        for column in &columns {
            after.push(self.union(on, column)?);
        }
        self.push_row(on, after)
    }
}
