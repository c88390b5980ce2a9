//! From token ids back to text, at once and while they come.
//!
//! A [`Decoder`] holds the bytes of every token; it is shared, and everything else belongs to one
//! request.

mod decoder;
#[cfg(test)]
mod decoder_tests;
mod error;
#[cfg(test)]
mod testing;

pub use decoder::{Decoder, Token};
pub use error::{DecoderError, StopError, UnknownToken};
