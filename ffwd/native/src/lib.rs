//! The native core of ffwd: from a grammar and a vocabulary to token bitmasks and forced tokens.
//!
//! The layers, lowest first; a module uses only those above it in this list:
//!
//! * [`regex`] text languages: the syntax tree and the front ends that read patterns into it
//! * [`json_schema`] a schema document, brought to a normal form per JSON type

pub mod json_schema;
pub mod regex;
