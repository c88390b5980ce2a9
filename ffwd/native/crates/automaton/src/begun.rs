//! Rows whose exits are not yet computed.
//!
//! If every lexeme that may begin on a stack ends at its longest match, a row only needs the set of
//! these lexemes: the state of their family. Exits are computed when some have ended, and for these
//! alone. Most tokens end no lexeme, or one.

use parking_lot::RwLock;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::config::Automaton;
use super::error::EngineError;
use super::frame::{Frame, StackId};
use super::keys::TextId;
use super::rows::Family;
use super::rules::{Beginnings, Expanding, Program, Rules};
use super::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_grammar::symbols::{Symbol, SymbolId};
use ffwd_regular::expr::{LexState, Verdict};

/// In grammars of more symbols rows always know what follows.
const MAX_SYMBOLS: usize = 1 << 20;

/// The lexemes that can start a symbol.
#[derive(Clone, Copy, Debug, Default)]
struct First {
    /// Lexemes of the family.
    languages: Verdict,
    /// Something else, too.
    others: bool,
}

/// The first lexemes of the symbols of a grammar with one family.
#[derive(Debug)]
pub(super) struct Firsts {
    of_symbols: Vec<First>,
    /// The states in which the family has begun, by languages; `None` where these have no text.
    starts: RwLock<FxHashMap<Verdict, Option<LexState>>>,
}

impl Firsts {
    pub(super) fn new(program: &Program, family: &Family) -> Option<Self> {
        let symbols = &program.symbols;
        if symbols.len() > MAX_SYMBOLS {
            return None;
        }
        let of_leaf = |symbol: &Symbol| match symbol {
            Symbol::Leaf(node) => match family.place(*node) {
                Some(place) => First { languages: 1 << place, others: false },
                None => First { languages: 0, others: true },
            },
            // Grammars with later parts have rows that know what follows.
            _ => First { languages: 0, others: true },
        };
        let of_symbols = symbols.beginnings(&symbols.by_rank(), of_leaf, |first, inner: &First| {
            first.languages |= inner.languages;
            first.others |= inner.others;
        });
        Some(Self { of_symbols, starts: RwLock::default() })
    }

    fn of(&self, symbol: SymbolId) -> First {
        self.of_symbols[symbol.0 as usize]
    }

    /// Whether a symbol can begin with one of the languages.
    pub(super) fn begins_with(&self, symbol: SymbolId, languages: Verdict) -> bool {
        self.of(symbol).languages & languages != 0
    }
}

impl Automaton {
    /// Returns the lexemes that may begin on a stack as a row without exits; `None` if other
    /// threads may begin as well.
    pub(super) fn begin_unfollowed(
        &self,
        rules: &Rules,
        stack: StackId,
    ) -> Result<Option<Threads>, EngineError> {
        let Some((family, firsts)) = rules.firsts() else { return Ok(None) };
        let mut languages: Verdict = 0;
        let mut end = false;
        let mut pending: SmallVec<[StackId; 16]> = SmallVec::from_slice(&[stack]);
        let mut seen: FxHashSet<StackId> = FxHashSet::default();
        while let Some(stack) = pending.pop() {
            meter::charge(1)?;
            let cell = self.cell(stack);
            let (symbol, may_be_empty) = match cell.frame {
                Frame::End => {
                    end = true;
                    continue;
                }
                Frame::Union(union) => {
                    if seen.insert(stack) {
                        pending.extend_from_slice(&rules.unions.get(union).members);
                    }
                    continue;
                }
                Frame::Symbol(symbol) => (symbol, rules.symbols.is_nullable(symbol)),
                Frame::Count(count) => {
                    let count = rules.counts.get(count);
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
            let lexeme = self.family_lexeme(family)?;
            let known = firsts.starts.read().get(&languages).copied();
            let start = match known {
                Some(known) => known,
                None => {
                    let start = self.lexeme(lexeme).start_of(languages)?;
                    firsts.starts.write().insert(languages, start);
                    start
                }
            };
            if let Some(start) = start {
                let stack = self.push(Frame::Begun, stack)?;
                self.begin_lexeme_at(lexeme, start, stack, &mut threads);
            }
        }
        if end {
            threads.push(Thread::END);
        }
        threads.sort_unstable();
        Ok(Some(threads))
    }

    /// Whether it is known that something follows wherever the lexeme of a thread ends: then there is
    /// no need to look for what that is. A row only begins with lexemes after which there is a way
    /// to the end, but where the longest match leaves none.
    pub fn goes_on_anyhow(&self, thread: &Thread) -> bool {
        self.cell(thread.stack).frame == Frame::Begun && self.is_safe(thread)
    }

    /// Returns the exit of a row that began on a stack, after languages of it have ended.
    pub(super) fn begun_exit(
        &self,
        rules: &Rules,
        stack: StackId,
        ended: Verdict,
    ) -> Result<StackId, EngineError> {
        let found = self.beginnings_of(rules, stack, ended)?;
        self.after_ended(rules, &found, ended)
    }

    /// Returns the threads on a stack that begin with one of some languages.
    fn beginnings_of(
        &self,
        rules: &Rules,
        stack: StackId,
        languages: Verdict,
    ) -> Result<Beginnings, EngineError> {
        let mut found = Beginnings::default();
        let mut symbols = Expanding::new(rules, Some(languages));
        self.add_stack(rules, stack, &mut symbols, &mut found)?;
        self.expand(rules, symbols, &mut found)?;
        Ok(found)
    }

    fn after_ended(
        &self,
        rules: &Rules,
        found: &Beginnings,
        ended: Verdict,
    ) -> Result<StackId, EngineError> {
        let Some((family, _)) = rules.firsts() else { return self.union(rules, &[]) };
        let mut stacks: SmallVec<[StackId; 8]> = SmallVec::new();
        for (node, after) in &found.leaves {
            if family.place(*node).is_some_and(|place| ended >> place & 1 == 1) {
                stacks.extend_from_slice(after);
            }
        }
        self.union(rules, &stacks)
    }

    /// Computes the exits of a row without exits, for all of these verdicts at once: separate calls
    /// would search the stack for each of them.
    pub fn find_exits(
        &self,
        thread: &Thread,
        ended: impl Iterator<Item = Verdict>,
    ) -> Result<(), EngineError> {
        let cell = self.cell(thread.stack);
        let (Frame::Begun, Some(rules)) = (cell.frame, self.rules()) else { return Ok(()) };
        let key = |accept: Verdict| (thread.lexeme, accept, TextId::NONE);
        let missing: SmallVec<[Verdict; 16]> =
            ended.filter(|&accept| self.known_exit(thread.stack, key(accept)).is_none()).collect();
        let [_, _, ..] = missing[..] else { return Ok(()) };
        let all = missing.iter().fold(0, |all, accept| all | accept);
        let found = self.beginnings_of(rules, cell.parent, all)?;
        for accept in missing {
            meter::charge(2)?;
            let next = self.after_ended(rules, &found, accept)?;
            self.keep_exit(thread.stack, key(accept), next);
        }
        Ok(())
    }

    /// Whether a thread is what it is now where one of its languages has ended, and no other.
    pub fn begins_again(&self, thread: &Thread, ended: Verdict) -> Result<bool, EngineError> {
        Ok(ended.is_power_of_two() && self.is_begun_by(thread, self.exit_thread(thread, ended)?)?)
    }

    /// The ignored languages after which a row that has just begun begins again; `None` where a
    /// thread is no such row, or something else may begin beside it.
    pub fn ignored_again(&self, thread: &Thread) -> Result<Option<Verdict>, EngineError> {
        let cell = self.cell(thread.stack);
        let (Frame::Begun, Some(rules)) = (cell.frame, self.rules()) else { return Ok(None) };
        let (Some((family, _)), ThreadLexeme::Lexeme(lexeme)) = (rules.firsts(), thread.lexeme)
        else {
            return Ok(None);
        };
        if !self.is_begun_by(thread, cell.parent)? {
            return Ok(None);
        }
        let mut left = family.ignored;
        if left != 0 {
            left &= self.lexeme(lexeme).alive_in(thread.lex_state());
        }
        let mut found = 0;
        while left != 0 {
            let language = left & left.wrapping_neg();
            left ^= language;
            if self.begins_again(thread, language)? {
                found |= language;
            }
        }
        Ok(Some(found))
    }

    /// Whether a thread is all that may begin on a stack, but for the end.
    fn is_begun_by(&self, thread: &Thread, stack: StackId) -> Result<bool, EngineError> {
        let mut starts = self.starts(stack)?.iter().filter(|start| **start != Thread::END);
        Ok(starts.next() == Some(thread) && starts.next().is_none())
    }
}
