//! Blanks between the parts of a value: they change no value, so a search for another value steps
//! behind them.
//!
//! Only white space that the text need not have is passed over. Blanks that a layout requires are
//! bytes like any others.

use smallvec::SmallVec;

use crate::error::Result;
use crate::json::compared::Compared;
use crate::json::next_bytes::{list_bytes, Choices};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};

#[cfg(test)]
thread_local! {
    /// The searches of both kinds that found another value, and those that found none.
    pub(crate) static COMPARED: std::cell::Cell<(usize, usize)> =
        const { std::cell::Cell::new((0, 0)) };
}

/// Counts a search whose twin has ended.
#[cfg(test)]
pub(crate) fn compared(found: bool) {
    let (some, none) = COMPARED.get();
    COMPARED.set(if found { (some + 1, none) } else { (some, none + 1) });
}

/// How many prefixes of an item are tried to find an unused one.
pub(crate) const MAX_TRIED: usize = 10_000;

/// Whether a search passes over blanks that change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blanks {
    Passed,
    /// They are tried like other bytes: the slow twin.
    #[cfg(test)]
    Tried,
}

impl Blanks {
    /// How many prefixes a search tries.
    pub fn max_tried(self) -> usize {
        match self {
            Self::Passed => MAX_TRIED,
            #[cfg(test)]
            Self::Tried => 300,
        }
    }

    /// The threads that read the next part of a value.
    pub fn behind<O: On>(self, compared: Compared<'_, O>, threads: Threads) -> Result<Threads> {
        match self {
            Self::Passed => without_blanks(compared, threads),
            #[cfg(test)]
            Self::Tried => Ok(threads),
        }
    }

    /// The threads that must also be tried with a blank.
    pub fn trying<O: On>(self, compared: Compared<'_, O>, threads: &Threads) -> Threads {
        let tries = |thread: &&Thread| match self {
            Self::Passed => mark_of(&compared, thread).is_none(),
            #[cfg(test)]
            Self::Tried => true,
        };
        threads.iter().filter(tries).copied().collect()
    }

    /// The forced next byte, if it is found without a search.
    pub fn forced<O: On>(
        self,
        compared: Compared<'_, O>,
        threads: &[Thread],
    ) -> Result<Option<u8>> {
        match self {
            Self::Passed => forced_part(compared, threads),
            #[cfg(test)]
            Self::Tried => compared.listed_byte(threads),
        }
    }
}

/// The forced next byte but for blanks.
fn forced_part<O: On>(compared: Compared<'_, O>, threads: &[Thread]) -> Result<Option<u8>> {
    let mut forced = None;
    for thread in threads {
        let byte = match mark_of(&compared, thread) {
            Some(mark) if !thread.lex_state().accepts() => mark,
            Some(_) => return Ok(None),
            None => match compared.listed_byte(std::slice::from_ref(thread))? {
                Some(byte) => byte,
                None => return Ok(None),
            },
        };
        if forced.is_some_and(|other| other != byte) {
            return Ok(None);
        }
        forced = Some(byte);
    }
    Ok(forced)
}

/// The bracket, comma or colon of a thread's lexeme, if that may have blanks and need not.
fn mark_of<O: On>(compared: &Compared<'_, O>, thread: &Thread) -> Option<u8> {
    let ThreadLexeme::Lexeme(index) = thread.lexeme else { return None };
    compared.json.layouts.flexible_mark(index)
}

impl<O: On> Compared<'_, O> {
    /// The forced next byte, if it is found without a search.
    pub(crate) fn listed_byte(&self, threads: &[Thread]) -> Result<Option<u8>> {
        let mut bytes = SmallVec::new();
        Ok(match list_bytes(self.on, Some(self.json), threads, Choices::OfThreads, &mut bytes)? {
            true => bytes.first().copied().filter(|_| bytes.len() == 1),
            false => None,
        })
    }
}

/// The threads behind the blanks that may follow the bracket, comma or colon of each thread: no blank
/// makes another value.
pub(crate) fn without_blanks<O: On>(
    compared: Compared<'_, O>,
    threads: Threads,
) -> Result<Threads> {
    if !threads.iter().any(|thread| may_have_blanks(&compared, thread)) {
        return Ok(threads);
    }
    let mut behind = Threads::new();
    for thread in threads {
        match behind_blanks(&compared, &thread)? {
            Some(threads) => behind.extend(threads),
            None => behind.push(thread),
        }
    }
    Ok(behind)
}

/// Whether a thread is behind a bracket, comma or colon, and blanks may follow.
fn may_have_blanks<O: On>(Compared { json, on }: &Compared<'_, O>, thread: &Thread) -> bool {
    let ThreadLexeme::Lexeme(index) = thread.lexeme else { return false };
    json.layouts.place(index).is_some() && {
        let state = thread.lex_state();
        state.accepts() && !on.lexeme(index).is_start(state)
    }
}

/// The threads that read the text which follows a bracket, comma or colon, without blanks; `None`
/// for any other thread.
pub(crate) fn behind_blanks<O: On>(
    compared: &Compared<'_, O>,
    thread: &Thread,
) -> Result<Option<Threads>> {
    let ThreadLexeme::Lexeme(index) = thread.lexeme else { return Ok(None) };
    if !may_have_blanks(compared, thread) {
        return Ok(None);
    }
    let on = compared.on;
    let verdict = on.lexeme(index).accept(thread.lex_state());
    let stack = on.exit(thread.stack, thread.lexeme, verdict, thread.text)?;
    Ok(Some(on.following(stack, thread.transcript)?))
}
