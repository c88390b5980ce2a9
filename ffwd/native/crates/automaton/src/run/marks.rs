//! The structure of a text besides its bytes: the start and end of reported parts of a grammar, and
//! the values and keys of JSON.
//!
//! A text is followed for this with separate stacks, which have a frame at the end of each such
//! part (`Frame::Mark`). Everything else is the automaton's: symbols, lexemes, containers,
//! unions, limits of parts, and exits. Configurations and masks are independent of marks.
//!
//! The threads that begin on a stack come in groups, one for each sequence of marks between the
//! ended part and the next one (`Beginning`). Within a group parses are merged, as they are in
//! configurations.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::Result;
use crate::interning::memory::map_entry;
use crate::json::punctuation::index;
use crate::json::step_key::KeyStep;
use crate::json::tables::Json;
use crate::rules::beginnings::Beginning;
use crate::rules::limit_tables::OpenPart;
use crate::rules::mark::Mark;
use crate::run::ages::Closed;
use crate::run::automaton::Automaton;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LexemeId, StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::{LexState, LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// Marks before and after a byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Where the byte begins.
    pub before: SmallVec<[Mark; 4]>,
    /// Where the byte ends.
    pub after: SmallVec<[Mark; 4]>,
}

impl Marks {
    fn and(&self, edge: Side, more: &[Mark]) -> Self {
        let mut marks = self.clone();
        match edge {
            Side::Before => marks.before.extend_from_slice(more),
            Side::After => marks.after.extend_from_slice(more),
        }
        marks
    }
}

/// A place of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// A receiver of what may begin after certain marks.
type Following<'o> = dyn FnMut(&[Mark], &[Thread]) -> Result<()> + 'o;

/// Follows threads with marks: where reported parts of the text begin and end.
#[derive(Clone, Copy, Debug)]
pub struct Marked<'a> {
    automaton: &'a Automaton,
}

impl Automaton {
    /// The same threads, with marks.
    pub fn marked(&self) -> Marked<'_> {
        Marked { automaton: self }
    }
}

impl Marked<'_> {
    /// Returns the exit of a thread whose lexeme ends here: its marks, and the beginnings.
    fn leave(&self, thread: &Thread, accept: Verdict, out: &mut Following<'_>) -> Result<()> {
        let mark = self.mark_of_exit(thread)?;
        let stack = self.automaton.exit_thread(thread, accept)?;
        self.begin_after(stack, thread.transcript, mark, out)
    }

    fn begin_after(
        &self,
        stack: StackId,
        transcript: TextId,
        mark: Option<Mark>,
        out: &mut Following<'_>,
    ) -> Result<()> {
        if !self.automaton.cell(stack).frame.is_rule() {
            let threads = self.automaton.following(stack, transcript)?;
            return out(mark.as_slice(), &threads);
        }
        for Beginning { marks, threads } in self.beginnings(stack)?.iter() {
            let all: SmallVec<[Mark; 8]> = mark.iter().chain(marks.iter()).copied().collect();
            out(&all, threads)?;
        }
        Ok(())
    }

    /// Returns the mark at the end of a lexeme of JSON.
    fn mark_of_exit(&self, thread: &Thread) -> Result<Option<Mark>> {
        let Some(json) = self.automaton.json() else { return Ok(None) };
        let goes_on = |mark: LexemeId| json.goes_on(self.automaton, thread.stack, mark);
        let place = match thread.lexeme {
            ThreadLexeme::Lexeme(lexeme) => json.layouts.place(lexeme),
            _ => None,
        };
        Ok(match (self.automaton.cell(thread.stack).frame, thread.lexeme) {
            (Frame::Value(_), _) => match place {
                Some(index::OPEN_OBJECT | index::OPEN_ARRAY) => None,
                _ => Some(Mark::ValueEnds),
            },
            (Frame::ObjectOpen(_) | Frame::ObjectKey(_), ThreadLexeme::Key) => Some(Mark::KeyEnds),
            (Frame::ObjectOpen(_), _) if place == Some(index::CLOSE_EMPTY_OBJECT) => {
                Some(Mark::ValueEnds)
            }
            (Frame::ObjectOpen(_), ThreadLexeme::Lexeme(mark)) if goes_on(mark)? => None,
            (Frame::ObjectOpen(_) | Frame::ObjectKey(_), _) => Some(Mark::KeyEnds),
            (
                Frame::ObjectAfter(_) | Frame::ArrayOpen(_) | Frame::ArrayAfter(_),
                ThreadLexeme::Lexeme(mark),
            ) => (!goes_on(mark)?).then_some(Mark::ValueEnds),
            _ => None,
        })
    }

    /// Returns the mark at the start of a thread, if it begins with the next byte.
    fn mark_of_start(&self, thread: &Thread) -> Result<Option<Mark>> {
        let Some(json) = self.automaton.json() else { return Ok(None) };
        let ThreadLexeme::Lexeme(lexeme) = thread.lexeme else { return Ok(None) };
        if thread.lex_state() != self.automaton.lexeme(lexeme).start() {
            return Ok(None);
        }
        Ok(match self.automaton.cell(thread.stack).frame {
            Frame::Value(_) | Frame::Part(_) => Some(Mark::ValueBegins),
            Frame::ObjectOpen(_) | Frame::ObjectKey(_)
                if json.layouts.place(lexeme) != Some(index::CLOSE_EMPTY_OBJECT)
                    && !json.goes_on(self.automaton, thread.stack, lexeme)? =>
            {
                Some(Mark::KeyBegins)
            }
            _ => None,
        })
    }

    /// The threads after one more byte, as [`Automaton::step`], each with its marks. `out` is also
    /// told whether the thread is another one.
    pub fn step(
        &self,
        thread: &Thread,
        byte: u8,
        out: &mut dyn FnMut(&Marks, Thread),
    ) -> Result<()> {
        self.step_with(thread, byte, &Marks::default(), out)
    }

    fn step_with(
        &self,
        thread: &Thread,
        byte: u8,
        marks: &Marks,
        out: &mut dyn FnMut(&Marks, Thread),
    ) -> Result<()> {
        if let Some(escaping) = self.automaton.escaping().filter(|it| it.reads(thread, byte)) {
            // Nothing begins or ends within a string.
            let mut next = Threads::new();
            escaping.step(thread, byte, true, &mut next)?;
            next.into_iter().for_each(|thread| out(marks, thread));
            return Ok(());
        }
        match thread.lexeme {
            ThreadLexeme::End | ThreadLexeme::Tokens(_) | ThreadLexeme::Escape(_) => Ok(()),
            ThreadLexeme::Key => match self.automaton.json() {
                Some(json) => self.step_key_with(json, &self.begun(thread)?, byte, marks, out),
                None => Ok(()),
            },
            ThreadLexeme::Lexeme(index) => {
                let lexeme = self.automaton.lexeme(index);
                let state = thread.lex_state();
                let after = lexeme.next(state, byte)?;
                if let Some(after) = after {
                    let begun = self.mark_of_start(thread)?;
                    let marks = marks.and(Side::Before, begun.as_slice());
                    let transcript = self.automaton.append(thread.transcript, byte)?;
                    let thread = &self.begun(thread)?;
                    if after.is_final() {
                        let ended = Thread { transcript, ..*thread };
                        self.leave(&ended, lexeme.accept(after), &mut |more, threads| {
                            let marks = marks.and(Side::After, more);
                            threads.iter().for_each(|&thread| out(&marks, thread));
                            Ok(())
                        })?;
                    } else if self.leads_on(thread, after) {
                        let text = self.automaton.append(thread.text, byte)?;
                        out(&marks, Thread { state: after.0, text, transcript, ..*thread });
                    }
                }
                if state.accepts() && !(after.is_some() && lexeme.spec().ends != Ends::Anywhere) {
                    self.leave(thread, lexeme.accept(state), &mut |more, threads| {
                        let marks = marks.and(Side::Before, more);
                        let mut threads = threads.iter();
                        threads.try_for_each(|start| self.step_with(start, byte, &marks, out))
                    })?;
                }
                Ok(())
            }
        }
    }

    /// The thread with the parts with limits that contain its next byte.
    fn begun(&self, thread: &Thread) -> Result<Thread> {
        Ok(Thread { stack: self.automaton.limited().begun(thread.stack)?, ..*thread })
    }

    /// As [`Limited::closed`](crate::run::limits::Limited::closed), each thread with its marks.
    pub fn close(
        &self,
        threads: &[Thread],
        is_over: &impl Fn(&OpenPart) -> bool,
        out: &mut dyn FnMut(&Marks, Thread),
    ) -> Result<()> {
        self.automaton.limited().close(threads, is_over, &mut |closed| {
            let (ended, after) = match closed {
                Closed::GoesOn(thread) => {
                    out(&Marks::default(), thread);
                    return Ok(());
                }
                Closed::Ends(thread, after) => (thread, after),
            };
            let mark = self.mark_of_exit(&ended)?;
            self.begin_after(after, ended.transcript, mark, &mut |more, threads| {
                let marks = Marks::default().and(Side::Before, more);
                threads.iter().for_each(|&thread| out(&marks, thread));
                Ok(())
            })
        })
    }

    /// Whether some language of a thread that can continue from a state has an exit.
    fn leads_on(&self, thread: &Thread, state: LexState) -> bool {
        let (Frame::Row(row), Some(rules)) =
            (self.automaton.cell(thread.stack).frame, self.automaton.rules())
        else {
            return true;
        };
        let ThreadLexeme::Lexeme(lexeme) = thread.lexeme else { return true };
        let alive = self.automaton.lexeme(lexeme).alive_in(state);
        let mut after = rules.rows.get(row).0.iter().enumerate();
        after.any(|(column, &stack)| {
            alive >> column & 1 == 1 && !self.automaton.leads_nowhere(stack)
        })
    }

    fn step_key_with(
        &self,
        json: &Json,
        thread: &Thread,
        byte: u8,
        marks: &Marks,
        out: &mut dyn FnMut(&Marks, Thread),
    ) -> Result<()> {
        match json.step_key(self.automaton, thread, byte)? {
            KeyStep::Refused => {}
            KeyStep::Within(next) => {
                if self.automaton.is_unrivalled(&next)? {
                    let is_first = json.keys.node(thread.key_node()).is_before_quote();
                    let begun: &[Mark] = if is_first { &[Mark::KeyBegins] } else { &[] };
                    out(&marks.and(Side::Before, begun), next);
                }
            }
            KeyStep::Ended(stack, transcript) => {
                let marks = marks.and(Side::After, &[Mark::KeyEnds]);
                let threads = self.automaton.following_alive(stack, transcript, true)?;
                threads.into_iter().for_each(|thread| out(&marks, thread));
            }
            KeyStep::Other(other) => self.step_with(&other, byte, marks, out)?,
        }
        Ok(())
    }

    /// The threads after a special token, as [`Automaton::step_token`]. `out` receives the marks
    /// before it and after it.
    pub fn step_token(
        &self,
        thread: &Thread,
        token: u32,
        marks: &Marks,
        out: &mut dyn FnMut(&Marks, Thread),
    ) -> Result<()> {
        match thread.lexeme {
            ThreadLexeme::Tokens(set) => {
                let program = self.automaton.program();
                if !program.is_some_and(|program| program.is_in_set(set, token)) {
                    return Ok(());
                }
                let after = self.automaton.cell(self.begun(thread)?.stack).parent;
                self.begin_after(after, TextId::NONE, None, &mut |more, threads| {
                    let marks = marks.and(Side::After, more);
                    threads.iter().for_each(|&thread| out(&marks, thread));
                    Ok(())
                })
            }
            ThreadLexeme::Lexeme(index) if thread.lex_state().accepts() => {
                let accept = self.automaton.lexeme(index).accept(thread.lex_state());
                self.leave(thread, accept, &mut |more, threads| {
                    let marks = marks.and(Side::Before, more);
                    let mut threads = threads.iter();
                    threads.try_for_each(|next| self.step_token(next, token, &marks, out))
                })
            }
            _ => Ok(()),
        }
    }

    /// The marks with which a text can end with a thread.
    pub fn ends(
        &self,
        thread: &Thread,
        marks: &[Mark],
        out: &mut dyn FnMut(&[Mark]),
    ) -> Result<()> {
        match thread.lexeme {
            ThreadLexeme::End => {
                out(marks);
                Ok(())
            }
            ThreadLexeme::Key | ThreadLexeme::Tokens(_) | ThreadLexeme::Escape(_) => Ok(()),
            ThreadLexeme::Lexeme(index) => {
                let accept = self.automaton.lexeme(index).accept(thread.lex_state());
                if accept == 0 {
                    return Ok(());
                }
                self.leave(thread, accept, &mut |more, threads| {
                    let marks: SmallVec<[Mark; 8]> = marks.iter().chain(more).copied().collect();
                    let mut threads = threads.iter();
                    threads.try_for_each(|next| self.ends(next, &marks, out))
                })
            }
        }
    }

    /// Whether another thread has all continuations of a thread: they differ at most in their
    /// stacks, and the other one has all of its parses.
    pub fn is_covered(&self, thread: &Thread, by: &Thread) -> bool {
        if (Thread { stack: by.stack, ..*thread }) != *by {
            return false;
        }
        if thread.stack == by.stack {
            return true;
        }
        let (mut own, mut other) =
            (self.automaton.cell(thread.stack), self.automaton.cell(by.stack));
        if matches!(
            (own.frame, self.automaton.cell(own.parent).frame),
            (Frame::Value(_), Frame::Layout(_))
        ) && own.frame == other.frame
        {
            (own, other) = (self.automaton.cell(own.parent), self.automaton.cell(other.parent));
        }
        match own.frame {
            Frame::Lexeme(_) | Frame::Tokens(_) | Frame::Value(_) | Frame::Layout(_)
                if own.frame == other.frame =>
            {
                let all = self.members(other.parent);
                self.members(own.parent).iter().all(|member| all.contains(member))
            }
            _ => false,
        }
    }

    fn members(&self, stack: StackId) -> SmallVec<[StackId; 4]> {
        match (self.automaton.cell(stack).frame, self.automaton.rules()) {
            (Frame::Union(union), Some(rules)) => rules.unions.get(union).members.clone(),
            _ => SmallVec::from_slice(&[stack]),
        }
    }

    /// The offset of a text's ending: its shortest suffix in the ending's language that follows a
    /// text of the body's language.
    pub fn ending_of(&self, text: &[u8], body: &Ast, ending: &Ast) -> Result<Option<usize>> {
        let body =
            self.automaton.lexeme_store().get(&LexemeSpec::new(Spelling::Utf8, [body.clone()]))?;
        let ending = self
            .automaton
            .lexeme_store()
            .get(&LexemeSpec::new(Spelling::Utf8, [ending.clone()]))?;
        let mut ends = vec![false; text.len() + 1];
        let mut state = Some(body.start()).filter(|_| body.is_alive());
        for (at, end) in ends.iter_mut().enumerate() {
            let Some(here) = state else { break };
            *end = here.accepts();
            state = match text.get(at) {
                Some(&byte) => body.next(here, byte)?,
                None => None,
            };
        }
        for from in (0..=text.len()).rev().filter(|&from| ends[from]) {
            let mut state = Some(ending.start()).filter(|_| ending.is_alive());
            for &byte in &text[from..] {
                let Some(here) = state else { break };
                state = ending.next(here, byte)?;
            }
            if state.is_some_and(|state| state.accepts()) {
                return Ok(Some(from));
            }
        }
        Ok(None)
    }
}

impl Marked<'_> {
    /// Returns the beginnings at the start of the grammar's text.
    pub fn start(&self) -> Result<Arc<[Beginning]>> {
        match self.automaton.rules() {
            Some(rules) => {
                let start = rules.program.symbols.start;
                self.beginnings(self.automaton.push(Frame::Symbol(start), StackId::END)?)
            }
            None => {
                let threads = Threads::from_slice(self.automaton.threads(self.automaton.start()));
                Ok(Arc::new([Beginning { marks: Box::default(), threads }]))
            }
        }
    }

    /// Returns the beginnings on a stack.
    pub(crate) fn beginnings(&self, stack: StackId) -> Result<Arc<[Beginning]>> {
        if let Some(known) = self.automaton.marked.lock().get(&stack) {
            return Ok(known.clone());
        }
        let found: Arc<[Beginning]> = match self.automaton.rules() {
            Some(rules) => rules.find_beginnings(self.automaton, stack)?.into(),
            None => {
                let threads = Threads::from_slice(self.automaton.starts(stack)?);
                Arc::new([Beginning { marks: Box::default(), threads }])
            }
        };
        let each = |one: &Beginning| {
            std::mem::size_of::<Beginning>()
                + std::mem::size_of_val(&*one.marks)
                + if one.threads.spilled() { std::mem::size_of_val(&*one.threads) } else { 0 }
        };
        let entry = map_entry::<StackId, Arc<[Beginning]>>();
        self.automaton.stacks.flow_bytes.add(entry + found.iter().map(each).sum::<usize>());
        self.automaton.marked.lock().insert(stack, found.clone());
        Ok(found)
    }
}
