//! Byte-pair encoding of one piece of text, which is what a pre-tokenizer cuts off, or a whole
//! text where there is none. Knows no pre-tokenizer, no special token and no grammar.
//!
//! `docs/bpe.md` has the definitions, the algorithms, and why they are exact.

mod backtrack;
mod dynamic;
mod merge_rules;
mod merging;
mod pair;
mod pair_map;
mod row_cache;
mod spec;
mod splits;
mod successors;
mod table;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
mod texts;
mod trie;

pub use spec::{Base, BpeError, BpeSpec, Merges};
pub use table::{BpeTable, Method};
