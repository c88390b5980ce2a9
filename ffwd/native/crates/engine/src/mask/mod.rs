//! Token masks: the only place where automata meet the trie of the vocabulary.
//!
//! For a thread the tokens fall in two kinds. *Inner* tokens stay within its lexeme; they depend
//! on the lexeme's state alone and are shared by all grammars. *Exit* tokens go past its end; they
//! are grouped by what they spell after the end, and what follows the lexeme is walked over that
//! small trie. `lexeme_mask` computes both, `state_mask` puts a configuration's mask together.

#[cfg(debug_assertions)]
mod agreement;
#[cfg(test)]
mod bounded_tests;
mod completion;
mod doubt;
mod free_text;
mod groups;
mod key_places;
mod known_steps;
mod leading;
mod lexeme_mask;
mod lexeme_mask_store;
mod listed;
mod loops;
mod recent;
mod rest_tries;
mod ruled;
mod sharded;
mod slots;
mod state_mask;
mod successors;
#[cfg(test)]
mod test_listed;
#[cfg(test)]
mod test_longest;
#[cfg(test)]
mod tests;
pub(crate) mod token_set;
mod two_keys;
mod walk;

pub(crate) use completion::Completion;
pub(crate) use lexeme_mask_store::LexemeMaskStore;
pub(crate) use sharded::Sharded;
pub(crate) use state_mask::{MaskCounters, Masker};
pub use token_set::bits;
