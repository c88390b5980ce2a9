//! The meaning of frames of JSON values: the lexemes that may begin on them, and the stacks after
//! these.

use crate::error::Result;
use crate::json::punctuation::index;
use crate::json::tables::Json;
use crate::stacks::cells::{Cell, ExitKey};
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LexemeId, ObjectStateId, StackId, TextId};
use crate::stacks::on::{begin_lexeme, On};
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_regular::expr::Verdict;

impl Json {
    /// The threads that begin on a stack with such a frame.
    pub(crate) fn begin(&self, on: &impl On, frame: Frame, stack: StackId) -> Result<Threads> {
        let mut threads = Threads::new();
        let parent = on.cell(stack).parent;
        let begin = |lexeme: LexemeId, stack: StackId| begin_lexeme(on, lexeme, stack);
        let bracket = |place: u32| self.bracket(on, stack, place);
        match frame {
            Frame::End | Frame::Lexeme(_) => {}
            Frame::Value(query) => {
                let starts = self.value_starts(on, query)?;
                for scalar in &starts.scalars {
                    threads.push(begin(scalar.lexeme, stack));
                }
                match &starts.objects[..] {
                    [] => {}
                    [_] => threads.push(begin(bracket(index::OPEN_OBJECT), stack)),
                    groups => {
                        for &group in groups {
                            let part = on.push(Frame::Part(group), parent)?;
                            threads.push(begin(bracket(index::OPEN_OBJECT), part));
                        }
                    }
                }
                if starts.arrays.is_some() {
                    threads.push(begin(bracket(index::OPEN_ARRAY), stack));
                }
            }
            Frame::Part(_) => threads.push(begin(bracket(index::OPEN_OBJECT), stack)),
            Frame::Colon => threads.push(begin(self.layouts.colon(on.cell(stack).layout), stack)),
            Frame::ObjectOpen(state) => {
                if self.object_verdict(state) != 0 {
                    threads.push(begin(bracket(index::CLOSE_EMPTY_OBJECT), stack));
                }
                let marks = self.marks(on, stack)?;
                if let Some(line) = marks.line.filter(|_| self.object_may_go_on(state)) {
                    threads.push(begin(line, stack));
                }
                if marks.may_be_flat {
                    self.push_key(state, stack, &mut threads);
                }
            }
            Frame::ObjectKey(state) => self.push_key(state, stack, &mut threads),
            Frame::ObjectAfter(state) => {
                let marks = self.marks(on, stack)?;
                if self.object_may_go_on(state) {
                    threads.push(begin(marks.comma, stack));
                }
                if self.object_verdict(state) != 0 {
                    threads.push(begin(marks.close_object, stack));
                }
            }
            Frame::ArrayOpen(state) => {
                if self.arrays.array_verdict(state) != 0 {
                    threads.push(begin(bracket(index::CLOSE_EMPTY_ARRAY), stack));
                }
                let parent = self.flat(on, parent)?;
                if let Some(item) = self.item(on, state, parent)? {
                    let marks = self.marks(on, stack)?;
                    threads.extend(marks.line.map(|line| begin(line, stack)));
                    if marks.may_be_flat {
                        threads.extend_from_slice(on.starts(item)?);
                    }
                }
            }
            Frame::ArrayAfter(state) => {
                let marks = self.marks(on, stack)?;
                if self.item(on, state, parent)?.is_some() {
                    threads.push(begin(marks.comma, stack));
                }
                if self.arrays.array_verdict(state) != 0 {
                    threads.push(begin(marks.close_array, stack));
                }
            }
            // These frames receive a verdict and never begin a lexeme.
            Frame::AwaitMember(_) | Frame::AwaitItem(_) | Frame::AwaitComparedItem(_) => {}
            Frame::Layout(_) => {}
            // These are only ever below a lexeme that has begun, or have been expanded above.
            Frame::Symbol(_) | Frame::Count(_) | Frame::Union(_) | Frame::Limit(_) => {}
            Frame::Row(_) | Frame::Begun | Frame::Tokens(_) | Frame::Mark(_) => {}
        }
        Ok(threads)
    }

    fn push_key(&self, state: ObjectStateId, stack: StackId, threads: &mut Threads) {
        if self.object_may_go_on(state) {
            let keys = self.object_states.get(state.0).keys;
            let open = self.keys.node(keys).base.is_some();
            threads.push(Thread {
                lexeme: ThreadLexeme::Key,
                state: keys.0,
                stack,
                text: if open { TextId::EMPTY } else { TextId::NONE },
                transcript: TextId::NONE,
            });
        }
    }

    /// The stack after a lexeme that ended on such a frame.
    pub(crate) fn leave(&self, on: &impl On, stack: StackId, ended: ExitKey) -> Result<StackId> {
        let &Cell { frame, parent, .. } = on.cell(stack);
        let (lexeme, accept, text) = ended;
        let (mark, place) = match lexeme {
            ThreadLexeme::Lexeme(lexeme) => (Some(lexeme), self.layouts.place(lexeme)),
            _ => (None, None),
        };
        let goes_on = match mark.filter(|_| frame.is_between_parts()) {
            Some(mark) => self.goes_on(on, stack, mark)?,
            None => false,
        };
        match (frame, lexeme) {
            (Frame::Colon, _) => self.decided(on, parent, mark, accept),
            (Frame::Part(group), _) => {
                let state = self.object_start(on, group)?;
                on.push(Frame::ObjectOpen(state), parent)
            }
            (Frame::Value(query), ThreadLexeme::Lexeme(lexeme)) => {
                let starts = self.value_starts(on, query)?;
                match (place, starts.objects.first(), starts.arrays) {
                    (Some(index::OPEN_OBJECT), Some(&group), _) => {
                        let state = self.object_start(on, group)?;
                        on.push(Frame::ObjectOpen(state), parent)
                    }
                    (Some(index::OPEN_ARRAY), _, Some(group)) => {
                        let state = self.arrays.array_start(group)?;
                        on.push(Frame::ArrayOpen(state), parent)
                    }
                    _ => {
                        let verdict = starts
                            .scalars
                            .iter()
                            .filter(|scalar| scalar.lexeme == lexeme)
                            .fold(0, |bits, scalar| bits | scalar.verdict(accept));
                        self.deliver(on, parent, verdict, text)
                    }
                }
            }
            (Frame::ObjectOpen(state) | Frame::ObjectAfter(state), _) if goes_on => {
                let parent = self.decided(on, parent, mark, accept)?;
                on.push(Frame::ObjectKey(state), parent)
            }
            (Frame::ArrayOpen(state) | Frame::ArrayAfter(state), _) if goes_on => {
                let parent = self.decided(on, parent, mark, accept)?;
                Ok(self.item(on, state, parent)?.unwrap_or(parent))
            }
            (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Key) => {
                self.member(on, state, self.flat(on, parent)?, text, None)
            }
            (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Lexeme(_))
                if place != Some(index::CLOSE_EMPTY_OBJECT) =>
            {
                self.member(on, state, self.flat(on, parent)?, text, Some(accept))
            }
            (Frame::ObjectOpen(state) | Frame::ObjectAfter(state), _) => {
                let verdict = self.object_verdict(state);
                self.deliver(on, parent, verdict, text)
            }
            (Frame::ArrayOpen(state) | Frame::ArrayAfter(state), _) => {
                let verdict = self.arrays.array_verdict(state);
                self.deliver(on, parent, verdict, text)
            }
            _ => Ok(parent),
        }
    }

    /// Whether a key or an item follows this lexeme of a container; otherwise it ends there.
    pub(crate) fn goes_on(&self, on: &impl On, stack: StackId, lexeme: LexemeId) -> Result<bool> {
        let marks = self.marks(on, stack)?;
        Ok(lexeme == marks.comma || Some(lexeme) == marks.line)
    }

    /// Whether an item that later ones are compared with ends with the lexeme of a thread.
    pub(crate) fn ends_compared_item(&self, on: &impl On, thread: &Thread) -> Result<bool> {
        let cell = on.cell(thread.stack);
        if !cell.ends_compared_item {
            return Ok(false);
        }
        let ThreadLexeme::Lexeme(lexeme) = thread.lexeme else { return Ok(false) };
        let place = self.layouts.place(lexeme);
        Ok(match cell.frame {
            Frame::Value(_) => !matches!(place, Some(index::OPEN_OBJECT | index::OPEN_ARRAY)),
            Frame::ObjectOpen(_) => place == Some(index::CLOSE_EMPTY_OBJECT),
            Frame::ObjectAfter(_) | Frame::ArrayOpen(_) | Frame::ArrayAfter(_) => {
                !self.goes_on(on, thread.stack, lexeme)?
            }
            _ => false,
        })
    }

    /// Hands a value's verdict, and its text where that matters, to the frame that waits for it.
    fn deliver(
        &self,
        on: &impl On,
        stack: StackId,
        verdict: Verdict,
        text: TextId,
    ) -> Result<StackId> {
        let &Cell { frame, parent, .. } = on.cell(stack);
        match frame {
            Frame::AwaitMember(pending) => {
                let state = self.member_done(on, pending, verdict)?;
                on.push(Frame::ObjectAfter(state), parent)
            }
            Frame::AwaitItem(pending) | Frame::AwaitComparedItem(pending) => {
                let state = self.item_done(pending, verdict, text)?;
                on.push(Frame::ArrayAfter(state), parent)
            }
            Frame::Layout(_) => Ok(parent),
            _ => Ok(stack),
        }
    }
}
