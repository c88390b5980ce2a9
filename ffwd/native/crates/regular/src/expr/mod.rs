//! Regular expressions over bytes, and the automata that are built from them on demand.
//!
//! * `byte_set` sets of bytes
//! * `store` hash-consed expressions with their algebraic simplifications
//! * `simplify` what makes unions and intersections smaller
//! * `facts` what is known of an expression when it is made
//! * `derivative` Brzozowski derivatives, and whether a language is empty
//! * `lookaround` conditions on what surrounds a place
//! * `listed` unions of many texts, as ranges of a sorted table
//! * `substring` runs of pieces of one text, by its suffix automaton
//! * [`escape`] the escapes of JSON strings, and canonical bytes of characters
//! * [`json_text`] where strings and values of JSON end, and what they spell
//! * `lower` from text languages to byte expressions, in a given spelling
//! * [`lexeme`] a lazily determinised automaton, shared by every grammar that uses the same text
//! * `relax` expressions without the counters that no token can exhaust
//! * `lexeme_store` the shared lexemes, under a byte budget
//! * `outline` what a language is known to be without any state
//! * [`texts`] how many texts a lexeme still allows, and which ones if they are few

mod byte_set;
mod derivative;
pub mod escape;
mod facts;
pub mod json_text;
pub mod lexeme;
mod lexeme_store;
mod listed;
mod lookaround;
mod lower;
mod outline;
mod relax;
mod simplify;
mod store;
mod substring;
#[cfg(test)]
mod tests;
pub mod texts;

pub use byte_set::ByteSet;
pub use json_text::unspell_json;
pub use lexeme::{LexState, Lexeme, LexemeSpec, Spelling, Verdict};
pub use lexeme_store::LexemeStore;
pub use listed::{Listed, Span, TextTable};
pub use lower::spell;
pub use outline::Outline;
pub use store::ExprId;
