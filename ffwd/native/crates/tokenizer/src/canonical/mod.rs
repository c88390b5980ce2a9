//! Canonical tokens: those of the tokenizer's own tokenization of a text.
//!
//! A sequence of tokens is a *canonical prefix* if some text's tokenization starts with it.
//! [`Canonicality`] decides this token by token. A [`Context`] holds every hypothesis about the
//! ends of the pre-tokenizer's pieces that the tokens so far allow. Covering forced text with
//! canonical tokens yields the forced tokens ([`Canonicality::forced`]); [`CanonicalMasks`] has the
//! canonical next tokens, and [`Liveliness`] decides after which of them a text can end.
//!
//! This module depends on the tokenizer, and on grammars only through the allowed next bytes
//! ([`Language`]).

mod apart;
mod context;
mod cover;
mod known;
mod live;
mod mask;
mod sequence;
mod trail;

pub use context::{Canonicality, Context, Way};
pub use cover::{Choice, ForcedOptions, Language, LIKELY_BYTES};
pub use known::{ContextId, KnownContexts};
pub use live::{Begun, Completed, Liveliness, Liveness, Searched};
pub use mask::{CanonicalMasks, Closing, Closings, Readable, Restricted};
pub use sequence::{Healed, Partial};
pub use trail::Trail;

#[cfg(test)]
mod tests;
