//! How a byte leads from one configuration to the next.

use crate::error::Result;
use crate::json::step_key::KeyStep;
use crate::run::automaton::Automaton;
use crate::stacks::ids::{StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::Verdict;

impl Automaton {
    /// The same. If `is_last`, threads that can only become earlier items are left out.
    pub(crate) fn following_alive(
        &self,
        stack: StackId,
        transcript: TextId,
        is_last: bool,
    ) -> Result<Threads> {
        let threads = self.following(stack, transcript)?;
        match transcript {
            _ if !is_last => Ok(threads),
            TextId::NONE | TextId::ANY => Ok(threads),
            _ => match self.compared() {
                Some(compared) => compared.unrivalled(threads),
                None => Ok(threads),
            },
        }
    }

    /// Returns the exit of a thread whose lexeme ends here.
    pub fn exit_thread(&self, thread: &Thread, accept: Verdict) -> Result<StackId> {
        let text = match thread.transcript {
            TextId::NONE => thread.text,
            transcript if self.ends_compared_item(thread)? => transcript,
            _ => thread.text,
        };
        self.exit(thread.stack, thread.lexeme, accept, text)
    }

    /// The threads after one more byte; none if the byte is not allowed.
    pub fn step(&self, threads: &[Thread], byte: u8) -> Result<Threads> {
        self.step_within(threads, byte, true)
    }

    /// The same. Unless `is_last`, other bytes follow, and only the last one must check that items
    /// can still become unused values.
    fn step_within(&self, threads: &[Thread], byte: u8, is_last: bool) -> Result<Threads> {
        meter::charge(1 + threads.len())?;
        let mut next = Threads::new();
        for thread in threads {
            self.step_thread(thread, byte, is_last, &mut next)?;
        }
        self.settle(&mut next)?;
        Ok(next)
    }

    /// Sorts threads, merges those that differ only in their stacks, and removes those without a
    /// completion.
    pub fn settle(&self, threads: &mut Threads) -> Result<()> {
        if threads.len() > 1 {
            threads.sort_unstable();
            threads.dedup();
            if let Some(rules) = self.rules() {
                rules.merge(self, threads)?;
            }
        }
        match self.rules() {
            Some(rules) => rules.drop_dead_ends(self, threads),
            None => Ok(()),
        }
    }

    pub(crate) fn step_thread(
        &self,
        thread: &Thread,
        byte: u8,
        is_last: bool,
        next: &mut Threads,
    ) -> Result<()> {
        match self.escaping().filter(|escaping| escaping.reads(thread, byte)) {
            Some(escaping) => escaping.step(thread, byte, is_last, next),
            None => self.step_written(thread, byte, is_last, next),
        }
    }

    /// The same for a byte of a string that is written canonically.
    pub(crate) fn step_written(
        &self,
        thread: &Thread,
        byte: u8,
        is_last: bool,
        next: &mut Threads,
    ) -> Result<()> {
        match thread.lexeme {
            ThreadLexeme::End | ThreadLexeme::Tokens(_) | ThreadLexeme::Escape(_) => {}
            ThreadLexeme::Key => {
                let Some(json) = self.json() else { return Ok(()) };
                match json.step_key(self, thread, byte)? {
                    KeyStep::Refused => {}
                    KeyStep::Within(thread) => {
                        if !is_last || self.is_unrivalled(&thread)? {
                            next.push(thread);
                        }
                    }
                    KeyStep::Ended(stack, transcript) => {
                        next.extend(self.following_alive(stack, transcript, is_last)?);
                    }
                    KeyStep::Other(thread) => self.step_written(&thread, byte, is_last, next)?,
                }
            }
            ThreadLexeme::Lexeme(index) => {
                let lexeme = self.lexeme(index);
                let state = thread.lex_state();
                let after = lexeme.next(state, byte)?;
                let goes_on = after.is_some();
                if let Some(after) = after {
                    let transcript = self.append(thread.transcript, byte)?;
                    if after.is_final() {
                        let ended = Thread { transcript, ..*thread };
                        let stack = self.exit_thread(&ended, lexeme.accept(after))?;
                        next.extend(self.following_alive(stack, transcript, is_last)?);
                    } else {
                        let text = self.append(thread.text, byte)?;
                        let thread = Thread { state: after.0, text, transcript, ..*thread };
                        if !is_last || self.is_unrivalled(&thread)? {
                            next.push(thread);
                        }
                    }
                }
                if state.accepts() && !(goes_on && lexeme.spec().ends != Ends::Anywhere) {
                    let stack = self.exit_thread(thread, lexeme.accept(state))?;
                    for start in &self.following(stack, thread.transcript)? {
                        self.step_thread(start, byte, is_last, next)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(crate) fn append(&self, text: TextId, byte: u8) -> Result<TextId> {
        match self.json() {
            Some(json) if text != TextId::NONE => Ok(json.keys.texts.append(text, byte)?),
            _ => Ok(text),
        }
    }

    /// Whether a thread may become an unused item.
    #[inline]
    pub(crate) fn is_unrivalled(&self, thread: &Thread) -> Result<bool> {
        if thread.transcript == TextId::NONE {
            return Ok(true);
        }
        self.compared().map_or(Ok(true), |compared| compared.is_unrivalled(thread))
    }

    /// Whether an item that later ones are compared with ends with a thread's lexeme.
    pub fn ends_compared_item(&self, thread: &Thread) -> Result<bool> {
        match self.json().filter(|_| self.cell(thread.stack).ends_compared_item) {
            Some(json) => json.ends_compared_item(self, thread),
            None => Ok(false),
        }
    }

    /// Whether the text may end here.
    pub fn accepts(&self, threads: &[Thread]) -> Result<bool> {
        for thread in threads {
            match thread.lexeme {
                ThreadLexeme::End => return Ok(true),
                ThreadLexeme::Key | ThreadLexeme::Tokens(_) | ThreadLexeme::Escape(_) => {}
                ThreadLexeme::Lexeme(index) => {
                    let accept = self.lexeme(index).accept(thread.lex_state());
                    if accept != 0 {
                        let stack = self.exit_thread(thread, accept)?;
                        if self.accepts(self.starts(stack)?)? {
                            return Ok(true);
                        }
                    }
                }
            }
        }
        Ok(false)
    }

    /// The threads after a run of bytes; `None` as soon as a byte is not allowed.
    pub fn walk(&self, threads: &[Thread], bytes: &[u8]) -> Result<Option<Threads>> {
        let mut current: Threads = threads.iter().copied().collect();
        let mut rest = bytes;
        loop {
            if let [thread] = current.as_mut_slice() {
                if let Some(json) = self.json() {
                    // An escape may begin within a name.
                    let is_escape = |&byte: &u8| byte == b'\\' && self.escaping().is_some();
                    let escape = rest.iter().position(is_escape);
                    let written = &rest[..escape.unwrap_or(rest.len())];
                    rest = &rest[written.len() - json.walk_names(thread, written)?.len()..];
                }
            }
            let Some((&byte, after)) = rest.split_first() else { return Ok(Some(current)) };
            current = self.step_within(&current, byte, after.is_empty())?;
            if current.is_empty() {
                return Ok(None);
            }
            rest = after;
        }
    }
}
