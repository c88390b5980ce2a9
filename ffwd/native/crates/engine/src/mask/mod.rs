//! Token masks: the only module that combines automata with the trie of the vocabulary.
//!
//! For a thread the tokens are of two kinds. *Inner* tokens stay within its lexeme; they depend on
//! the lexeme's state alone and are shared by all grammars. *Exit* tokens extend past its end. They
//! are grouped by their text after the end, and this small trie is walked with the continuations of
//! the lexeme. `lexeme_mask` computes both kinds, and `state_mask` composes a configuration's mask.

#[cfg(debug_assertions)]
mod agreement;
mod completion;
mod doubt;
mod escapes;
mod found_again;
mod free_groups;
mod free_text;
mod groups;
mod inside;
mod key_places;
mod known_steps;
mod leading;
mod lexeme_mask;
mod lexeme_mask_store;
mod listed;
mod loops;
mod recent;
mod rest_tries;
mod rivalled;
mod ruled;
mod sharded;
mod slots;
mod state_mask;
mod successors;
#[cfg(test)]
mod test_bounded;
#[cfg(test)]
mod test_inside;
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
pub(crate) use leading::Target;
pub(crate) use lexeme_mask_store::LexemeMaskStore;
pub(crate) use sharded::Sharded;
pub(crate) use state_mask::{MaskCounters, Masker};
pub use token_set::bits;
