//! The meaning of frames: [`Json`] knows those of JSON values, [`Rules`] those of rules.

use crate::error::Result;
use crate::run::automaton::Automaton;
use crate::stacks::cells::{Cell, ExitKey, Stacks};
use crate::stacks::frame::Frame;
use crate::stacks::ids::StackId;
use crate::stacks::on::{begin_lexeme, On};
use crate::stacks::thread::{Thread, Threads};

impl On for Automaton {
    #[inline]
    fn stacks(&self) -> &Stacks {
        &self.stacks
    }

    fn begin(&self, stack: StackId) -> Result<Threads> {
        let frame = self.cell(stack).frame;
        match (frame, self.rules(), self.json()) {
            (Frame::End, ..) => Ok(Threads::from_slice(&[Thread::END])),
            (Frame::Lexeme(lexeme), _, json)
                if json.is_some() || self.lexeme(lexeme).is_alive() =>
            {
                Ok(Threads::from_slice(&[begin_lexeme(self, lexeme, stack)]))
            }
            (frame, Some(rules), _) if frame.is_rule() => rules.starts(self, stack),
            (frame, _, Some(json)) => json.begin(self, frame, stack),
            _ => Ok(Threads::new()),
        }
    }

    fn leave(&self, stack: StackId, ended: ExitKey) -> Result<StackId> {
        let &Cell { frame, parent, .. } = self.cell(stack);
        let (_, accept, _) = ended;
        match (frame, self.rules(), self.json()) {
            (Frame::Row(row), Some(rules), _) => rules.row_exit(self, row, accept),
            (Frame::Begun, Some(rules), _) => rules.begun_exit(self, parent, accept),
            (Frame::Lexeme(_) | Frame::Tokens(_), ..) | (_, _, None) => Ok(parent),
            (_, _, Some(json)) => json.leave(self, stack, ended),
        }
    }

    fn keeps_history(&self, frame: Frame) -> bool {
        self.json().is_some_and(|json| json.arrays.history_of_frame(frame).is_some())
    }

    fn step(&self, threads: &[Thread], byte: u8) -> Result<Threads> {
        self.step(threads, byte)
    }

    fn walk(&self, threads: &[Thread], bytes: &[u8]) -> Result<Option<Threads>> {
        self.walk(threads, bytes)
    }
}
