//! Questions about threads to the grammar of rules.

use crate::error::Result;
use crate::run::automaton::Automaton;
use crate::stacks::frame::Frame;
use crate::stacks::ids::StackId;
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme};
use ffwd_grammar::NodeId;
use ffwd_regular::expr::Verdict;

impl Automaton {
    /// Whether a thread is unchanged after exactly one of its languages has ended.
    pub fn begins_again(&self, thread: &Thread, ended: Verdict) -> Result<bool> {
        Ok(ended.is_power_of_two() && is_begun_by(self, thread, self.exit_thread(thread, ended)?)?)
    }

    /// The ignored languages after which a row that has just begun starts again; `None` if a thread
    /// is no such row, or something else may begin beside it.
    pub fn ignored_again(&self, thread: &Thread) -> Result<Option<Verdict>> {
        let cell = self.cell(thread.stack);
        let (Frame::Begun, Some(rules)) = (cell.frame, self.rules()) else { return Ok(None) };
        let (Some((family, _)), ThreadLexeme::Lexeme(lexeme)) = (rules.firsts(), thread.lexeme)
        else {
            return Ok(None);
        };
        if !is_begun_by(self, thread, cell.parent)? {
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

    /// Whether a row without exits has a continuation whatever its lexemes are.
    pub fn goes_on_anyhow(&self, thread: &Thread) -> bool {
        self.rules().is_some_and(|rules| rules.goes_on_anyhow(self, thread))
    }

    /// Computes the exits of a row without exits, for all of these verdicts at once: separate calls
    /// would search the stack for each of them.
    pub fn find_exits(&self, thread: &Thread, ended: impl Iterator<Item = Verdict>) -> Result<()> {
        match self.rules() {
            Some(rules) => rules.find_exits(self, thread, ended),
            None => Ok(()),
        }
    }

    /// Whether nothing at all may follow, not even the end.
    pub fn leads_nowhere(&self, stack: StackId) -> bool {
        self.rules().is_some_and(|rules| rules.leads_nowhere(self, stack))
    }

    /// Whether a thread is at a dead end, or can reach one.
    #[inline]
    pub fn may_dead_end(&self, thread: &Thread) -> Result<bool> {
        self.rules().map_or(Ok(false), |rules| rules.may_dead_end(self, thread))
    }

    /// Whether none of these threads has a completion.
    pub fn are_dead_ends(&self, threads: &[Thread]) -> Result<bool> {
        self.rules().map_or(Ok(false), |rules| rules.are_dead_ends(self, threads))
    }

    /// For a grammar without texts: the first lexeme, in the order of the grammar, that consumes
    /// everything that could follow it.
    pub fn taking_lexeme(&self) -> Result<Option<NodeId>> {
        self.rules().map_or(Ok(None), |rules| rules.taking_lexeme(self))
    }

    /// Whether some token is taken as a whole.
    #[inline]
    pub fn has_tokens(&self) -> bool {
        self.rules().is_some_and(|rules| rules.has_tokens)
    }
}

/// Whether only this thread, and perhaps the end, may begin on a stack.
fn is_begun_by(automaton: &Automaton, thread: &Thread, stack: StackId) -> Result<bool> {
    let mut starts = automaton.starts(stack)?.iter().filter(|start| **start != Thread::END);
    Ok(starts.next() == Some(thread) && starts.next().is_none())
}
