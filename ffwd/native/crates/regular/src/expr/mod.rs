//! Regular expressions over bytes, and the automata that are built from them on demand.
//!
//! * [`byte_set`] sets of bytes
//! * [`store`] hash-consed expressions with their algebraic simplifications
//! * `simplify` reduction of unions and intersections
//! * `facts` properties of an expression that are known when it is made
//! * [`derivative`] Brzozowski derivatives, and whether a language is empty
//! * `lookaround` conditions on the context of a position
//! * [`listed`] unions of many texts, as ranges of a sorted table
//! * [`substring`] runs of pieces of one text, by its suffix automaton
//! * [`lower`] from text languages to byte expressions, in a given encoding
//! * [`lexeme`] a lazily determinized automaton, shared by every grammar with the same language
//! * [`relax`] expressions without the counters that no token can exhaust
//! * [`lexeme_store`] the shared lexemes, under a byte budget
//! * [`texts`] how many texts a lexeme still allows, and which, if they are few

pub mod byte_set;
pub mod derivative;
mod facts;
pub mod lexeme;
pub mod lexeme_store;
pub mod listed;
mod lookaround;
pub mod lower;
pub mod relax;
mod simplify;
pub mod store;
pub mod substring;
#[cfg(test)]
mod tests;
pub mod texts;

pub use byte_set::ByteSet;
pub use lexeme::{LexState, Lexeme, LexemeSpec, Spelling, Verdict};
pub use lexeme_store::LexemeStore;
