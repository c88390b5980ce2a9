//! The search for a way to continue a container that makes it none of the earlier items.
//!
//! Ways are tried until no earlier item has them. If few earlier items remain possible after that,
//! the container is read again without these.

use crate::error::Result;
use crate::json::agreement::Agreeing;
use crate::json::blanks::{Blanks, MAX_TRIED};
use crate::json::compared::Compared;
use crate::json::query::Schemas;
use crate::json::tables::Json;
use crate::json::used_keys::UsedId;
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{ArrayPendingId, StackId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_regular::expr::Spelling;

/// After this many, the item is matched again without the few earlier items that it may still
/// equal.
const MAX_DIRECT: usize = 64;

impl<O: On> Compared<'_, O> {
    /// Returns whether a container with this prefix can become a fresh one: continuations are tried
    /// until they differ from the earlier items. If it may equal only a few, it is matched again
    /// without them.
    pub(crate) fn finds_other(
        &self,
        thread: &Thread,
        level: StackId,
        pending: ArrayPendingId,
        history: UsedId,
        item: Vec<u8>,
    ) -> Result<bool> {
        let earlier = (level, pending, history);
        let found = self.finds_other_by(Blanks::Passed, thread, earlier, item.clone())?;
        #[cfg(test)]
        if let Ok(tried) = self.finds_other_by(Blanks::Tried, thread, earlier, item.clone()) {
            super::blanks::compared(found);
            assert_eq!(found, tried, "after {}", String::from_utf8_lossy(&item));
        }
        Ok(found)
    }

    /// The same with blanks passed over or tried.
    pub(crate) fn finds_other_by(
        &self,
        blanks: Blanks,
        thread: &Thread,
        (level, pending, history): (StackId, ArrayPendingId, UsedId),
        item: Vec<u8>,
    ) -> Result<bool> {
        if agreeing(self.json, history, &item)?.is_none() {
            return Ok(true);
        }
        let height = self.on.cell(level).height;
        // Items within the container differ all the same.
        let stack = compared_within(*self, thread.stack, level)?;
        let alone = self.as_if_none_came(level)?;
        let ends = |thread: &Thread| self.on.cell(thread.stack).height <= height;
        let mut ways = vec![(Threads::from_slice(&[Thread { stack, ..*thread }]), item)];
        let mut tried = 0;
        while let Some((mut threads, mut text)) = ways.pop() {
            // A forced byte is no choice: only the meter bounds how many are read.
            loop {
                threads = blanks.behind(*self, threads)?;
                let Some(byte) = blanks.forced(*self, &threads)? else { break };
                meter::charge(1)?;
                threads = self.on.step(&threads, byte)?;
                text.push(byte);
                if threads.is_empty() || threads.iter().any(ends) {
                    break;
                }
                // Other bytes end no member.
                if (text.len() == 1 || matches!(byte, b'"' | b',' | b']' | b'}'))
                    && agreeing(self.json, history, &text)?.is_none()
                {
                    return Ok(true);
                }
            }
            if threads.is_empty() {
                continue;
            }
            if threads.iter().any(ends) {
                if !self.json.histories.has(&self.json.schema, history, &text)? {
                    return Ok(true);
                }
                continue;
            }
            tried += 1;
            if tried > blanks.max_tried() {
                let what = "distinct_texts_tried";
                return Err(LimitExceeded::new(what, MAX_TRIED).into());
            }
            let agreed = agreeing(self.json, history, &text)?;
            if agreed.is_none() {
                return Ok(true);
            }
            let many = u64::from(agreed.count);
            for thread in &threads {
                // Further inside, other items may exclude some of them.
                let is_own = self.on.cell(self.on.level(thread.stack)).height == height;
                if is_own && self.has_more_texts(thread, many)?
                    || self.is_endless_below(thread, alone, false)?
                {
                    return Ok(true);
                }
            }
            if tried > MAX_DIRECT && blanks == Blanks::Passed {
                if let Some(rivals) = self.json.histories.listed(agreed) {
                    if self.differs_from(level, pending, &text, &rivals)? {
                        return Ok(true);
                    }
                    continue;
                }
            }
            // Digits are tried first; blanks, and what is not ASCII, last.
            let wide = (0x80..=0xFF).chain(*b" \n\t\r");
            let others = (b'!'..=b'~').filter(|byte| !byte.is_ascii_digit());
            let trying = blanks.trying(*self, &threads);
            for byte in wide.chain(others).chain(b'0'..=b'9') {
                let from = if byte.is_ascii_whitespace() { &trying } else { &threads };
                let next = self.on.step(from, byte)?;
                if next.is_empty() || byte == b'0' && are_same_numbers(self, &threads, &next) {
                    continue;
                }
                let mut text = text.clone();
                text.push(byte);
                if has_long_exponent(&text) {
                    continue;
                }
                if !next.iter().any(ends) {
                    ways.push((next, text));
                } else if !self.json.histories.has(&self.json.schema, history, &text)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether the container at a level that begins with a text can differ from these.
    fn differs_from(
        &self,
        level: StackId,
        pending: ArrayPendingId,
        item: &[u8],
        rivals: &[ffwd_json_schema::SchemaId],
    ) -> Result<bool> {
        let query = self.json.arrays.item_query(pending);
        let set = &self.json.schema;
        let mut others = Vec::with_capacity(rivals.len() + 1);
        for &rival in rivals {
            others.push(set.negation(rival)?);
        }
        let mut schemas = Schemas::like(self.json.narrows, self.json.queries.get(query.0));
        for &schema in self.json.queries.get(query.0).required_schemas() {
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
        // They restrict how numbers are written.
        for &schema in self.json.queries.get(query.0).observed_schemas() {
            schemas.observe(schema);
        }
        let query = self.json.query(schemas)?;
        // The text is laid out as at the level: its line breaks tell in how many containers it is.
        let &Cell { layout, depth, .. } = self.on.cell(level);
        let mut around = self.on.push(Frame::Layout(layout), StackId::END)?;
        for _ in 0..depth {
            around = self.on.push(Frame::AwaitItem(pending), around)?;
        }
        let stack = self.on.push(Frame::Value(query), around)?;
        Ok(self.on.walk(self.on.starts(stack)?, item)?.is_some())
    }
}

/// A stack in which the items at a level and further out need not differ from any.
fn compared_within<O: On>(
    compared: Compared<'_, O>,
    stack: StackId,
    level: StackId,
) -> Result<StackId> {
    let mut above = Vec::new();
    let mut at = stack;
    while at != level && at != StackId::END {
        let &Cell { frame, parent, .. } = compared.on.cell(at);
        above.push(frame);
        at = parent;
    }
    let mut at = compared.as_if_none_came(at)?;
    for frame in above.into_iter().rev() {
        at = compared.on.push(frame, at)?;
    }
    Ok(at)
}

/// The earlier containers that agree with what is written of one so far.
pub(crate) fn agreeing(json: &Json, history: UsedId, item: &[u8]) -> Result<Agreeing> {
    json.histories.agreeing(&json.schema, history, item)
}

/// Whether a zero leads back to the state of a number, as at the end of a fraction and before the
/// digits of an exponent: it changes no value.
fn are_same_numbers<O: On>(compared: &Compared<'_, O>, before: &Threads, after: &Threads) -> bool {
    let is_same = |(one, other): (&Thread, &Thread)| {
        let ThreadLexeme::Lexeme(index) = one.lexeme else { return false };
        (one.lexeme, one.stack, one.lex_state()) == (other.lexeme, other.stack, other.lex_state())
            && matches!(compared.on.cell(one.stack).frame, Frame::Value(_))
            && compared.on.lexeme(index).spec().spelling == Spelling::Utf8
    };
    before.len() == after.len() && before.iter().zip(after).all(is_same)
}

/// Whether a text ends in an exponent of more than three digits, without zeros before them. Shorter
/// ones make as many numbers as are tried, and longer ones may not be compared.
fn has_long_exponent(text: &[u8]) -> bool {
    let digits = text.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, exponent) = text.split_at(text.len() - digits);
    let mark = before.strip_suffix(b"-").or(before.strip_suffix(b"+")).unwrap_or(before);
    let zeros = exponent.iter().take_while(|&&byte| byte == b'0').count();
    digits - zeros > 3 && matches!(mark, [.., b'0'..=b'9', b'e' | b'E'])
}
