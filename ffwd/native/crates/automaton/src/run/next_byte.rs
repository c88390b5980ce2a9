//! The allowed next bytes, without stepping through all of them.

use smallvec::SmallVec;

use crate::error::Result;
use crate::json::keys::Terminal;
use crate::json::next_bytes::{list_bytes, Choices};
use crate::run::automaton::Automaton;
use crate::run::escapes::is_in_escape;
use crate::stacks::thread::{Thread, ThreadLexeme};

impl Automaton {
    /// The byte that must come next, if there is exactly one and the text may not end here.
    pub fn only_byte(&self, threads: &[Thread]) -> Result<Option<u8>> {
        if threads.iter().any(|thread| self.is_rivalled(thread)) || is_in_escape(threads) {
            return only_step(self, threads);
        }
        let mut only = None;
        if !only_byte_of(self, threads, &mut only)? {
            if may_dead_end(self, threads)?
                && !self.accepts(threads)?
                && self.token_exits(threads)?.is_empty()
            {
                return only_step(self, threads);
            }
            return Ok(None);
        }
        match (only, self.escaping()) {
            (Some(byte), Some(escaping)) if byte != b'\\' && escaping.may_begin(threads)? => {
                Ok(None)
            }
            _ => Ok(only),
        }
    }

    /// Adds the allowed next bytes. Returns `false` if they are too many to list, if the end is
    /// allowed, or if earlier items may exclude some.
    pub fn list_bytes(&self, threads: &[Thread], bytes: &mut SmallVec<[u8; 16]>) -> Result<bool> {
        if is_in_escape(threads)
            || may_dead_end(self, threads)?
            || !list_bytes(self, self.json(), threads, Choices::OfBytes, bytes)?
        {
            return Ok(false);
        }
        if let Some(escaping) = self.escaping().filter(|_| !bytes.contains(&b'\\')) {
            if escaping.may_begin(threads)? {
                bytes.push(b'\\');
                bytes.sort_unstable();
            }
        }
        Ok(true)
    }

    /// Returns whether a byte is allowed next. After a lexeme that it ends, comparison with earlier
    /// items may still exclude every continuation.
    pub fn may_come(&self, threads: &[Thread], byte: u8) -> Result<bool> {
        Ok(goes_on_within(self, threads, byte)? || !self.step(threads, byte)?.is_empty())
    }
}

/// The byte that must come next where only the state after a byte tells whether it is allowed.
fn only_step(automaton: &Automaton, threads: &[Thread]) -> Result<Option<u8>> {
    let mut only = None;
    // Printable characters first: most states allow two of them.
    for byte in (b' '..=u8::MAX).chain(0..b' ') {
        if !automaton.step(threads, byte)?.is_empty() && only.replace(byte).is_some() {
            return Ok(None);
        }
    }
    Ok(only)
}

/// Whether some thread can reach a dead end.
#[inline]
fn may_dead_end(automaton: &Automaton, threads: &[Thread]) -> Result<bool> {
    // Only lexemes that may consume what must follow have any.
    if !automaton.rules().is_some_and(|rules| rules.program.swallowing.is_possible()) {
        return Ok(false);
    }
    for thread in threads {
        if automaton.may_dead_end(thread)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a byte continues the lexeme or the name of some thread. No target state is made.
pub fn goes_on_within(automaton: &Automaton, threads: &[Thread], byte: u8) -> Result<bool> {
    // Such a continuation is alive, and cheaper to check than its target.
    for thread in threads.iter().filter(|thread| !automaton.is_rivalled(thread)) {
        if automaton.escaping().is_some_and(|escaping| escaping.reads(thread, byte)) {
            continue;
        }
        let (lexeme, state) = match (thread.lexeme, automaton.json()) {
            (ThreadLexeme::Lexeme(index), _) => (index, thread.lex_state()),
            (ThreadLexeme::Key, Some(json)) if byte != b'"' => {
                let node = json.keys.node(thread.key_node());
                match (json.keys.child(&node, byte)?, node.base) {
                    (Some(child), _) if json.keys.is_dead(&child) => continue,
                    (Some(_), _) => return Ok(true),
                    (None, Some(base)) => (base.lexeme, base.state),
                    (None, None) => continue,
                }
            }
            _ => continue,
        };
        if automaton.lexeme(lexeme).next(state, byte)?.is_some()
            && !may_dead_end(automaton, std::slice::from_ref(thread))?
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `false` as soon as two bytes, or the end, are possible.
fn only_byte_of(automaton: &Automaton, threads: &[Thread], only: &mut Option<u8>) -> Result<bool> {
    for thread in threads {
        match thread.lexeme {
            ThreadLexeme::End | ThreadLexeme::Tokens(_) | ThreadLexeme::Escape(_) => {
                return Ok(false);
            }
            ThreadLexeme::Key => {
                let Some(json) = automaton.json() else { return Ok(false) };
                let node = json.keys.node(thread.key_node());
                if let Some(base) = node.base {
                    match automaton.lexeme(base.lexeme).only_byte(base.state)? {
                        Some(byte) if agrees(only, byte) => {}
                        _ => return Ok(false),
                    }
                }
                let terminal = json.keys.terminal(&node);
                if matches!(terminal, Terminal::Allowed(_)) && !agrees(only, b'"') {
                    return Ok(false);
                }
                for (byte, child) in json.keys.children(&node)? {
                    if !json.keys.is_dead(&child) && !agrees(only, byte) {
                        return Ok(false);
                    }
                }
            }
            ThreadLexeme::Lexeme(index) => {
                let lexeme = automaton.lexeme(index);
                let state = thread.lex_state();
                match lexeme.only_byte(state)? {
                    Some(byte) if agrees(only, byte) => {}
                    _ => return Ok(false),
                }
                if state.accepts() {
                    // What follows the lexeme may begin with the byte that continues it.
                    let stack = automaton.exit_thread(thread, lexeme.accept(state))?;
                    let next = automaton.following(stack, thread.transcript)?;
                    if !next.is_empty() && !only_byte_of(automaton, &next, only)? {
                        return Ok(false);
                    }
                }
            }
        }
    }
    Ok(only.is_some())
}

fn agrees(only: &mut Option<u8>, byte: u8) -> bool {
    *only.get_or_insert(byte) == byte
}
