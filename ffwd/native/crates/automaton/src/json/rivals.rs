//! Items that must differ from the earlier ones: whether the current text can still become another
//! value.
//!
//! The query of an item does not depend on the earlier items ([`crate::json::history`]). A thread within
//! an item is therefore checked against their set: it is alive if some value that its text can
//! become is not in the set. For most texts this is clear: no earlier item has the same prefix, or
//! a later part has infinitely many values. Otherwise the texts of a scalar are searched against
//! the set, and a container is matched again without the few items that it may still equal.

use smallvec::SmallVec;

use crate::error::Result;
use crate::json::agreement::OpenMember;
use crate::json::compared::Compared;
use crate::json::endless::MAX_DEPTH;
use crate::json::history::{has_exponent, open_value, ANY_HISTORY};
use crate::json::other::agreeing;
use crate::json::pointer::{likely_bytes, Further, Numbers, Pointer, Rivals};
use crate::json::rival_place::{place_of, Left, EXPONENT, MAX_SEARCHED};
use crate::json::used_keys::UsedId;
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{ArrayPendingId, ArrayStateId, LexemeId, QueryId, StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::{LexState, Spelling};

impl<O: On> Compared<'_, O> {
    /// The earlier items of an item's array, if they are stored beside its schema.
    pub(crate) fn history_of(&self, level: StackId) -> Option<(ArrayPendingId, UsedId)> {
        match self.on.cell(level).frame {
            Frame::AwaitComparedItem(pending) => {
                Some((pending, self.json.arrays.history_before(pending)?))
            }
            _ => None,
        }
    }

    /// The items around a thread whose earlier items are known, the innermost first.
    pub(crate) fn levels(
        &self,
        stack: StackId,
    ) -> impl Iterator<Item = (StackId, ArrayPendingId, UsedId)> + '_ {
        let mut at = self.on.level(stack);
        let mut found: SmallVec<[_; 2]> = SmallVec::new();
        while at != StackId::END {
            if let Some((pending, history)) = self.history_of(at) {
                if history != ANY_HISTORY && history != UsedId::EMPTY {
                    found.push((at, pending, history));
                }
            }
            at = self.on.level(self.on.cell(at).parent);
        }
        found.into_iter()
    }

    /// The stack without the earlier items.
    pub fn without_history(&self, stack: StackId) -> Result<StackId> {
        self.exchange_history(stack, ANY_HISTORY)
    }

    /// The stack as if the current items need not differ from earlier ones.
    pub(crate) fn as_if_none_came(&self, stack: StackId) -> Result<StackId> {
        self.exchange_history(stack, UsedId::EMPTY)
    }

    /// The stack with the same number of other items beside the schemas.
    fn exchange_history(&self, stack: StackId, history: UsedId) -> Result<StackId> {
        if !self.on.has_history(stack) {
            return Ok(stack);
        }
        if let Some(&known) = self.json.rivals.exchanged.lock().get(&(stack, history)) {
            return Ok(known);
        }
        let mut above = Vec::new();
        let mut at = stack;
        while self.on.has_history(at) {
            above.push(at);
            at = self.on.cell(at).parent;
        }
        for cell in above.into_iter().rev() {
            let frame = match self.on.cell(cell).frame {
                Frame::ArrayOpen(state) => {
                    Frame::ArrayOpen(self.json.arrays.array_with_history(state, history)?)
                }
                Frame::ArrayAfter(state) => {
                    Frame::ArrayAfter(self.json.arrays.array_with_history(state, history)?)
                }
                Frame::AwaitComparedItem(item) => {
                    Frame::AwaitComparedItem(self.json.arrays.item_with_history(item, history)?)
                }
                frame => frame,
            };
            at = self.on.push(frame, at)?;
        }
        self.json.held.add(crate::interning::memory::map_entry::<(StackId, UsedId), StackId>());
        self.json.rivals.exchanged.lock().insert((stack, history), at);
        Ok(at)
    }

    /// Whether a thread is within an item that must differ from earlier ones.
    pub(crate) fn is_rivalled(&self, thread: &Thread) -> bool {
        let is_recorded = !matches!(thread.transcript, TextId::NONE | TextId::ANY);
        is_recorded && self.levels(thread.stack).next().is_some()
    }

    /// Whether the current item of a thread can become an unused value.
    #[inline]
    pub(crate) fn is_unrivalled(&self, thread: &Thread) -> Result<bool> {
        if matches!(thread.transcript, TextId::NONE | TextId::EMPTY | TextId::ANY) {
            return Ok(true);
        }
        self.find_unrivalled(thread)
    }

    #[cold]
    fn find_unrivalled(&self, thread: &Thread) -> Result<bool> {
        let is_only = self.levels(thread.stack).nth(1).is_none();
        for (level, pending, history) in self.levels(thread.stack) {
            if self.is_endless_below(thread, level, false)? {
                continue;
            }
            let item = self.item_text(thread, level);
            if let Some((lexeme, state)) = self.scalar_of(thread, level) {
                if item.is_empty() {
                    continue;
                }
                if !self.is_scalar_alive((lexeme, state), history, &item)? {
                    return Ok(false);
                }
                continue;
            }
            if let Some(apart) = self.is_member_apart(thread, (level, history), &item, is_only)? {
                #[cfg(debug_assertions)]
                if !apart || self.json.histories.len(history) <= 32 {
                    // The same by trying what follows.
                    let other = self.finds_other(thread, level, pending, history, item.clone())?;
                    assert_eq!(apart, other, "after {}", String::from_utf8_lossy(&item));
                }
                if apart {
                    continue;
                }
                return Ok(false);
            }
            if !self.finds_other(thread, level, pending, history, item)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The threads whose items can become unused values.
    pub(crate) fn unrivalled(&self, threads: Threads) -> Result<Threads> {
        let mut kept = Threads::new();
        for thread in threads {
            if self.is_unrivalled(&thread)? {
                kept.push(thread);
            }
        }
        Ok(kept)
    }

    /// Returns the relation of the earlier items to the tokens that a thread matches.
    pub fn rivals(&self, thread: &Thread) -> Result<Rivals> {
        if !self.on.has_history(thread.stack) {
            return Ok(Rivals::None);
        }
        let mut rivals = Rivals::None;
        for (level, _, history) in self.levels(thread.stack) {
            let item = self.item_text(thread, level);
            let found = match self.scalar_of(thread, level) {
                Some((lexeme, state)) if item.is_empty() => {
                    Rivals::Begins(history, numbers_of(self, lexeme, state)?)
                }
                Some((lexeme, state)) => {
                    let is_integer = item.iter().all(u8::is_ascii_digit);
                    let takes_digits = is_integer && self.takes_digits(lexeme, Some(state))?;
                    match Pointer::new(&self.json.histories, history, &item) {
                        Some(pointer) => {
                            let needs_exponent = needs_exponent(self, lexeme, state)?;
                            let numbers = Numbers { takes_digits, needs_exponent };
                            Rivals::Scalar(Pointer { numbers, ..pointer })
                        }
                        None => Rivals::None,
                    }
                }
                None if item.is_empty() => Rivals::Begins(history, Numbers::default()),
                None => match agreeing(self.json, history, &item)?.is_none() {
                    true => Rivals::None,
                    false => self.member_rivals(thread, history, &item)?,
                },
            };
            rivals = match (rivals, found) {
                // If the innermost of nested items differs, all of them do.
                (Rivals::Digits(number), Rivals::Digits(_)) => Rivals::Digits(number),
                (Rivals::None, found) => found,
                (rivals, Rivals::None) => rivals,
                _ => Rivals::Some,
            };
        }
        if let Frame::ArrayOpen(state) | Frame::ArrayAfter(state) = self.on.cell(thread.stack).frame
        {
            let history = self.json.arrays.history_at(state);
            if let Some(history) = history.filter(|&history| history != UsedId::EMPTY) {
                return Ok(match rivals {
                    Rivals::None => Rivals::Begins(history, next_numbers(self, state)?),
                    _ => Rivals::Some,
                });
            }
        }
        Ok(rivals)
    }

    /// The rivals of a container that some agree with so far.
    fn member_rivals(&self, thread: &Thread, history: UsedId, item: &[u8]) -> Result<Rivals> {
        let frame = self.on.cell(thread.stack).frame;
        let ThreadLexeme::Lexeme(lexeme) = thread.lexeme else { return Ok(Rivals::Some) };
        if matches!(frame, Frame::Value(_))
            && (self.is_endless_number(thread, lexeme)? || self.begins_endless_number(thread)?)
        {
            return Ok(Rivals::Digits((lexeme, thread.lex_state())));
        }
        let is_string = self.on.lexeme(lexeme).spec().spelling == Spelling::JsonString;
        if !is_string || !matches!(frame, Frame::Value(_)) {
            return Ok(Rivals::Some);
        }
        let open = OpenMember::of(&self.json.schema, &self.json.histories, item)?;
        Ok(open.map_or(Rivals::Some, |open| Rivals::Member(history, open)))
    }

    /// Whether a number that continues with some digits can become many.
    pub(crate) fn stays_many(
        &self,
        (index, state): (LexemeId, LexState),
        digits: &[u8],
    ) -> Result<bool> {
        let lexeme = self.on.lexeme(index);
        let mut at = state;
        for &digit in digits {
            match lexeme.next(at, digit)? {
                Some(next) => at = next,
                None => return Ok(false),
            }
        }
        self.has_many_numbers(index, at)
    }

    /// The text so far of the item at a level.
    pub(crate) fn item_text(&self, thread: &Thread, level: StackId) -> Vec<u8> {
        let mut text = self.json.keys.texts.bytes(thread.transcript);
        let mut outermost = level;
        let mut at = level;
        while at != StackId::END {
            if matches!(self.on.cell(at).frame, Frame::AwaitComparedItem(_)) {
                outermost = at;
            }
            at = self.on.cell(at).parent;
        }
        let depth = self.on.cell(level).depth - self.on.cell(outermost).depth;
        let begin = open_value(&text, depth as usize);
        text.drain(..begin);
        text
    }

    /// The lexeme that a thread is in, if the whole item is that scalar.
    pub(crate) fn scalar_of(
        &self,
        thread: &Thread,
        level: StackId,
    ) -> Option<(LexemeId, LexState)> {
        let &Cell { frame, parent, .. } = self.on.cell(thread.stack);
        match (frame, thread.lexeme) {
            (Frame::Value(_), ThreadLexeme::Lexeme(lexeme))
                if parent == level && self.json.layouts.place(lexeme).is_none() =>
            {
                Some((lexeme, thread.lex_state()))
            }
            _ => None,
        }
    }

    /// Whether an incomplete scalar can become an unused value.
    fn is_scalar_alive(
        &self,
        (lexeme, state): (LexemeId, LexState),
        history: UsedId,
        item: &[u8],
    ) -> Result<bool> {
        let left = match place_of(self, history, item, (lexeme, state)) {
            _ if has_exponent(item) => Left::Exponents,
            Some(place) => self.scalar_left(place, (lexeme, state))?,
            None => Left::Something,
        };
        let pointer = Pointer::new(&self.json.histories, history, item);
        #[cfg(debug_assertions)]
        if let Some(pointer) = pointer.clone().filter(|_| self.json.histories.len(history) <= 32) {
            // The same for the text itself.
            let other = self.unused_text(lexeme, state, pointer)?;
            let agrees = left == Left::Exponents || other.is_some() == (left == Left::Something);
            assert!(agrees, "{left:?} after {}", String::from_utf8_lossy(item));
        }
        Ok(match (left, pointer) {
            (Left::Exponents, Some(pointer)) => self.unused_text(lexeme, state, pointer)?.is_some(),
            (left, _) => left != Left::Nothing,
        })
    }

    /// Whether the text of a scalar can become none of some values.
    pub(crate) fn has_unused_text(
        &self,
        (index, state): (LexemeId, LexState),
        values: UsedId,
        written: &[u8],
    ) -> Result<bool> {
        match Pointer::new(&self.json.histories, values, written) {
            Some(pointer) => Ok(self.unused_text(index, state, pointer)?.is_some()),
            None => Ok(true),
        }
    }

    /// Bytes after which a scalar differs from all earlier items, wherever it ends.
    fn unused_text(
        &self,
        index: LexemeId,
        state: LexState,
        pointer: Pointer,
    ) -> Result<Option<Vec<u8>>> {
        let lexeme = self.on.lexeme(index);
        let histories = &self.json.histories;
        if state.accepts() && !pointer.is_used(histories) {
            return Ok(Some(Vec::new()));
        }
        let mut pending = vec![(state, pointer, Vec::new())];
        let mut searched = 0;
        while let Some((state, pointer, text)) = pending.pop() {
            searched += 1;
            meter::charge(8)?;
            if searched > MAX_SEARCHED {
                let what = "distinct_texts_searched";
                return Err(LimitExceeded::new(what, MAX_SEARCHED).into());
            }
            for byte in likely_bytes(&pointer) {
                let Some(next) = lexeme.next(state, byte)? else { continue };
                let mut text = text.clone();
                text.push(byte);
                let there = match pointer.next(histories, byte) {
                    Further::At(there) => there,
                    Further::Exponents(there) if lexeme.may_have(next, EXPONENT) => there,
                    _ => return Ok(Some(text)),
                };
                if next.accepts() && !there.is_used(histories) {
                    return Ok(Some(text));
                }
                // More zeros at the end of a fraction change nothing.
                let stays = next == state && there.number.is_some();
                if !stays && !next.is_final() {
                    pending.push((next, there, text));
                }
            }
        }
        Ok(None)
    }

    /// An end of the current scalar item with which it differs from all earlier ones.
    pub(crate) fn unused_ending(&self, thread: &Thread) -> Result<Option<Vec<u8>>> {
        let Some((level, _, history)) = self.levels(thread.stack).next() else {
            return Ok(None);
        };
        let Some((lexeme, state)) = self.scalar_of(thread, level) else { return Ok(None) };
        if thread.transcript == TextId::ANY {
            return Ok(None);
        }
        let item = self.item_text(thread, level);
        let pointer = match item.is_empty() {
            // The first byte distinguishes numbers from other scalars.
            true => return self.unused_from_start(lexeme, state, history),
            false => Pointer::new(&self.json.histories, history, &item),
        };
        let Some(pointer) = pointer else { return Ok(None) };
        self.unused_text(lexeme, state, pointer)
    }

    /// How many earlier items the current container of a thread may still equal.
    pub(crate) fn num_rivals_of_member(&self, thread: &Thread) -> Result<usize> {
        if !self.on.has_history(thread.stack) {
            return Ok(0);
        }
        let mut rivals = 0;
        for (level, _, history) in self.levels(thread.stack) {
            if thread.transcript == TextId::ANY || self.scalar_of(thread, level).is_some() {
                continue;
            }
            let item = self.item_text(thread, level);
            if item.is_empty() {
                continue;
            }
            rivals += agreeing(self.json, history, &item)?.count as usize;
        }
        Ok(rivals)
    }

    fn unused_from_start(
        &self,
        index: LexemeId,
        start: LexState,
        history: UsedId,
    ) -> Result<Option<Vec<u8>>> {
        let lexeme = self.on.lexeme(index);
        // The shortest of those that begin with each byte.
        let mut best: Option<(usize, Vec<u8>)> = None;
        for byte in first_bytes() {
            let Some(state) = lexeme.next(start, byte)? else { continue };
            let text = match Pointer::new(&self.json.histories, history, &[byte]) {
                Some(pointer) => self.unused_text(index, state, pointer)?,
                None => Some(Vec::new()),
            };
            let Some(text) = text else { continue };
            let mut end = Some(state);
            for &byte in &text {
                end = match end {
                    Some(state) => lexeme.next(state, byte)?,
                    None => None,
                };
            }
            let Some(end) = end else { continue };
            let rest = match end.is_final() {
                true => Some(0),
                false => lexeme.endings(end)?.iter().map(|ending| ending.text.len()).min(),
            };
            let Some(rest) = rest else { continue };
            let length = 1 + text.len() + rest;
            if best.as_ref().is_none_or(|&(least, _)| length < least) {
                best = Some((length, [&[byte], &text[..]].concat()));
            }
        }
        Ok(best.map(|(_, text)| text))
    }

    /// Whether the query has an unused value.
    pub(crate) fn has_unused_item(&self, query: QueryId, history: UsedId) -> Result<bool> {
        let starts = self.json.value_starts(self.on, query)?;
        for scalar in &starts.scalars {
            let lexeme = self.on.lexeme(scalar.lexeme);
            let start = lexeme.start();
            if self.is_endless_scalar(scalar.lexeme)? {
                return Ok(true);
            }
            for byte in first_bytes() {
                let Some(state) = lexeme.next(start, byte)? else { continue };
                if self.is_scalar_alive((scalar.lexeme, state), history, &[byte])? {
                    return Ok(true);
                }
            }
        }
        if starts.objects.is_empty() && starts.arrays.is_none() {
            return Ok(false);
        }
        let kinds = [b'{', b'['].map(|kind| self.json.histories.sets.child(history, kind));
        if kinds == [None, None] || self.is_endless_query(query, MAX_DEPTH)? {
            return Ok(true);
        }
        // All scalars are used, so a further value is a container.
        let schemas = self.json.queries.get(query.0).required_schemas();
        let came = u64::from(self.json.histories.len(history));
        for &schema in schemas {
            if self.json.schema.has_more_values(schema, came)? {
                return Ok(true);
            }
        }
        let came = self.json.histories.items(&self.json.schema, history)?;
        for &schema in schemas {
            if self.json.schema.has_other_value(schema, &came)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The numbers of a lexeme before their first byte.
fn numbers_of<O: On>(
    compared: &Compared<'_, O>,
    index: LexemeId,
    start: LexState,
) -> Result<Numbers> {
    let lexeme = compared.on.lexeme(index);
    let takes_digits = compared.takes_digits(index, lexeme.next(start, b'1')?)?;
    let needs_exponent = lexeme.may_have(start, EXPONENT) && !compared.is_endless_scalar(index)?;
    Ok(Numbers { takes_digits, needs_exponent })
}

/// Whether a number may go on only with an exponent, there or after further digits.
fn needs_exponent<O: On>(
    compared: &Compared<'_, O>,
    index: LexemeId,
    state: LexState,
) -> Result<bool> {
    let may_have = compared.on.lexeme(index).may_have(state, EXPONENT);
    Ok(may_have && !compared.has_many_numbers(index, state)?)
}

/// The numbers that the next item may be.
fn next_numbers<O: On>(compared: &Compared<'_, O>, state: ArrayStateId) -> Result<Numbers> {
    let known = compared.json.arrays.items.lock().get(&state).copied();
    let Some(Some(pending)) = known else { return Ok(Numbers::default()) };
    let mut all = Numbers { takes_digits: false, needs_exponent: false };
    for scalar in
        &compared.json.value_starts(compared.on, compared.json.arrays.item_query(pending))?.scalars
    {
        let start = compared.on.lexeme(scalar.lexeme).start();
        let numbers = numbers_of(compared, scalar.lexeme, start)?;
        all.takes_digits |= numbers.takes_digits;
        all.needs_exponent |= numbers.needs_exponent;
    }
    Ok(all)
}

fn first_bytes() -> impl Iterator<Item = u8> {
    b"\"-0123456789ntf".iter().copied()
}
