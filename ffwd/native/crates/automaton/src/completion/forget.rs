//! Completions independent of the earlier text, as far as possible.
//!
//! Earlier text matters only where a completion would repeat it. Keys without a name are recorded,
//! because they must not repeat, and so are all earlier items and the current one if they are
//! compared. Each text therefore has its own configuration, but nearly all of these have the same
//! completion. A completion is first searched without the earlier items, then without the current
//! text, and last for the text as it is. The first of these that completes the text is its
//! completion. The earlier searches have fewer constraints, so no later result is shorter.
//!
//! The effects of single tokens are computed for all tokens with the same target except for their
//! recorded text. A token is doubtful if another one of these completions may be that of the text
//! after it, and is then examined by itself. Both ways therefore find the same completion for each
//! text.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::completion::search::{Completing, EndingText};
use crate::error::Result;
use crate::stacks::cells::Cell;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_grammar::symbols::Symbol;
use ffwd_regular::expr::Spelling;

/// A completion.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub ending: EndingText,
    /// The keys and items in it that must differ from the current key and items of the text.
    pub distinct: Vec<Arc<[u8]>>,
}

/// A completion for all texts that differ only in their recorded text.
#[derive(Debug)]
pub struct Shared {
    /// The text and tokens that end it.
    pub ending: EndingText,
    distinct: Vec<Arc<[u8]>>,
    in_string: bool,
    /// Whether a key or an item has ended.
    left: bool,
    /// Whether an item has ended, and the completion differs from the earlier items.
    is_own: bool,
}

impl Shared {
    /// Whether the completion may be wrong for a text that ends with this token.
    pub fn is_doubtful(&self, token: &[u8]) -> bool {
        // Perhaps with the same key or item once more.
        if self.is_own || self.left && token.contains(&b',') {
            return true;
        }
        let within = |written: &Arc<[u8]>| {
            // The token ends in the middle of it, or has ended it.
            let quotes = token.iter().enumerate().filter(|(_, &byte)| byte == b'"');
            let mut ends = quotes.map(|(at, _)| &token[..=at]);
            let has_ended = |end: &[u8]| end.ends_with(written) || written.ends_with(end);
            written.windows(token.len().max(1)).any(|part| part == token)
                || self.left && ends.any(has_ended)
        };
        !self.distinct.is_empty()
            && (may_repeat(&self.distinct, token, self.in_string)
                || self.distinct.iter().any(within))
    }
}

/// Whether one of these may be the current key or item of a text that ends with some bytes.
fn may_repeat(distinct: &[Arc<[u8]>], text: &[u8], in_string: bool) -> bool {
    distinct.iter().any(|written| match written.first() {
        Some(b'"') => (1..=written.len()).any(|end| text.ends_with(&written[..end])),
        // These can be written in several ways.
        Some(b'[' | b'{') => true,
        _ => !in_string,
    })
}

/// The configuration without its recorded texts.
pub fn without_texts(threads: &[Thread]) -> Threads {
    let mut forgetful: Threads = threads.iter().map(Thread::forgetful).collect();
    if forgetful.len() > 1 {
        forgetful.sort_unstable();
        forgetful.dedup();
    }
    forgetful
}

impl Completing<'_> {
    /// The configurations with fewer constraints, the one with the fewest first.
    pub(crate) fn relaxed(&self, threads: &[Thread]) -> Result<SmallVec<[Threads; 2]>> {
        let mut relaxed: SmallVec<[Threads; 2]> = SmallVec::new();
        let forgetful = without_texts(threads);
        if threads.iter().any(|thread| self.automaton.has_history(thread.stack)) {
            let mut alone = forgetful.clone();
            for thread in &mut alone {
                if let Some(compared) = self.automaton.compared() {
                    thread.stack = compared.as_if_none_came(thread.stack)?;
                }
            }
            alone.sort_unstable();
            alone.dedup();
            if alone != forgetful {
                relaxed.push(alone);
            }
        }
        if forgetful.as_slice() != threads {
            relaxed.push(forgetful);
        }
        Ok(relaxed)
    }

    /// Whether a completion of a configuration with fewer constraints completes the true text.
    pub(crate) fn is_completed_by(&self, threads: &[Thread], written: &Written) -> Result<bool> {
        match threads.iter().any(|thread| self.automaton.has_history(thread.stack)) {
            true => self.is_ended_by(threads, &written.ending),
            false => Ok(!self.may_repeat(threads, written)),
        }
    }

    /// The completion of all texts whose configurations differ from this one only in recorded
    /// texts. `left`: the heights on the stack of objects whose last key was forgotten. `ended`:
    /// the heights of arrays in which an item has just ended.
    ///
    /// # Errors
    /// As [`Self::shortest`].
    pub fn shared(
        &self,
        forgetful: &[Thread],
        left: &[u32],
        ended: &[u32],
    ) -> Result<Option<Shared>> {
        let mut levels = self.levels_beside(forgetful);
        levels.extend(left.iter().chain(ended));
        let mut found = None;
        for like in self.relaxed(forgetful)? {
            let Some(written) = self.written(&like, &levels)? else { return Ok(None) };
            if self.is_completed_by(forgetful, &written)? {
                found = Some(written);
            }
        }
        let is_own = found.is_none() && !ended.is_empty();
        let found = match found {
            Some(found) => Some(found),
            None => self.written(forgetful, &levels)?,
        };
        let in_string = forgetful.iter().all(|thread| self.is_within_string(thread));
        Ok(found.map(|Written { ending, distinct }| {
            let left = !left.is_empty() || !ended.is_empty();
            Shared { ending, distinct, in_string, left, is_own }
        }))
    }

    /// The heights on the stack of the items that ended between an earlier position of the text and
    /// these threads.
    pub fn ended_items(&self, before: &[Thread], after: &[Thread]) -> SmallVec<[u32; 2]> {
        let mut ended = SmallVec::new();
        for thread in before {
            let mut at = self.automaton.level(thread.stack);
            while at != StackId::END {
                let &Cell { parent, height, .. } = self.automaton.cell(at);
                if !after.iter().all(|thread| self.is_within(thread.stack, at, height)) {
                    ended.push(height);
                }
                at = self.automaton.level(parent);
            }
        }
        ended
    }

    /// Whether a stack has another one of some height below it.
    fn is_within(&self, stack: StackId, other: StackId, height: u32) -> bool {
        let mut at = stack;
        while self.automaton.cell(at).height > height {
            at = self.automaton.cell(at).parent;
        }
        at == other
    }

    /// Whether all threads are behind the opening quote of a string.
    pub fn are_within_strings(&self, threads: &[Thread]) -> bool {
        threads.iter().all(|thread| self.is_within_string(thread))
    }

    /// The heights on the stacks of objects and arrays whose keys and items are recorded.
    pub(crate) fn levels_beside(&self, threads: &[Thread]) -> FxHashSet<u32> {
        let mut levels = FxHashSet::default();
        for thread in threads {
            if thread.text == TextId::ANY {
                levels.insert(self.automaton.cell(thread.stack).height);
            }
            if thread.transcript == TextId::ANY {
                let mut at = thread.stack;
                while at != StackId::END {
                    let &Cell { frame, parent, height, .. } = self.automaton.cell(at);
                    if matches!(frame, Frame::AwaitComparedItem(_)) {
                        levels.insert(height);
                    }
                    at = parent;
                }
            }
        }
        levels
    }

    /// Whether a completion that was found without them may repeat what threads have recorded.
    pub(crate) fn may_repeat(&self, threads: &[Thread], written: &Written) -> bool {
        let (Some(json), false) = (self.automaton.json(), written.distinct.is_empty()) else {
            return false;
        };
        // Within an unknown item, the completion was not compared with its own parts either.
        let mut seen = std::collections::BTreeSet::new();
        if !written.distinct.iter().all(|text| seen.insert(text.clone())) {
            return true;
        }
        let in_string = threads.iter().all(|thread| self.is_within_string(thread));
        let repeats = |text| may_repeat(&written.distinct, &json.keys.texts.bytes(text), in_string);
        threads.iter().any(|thread| {
            thread.is_in_recorded_key() && repeats(thread.text)
                || thread.is_in_recorded_item() && repeats(thread.transcript)
        })
    }

    /// Whether a thread is behind the opening quote of a string.
    fn is_within_string(&self, thread: &Thread) -> bool {
        let index = match thread.lexeme {
            ThreadLexeme::Lexeme(index) => index,
            ThreadLexeme::Escape(_) => return true,
            _ => return false,
        };
        let lexeme = self.automaton.lexeme(index);
        lexeme.spec().spelling == Spelling::JsonString && !lexeme.is_start(thread.lex_state())
    }

    /// How many items, members or repeats the top frame still needs. `None` for frames that do not
    /// count.
    pub(crate) fn left_of(&self, stack: StackId) -> Option<u64> {
        match self.automaton.cell(stack).frame {
            Frame::ArrayOpen(state) | Frame::ArrayAfter(state) => {
                Some(self.automaton.json()?.arrays.items_left(state))
            }
            Frame::Count(count) => Some(self.automaton.rules()?.counts.get(count).min.into()),
            Frame::Symbol(symbol) => match *self.automaton.rules()?.symbols.get(symbol) {
                Symbol::Repeat { min, .. } => Some(min.into()),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Thread {
    fn is_in_recorded_key(&self) -> bool {
        let is_recorded = !matches!(self.text, TextId::NONE | TextId::EMPTY);
        is_recorded && self.lexeme != ThreadLexeme::Key
    }

    fn is_in_recorded_item(&self) -> bool {
        !matches!(self.transcript, TextId::NONE | TextId::EMPTY)
    }

    /// The same without the recorded texts.
    fn forgetful(&self) -> Self {
        let text = if self.is_in_recorded_key() { TextId::ANY } else { self.text };
        let transcript = if self.is_in_recorded_item() { TextId::ANY } else { self.transcript };
        Self { text, transcript, ..*self }
    }
}
