//! Tokens that are taken as a whole, whatever their text.

use crate::error::Result;
use crate::run::automaton::Automaton;
use crate::stacks::ids::StackId;
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};

impl Automaton {
    /// Returns the sets of tokens that are allowed next as a whole, and the stacks after them.
    pub fn token_exits(&self, threads: &[Thread]) -> Result<Vec<(u32, StackId)>> {
        let mut exits = Vec::new();
        if !self.has_tokens() {
            return Ok(exits);
        }
        for thread in threads {
            match thread.lexeme {
                ThreadLexeme::Tokens(set) if !self.is_dead_end(thread)? => {
                    exits.push((set, self.cell(thread.stack).parent));
                }
                ThreadLexeme::Lexeme(index) if thread.lex_state().accepts() => {
                    let accept = self.lexeme(index).accept(thread.lex_state());
                    let stack = self.exit_thread(thread, accept)?;
                    exits.extend(self.token_exits(self.starts(stack)?)?);
                }
                _ => {}
            }
        }
        Ok(exits)
    }

    fn is_dead_end(&self, thread: &Thread) -> Result<bool> {
        self.rules().map_or(Ok(false), |rules| rules.is_dead_end(self, thread))
    }

    /// The ids of a set of tokens: sorted ranges, from the first to the last.
    pub fn token_set(&self, set: u32) -> &[(u32, u32)] {
        self.program().map_or(&[], |program| program.token_set(set))
    }

    /// The threads after a token that is taken as a whole; none if it is not allowed as such.
    pub fn step_token(&self, threads: &[Thread], token: u32) -> Result<Threads> {
        let mut next = Threads::new();
        for (set, stack) in self.token_exits(threads)? {
            if self.program().is_some_and(|program| program.is_in_set(set, token)) {
                next.extend_from_slice(self.starts(stack)?);
            }
        }
        self.settle(&mut next)?;
        Ok(next)
    }

    /// The threads after a token: as a whole, or as its text.
    pub fn read(&self, threads: &[Thread], token: u32, text: &[u8]) -> Result<Option<Threads>> {
        let mut next = self.step_token(threads, token)?;
        if !text.is_empty() {
            next.extend(self.walk(threads, text)?.into_iter().flatten());
            self.settle(&mut next)?;
        }
        Ok((!next.is_empty()).then_some(next))
    }

    /// Returns the only allowed token, if it must be taken as a whole.
    pub fn only_token(&self, threads: &[Thread]) -> Result<Option<u32>> {
        if threads.iter().any(|thread| !matches!(thread.lexeme, ThreadLexeme::Tokens(_))) {
            return Ok(None);
        }
        let mut only = None;
        for (set, _) in self.token_exits(threads)? {
            match *self.token_set(set) {
                [(first, last)] if first == last && *only.get_or_insert(first) == first => {}
                _ => return Ok(None),
            }
        }
        Ok(only)
    }
}
