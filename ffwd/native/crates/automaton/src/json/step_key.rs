//! Keys, byte by byte.

use crate::error::Result;
use crate::json::keys::{KeyNode, Terminal};
use crate::json::tables::Json;
use crate::stacks::ids::{StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme};

/// The result of a byte for a thread within the names of an object.
pub(crate) enum KeyStep {
    /// No key continues with the byte.
    Refused,
    /// The thread is still within the names.
    Within(Thread),
    /// A name has ended: the stack after it, and the transcript.
    Ended(StackId, TextId),
    /// The thread is in the lexeme of other keys, before the byte.
    Other(Thread),
}

impl Json {
    /// Steps a thread within the names of an object by one byte.
    pub(crate) fn step_key(&self, on: &impl On, thread: &Thread, byte: u8) -> Result<KeyStep> {
        let texts = &self.keys.texts;
        let node = self.keys.node(thread.key_node());
        if let Some(child) = self.keys.child(&node, byte)? {
            if self.keys.is_dead(&child) {
                return Ok(KeyStep::Refused);
            }
            let text = match child.has_names() {
                true => thread.text,
                false => texts.append(self.key_text(thread, &node)?, byte)?,
            };
            let state = self.keys.intern(child)?.0;
            let transcript = texts.append(thread.transcript, byte)?;
            return Ok(KeyStep::Within(Thread { state, text, transcript, ..*thread }));
        }
        if byte == b'"' && !node.is_before_quote() {
            match self.keys.terminal(&node) {
                Terminal::Allowed(name) => {
                    let stack = on.exit(thread.stack, ThreadLexeme::Key, 1, name.as_text())?;
                    return Ok(KeyStep::Ended(stack, texts.append(thread.transcript, byte)?));
                }
                Terminal::Refused => return Ok(KeyStep::Refused),
                Terminal::None => {}
            }
        }
        Ok(self.as_other_key(thread, &node)?.map_or(KeyStep::Refused, KeyStep::Other))
    }

    /// The thread within the names of an object as one within an undeclared key.
    fn as_other_key(&self, thread: &Thread, node: &KeyNode) -> Result<Option<Thread>> {
        let Some(base) = node.base else { return Ok(None) };
        let lexeme = ThreadLexeme::Lexeme(base.lexeme);
        let text = self.key_text(thread, node)?;
        Ok(Some(Thread { lexeme, state: base.state.0, text, ..*thread }))
    }

    /// The key so far of a thread within the names of an object, if it matters.
    fn key_text(&self, thread: &Thread, node: &KeyNode) -> Result<TextId> {
        let append = |text, &byte| self.keys.texts.append(text, byte);
        match thread.text {
            TextId::EMPTY => Ok(self.keys.written(node).iter().try_fold(TextId::EMPTY, append)?),
            known => Ok(known),
        }
    }

    /// Steps a thread while the bytes continue a name. Returns the rest of the bytes. As
    /// [`Self::step_key`] does byte by byte, but the places on the way are not kept.
    pub(crate) fn walk_names<'b>(&self, thread: &mut Thread, bytes: &'b [u8]) -> Result<&'b [u8]> {
        if thread.lexeme != ThreadLexeme::Key || thread.transcript != TextId::NONE {
            return Ok(bytes);
        }
        let mut node = self.keys.node(thread.key_node());
        let mut read = 0;
        for &byte in bytes {
            match self.keys.child(&node, byte)? {
                Some(child) if child.has_names() && !self.keys.is_dead(&child) => node = child,
                _ => break,
            }
            read += 1;
        }
        if read > 0 {
            thread.state = self.keys.intern(node)?.0;
        }
        Ok(&bytes[read..])
    }
}
