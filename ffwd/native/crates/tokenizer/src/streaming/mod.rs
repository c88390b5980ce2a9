//! Decoding: token ids to text, at once and token by token.
//!
//! A [`Decoder`] holds the bytes of every token; it is shared. Each request has its own stream. A
//! [`DecodeStream`] returns text as soon as it is certain, a [`StopDecoder`] also stops at tokens
//! and strings, and a [`Sequence`] keeps tokens and text with their offsets.

mod decoder;
mod error;
mod sequence;
mod stop_decoder;
mod stops;
mod stream;
#[cfg(test)]
mod test_decoder;
#[cfg(test)]
mod test_stream;
#[cfg(test)]
mod testing;
mod unfinished;

pub use decoder::{Decoder, TextStart, Token};
pub use error::{DecoderError, StopError, UnknownToken};
pub use sequence::Sequence;
pub use stop_decoder::{Output, StopDecoder};
#[cfg(test)]
use stops::MAX_STRING_BYTES;
pub use stops::{Stop, StopOptions, Stops};
pub use stream::DecodeStream;
