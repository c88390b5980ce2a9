//! Canonical tokens: those that the tokenizer itself cuts a text into.
//!
//! A sequence of tokens is a *canonical prefix* if some text goes on from it so that the tokenizer
//! encodes the whole beginning with these tokens. [`Canonicality`] decides it token by token: a
//! [`Context`] holds every guess about where pieces of the pre-tokenizer end that the tokens so far
//! allow. What must come next is found by covering forced text with canonical tokens
//! ([`Canonicality::forced`]); [`CanonicalMasks`] tell which tokens may come next.
//!
//! It knows the tokenizer, and of grammars only the question which bytes may follow
//! ([`Language`]).

mod context;
mod cover;
mod mask;
mod sequence;
mod trail;

pub use context::{Canonicality, Context};
pub use cover::{Choice, ForcedOptions, Language, LIKELY_BYTES};
pub use mask::{CanonicalMasks, Restricted};
pub use sequence::{Healed, Partial};
pub use trail::Trail;

#[cfg(test)]
mod tests;
