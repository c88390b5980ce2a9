//! The structure of a text besides its bytes: the start and end of reported parts of a grammar, and
//! the values and keys of JSON.
//!
//! A text is followed for this with separate stacks, which have a frame at the end of each such
//! part (`Frame::Mark`). Everything else is the automaton's: symbols, lexemes, containers,
//! unions, and exits. Configurations and masks are independent of marks.
//!
//! The threads that begin on a stack come in groups, one for each sequence of marks between the
//! ended part and the next one (`Beginning`). Within a group parses are merged, as they are in
//! configurations.

use smallvec::SmallVec;

use super::beginnings::Beginning;
use super::config::{Automaton, JsonParts};
use super::error::EngineError;
use super::frame::{Frame, StackId};
use super::keys::Terminal;
use super::punctuation::index;
use super::thread::{Thread, ThreadLexeme};
use super::{TextId, Threads};
use ffwd_grammar::NodeId;
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::{LexState, LexemeSpec, Spelling, Verdict};
use ffwd_regular::regex::Ast;

/// Something that a reading says of a place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mark {
    /// A part of the grammar begins: one that is reported, or a JSON value of its own.
    Open(NodeId),
    /// A value within a JSON value that is reported begins.
    ValueBegins,
    /// Before the opening quote.
    KeyBegins,
    /// After the closing quote.
    KeyEnds,
    /// That value ends.
    ValueEnds,
    /// The part of the grammar ends.
    Close(NodeId),
}

/// Marks at the place where a byte begins, and at the one where it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Where the byte begins.
    pub before: SmallVec<[Mark; 4]>,
    /// Where the byte ends.
    pub after: SmallVec<[Mark; 4]>,
}

impl Marks {
    fn and(&self, edge: Edge, more: &[Mark]) -> Self {
        let mut marks = self.clone();
        match edge {
            Edge::Before => marks.before.extend_from_slice(more),
            Edge::After => marks.after.extend_from_slice(more),
        }
        marks
    }
}

/// A place of a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Before,
    After,
}

/// Is given what may begin, after certain marks.
type Following<'o> = dyn FnMut(&[Mark], &[Thread]) -> Result<(), EngineError> + 'o;

impl Automaton {
    /// Returns the exit of a thread whose lexeme ends here: its marks, and the beginnings.
    fn leave(
        &self,
        thread: &Thread,
        accept: Verdict,
        out: &mut Following<'_>,
    ) -> Result<(), EngineError> {
        let mark = self.mark_of_exit(thread)?;
        let stack = self.exit_thread(thread, accept)?;
        self.begin_after(stack, thread.transcript, mark, out)
    }

    fn begin_after(
        &self,
        stack: StackId,
        transcript: TextId,
        mark: Option<Mark>,
        out: &mut Following<'_>,
    ) -> Result<(), EngineError> {
        if !self.cell(stack).frame.is_rule() {
            let threads = self.following(stack, transcript)?;
            return out(mark.as_slice(), &threads);
        }
        for Beginning { marks, threads } in self.beginnings(stack)?.iter() {
            let all: SmallVec<[Mark; 8]> = mark.iter().chain(marks.iter()).copied().collect();
            out(&all, threads)?;
        }
        Ok(())
    }

    /// Returns the mark at the end of a lexeme of JSON.
    fn mark_of_exit(&self, thread: &Thread) -> Result<Option<Mark>, EngineError> {
        let Some(json) = self.json() else { return Ok(None) };
        let goes_on = |mark: u32| self.goes_on(json, thread.stack, mark);
        let place = match thread.lexeme {
            ThreadLexeme::Lexeme(lexeme) => json.layouts.place(lexeme),
            _ => None,
        };
        Ok(match (self.cell(thread.stack).frame, thread.lexeme) {
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
    fn mark_of_start(&self, thread: &Thread) -> Result<Option<Mark>, EngineError> {
        let Some(json) = self.json() else { return Ok(None) };
        let ThreadLexeme::Lexeme(lexeme) = thread.lexeme else { return Ok(None) };
        if thread.lex_state() != self.lexeme(lexeme).start() {
            return Ok(None);
        }
        Ok(match self.cell(thread.stack).frame {
            Frame::Value(_) | Frame::Part(_) => Some(Mark::ValueBegins),
            Frame::ObjectOpen(_) | Frame::ObjectKey(_)
                if json.layouts.place(lexeme) != Some(index::CLOSE_EMPTY_OBJECT)
                    && !self.goes_on(json, thread.stack, lexeme)? =>
            {
                Some(Mark::KeyBegins)
            }
            _ => None,
        })
    }

    /// The threads after one more byte, as [`Automaton::step`], each with its marks. `out` is also
    /// told whether the thread is another one.
    pub fn step_marked(
        &self,
        thread: &Thread,
        byte: u8,
        out: &mut dyn FnMut(&Marks, Thread),
    ) -> Result<(), EngineError> {
        self.step_with(thread, byte, &Marks::default(), out)
    }

    fn step_with(
        &self,
        thread: &Thread,
        byte: u8,
        marks: &Marks,
        out: &mut dyn FnMut(&Marks, Thread),
    ) -> Result<(), EngineError> {
        match thread.lexeme {
            ThreadLexeme::End | ThreadLexeme::Tokens(_) => Ok(()),
            ThreadLexeme::Key => match self.json() {
                Some(json) => self.step_key_with(json, thread, byte, marks, out),
                None => Ok(()),
            },
            ThreadLexeme::Lexeme(index) => {
                let lexeme = self.lexeme(index);
                let state = thread.lex_state();
                let after = lexeme.next(state, byte)?;
                if let Some(after) = after {
                    let begun = self.mark_of_start(thread)?;
                    let marks = marks.and(Edge::Before, begun.as_slice());
                    let transcript = self.append(thread.transcript, byte)?;
                    if after.is_final() {
                        let ended = Thread { transcript, ..*thread };
                        self.leave(&ended, lexeme.accept(after), &mut |more, threads| {
                            let marks = marks.and(Edge::After, more);
                            threads.iter().for_each(|&thread| out(&marks, thread));
                            Ok(())
                        })?;
                    } else if self.leads_on(thread, after) {
                        let text = self.append(thread.text, byte)?;
                        out(&marks, Thread { state: after.0, text, transcript, ..*thread });
                    }
                }
                if state.accepts() && !(after.is_some() && lexeme.spec().ends != Ends::Anywhere) {
                    self.leave(thread, lexeme.accept(state), &mut |more, threads| {
                        let marks = marks.and(Edge::Before, more);
                        let mut threads = threads.iter();
                        threads.try_for_each(|start| self.step_with(start, byte, &marks, out))
                    })?;
                }
                Ok(())
            }
        }
    }

    /// Whether any language of a thread that can go on from a state leads anywhere.
    fn leads_on(&self, thread: &Thread, state: LexState) -> bool {
        let (Frame::Row(row), Some(rules)) = (self.cell(thread.stack).frame, self.rules()) else {
            return true;
        };
        let ThreadLexeme::Lexeme(lexeme) = thread.lexeme else { return true };
        let alive = self.lexeme(lexeme).alive_in(state);
        let mut after = rules.rows.get(row).0.iter().enumerate();
        after.any(|(column, &stack)| alive >> column & 1 == 1 && !self.leads_nowhere(stack))
    }

    /// As [`Automaton::step_key`], with marks.
    fn step_key_with(
        &self,
        json: &JsonParts,
        thread: &Thread,
        byte: u8,
        marks: &Marks,
        out: &mut dyn FnMut(&Marks, Thread),
    ) -> Result<(), EngineError> {
        let node = json.keys.node(thread.key_node());
        let is_first = node.is_before_quote();
        let mut names = Threads::new();
        let child = json.keys.child(&node, byte)?;
        if child.is_some() {
            self.step_key(thread, byte, true, &mut names)?;
            let begun: &[Mark] = if is_first { &[Mark::KeyBegins] } else { &[] };
            let marks = marks.and(Edge::Before, begun);
            names.iter().for_each(|&thread| out(&marks, thread));
            return Ok(());
        }
        if byte == b'"' && !is_first && !matches!(json.keys.terminal(&node), Terminal::None) {
            self.step_key(thread, byte, true, &mut names)?;
            let marks = marks.and(Edge::After, &[Mark::KeyEnds]);
            names.iter().for_each(|&thread| out(&marks, thread));
            return Ok(());
        }
        match self.as_other_key(json, thread, &node)? {
            Some(other) => self.step_with(&other, byte, marks, out),
            None => Ok(()),
        }
    }

    /// The threads after a token that is taken as a whole, as [`Automaton::step_token`]: `out` is
    /// given the marks before it and after it.
    pub fn step_token_marked(
        &self,
        thread: &Thread,
        token: u32,
        marks: &Marks,
        out: &mut dyn FnMut(&Marks, Thread),
    ) -> Result<(), EngineError> {
        match thread.lexeme {
            ThreadLexeme::Tokens(set) => {
                let ranges = self.token_set(set);
                let place = ranges.partition_point(|&(_, last)| last < token);
                if ranges.get(place).is_none_or(|&(first, _)| first > token) {
                    return Ok(());
                }
                let after = self.cell(thread.stack).parent;
                self.begin_after(after, TextId::NONE, None, &mut |more, threads| {
                    let marks = marks.and(Edge::After, more);
                    threads.iter().for_each(|&thread| out(&marks, thread));
                    Ok(())
                })
            }
            ThreadLexeme::Lexeme(index) if thread.lex_state().accepts() => {
                let accept = self.lexeme(index).accept(thread.lex_state());
                self.leave(thread, accept, &mut |more, threads| {
                    let marks = marks.and(Edge::Before, more);
                    let mut threads = threads.iter();
                    threads.try_for_each(|next| self.step_token_marked(next, token, &marks, out))
                })
            }
            _ => Ok(()),
        }
    }

    /// The marks with which a text can end with a thread.
    pub fn ends_marked(
        &self,
        thread: &Thread,
        marks: &[Mark],
        out: &mut dyn FnMut(&[Mark]),
    ) -> Result<(), EngineError> {
        match thread.lexeme {
            ThreadLexeme::End => {
                out(marks);
                Ok(())
            }
            ThreadLexeme::Key | ThreadLexeme::Tokens(_) => Ok(()),
            ThreadLexeme::Lexeme(index) => {
                let accept = self.lexeme(index).accept(thread.lex_state());
                if accept == 0 {
                    return Ok(());
                }
                self.leave(thread, accept, &mut |more, threads| {
                    let marks: SmallVec<[Mark; 8]> = marks.iter().chain(more).copied().collect();
                    let mut threads = threads.iter();
                    threads.try_for_each(|next| self.ends_marked(next, &marks, out))
                })
            }
        }
    }

    /// Whether all that may follow a thread may follow another one too: they differ at most in their
    /// stacks, and the other one has all of its readings.
    pub fn is_covered(&self, thread: &Thread, by: &Thread) -> bool {
        if (Thread { stack: by.stack, ..*thread }) != *by {
            return false;
        }
        if thread.stack == by.stack {
            return true;
        }
        let (mut own, mut other) = (self.cell(thread.stack), self.cell(by.stack));
        if matches!((own.frame, self.cell(own.parent).frame), (Frame::Value(_), Frame::Layout(_)))
            && own.frame == other.frame
        {
            (own, other) = (self.cell(own.parent), self.cell(other.parent));
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
        match (self.cell(stack).frame, self.rules()) {
            (Frame::Union(union), Some(rules)) => rules.unions.get(union).members.clone(),
            _ => SmallVec::from_slice(&[stack]),
        }
    }

    /// After how many bytes of a text its ending begins, which is the shortest text of a language
    /// that the text ends with and that has a text of the body's language before it.
    pub fn ending_of(
        &self,
        text: &[u8],
        body: &Ast,
        ending: &Ast,
    ) -> Result<Option<usize>, EngineError> {
        let body = self.lexeme_store().get(&LexemeSpec::new(Spelling::Utf8, [body.clone()]))?;
        let ending = self.lexeme_store().get(&LexemeSpec::new(Spelling::Utf8, [ending.clone()]))?;
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
