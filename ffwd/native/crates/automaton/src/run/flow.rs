//! The lexemes that may begin on a stack, and the rest of the stack after them.

use crate::error::EngineError;
use crate::json::keys::TextId;
use crate::json::object::ObjectStateId;
use crate::json::punctuation::index;
use crate::run::automaton::{Automaton, JsonParts};
use crate::stacks::frame::{Cell, Frame, StackId};
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_regular::expr::Verdict;

impl Automaton {
    pub(crate) fn compute_starts(&self, stack: StackId) -> Result<Threads, EngineError> {
        let mut threads = Threads::new();
        let cell = self.cell(stack);
        let begin = |lexeme: u32, stack: StackId| Thread {
            lexeme: ThreadLexeme::Lexeme(lexeme),
            state: self.lexeme(lexeme).start().0,
            stack,
            text: TextId::NONE,
            transcript: TextId::NONE,
        };
        if let Some(rules) = self.rules() {
            if cell.frame.is_rule() {
                return self.rule_starts(rules, stack);
            }
        }
        let Some(json) = self.json() else {
            match cell.frame {
                Frame::Lexeme(lexeme) if self.lexeme(lexeme).is_alive() => {
                    threads.push(begin(lexeme, stack));
                }
                Frame::End => threads.push(Thread::END),
                _ => {}
            }
            return Ok(threads);
        };
        let bracket = |place: u32| self.bracket(json, stack, place);
        match cell.frame {
            Frame::End => threads.push(Thread::END),
            Frame::Lexeme(lexeme) => threads.push(begin(lexeme, stack)),
            Frame::Value(query) => {
                let starts = self.value_starts(json, query)?;
                for scalar in &starts.scalars {
                    threads.push(begin(scalar.lexeme, stack));
                }
                match &starts.objects[..] {
                    [] => {}
                    [_] => threads.push(begin(bracket(index::OPEN_OBJECT), stack)),
                    groups => {
                        for &group in groups {
                            let part = self.push(Frame::Part(group), cell.parent)?;
                            threads.push(begin(bracket(index::OPEN_OBJECT), part));
                        }
                    }
                }
                if starts.arrays.is_some() {
                    threads.push(begin(bracket(index::OPEN_ARRAY), stack));
                }
            }
            Frame::Part(_) => threads.push(begin(bracket(index::OPEN_OBJECT), stack)),
            Frame::Colon => threads.push(begin(json.layouts.colon(cell.layout), stack)),
            Frame::ObjectOpen(state) => {
                if self.object_verdict(json, state) != 0 {
                    threads.push(begin(bracket(index::CLOSE_EMPTY_OBJECT), stack));
                }
                let marks = self.marks(json, stack)?;
                if let Some(line) = marks.line.filter(|_| self.object_may_go_on(json, state)) {
                    threads.push(begin(line, stack));
                }
                if marks.may_be_flat {
                    self.push_key(json, state, stack, &mut threads);
                }
            }
            Frame::ObjectKey(state) => self.push_key(json, state, stack, &mut threads),
            Frame::ObjectAfter(state) => {
                let marks = self.marks(json, stack)?;
                if self.object_may_go_on(json, state) {
                    threads.push(begin(marks.comma, stack));
                }
                if self.object_verdict(json, state) != 0 {
                    threads.push(begin(marks.close_object, stack));
                }
            }
            Frame::ArrayOpen(state) => {
                if self.array_verdict(json, state) != 0 {
                    threads.push(begin(bracket(index::CLOSE_EMPTY_ARRAY), stack));
                }
                let parent = self.flat(json, cell.parent)?;
                if let Some(item) = self.item(json, state, parent)? {
                    let marks = self.marks(json, stack)?;
                    threads.extend(marks.line.map(|line| begin(line, stack)));
                    if marks.may_be_flat {
                        threads.extend_from_slice(self.starts(item)?);
                    }
                }
            }
            Frame::ArrayAfter(state) => {
                let marks = self.marks(json, stack)?;
                if self.item(json, state, cell.parent)?.is_some() {
                    threads.push(begin(marks.comma, stack));
                }
                if self.array_verdict(json, state) != 0 {
                    threads.push(begin(marks.close_array, stack));
                }
            }
            // A verdict is delivered to these, they never begin a lexeme.
            Frame::AwaitMember(_) | Frame::AwaitItem(_) | Frame::AwaitComparedItem(_) => {}
            Frame::Layout(_) => {}
            // These are only ever below a lexeme that has begun, or have been expanded above.
            Frame::Symbol(_) | Frame::Count(_) | Frame::Union(_) | Frame::Limit(_) => {}
            Frame::Row(_) | Frame::Begun | Frame::Tokens(_) | Frame::Mark(_) => {}
        }
        Ok(threads)
    }

    fn push_key(
        &self,
        json: &JsonParts,
        state: ObjectStateId,
        stack: StackId,
        threads: &mut Threads,
    ) {
        if self.object_may_go_on(json, state) {
            let keys = json.object_states.get(state.0).keys;
            let open = json.keys.node(keys).base.is_some();
            threads.push(Thread {
                lexeme: ThreadLexeme::Key,
                state: keys.0,
                stack,
                text: if open { TextId::EMPTY } else { TextId::NONE },
                transcript: TextId::NONE,
            });
        }
    }

    pub(crate) fn compute_exit(
        &self,
        stack: StackId,
        lexeme: ThreadLexeme,
        accept: Verdict,
        text: TextId,
    ) -> Result<StackId, EngineError> {
        let &Cell { frame, parent, .. } = self.cell(stack);
        match (frame, self.rules()) {
            (Frame::Row(row), Some(rules)) => return self.row_exit(rules, row, accept),
            (Frame::Begun, Some(rules)) => return self.begun_exit(rules, parent, accept),
            (Frame::Lexeme(_) | Frame::Tokens(_), _) => return Ok(parent),
            _ => {}
        }
        let Some(json) = self.json() else { return Ok(parent) };
        let (mark, place) = match lexeme {
            ThreadLexeme::Lexeme(lexeme) => (Some(lexeme), json.layouts.place(lexeme)),
            _ => (None, None),
        };
        let goes_on = match mark.filter(|_| frame.is_between_parts()) {
            Some(mark) => self.goes_on(json, stack, mark)?,
            None => false,
        };
        match (frame, lexeme) {
            (Frame::Colon, _) => self.decided(json, parent, mark, accept),
            (Frame::Part(group), _) => {
                let state = self.object_start(json, group)?;
                self.push(Frame::ObjectOpen(state), parent)
            }
            (Frame::Value(query), ThreadLexeme::Lexeme(lexeme)) => {
                let starts = self.value_starts(json, query)?;
                match (place, starts.objects.first(), starts.arrays) {
                    (Some(index::OPEN_OBJECT), Some(&group), _) => {
                        let state = self.object_start(json, group)?;
                        self.push(Frame::ObjectOpen(state), parent)
                    }
                    (Some(index::OPEN_ARRAY), _, Some(group)) => {
                        let state = self.array_start(json, group)?;
                        self.push(Frame::ArrayOpen(state), parent)
                    }
                    _ => {
                        let verdict = starts
                            .scalars
                            .iter()
                            .filter(|scalar| scalar.lexeme == lexeme)
                            .fold(0, |bits, scalar| bits | scalar.verdict(accept));
                        self.deliver(json, parent, verdict, text)
                    }
                }
            }
            (Frame::ObjectOpen(state) | Frame::ObjectAfter(state), _) if goes_on => {
                let parent = self.decided(json, parent, mark, accept)?;
                self.push(Frame::ObjectKey(state), parent)
            }
            (Frame::ArrayOpen(state) | Frame::ArrayAfter(state), _) if goes_on => {
                let parent = self.decided(json, parent, mark, accept)?;
                Ok(self.item(json, state, parent)?.unwrap_or(parent))
            }
            (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Key) => {
                self.member(json, state, self.flat(json, parent)?, text, None)
            }
            (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Lexeme(_))
                if place != Some(index::CLOSE_EMPTY_OBJECT) =>
            {
                self.member(json, state, self.flat(json, parent)?, text, Some(accept))
            }
            (Frame::ObjectOpen(state) | Frame::ObjectAfter(state), _) => {
                let verdict = self.object_verdict(json, state);
                self.deliver(json, parent, verdict, text)
            }
            (Frame::ArrayOpen(state) | Frame::ArrayAfter(state), _) => {
                let verdict = self.array_verdict(json, state);
                self.deliver(json, parent, verdict, text)
            }
            _ => Ok(parent),
        }
    }

    /// Whether a key or an item follows this lexeme of a container; otherwise it ends there.
    pub(crate) fn goes_on(
        &self,
        json: &JsonParts,
        stack: StackId,
        lexeme: u32,
    ) -> Result<bool, EngineError> {
        let marks = self.marks(json, stack)?;
        Ok(lexeme == marks.comma || Some(lexeme) == marks.line)
    }

    /// Whether an item that later ones are compared with ends with the lexeme of a thread.
    pub fn ends_compared_item(&self, thread: &Thread) -> Result<bool, EngineError> {
        let cell = self.cell(thread.stack);
        let Some(json) = self.json().filter(|_| cell.ends_compared_item) else { return Ok(false) };
        let ThreadLexeme::Lexeme(lexeme) = thread.lexeme else { return Ok(false) };
        let place = json.layouts.place(lexeme);
        Ok(match cell.frame {
            Frame::Value(_) => !matches!(place, Some(index::OPEN_OBJECT | index::OPEN_ARRAY)),
            Frame::ObjectOpen(_) => place == Some(index::CLOSE_EMPTY_OBJECT),
            Frame::ObjectAfter(_) | Frame::ArrayOpen(_) | Frame::ArrayAfter(_) => {
                !self.goes_on(json, thread.stack, lexeme)?
            }
            _ => false,
        })
    }

    /// Hands a value's verdict, and its text where that matters, to the frame that waits for it.
    fn deliver(
        &self,
        json: &JsonParts,
        stack: StackId,
        verdict: Verdict,
        text: TextId,
    ) -> Result<StackId, EngineError> {
        let &Cell { frame, parent, .. } = self.cell(stack);
        match frame {
            Frame::AwaitMember(pending) => {
                let state = self.member_done(json, pending, verdict)?;
                self.push(Frame::ObjectAfter(state), parent)
            }
            Frame::AwaitItem(pending) | Frame::AwaitComparedItem(pending) => {
                let state = self.item_done(json, pending, verdict, text)?;
                self.push(Frame::ArrayAfter(state), parent)
            }
            Frame::Layout(_) => Ok(parent),
            _ => Ok(stack),
        }
    }
}
