//! Items that must differ from those that came: whether what is written of one can still become
//! another value.
//!
//! What an item is asked does not depend on the items that came ([`super::history`]). So a thread
//! within an item is looked at beside the set of them: it is alive if some value that its text can
//! become is not in the set. For most texts that is plain: no item that came begins so, or a part
//! is still to come that has values without end. Otherwise the texts of a scalar are searched beside
//! the set, and a container is read once more without the few items that it may still equal.

use rustc_hash::FxHashMap;

use parking_lot::Mutex;

use super::array::ArrayPendingId;
use super::config::{Automaton, JsonParts};
use super::error::EngineError;
use super::frame::{Cell, Frame, StackId};
use super::history::{open_value, plain, Agreeing, Histories, ANY_HISTORY, MAX_RIVALS};
use super::keys::{KeyNodeId, TextId};
use super::object::ObjectStateId;
use super::punctuation::index;
use super::thread::{Thread, ThreadLexeme, Threads};
use super::used_keys::UsedId;
use super::value::{QueryId, Schemas};
use crate::error::LimitExceeded;
use crate::expr::lower::Spelling;
use crate::expr::texts::{TextCounter, MAX_STEPS as MAX_COUNTED};
use crate::expr::LexState;
use crate::meter;
use crate::regex::Decimal;

/// How far below a frame values without end are looked for.
const MAX_DEPTH: usize = 4;
/// How many names of an object are tried for a member that has values without end.
const MAX_NAMES: usize = 64;
/// More texts than one that is written can have as items.
const MANY_TEXTS: u64 = 1 << 32;
/// How many states one search for a text that has not come enters.
const MAX_SEARCHED: usize = 200_000;

/// What is known of frames, and of scalars beside sets of items.
#[derive(Debug, Default)]
pub(super) struct KnownRivals {
    endless: Mutex<FxHashMap<Frame, bool>>,
    counter: Mutex<TextCounter>,
    anonymous: Mutex<FxHashMap<StackId, StackId>>,
    alive: Mutex<FxHashMap<(UsedId, u32, LexState), bool>>,
}

/// Where what is written of a scalar stands among the items that came.
#[derive(Clone, Debug)]
pub struct Pointer {
    /// Of a number, all of its text.
    number: Option<Vec<u8>>,
    /// All items that came; of other scalars, those that begin with what is written.
    node: UsedId,
}

enum Further {
    /// None of the items that came goes on so.
    Apart,
    At(Pointer),
}

/// What the items that came can have to do with the tokens that a thread reads.
#[derive(Clone, Debug)]
pub enum Rivals {
    /// They rule nothing out, but where a token begins another item.
    None,
    /// What is written of the item stands there among them.
    Scalar(Pointer),
    /// They may rule out any token.
    Some,
}

impl Pointer {
    fn new(histories: &Histories, all: UsedId, text: &[u8]) -> Option<Self> {
        match text.first() {
            Some(b'-' | b'0'..=b'9') => Some(Self { number: Some(text.to_vec()), node: all }),
            _ => Some(Self { number: None, node: histories.find(all, text)? }),
        }
    }

    /// Whether what is written is an item that came.
    fn is_used(&self, histories: &Histories) -> bool {
        let Some(text) = &self.number else { return histories.sets.ends(self.node) };
        let number = Decimal::parse(&String::from_utf8_lossy(text)).ok();
        let node = number.and_then(|number| histories.find(self.node, &plain(&number)));
        node.is_some_and(|node| histories.sets.ends(node))
    }

    fn next(&self, histories: &Histories, byte: u8) -> Further {
        let Some(text) = &self.number else {
            let child = histories.sets.child(self.node, byte);
            return child.map_or(Further::Apart, |node| Further::At(Self { number: None, node }));
        };
        let mut text = text.clone();
        text.push(byte);
        match is_apart(histories, self.node, &text) {
            true => Further::Apart,
            false => Further::At(Self { number: Some(text), node: self.node }),
        }
    }
}

/// Whether no number that came can be written with these first characters of one and no exponent.
fn is_apart(histories: &Histories, all: UsedId, text: &[u8]) -> bool {
    if text.iter().any(|byte| b"eE".contains(byte)) {
        return false;
    }
    let significant = match text.iter().position(|&byte| byte == b'.') {
        Some(point) => {
            let zeros = text.iter().rev().take_while(|&&byte| byte == b'0').count();
            let end = text.len() - zeros;
            if end == point + 1 {
                point
            } else {
                end
            }
        }
        None => text.len(),
    };
    let text = &text[..significant];
    let begins = |text: &[u8]| histories.find(all, text).is_some();
    // Zero has one entry, whatever its sign.
    !begins(text) && !(matches!(text, b"-" | b"-0") && begins(b"0"))
}

impl Rivals {
    /// Whether a token stays away from all items that came, with the item that it goes on with.
    pub fn clears(&self, automaton: &Automaton, token: &[u8]) -> bool {
        let (pointer, Some(json)) = (
            match self {
                Self::None => return true,
                Self::Some => return false,
                Self::Scalar(pointer) => pointer,
            },
            automaton.json(),
        ) else {
            return false;
        };
        let histories = &json.histories;
        let Some(text) = &pointer.number else {
            // Whatever follows the end of an item that came is refused with it.
            return histories.find_apart(pointer.node, token);
        };
        let is_end = |byte: &u8| b",] \t\n\r".contains(byte);
        let end = token.iter().position(is_end);
        let more = &token[..end.unwrap_or(token.len())];
        let text = [text, more].concat();
        if text.iter().any(|byte| b"eE".contains(byte)) {
            return false;
        }
        match end {
            None => is_apart(histories, pointer.node, &text),
            Some(_) => !Pointer { number: Some(text), node: pointer.node }.is_used(histories),
        }
    }
}

impl Histories {
    /// Whether no item begins with some bytes or their beginning, as far as the item ends there.
    fn find_apart(&self, node: UsedId, bytes: &[u8]) -> bool {
        let mut node = node;
        for &byte in bytes {
            match self.sets.child(node, byte) {
                Some(child) => node = child,
                None => return !self.sets.ends(node),
            }
        }
        false
    }
}

impl Automaton {
    /// The items that came in the array that an item belongs to, where they are kept beside its
    /// schema.
    fn history_of(&self, json: &JsonParts, level: StackId) -> Option<(ArrayPendingId, UsedId)> {
        match self.cell(level).frame {
            Frame::AwaitComparedItem(pending) => {
                Some((pending, self.history_before(json, pending)?))
            }
            _ => None,
        }
    }

    /// The items around a thread, the innermost first, of which it is known what came before them.
    fn levels(
        &self,
        json: &JsonParts,
        stack: StackId,
    ) -> impl Iterator<Item = (StackId, ArrayPendingId, UsedId)> + '_ {
        let mut at = self.level(stack);
        let mut found: smallvec::SmallVec<[_; 2]> = smallvec::SmallVec::new();
        while at != StackId::END {
            if let Some((pending, history)) = self.history_of(json, at) {
                if history != ANY_HISTORY && history != UsedId::EMPTY {
                    found.push((at, pending, history));
                }
            }
            at = self.level(self.cell(at).parent);
        }
        found.into_iter()
    }

    /// The stack whatever items came.
    pub fn without_history(&self, stack: StackId) -> Result<StackId, EngineError> {
        let Some(json) = self.json().filter(|_| self.has_history(stack)) else { return Ok(stack) };
        if let Some(&known) = json.rivals.anonymous.lock().get(&stack) {
            return Ok(known);
        }
        let mut above = Vec::new();
        let mut at = stack;
        while self.has_history(at) {
            above.push(at);
            at = self.cell(at).parent;
        }
        for cell in above.into_iter().rev() {
            let frame = match self.cell(cell).frame {
                Frame::ArrayOpen(state) => {
                    Frame::ArrayOpen(self.array_without_history(json, state)?)
                }
                Frame::ArrayAfter(state) => {
                    Frame::ArrayAfter(self.array_without_history(json, state)?)
                }
                Frame::AwaitComparedItem(item) => {
                    Frame::AwaitComparedItem(self.item_without_history(json, item)?)
                }
                frame => frame,
            };
            at = self.push(frame, at)?;
        }
        json.held.add(super::memory::map_entry::<StackId, StackId>());
        json.rivals.anonymous.lock().insert(stack, at);
        Ok(at)
    }

    /// The nearest item on a stack that others are compared with; the end if there is none.
    pub(super) fn level(&self, stack: StackId) -> StackId {
        match self.cell(stack).level {
            Cell::OWN_LEVEL => stack,
            level => level,
        }
    }

    /// Whether items that came lie beside the schema somewhere on a stack.
    #[inline]
    pub fn has_history(&self, stack: StackId) -> bool {
        self.cell(stack).has_history
    }

    /// Whether a thread is within an item that must differ from some that came.
    pub(super) fn is_rivalled(&self, thread: &Thread) -> bool {
        let is_recorded = !matches!(thread.transcript, TextId::NONE | TextId::ANY);
        is_recorded
            && self.json().is_some_and(|json| self.levels(json, thread.stack).next().is_some())
    }

    /// Whether what a thread is in the middle of can become something that has not come.
    #[inline]
    pub(super) fn is_unrivalled(&self, thread: &Thread) -> Result<bool, EngineError> {
        if matches!(thread.transcript, TextId::NONE | TextId::EMPTY | TextId::ANY) {
            return Ok(true);
        }
        self.find_unrivalled(thread)
    }

    #[cold]
    fn find_unrivalled(&self, thread: &Thread) -> Result<bool, EngineError> {
        let Some(json) = self.json() else { return Ok(true) };
        for (level, pending, history) in self.levels(json, thread.stack) {
            if self.is_endless_below(json, thread, level, false)? {
                continue;
            }
            let item = self.item_text(json, thread, level);
            if let Some((lexeme, state)) = self.scalar_of(thread, level) {
                if item.is_empty() || is_apart(&json.histories, history, &item) {
                    continue;
                }
                let Some(pointer) = Pointer::new(&json.histories, history, &item) else { continue };
                if !self.is_scalar_alive(json, lexeme, state, pointer)? {
                    return Ok(false);
                }
                continue;
            }
            match json.histories.agreeing(&json.schema, history, &item)? {
                Agreeing::None => {}
                Agreeing::Few(rivals) => {
                    let query = self.item_query(json, pending);
                    if !self.differs_from(json, query, &item, &rivals)? {
                        return Ok(false);
                    }
                }
                Agreeing::Many => {
                    let what = "items that one must differ from and that it may still equal";
                    return Err(LimitExceeded::new(what, MAX_RIVALS).into());
                }
            }
        }
        Ok(true)
    }

    /// Those of some threads that can become something that has not come.
    pub(super) fn unrivalled(&self, threads: Threads) -> Result<Threads, EngineError> {
        let is_plain = |thread: &Thread| {
            matches!(thread.transcript, TextId::NONE | TextId::EMPTY | TextId::ANY)
        };
        if threads.iter().all(is_plain) {
            return Ok(threads);
        }
        let mut kept = Threads::new();
        for thread in threads {
            if self.is_unrivalled(&thread)? {
                kept.push(thread);
            }
        }
        Ok(kept)
    }

    /// What the items that came can have to do with the tokens that a thread reads.
    pub fn rivals(&self, thread: &Thread) -> Result<Rivals, EngineError> {
        let Some(json) = self.json().filter(|_| self.has_history(thread.stack)) else {
            return Ok(Rivals::None);
        };
        let mut rivals = Rivals::None;
        for (level, _, history) in self.levels(json, thread.stack) {
            let item = self.item_text(json, thread, level);
            let found = match self.scalar_of(thread, level) {
                Some(_) if item.is_empty() => Rivals::Some,
                Some(_) => Pointer::new(&json.histories, history, &item)
                    .map_or(Rivals::None, Rivals::Scalar),
                None if item.is_empty() => Rivals::Some,
                None => match json.histories.agreeing(&json.schema, history, &item)? {
                    Agreeing::None => Rivals::None,
                    _ => Rivals::Some,
                },
            };
            rivals = match (rivals, found) {
                (Rivals::None, found) => found,
                (rivals, Rivals::None) => rivals,
                _ => Rivals::Some,
            };
        }
        if matches!(rivals, Rivals::None) && self.begins_item(json, thread) {
            return Ok(Rivals::Some);
        }
        Ok(rivals)
    }

    /// Whether what is written of an item may be the beginning of one that came.
    pub fn may_equal_earlier(&self, threads: &[Thread]) -> Result<bool, EngineError> {
        for thread in threads {
            if !matches!(self.rivals(thread)?, Rivals::None) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether an item may begin with the next token that must differ from some that came.
    fn begins_item(&self, json: &JsonParts, thread: &Thread) -> bool {
        match self.cell(thread.stack).frame {
            Frame::ArrayOpen(state) | Frame::ArrayAfter(state) => {
                self.history_at(json, state).is_some_and(|history| history != UsedId::EMPTY)
            }
            _ => false,
        }
    }

    /// What is written of the item at a level.
    fn item_text(&self, json: &JsonParts, thread: &Thread, level: StackId) -> Vec<u8> {
        let mut text = json.keys.texts.bytes(thread.transcript);
        let mut outermost = level;
        let mut at = level;
        while at != StackId::END {
            if matches!(self.cell(at).frame, Frame::AwaitComparedItem(_)) {
                outermost = at;
            }
            at = self.cell(at).parent;
        }
        let depth = self.cell(level).depth - self.cell(outermost).depth;
        let begin = open_value(&text, depth as usize);
        text.drain(..begin);
        text
    }

    /// The lexeme that a thread is in, if the whole item is that scalar.
    fn scalar_of(&self, thread: &Thread, level: StackId) -> Option<(u32, LexState)> {
        let &Cell { frame, parent, .. } = self.cell(thread.stack);
        match (frame, thread.lexeme) {
            (Frame::Value(_), ThreadLexeme::Lexeme(lexeme))
                if parent == level && !matches!(lexeme, index::OPEN_OBJECT | index::OPEN_ARRAY) =>
            {
                Some((lexeme, thread.lex_state()))
            }
            _ => None,
        }
    }

    fn is_scalar_alive(
        &self,
        json: &JsonParts,
        lexeme: u32,
        state: LexState,
        pointer: Pointer,
    ) -> Result<bool, EngineError> {
        if pointer.number.is_some() {
            return Ok(self.unused_text(json, lexeme, state, pointer)?.is_some());
        }
        if let Some((listed, _)) = self.lexeme(lexeme).listed(state) {
            // All that came are among them.
            return Ok(listed.len() > json.histories.sets.count(pointer.node) as usize);
        }
        let key = (pointer.node, lexeme, state);
        if let Some(&known) = json.rivals.alive.lock().get(&key) {
            return Ok(known);
        }
        let alive = self.unused_text(json, lexeme, state, pointer)?.is_some();
        json.held.add(super::memory::map_entry::<(UsedId, u32, LexState), bool>());
        json.rivals.alive.lock().insert(key, alive);
        Ok(alive)
    }

    /// Bytes after which a scalar is none of the items that came, wherever it ends.
    fn unused_text(
        &self,
        json: &JsonParts,
        index: u32,
        state: LexState,
        pointer: Pointer,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let lexeme = self.lexeme(index);
        let histories = &json.histories;
        if state.accepts() && !pointer.is_used(histories) {
            return Ok(Some(Vec::new()));
        }
        let mut pending = vec![(state, pointer, Vec::new())];
        let mut searched = 0;
        while let Some((state, pointer, text)) = pending.pop() {
            searched += 1;
            meter::charge(8)?;
            if searched > MAX_SEARCHED {
                let what = "texts that are looked at for one that has not come";
                return Err(LimitExceeded::new(what, MAX_SEARCHED).into());
            }
            for byte in likely_bytes(&pointer) {
                let Some(next) = lexeme.next(state, byte)? else { continue };
                let mut text = text.clone();
                text.push(byte);
                match pointer.next(histories, byte) {
                    Further::Apart => return Ok(Some(text)),
                    Further::At(there) if next.accepts() && !there.is_used(histories) => {
                        return Ok(Some(text));
                    }
                    // More zeros at the end of a fraction change nothing.
                    Further::At(there) if next == state && there.number.is_some() => {}
                    Further::At(_) if next.is_final() => {}
                    Further::At(there) => pending.push((next, there, text)),
                }
            }
        }
        Ok(None)
    }

    /// How an item that is a scalar can end so that it is none of those that came, where a thread is
    /// in the middle of one.
    pub(super) fn unused_ending(&self, thread: &Thread) -> Result<Option<Vec<u8>>, EngineError> {
        let Some(json) = self.json() else { return Ok(None) };
        let Some((level, _, history)) = self.levels(json, thread.stack).next() else {
            return Ok(None);
        };
        let Some((lexeme, state)) = self.scalar_of(thread, level) else { return Ok(None) };
        if thread.transcript == TextId::ANY {
            return Ok(None);
        }
        let item = self.item_text(json, thread, level);
        let pointer = match item.is_empty() {
            // Numbers are told from other scalars by their first byte.
            true => return self.unused_from_start(json, lexeme, state, history),
            false => Pointer::new(&json.histories, history, &item),
        };
        let Some(pointer) = pointer else { return Ok(None) };
        self.unused_text(json, lexeme, state, pointer)
    }

    fn unused_from_start(
        &self,
        json: &JsonParts,
        index: u32,
        start: LexState,
        history: UsedId,
    ) -> Result<Option<Vec<u8>>, EngineError> {
        let lexeme = self.lexeme(index);
        for byte in first_bytes() {
            let Some(state) = lexeme.next(start, byte)? else { continue };
            let text = match Pointer::new(&json.histories, history, &[byte]) {
                Some(pointer) => self.unused_text(json, index, state, pointer)?,
                None => Some(Vec::new()),
            };
            if let Some(text) = text {
                return Ok(Some([&[byte], &text[..]].concat()));
            }
        }
        Ok(None)
    }

    /// Whether a container that begins with a text can differ from these.
    fn differs_from(
        &self,
        json: &JsonParts,
        query: QueryId,
        item: &[u8],
        rivals: &[crate::json_schema::SchemaId],
    ) -> Result<bool, EngineError> {
        let set = &json.schema;
        let mut others = Vec::with_capacity(rivals.len() + 1);
        for &rival in rivals {
            others.push(set.negation(rival)?);
        }
        let mut schemas = Schemas::like(json.property_order, json.queries.get(query.0));
        for &schema in json.queries.get(query.0).required_schemas() {
            others.push(schema);
            let schema = set.conjunction(&others)?;
            others.pop();
            if set.is_satisfiable(schema)? {
                schemas.require(schema);
            }
        }
        if !schemas.is_any_required() {
            return Ok(false);
        }
        let query = self.query(json, schemas)?;
        let stack = self.push(Frame::Value(query), StackId::END)?;
        Ok(self.walk(self.starts(stack)?, item)?.is_some())
    }

    /// Whether the item at a level has values without end, from where a thread stands on. `stays`:
    /// wherever it goes on to within its lexeme.
    fn is_endless_below(
        &self,
        json: &JsonParts,
        thread: &Thread,
        level: StackId,
        stays: bool,
    ) -> Result<bool, EngineError> {
        let &Cell { frame, parent, .. } = self.cell(thread.stack);
        let begun = match (frame, thread.lexeme) {
            (Frame::Value(_), ThreadLexeme::Lexeme(lexeme))
                if !matches!(lexeme, index::OPEN_OBJECT | index::OPEN_ARRAY) =>
            {
                self.takes_anything(lexeme, thread.lex_state())?
                    || !stays && self.has_many_texts(json, lexeme, thread.lex_state())?
            }
            (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Key) => {
                self.has_endless_keys(json, state)?
                    || self.has_endless_name(json, state, thread.key_node(), MAX_DEPTH)?
            }
            (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Lexeme(lexeme))
                if lexeme != index::CLOSE_EMPTY_OBJECT
                    && !self.goes_on(json, thread.stack, lexeme)? =>
            {
                self.has_endless_keys(json, state)?
                    || self.takes_anything(lexeme, thread.lex_state())?
            }
            (frame, ThreadLexeme::Lexeme(lexeme)) if frame.is_between_parts() => {
                let is_start = thread.lex_state() == self.lexeme(lexeme).start();
                (is_start || self.goes_on(json, thread.stack, lexeme)?)
                    && self.is_endless(json, frame, MAX_DEPTH)?
            }
            _ => self.is_endless(json, frame, MAX_DEPTH)?,
        };
        Ok(begun || self.is_endless_from(json, parent, level)?)
    }

    /// Whether the value that a stack stands in or after may be continued without end before a level.
    fn is_endless_from(
        &self,
        json: &JsonParts,
        stack: StackId,
        level: StackId,
    ) -> Result<bool, EngineError> {
        let mut at = stack;
        while at != level && at != StackId::END {
            let &Cell { frame, parent, .. } = self.cell(at);
            if self.is_endless(json, frame, MAX_DEPTH)? {
                return Ok(true);
            }
            at = parent;
        }
        Ok(false)
    }

    /// Whether tokens that a thread of any history reads within its lexeme are beside all items that
    /// came, and whether the item is still endless where it stands.
    pub fn stays_endless(&self, thread: &Thread) -> Result<bool, EngineError> {
        let Some(json) = self.json() else { return Ok(true) };
        let (frame, level) = (self.cell(thread.stack).frame, self.level(thread.stack));
        if level == StackId::END || self.history_of(json, level).is_none() {
            // A level further out is looked at where the item at this one ends.
            return Ok(!self.has_history(thread.stack) || level == StackId::END);
        }
        if let (Frame::ObjectOpen(state) | Frame::ObjectKey(state), ThreadLexeme::Key) =
            (frame, thread.lexeme)
        {
            return self.has_endless_keys(json, state);
        }
        self.is_endless_below(json, thread, level, true)
    }

    /// Whether the item that a stack stands in has values without end, whatever has come before.
    pub fn is_endless_at(&self, stack: StackId) -> Result<bool, EngineError> {
        let Some(json) = self.json() else { return Ok(true) };
        let level = self.level(stack);
        if level == StackId::END {
            return Ok(true);
        }
        self.is_endless_from(json, stack, level)
    }

    /// Whether a string goes on with any characters, also after its opening quote.
    fn takes_anything(&self, lexeme: u32, state: LexState) -> Result<bool, EngineError> {
        let lexeme = self.lexeme(lexeme);
        if lexeme.spec().spelling != Spelling::JsonString {
            return Ok(false);
        }
        let inside = if state == lexeme.start() { lexeme.next(state, b'"')? } else { Some(state) };
        Ok(inside.is_some_and(|state| lexeme.takes_anything(state)))
    }

    /// Whether a frame leaves room for values without end. It may say no where that is hard to tell.
    fn is_endless(
        &self,
        json: &JsonParts,
        frame: Frame,
        depth: usize,
    ) -> Result<bool, EngineError> {
        if let Some(&known) = json.rivals.endless.lock().get(&frame) {
            return Ok(known);
        }
        if depth == 0 {
            return Ok(false);
        }
        let endless = match frame {
            Frame::Value(query) => self.is_endless_query(json, query, depth)?,
            Frame::Part(group) => {
                let state = self.object_start(json, group)?;
                self.is_endless(json, Frame::ObjectOpen(state), depth - 1)?
            }
            Frame::ObjectOpen(state) | Frame::ObjectAfter(state) | Frame::ObjectKey(state) => {
                self.has_endless_keys(json, state)? || {
                    let keys = json.object_states.get(state.0).keys;
                    self.has_endless_name(json, state, keys, depth)?
                }
            }
            Frame::AwaitMember(pending) => match self.after_any_member(json, pending)? {
                Some(state) => self.is_endless(json, Frame::ObjectAfter(state), depth - 1)?,
                None => false,
            },
            Frame::ArrayOpen(state) | Frame::ArrayAfter(state) => {
                self.is_endless_group(json, self.group_of(json, state), depth)?
            }
            Frame::AwaitItem(pending) | Frame::AwaitComparedItem(pending) => {
                let state = self.item_of(json, pending);
                self.is_endless_group(json, self.group_of(json, state), depth)?
            }
            _ => false,
        };
        if endless || depth == MAX_DEPTH {
            json.held.add(super::memory::map_entry::<Frame, bool>());
            json.rivals.endless.lock().insert(frame, endless);
        }
        Ok(endless)
    }

    /// Whether a value that has not begun can be one of infinitely many.
    pub(super) fn is_endless_query(
        &self,
        json: &JsonParts,
        query: QueryId,
        depth: usize,
    ) -> Result<bool, EngineError> {
        let starts = self.value_starts(json, query)?;
        for scalar in &starts.scalars {
            if self.is_endless_scalar(json, scalar.lexeme)? {
                return Ok(true);
            }
        }
        for &group in &starts.objects {
            let state = self.object_start(json, group)?;
            if self.is_endless(json, Frame::ObjectOpen(state), depth.saturating_sub(1))? {
                return Ok(true);
            }
        }
        match starts.arrays {
            Some(group) => self.is_endless_group(json, group, depth.saturating_sub(1)),
            None => Ok(false),
        }
    }

    /// Whether all containers that a query allows have values without end.
    pub(super) fn are_containers_endless(
        &self,
        json: &JsonParts,
        query: QueryId,
    ) -> Result<bool, EngineError> {
        let starts = self.value_starts(json, query)?;
        for &group in &starts.objects {
            let state = self.object_start(json, group)?;
            if !self.is_endless(json, Frame::ObjectOpen(state), MAX_DEPTH)? {
                return Ok(false);
            }
        }
        match starts.arrays {
            Some(group) => self.is_endless_group(json, group, MAX_DEPTH),
            None => Ok(true),
        }
    }

    /// Whether a scalar of the query can be written that has not come.
    pub(super) fn has_unused_scalar(
        &self,
        json: &JsonParts,
        query: QueryId,
        history: UsedId,
    ) -> Result<bool, EngineError> {
        let starts = self.value_starts(json, query)?;
        if !starts.objects.is_empty() || starts.arrays.is_some() {
            return Ok(true);
        }
        for scalar in &starts.scalars {
            let lexeme = self.lexeme(scalar.lexeme);
            let start = lexeme.start();
            if self.is_endless_scalar(json, scalar.lexeme)? {
                return Ok(true);
            }
            for byte in first_bytes() {
                let Some(state) = lexeme.next(start, byte)? else { continue };
                let Some(pointer) = Pointer::new(&json.histories, history, &[byte]) else {
                    return Ok(true);
                };
                if self.is_scalar_alive(json, scalar.lexeme, state, pointer)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a scalar has values without end, or more than any text can hold.
    pub(super) fn is_endless_scalar(
        &self,
        json: &JsonParts,
        index: u32,
    ) -> Result<bool, EngineError> {
        let lexeme = self.lexeme(index);
        let start = lexeme.start();
        if lexeme.spec().spelling == Spelling::JsonString {
            return Ok(
                self.takes_anything(index, start)? || self.has_many_texts(json, index, start)?
            );
        }
        // Integers of any size.
        let Some(digit) = lexeme.next(start, b'1')? else { return Ok(false) };
        Ok(lexeme.next(digit, b'0')? == Some(digit) && lexeme.next(digit, b'7')? == Some(digit))
    }

    /// Whether a string can go on in more ways than any text can hold. It may say no where that is
    /// hard to tell.
    fn has_many_texts(
        &self,
        json: &JsonParts,
        index: u32,
        state: LexState,
    ) -> Result<bool, EngineError> {
        let lexeme = self.lexeme(index);
        if lexeme.spec().spelling != Spelling::JsonString || lexeme.listed(state).is_some() {
            return Ok(false);
        }
        match json.rivals.counter.lock().count(lexeme, state, MANY_TEXTS) {
            Ok(count) => Ok(count >= MANY_TEXTS),
            Err(error) if error.maximum == MAX_COUNTED as u64 => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether some name from a place among those of an object on leads to values without end.
    fn has_endless_name(
        &self,
        json: &JsonParts,
        state: ObjectStateId,
        node: KeyNodeId,
        depth: usize,
    ) -> Result<bool, EngineError> {
        // Whatever lies below the object.
        let stack = self.push(Frame::ObjectKey(state), StackId::END)?;
        let node = json.keys.node(node);
        for name in json.keys.allowed_names(&node).take(MAX_NAMES) {
            let mut at = self.exit(stack, ThreadLexeme::Key, 1, TextId(name))?;
            // The colon, the value, and what waits for it.
            for _ in 0..3 {
                let &Cell { frame, parent, .. } = self.cell(at);
                if self.is_endless(json, frame, depth - 1)? {
                    return Ok(true);
                }
                at = parent;
            }
        }
        Ok(false)
    }
}

fn first_bytes() -> impl Iterator<Item = u8> {
    b"\"-0123456789ntf".iter().copied()
}

/// The bytes that a scalar may go on with.
fn likely_bytes(pointer: &Pointer) -> impl Iterator<Item = u8> {
    // The last is gone on with first: in longer numbers those that came are soon left behind.
    let number: &[u8] = b"eE+-.0123456789";
    let is_number = pointer.number.is_some();
    let of_number = number.iter().copied().filter(move |_| is_number);
    of_number.chain((0..=255u8).filter(move |_| !is_number))
}
