//! The bytes that may continue threads, if they are few.

use smallvec::SmallVec;

use crate::error::Result;
use crate::json::keys::Terminal;
use crate::json::tables::Json;
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme};

/// Which lexemes are listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choices {
    /// Those that must continue with one byte. What then is listed are choices between threads.
    OfThreads,
    /// Those that continue with a few.
    OfBytes,
}

/// Adds the allowed next bytes. Returns `false` if they are too many to list, if the end is
/// allowed, or if earlier items may exclude some.
pub(crate) fn list_bytes(
    on: &impl On,
    json: Option<&Json>,
    threads: &[Thread],
    choices: Choices,
    bytes: &mut SmallVec<[u8; 16]>,
) -> Result<bool> {
    if json.is_some_and(|json| threads.iter().any(|t| json.compared(on).is_rivalled(t))) {
        return Ok(false);
    }
    for thread in threads {
        let (index, state) = match (thread.lexeme, json) {
            (ThreadLexeme::Lexeme(index), _) => (index, thread.lex_state()),
            (ThreadLexeme::Key, Some(json)) => {
                let node = json.keys.node(thread.key_node());
                if matches!(json.keys.terminal(&node), Terminal::Allowed(_)) {
                    bytes.push(b'"');
                }
                let children = json.keys.children(&node)?;
                let alive = children.iter().filter(|(_, child)| !json.keys.is_dead(child));
                bytes.extend(alive.map(|&(byte, _)| byte));
                let Some(base) = node.base else { continue };
                (base.lexeme, base.state)
            }
            _ => return Ok(false),
        };
        if state.accepts() {
            return Ok(false);
        }
        let lexeme = on.lexeme(index);
        match lexeme.only_byte(state)? {
            Some(byte) => bytes.push(byte),
            None if choices == Choices::OfThreads => return Ok(false),
            None if lexeme.list_bytes(state, bytes)? => {}
            None => return Ok(false),
        }
    }
    bytes.sort_unstable();
    bytes.dedup();
    Ok(true)
}
