//! The number of continuations of an item after a member.
//!
//! If what follows can be more than as many items have this member, some of it makes the item one that
//! has not come, and no token within this member is ruled out.

use smallvec::SmallVec;

use crate::error::Result;
use crate::interning::memory::map_entry;
use crate::json::blanks::{without_blanks, Blanks};
use crate::json::compared::Compared;
use crate::json::next_bytes::{list_bytes, Choices};
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
/// How many scalars and choices of what follows are looked at for one member.
const MAX_PARTS: usize = 64;
/// How many brackets and blanks are read to find that nothing else follows a member.
const MAX_CLOSING: usize = 256;
/// How many integers are counted.
const MAX_INTEGERS: u32 = 4096;

impl<O: On> Compared<'_, O> {
    /// A lower bound on the number of continuations of an item after a thread's current member. The
    /// item neither contains nor lies within another one.
    pub fn room_after(&self, thread: &Thread) -> Result<u32> {
        let (ThreadLexeme::Lexeme(index), Frame::Value(_)) =
            (thread.lexeme, self.on.cell(thread.stack).frame)
        else {
            return Ok(0);
        };
        // With several languages, the count may depend on those that hold.
        if self.on.lexeme(index).spec().languages.len() != 1 {
            return Ok(0);
        }
        let stack = self.without_history(thread.stack)?;
        if let Some(&known) = self.json.rivals.rooms.lock().get(&(stack, index)) {
            return Ok(known);
        }
        let room = find_room(*self, &Thread { stack, transcript: TextId::ANY, ..*thread })?;
        self.json.held.add(map_entry::<(StackId, LexemeId), u32>());
        self.json.rivals.rooms.lock().insert((stack, index), room);
        Ok(room)
    }

    /// Whether nothing but closing brackets, and blanks, can follow a thread's current member until
    /// the item at a level ends. May return `false` if that depends on the member.
    pub(crate) fn closes_after(&self, thread: &Thread, level: StackId) -> Result<bool> {
        let Compared { json, on } = *self;
        let (ThreadLexeme::Lexeme(index), Frame::Value(_)) =
            (thread.lexeme, on.cell(thread.stack).frame)
        else {
            return Ok(false);
        };
        let height = on.cell(level).height;
        let stack = self.without_history(thread.stack)?;
        let key = (stack, index, height);
        if let Some(&known) = json.rivals.closings.lock().get(&key) {
            return Ok(known);
        }
        let thread = Thread { stack, transcript: TextId::ANY, ..*thread };
        let closes = match after_scalar(*self, &thread)? {
            Some(threads) => only_closes(*self, threads, height)?,
            None => false,
        };
        json.held.add(map_entry::<(StackId, LexemeId, u32), bool>());
        json.rivals.closings.lock().insert(key, closes);
        Ok(closes)
    }
}

fn only_closes<O: On>(
    compared: Compared<'_, O>,
    mut threads: Threads,
    height: u32,
) -> Result<bool> {
    let on = compared.on;
    for _ in 0..MAX_CLOSING {
        let has_ended = |thread: &Thread| on.cell(thread.stack).height <= height;
        if threads.is_empty() || threads.iter().any(has_ended) {
            return Ok(!threads.is_empty() && threads.iter().all(has_ended));
        }
        let (mut closed, mut blank) = (None, None);
        // A required blank may begin a bracket or a comma.
        let trying = Blanks::Passed.trying(compared, &threads);
        for byte in 0..=u8::MAX {
            meter::charge(1)?;
            let is_blank = byte.is_ascii_whitespace();
            let next = on.step(if is_blank { &trying } else { &threads }, byte)?;
            match byte {
                _ if next.is_empty() => {}
                b']' | b'}' if closed.is_none() => closed = Some(next),
                _ if is_blank && blank.is_none() => blank = Some(next),
                _ => return Ok(false),
            }
        }
        threads = match (closed, blank) {
            (Some(next), None) | (None, Some(next)) => next,
            _ => return Ok(false),
        };
    }
    Ok(false)
}

fn find_room<O: On>(compared: Compared<'_, O>, thread: &Thread) -> Result<u32> {
    let level = compared.on.level(thread.stack);
    let Some(threads) = after_scalar(compared, thread)? else { return Ok(0) };
    let mut parts = MAX_PARTS;
    count_ways(compared, threads, level, &mut parts)
}

/// What goes on after a scalar whatever it is; `None` if that depends on it.
fn after_scalar<O: On>(
    Compared { json, on }: Compared<'_, O>,
    thread: &Thread,
) -> Result<Option<Threads>> {
    let ThreadLexeme::Lexeme(index) = thread.lexeme else { return Ok(None) };
    if on.lexeme(index).spec().languages.len() != 1 {
        return Ok(None);
    }
    let ends_item = on.cell(thread.stack).ends_compared_item;
    let text = match ends_item && json.ends_compared_item(on, thread)? {
        true => thread.transcript,
        false => thread.text,
    };
    let after = on.exit(thread.stack, thread.lexeme, 1, text)?;
    Ok(Some(on.following(after, TextId::ANY)?))
}

/// In how many ways the item at a level goes on with some threads, at least. No two of them make
/// the same value: of texts that name different members, those of one order count.
fn count_ways<O: On>(
    compared: Compared<'_, O>,
    mut threads: Threads,
    level: StackId,
    parts: &mut usize,
) -> Result<u32> {
    let Compared { json, on } = compared;
    let height = on.cell(level).height;
    loop {
        threads = without_blanks(compared, threads)?;
        if threads.is_empty() {
            return Ok(0);
        }
        if threads.iter().any(|thread| on.cell(thread.stack).height <= height) {
            return Ok(1);
        }
        if let Some(index) = scalar_start(compared, &threads) {
            let own = count_scalars(json, on.lexeme(index))?;
            // Items of an array within must differ from each other, and not all of them do.
            if own >= MANY || *parts == 0 || on.level(threads[0].stack) != level {
                return Ok(own);
            }
            *parts -= 1;
            let Some(after) = after_scalar(compared, &threads[0])? else { return Ok(own) };
            let more = count_ways(compared, after, level, parts)?;
            return Ok(own.saturating_mul(more.max(1)).min(MANY));
        }
        // What must come is no choice: only the meter bounds how much of it is read.
        let mut bytes: SmallVec<[u8; 16]> = SmallVec::new();
        let is_listed = list_bytes(on, Some(json), &threads, Choices::OfThreads, &mut bytes)?;
        if let (true, [byte]) = (is_listed, &bytes[..]) {
            meter::charge(1)?;
            threads = on.step(&threads, *byte)?;
            continue;
        }
        let punctuation = if is_listed { &bytes[..] } else { b",]}:\"{[" };
        let mut most = 0;
        for &byte in punctuation {
            if *parts == 0 {
                break;
            }
            let next = on.step(&threads, byte)?;
            if !next.is_empty() {
                *parts -= 1;
                most = most.max(count_ways(compared, next, level, parts)?);
            }
        }
        return Ok(most);
    }
}

/// The lexeme of a scalar that may begin, if it is the only continuation.
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

/// A lower bound on the number of a lexeme's values.
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

/// The number of a lexeme's texts that are literals, or digits without a leading zero: each of
/// these is a different value.
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
