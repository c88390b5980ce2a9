//! The native core of ffwd: from a grammar and a vocabulary to token bitmasks and forced tokens.
//!
//! The layers, lowest first; a module uses only those above it in this list:
//!
//! * [`regex`] text languages: the syntax tree and the front ends that read patterns into it
//! * [`json_schema`] a schema document, brought to a normal form per JSON type

pub mod automaton;
pub mod engine;
pub mod error;
pub mod expr;
pub mod fast_forward;
pub mod json_schema;
pub mod mask;
pub mod matcher;
#[cfg(feature = "python")]
mod python;
pub mod regex;
pub mod vocabulary;
