//! In how many ways an item can go on after a member.
//!
//! If the next member can be more than as many items have this one, some value of it makes the item
//! one that has not come, and no token of this one is ruled out.

use crate::error::Result;
use crate::interning::memory::map_entry;
use crate::json::compared::Compared;
use crate::json::tables::Json;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LexemeId, StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_regular::expr::texts::MAX_STEPS as MAX_COUNTED;
use ffwd_regular::expr::{LexState, Lexeme, Spelling};

/// More than a grammar can remember items.
const MANY: u32 = 1 << 24;
/// How many integers are counted.
const MAX_INTEGERS: u32 = 4096;

impl<O: On> Compared<'_, O> {
    /// In how many ways an item goes on after the member that a thread is in the middle of, at
    /// least. The item lies in no other one, and no other one lies in it.
    pub fn room_after(&self, thread: &Thread) -> Result<u32> {
        let (ThreadLexeme::Lexeme(index), Frame::Value(_)) =
            (thread.lexeme, self.on.cell(thread.stack).frame)
        else {
            return Ok(0);
        };
        // With several languages it may depend on those that hold.
        if self.on.lexeme(index).spec().languages.len() != 1 {
            return Ok(0);
        }
        let stack = self.without_history(thread.stack)?;
        if let Some(&known) = self.json.rivals.rooms.lock().get(&(stack, index)) {
            return Ok(known);
        }
        let room = self.find_room(&Thread { stack, transcript: TextId::ANY, ..*thread })?;
        self.json.held.add(map_entry::<(StackId, LexemeId), u32>());
        self.json.rivals.rooms.lock().insert((stack, index), room);
        Ok(room)
    }

    fn find_room(&self, thread: &Thread) -> Result<u32> {
        let level = self.on.cell(self.on.level(thread.stack)).height;
        let ends_item = self.on.cell(thread.stack).ends_compared_item;
        let text = match ends_item && self.json.ends_compared_item(self.on, thread)? {
            true => thread.transcript,
            false => thread.text,
        };
        let after = self.on.exit(thread.stack, thread.lexeme, 1, text)?;
        let mut threads = self.on.following(after, TextId::ANY)?;
        let is_within = |thread: &Thread| self.on.cell(thread.stack).height > level;
        // What must come is no choice: only the meter bounds how much of it is read.
        while threads.iter().all(is_within) && scalar_start(*self, &threads).is_none() {
            let Some(byte) = self.listed_byte(&threads)? else { return Ok(0) };
            meter::charge(1)?;
            threads = self.on.step(&threads, byte)?;
            if threads.is_empty() {
                return Ok(0);
            }
        }
        match scalar_start(*self, &threads).filter(|_| threads.iter().all(is_within)) {
            Some(index) => count_scalars(self.json, self.on.lexeme(index)),
            None => Ok(0),
        }
    }
}

/// The lexeme of a scalar that may begin, if nothing else may go on.
fn scalar_start<O: On>(
    Compared { json, on }: Compared<'_, O>,
    threads: &Threads,
) -> Option<LexemeId> {
    let [thread] = threads.as_slice() else { return None };
    let (ThreadLexeme::Lexeme(index), Frame::Value(_)) =
        (thread.lexeme, on.cell(thread.stack).frame)
    else {
        return None;
    };
    let is_scalar = json.layouts.place(index).is_none();
    (is_scalar && on.lexeme(index).is_start(thread.lex_state())).then_some(index)
}

/// How many values a lexeme has, at least.
fn count_scalars(json: &Json, lexeme: &Lexeme) -> Result<u32> {
    let start = lexeme.start();
    if lexeme.spec().spelling != Spelling::JsonString {
        return count_plain(lexeme, start);
    }
    if let Some((listed, _)) = lexeme.listed(start) {
        return Ok(u32::try_from(listed.count()).unwrap_or(MANY).min(MANY));
    }
    match json.rivals.counter.lock().count(lexeme, start, u64::from(MANY)) {
        Ok(count) => Ok(u32::try_from(count).unwrap_or(MANY)),
        Err(error) if error.maximum == MAX_COUNTED as u64 => Ok(0),
        Err(error) => Err(error.into()),
    }
}

/// How many texts of a lexeme are literals, or digits without a zero before them: each of these is
/// another value.
fn count_plain(lexeme: &Lexeme, start: LexState) -> Result<u32> {
    let mut count = 0;
    for byte in *b"ntf" {
        count += u32::from(lexeme.next(start, byte)?.is_some());
    }
    let mut pending = vec![(start, b'1')];
    while let Some((state, least)) = pending.pop() {
        for digit in least..=b'9' {
            meter::charge(1)?;
            let Some(next) = lexeme.next(state, digit)? else { continue };
            count += u32::from(next.accepts());
            if count >= MAX_INTEGERS {
                return Ok(count);
            }
            if !next.is_final() {
                pending.push((next, b'0'));
            }
        }
    }
    Ok(count)
}
