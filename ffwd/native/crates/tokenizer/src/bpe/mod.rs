//! Byte-pair encoding of one piece of text: a piece of a pre-tokenizer, or a whole text without
//! one. It does not depend on pre-tokenizers, special tokens or grammars.
//!
//! `docs/bpe.md` has the definitions, the algorithms, and why they are exact.

mod append;
mod backtrack;
mod dynamic;
mod intervals;
mod merge_rules;
mod merging;
mod pair;
mod pair_map;
mod pair_splits;
mod prepend;
mod row_cache;
mod saved;
mod spec;
mod splits;
mod successors;
mod suffixes;
mod table;
#[cfg(test)]
mod test_realistic;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod texts;
mod trie;

pub use append::PieceAppender;
pub use intervals::PieceIntervals;
pub use prepend::PiecePrepender;
pub use spec::{Base, BpeError, BpeSpec, Merges};
pub use table::{BpeTable, Method};
