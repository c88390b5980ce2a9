//! The view of stacks that JSON values and rules have.

use std::sync::Arc;

use crate::error::Result;
use crate::stacks::cells::{Cell, ExitKey, Stacks};
use crate::stacks::frame::{Frame, RootValue};
use crate::stacks::ids::{LexemeId, StackId, TextId};
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_regular::expr::{Lexeme, LexemeSpec, LexemeStore, Verdict};

/// Stacks whose frames have a meaning. One type implements it, so calls are direct; the layers below
/// that type name this trait only.
pub trait On {
    /// The stacks.
    fn stacks(&self) -> &Stacks;

    /// Finds the threads that begin on a stack; asked once for each.
    fn begin(&self, stack: StackId) -> Result<Threads>;

    /// Finds the stack after an accepted lexeme; asked once for each.
    fn leave(&self, stack: StackId, ended: ExitKey) -> Result<StackId>;

    /// Whether a frame has earlier items beside the schema.
    fn keeps_history(&self, frame: Frame) -> bool;

    /// The threads after one more byte; none if the byte is not allowed.
    fn step(&self, threads: &[Thread], byte: u8) -> Result<Threads>;

    /// The threads after a run of bytes; `None` as soon as a byte is not allowed.
    fn walk(&self, threads: &[Thread], bytes: &[u8]) -> Result<Option<Threads>>;

    #[inline]
    fn cell(&self, stack: StackId) -> &Cell {
        self.stacks().cell(stack)
    }

    /// The stack with one more frame.
    fn push(&self, frame: Frame, parent: StackId) -> Result<StackId> {
        self.stacks().push(frame, parent, || self.keeps_history(frame))
    }

    /// The lexeme of an id that a thread or a key has.
    #[inline]
    fn lexeme(&self, id: LexemeId) -> &Arc<Lexeme> {
        self.stacks().lexemes.get(id)
    }

    fn add_lexeme(&self, spec: &LexemeSpec) -> Result<LexemeId> {
        Ok(self.stacks().lexemes.add(spec)?)
    }

    fn lexeme_store(&self) -> &LexemeStore {
        self.stacks().lexemes.store()
    }

    /// The lexemes that may begin on a stack. Those within an item that later ones are compared with
    /// have an empty transcript; see [`Self::following`].
    fn starts(&self, stack: StackId) -> Result<&[Thread]> {
        let cell = self.cell(stack);
        if let Some(known) = cell.starts.get() {
            return Ok(known);
        }
        meter::charge(2)?;
        let mut starts = self.begin(stack)?;
        for start in &mut starts {
            if self.cell(start.stack).transcribed {
                start.transcript = TextId::EMPTY;
            }
        }
        self.stacks().flow_bytes.add(std::mem::size_of_val(&*starts));
        Ok(cell.starts.get_or_init(|| starts.into_vec().into_boxed_slice()))
    }

    /// Returns the lexemes that may begin on a stack, with a transcript to continue.
    fn following(&self, stack: StackId, transcript: TextId) -> Result<Threads> {
        let mut threads: Threads = self.starts(stack)?.iter().copied().collect();
        if transcript != TextId::NONE {
            for thread in &mut threads {
                if thread.transcript != TextId::NONE {
                    thread.transcript = transcript;
                }
            }
        }
        Ok(threads)
    }

    /// Returns the stack after an accepted lexeme. `accept` has the languages that hold. `text` is
    /// the key if the lexeme was a key, or the item's text if later items are compared with it.
    fn exit(
        &self,
        stack: StackId,
        lexeme: ThreadLexeme,
        accept: Verdict,
        text: TextId,
    ) -> Result<StackId> {
        let key = (lexeme, accept, text);
        if let Some(known) = self.stacks().known_exit(stack, key) {
            return Ok(known);
        }
        meter::charge(2)?;
        let next = self.leave(stack, key)?;
        self.stacks().keep_exit(stack, key, next);
        Ok(next)
    }

    /// The nearest item of a stack that later ones are compared with; the empty stack without any.
    fn level(&self, stack: StackId) -> StackId {
        self.stacks().level(stack)
    }

    /// Whether a stack has earlier items that are stored beside a schema.
    #[inline]
    fn has_history(&self, stack: StackId) -> bool {
        self.cell(stack).has_history
    }

    /// The stack with a value on it that is within no other value.
    fn push_root(&self, value: RootValue, stack: StackId) -> Result<StackId> {
        let below = match value.layout {
            None => stack,
            Some(layout) => self.push(Frame::Layout(layout), stack)?,
        };
        self.push(Frame::Value(value.query), below)
    }
}

/// A thread at the start of a lexeme.
pub fn begin_lexeme(on: &impl On, lexeme: LexemeId, stack: StackId) -> Thread {
    Thread::of_lexeme(lexeme, on.lexeme(lexeme).start(), stack)
}

/// The same, if some text belongs to the lexeme.
pub fn begin_alive(on: &impl On, lexeme: LexemeId, stack: StackId) -> Option<Thread> {
    on.lexeme(lexeme).is_alive().then(|| begin_lexeme(on, lexeme, stack))
}
