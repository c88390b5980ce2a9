//! Parts of a value with infinitely many values: an item that still contains one can differ from
//! any number of others.

use crate::error::{EngineError, Result};
use crate::json::compared::Compared;
use crate::json::punctuation::index;
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{KeyNodeId, LexemeId, ObjectStateId, QueryId, StackId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme};
use ffwd_regular::expr::texts::MAX_STEPS as MAX_COUNTED;
use ffwd_regular::expr::{LexState, Spelling};

/// The depth below a frame to which infinitely many values are searched.
pub(crate) const MAX_DEPTH: usize = 4;
/// How many names of an object are tried for a member that has values without end.
const MAX_NAMES: usize = 64;
/// More texts than one written array can have as items.
const MANY_TEXTS: u64 = 1 << 32;
/// This many digits make as many numbers.
const MANY_DIGITS: usize = 10;

impl<O: On> Compared<'_, O> {
    /// Whether the item at a level has infinitely many values from a thread's position on. `stays`:
    /// from each further position in its lexeme, too.
    pub(crate) fn is_endless_below(
        &self,
        thread: &Thread,
        level: StackId,
        stays: bool,
    ) -> Result<bool> {
        let &Cell { frame, parent, .. } = self.on.cell(thread.stack);
        let begun = match (frame, thread.lexeme) {
            (Frame::Value(query), ThreadLexeme::Lexeme(lexeme)) => {
                match self.json.layouts.place(lexeme) {
                    Some(opening) => self.are_some_endless(query, opening, MAX_DEPTH)?,
                    None => {
                        self.takes_anything(lexeme, thread.lex_state())?
                            || !stays
                                && (self.has_many_texts(lexeme, thread.lex_state())?
                                    || self.is_endless_number(thread, lexeme)?
                                    || self.begins_endless_number(thread)?)
                    }
                }
            }
            (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Key) => {
                self.json.has_endless_keys(self.on, state)?
                    || self.has_endless_name(state, thread.key_node(), MAX_DEPTH)?
            }
            (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Lexeme(lexeme))
                if self.json.layouts.place(lexeme) != Some(index::CLOSE_EMPTY_OBJECT)
                    && !self.json.goes_on(self.on, thread.stack, lexeme)? =>
            {
                self.json.has_endless_keys(self.on, state)?
                    || self.takes_anything(lexeme, thread.lex_state())?
            }
            (frame, ThreadLexeme::Lexeme(lexeme)) if frame.is_between_parts() => {
                let is_start = thread.lex_state() == self.on.lexeme(lexeme).start();
                (is_start || self.json.goes_on(self.on, thread.stack, lexeme)?)
                    && self.is_endless(frame, MAX_DEPTH)?
            }
            _ => self.is_endless(frame, MAX_DEPTH)?,
        };
        Ok(begun || self.is_endless_from(parent, level)?)
    }

    /// Whether the value that a stack stands in or after may be continued without end before a level.
    fn is_endless_from(&self, stack: StackId, level: StackId) -> Result<bool> {
        let mut at = stack;
        while at != level && at != StackId::END {
            let &Cell { frame, parent, .. } = self.on.cell(at);
            if self.is_endless(frame, MAX_DEPTH)? {
                return Ok(true);
            }
            at = parent;
        }
        Ok(false)
    }

    /// Whether every token that a thread reads within its lexeme keeps the item distinct from all
    /// earlier ones, whatever they are; and whether the item still has infinitely many values.
    pub fn stays_endless(&self, thread: &Thread) -> Result<bool> {
        let (frame, level) = (self.on.cell(thread.stack).frame, self.on.level(thread.stack));
        if level == StackId::END || self.history_of(level).is_none() {
            // The next outer level is examined when the item at this one ends.
            return Ok(!self.on.has_history(thread.stack) || level == StackId::END);
        }
        if let (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Key) =
            (frame, thread.lexeme)
        {
            return self.json.has_endless_keys(self.on, state);
        }
        self.is_endless_below(thread, level, true)
    }

    /// Whether the current item of a stack has infinitely many values, whatever the earlier items
    /// are.
    pub fn is_endless_at(&self, stack: StackId) -> Result<bool> {
        let level = self.on.level(stack);
        if level == StackId::END {
            return Ok(true);
        }
        self.is_endless_from(stack, level)
    }

    /// Returns whether any characters continue a string, even after its opening quote.
    fn takes_anything(&self, lexeme: LexemeId, state: LexState) -> Result<bool> {
        let lexeme = self.on.lexeme(lexeme);
        if lexeme.spec().spelling != Spelling::JsonString {
            return Ok(false);
        }
        let inside = if state == lexeme.start() { lexeme.next(state, b'"')? } else { Some(state) };
        Ok(inside.is_some_and(|state| lexeme.takes_anything(state)))
    }

    /// Whether a frame allows infinitely many values. May return `false` if that is hard to decide.
    fn is_endless(&self, frame: Frame, depth: usize) -> Result<bool> {
        match self.json.rivals.endless.lock().get(&frame) {
            Some(None) => return Ok(true),
            Some(&Some(searched)) if searched >= depth => return Ok(false),
            _ if depth == 0 => return Ok(false),
            _ => {}
        }
        let endless = match frame {
            Frame::Value(query) => self.is_endless_query(query, depth)?,
            Frame::Part(group) => {
                let state = self.json.object_start(self.on, group)?;
                self.is_endless(Frame::ObjectOpen(state), depth - 1)?
            }
            Frame::ObjectOpen(state) | Frame::ObjectAfter(state) | Frame::ObjectKey(state) => {
                self.json.has_endless_keys(self.on, state)? || {
                    let keys = self.json.object_states.get(state.0).keys;
                    self.has_endless_name(state, keys, depth)?
                }
            }
            Frame::AwaitMember(pending) if self.json.has_endless_keys_after(pending)? => true,
            Frame::AwaitMember(pending) => match self.json.after_any_member(self.on, pending)? {
                Some(state) => self.is_endless(Frame::ObjectAfter(state), depth - 1)?,
                None => false,
            },
            Frame::ArrayOpen(state) | Frame::ArrayAfter(state) => {
                self.is_endless_group(self.json.arrays.group_of(state), depth)?
            }
            Frame::AwaitItem(pending) | Frame::AwaitComparedItem(pending) => {
                let state = self.json.arrays.item_of(pending);
                self.is_endless_group(self.json.arrays.group_of(state), depth)?
            }
            _ => false,
        };
        self.json.held.add(crate::interning::memory::map_entry::<Frame, Option<usize>>());
        self.json.rivals.endless.lock().insert(frame, (!endless).then_some(depth));
        Ok(endless)
    }

    /// Whether a value that has not begun can be one of infinitely many.
    pub(crate) fn is_endless_query(&self, query: QueryId, depth: usize) -> Result<bool> {
        let starts = self.json.value_starts(self.on, query)?;
        for scalar in &starts.scalars {
            if self.is_endless_scalar(scalar.lexeme)? {
                return Ok(true);
            }
        }
        Ok(self.are_some_endless(query, index::OPEN_OBJECT, depth)?
            || self.are_some_endless(query, index::OPEN_ARRAY, depth)?)
    }

    /// Whether a container that a query allows, and that begins with a lexeme, can be one of
    /// infinitely many.
    fn are_some_endless(&self, query: QueryId, opening: u32, depth: usize) -> Result<bool> {
        let starts = self.json.value_starts(self.on, query)?;
        let depth = depth.saturating_sub(1);
        if opening == index::OPEN_ARRAY {
            return match starts.arrays {
                Some(group) => self.is_endless_group(group, depth),
                None => Ok(false),
            };
        }
        for &group in &starts.objects {
            let state = self.json.object_start(self.on, group)?;
            if self.is_endless(Frame::ObjectOpen(state), depth)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a scalar has infinitely many values, or more than one text can contain.
    pub(crate) fn is_endless_scalar(&self, index: LexemeId) -> Result<bool> {
        let lexeme = self.on.lexeme(index);
        let start = lexeme.start();
        if lexeme.spec().spelling == Spelling::JsonString {
            return Ok(self.takes_anything(index, start)? || self.has_many_texts(index, start)?);
        }
        let digit = lexeme.next(start, b'1')?;
        digit.map_or(Ok(false), |digit| self.has_many_numbers(index, digit))
    }

    /// Whether a string has more continuations than one text can contain. May return `false` if
    /// that is hard to decide.
    fn has_many_texts(&self, index: LexemeId, state: LexState) -> Result<bool> {
        let lexeme = self.on.lexeme(index);
        if lexeme.spec().spelling != Spelling::JsonString || lexeme.listed(state).is_some() {
            return Ok(false);
        }
        match self.json.rivals.counter.lock().count(lexeme, state, MANY_TEXTS) {
            Ok(count) => Ok(count >= MANY_TEXTS),
            Err(error) if error.maximum == MAX_COUNTED as u64 => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a thread is in a string, in a member of an item, that can end in more ways than a
    /// number.
    pub(crate) fn has_more_texts(&self, thread: &Thread, number: u64) -> Result<bool> {
        let (Frame::Value(_), ThreadLexeme::Lexeme(index)) =
            (self.on.cell(thread.stack).frame, thread.lexeme)
        else {
            return Ok(false);
        };
        let lexeme = self.on.lexeme(index);
        let state = thread.lex_state();
        if lexeme.spec().spelling != Spelling::JsonString || number >= MANY_TEXTS {
            return Ok(false);
        }
        if let Some((listed, _)) = lexeme.listed(state) {
            return Ok(listed.count() as u64 > number);
        }
        match self.json.rivals.counter.lock().count(lexeme, state, number + 1) {
            Ok(count) => Ok(count > number),
            Err(error) if error.maximum == MAX_COUNTED as u64 => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether a number without an exponent has more continuations than one text can contain: that
    /// many digits may follow, even after a zero, and none affects what follows the number. May
    /// return `false` if that is hard to decide.
    pub(crate) fn has_many_numbers(&self, index: LexemeId, state: LexState) -> Result<bool> {
        let lexeme = self.on.lexeme(index);
        if lexeme.spec().spelling != Spelling::Utf8 {
            return Ok(false);
        }
        if let Some(&known) = self.json.rivals.many.lock().get(&(index, state)) {
            return Ok(known);
        }
        let mut at = lexeme.next(state, b'0')?;
        for _ in 0..MANY_DIGITS {
            let Some(before) = at else { break };
            at = lexeme.next(before, b'0')?;
            for digit in b'1'..=b'9' {
                if lexeme.next(before, digit)? != at {
                    at = None;
                    break;
                }
            }
            if at == Some(before) {
                break;
            }
        }
        self.json.held.add(crate::interning::memory::map_entry::<(LexemeId, LexState), bool>());
        self.json.rivals.many.lock().insert((index, state), at.is_some());
        Ok(at.is_some())
    }

    /// Whether a thread is in the middle of a number that many digits may follow.
    pub(crate) fn is_endless_number(&self, thread: &Thread, lexeme: LexemeId) -> Result<bool> {
        if !self.has_many_numbers(lexeme, thread.lex_state())? {
            return Ok(false);
        }
        // The digits of an exponent change nothing about zero.
        let is_number = |byte: u8| b"+-.".contains(&byte) || byte.is_ascii_digit();
        let is_exponent = |byte| matches!(byte, b'e' | b'E');
        Ok(!self.json.keys.texts.ends_with_one(thread.transcript, is_number, is_exponent))
    }

    /// Whether a thread stands before a number that can be one of infinitely many.
    pub(crate) fn begins_endless_number(&self, thread: &Thread) -> Result<bool> {
        let (Frame::Value(_), ThreadLexeme::Lexeme(index)) =
            (self.on.cell(thread.stack).frame, thread.lexeme)
        else {
            return Ok(false);
        };
        let lexeme = self.on.lexeme(index);
        Ok(lexeme.spec().spelling == Spelling::Utf8
            && thread.lex_state() == lexeme.start()
            && self.is_endless_scalar(index)?)
    }

    /// Whether some name from a place among those of an object on leads to values without end.
    fn has_endless_name(
        &self,
        state: ObjectStateId,
        node: KeyNodeId,
        depth: usize,
    ) -> Result<bool> {
        // Whatever lies below the object.
        let stack = self.on.push(Frame::ObjectKey(state), StackId::END)?;
        let node = self.json.keys.node(node);
        for name in self.json.keys.allowed_names(&node).take(MAX_NAMES) {
            let mut at = self.on.exit(stack, ThreadLexeme::Key, 1, name.as_text())?;
            // The colon, the value, and what waits for it.
            for _ in 0..3 {
                let &Cell { frame, parent, .. } = self.on.cell(at);
                if self.is_endless(frame, depth - 1)? {
                    return Ok(true);
                }
                at = parent;
            }
        }
        Ok(false)
    }

    /// Whether any number of digits may follow in a state of a number.
    pub(crate) fn takes_digits(&self, lexeme: LexemeId, state: Option<LexState>) -> Result<bool> {
        let Some(state) = state else { return Ok(false) };
        let lexeme = self.on.lexeme(lexeme);
        let stays = |byte| Ok::<_, EngineError>(lexeme.next(state, byte)? == Some(state));
        Ok(lexeme.spec().spelling == Spelling::Utf8 && stays(b'0')? && stays(b'7')?)
    }
}
