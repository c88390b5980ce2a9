//! A compiled grammar: a lazily built automaton over bytes with interned states.
//!
//! A [`StateId`] stands for a *configuration*: a set of [`Thread`]s, each a state of a lexeme and
//! the interned stack of what must follow it. JSON's own syntax is deterministic, so a JSON
//! grammar mostly has one thread; several stand side by side where different lexemes may begin.
//! Stacks are hash-consed lists of frames ([`frame`]); the frames of JSON containers
//! ([`object`], [`array`]) run every alternative of a schema at once, and the value inside hands
//! back a verdict: one bit for each schema that was asked.
//!
//! Every configuration that is kept is alive: some completion is accepted.

pub mod array;
pub mod config;
pub mod error;
mod flow;
pub mod frame;
pub mod intern;
mod items;
pub mod keys;
pub mod object;
pub mod punctuation;
#[cfg(test)]
mod tests;
pub mod value;

pub use config::{Automaton, StateId, Thread, ThreadLexeme, Threads};
pub use error::EngineError;
pub use frame::StackId;
pub use keys::{KeyNodeId, TextId};
pub use punctuation::{Layout, Whitespace, WhitespaceMode};

/// What to compile.
#[derive(Debug)]
pub enum Grammar {
    /// A whole text of a regular language.
    Text(crate::regex::Ast),
    /// A JSON text that is valid against a schema.
    Json { schema: Box<crate::json_schema::SchemaSet>, whitespace: Whitespace },
}
