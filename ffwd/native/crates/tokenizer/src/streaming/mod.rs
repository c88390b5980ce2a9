//! From token ids back to text, at once and while they come.
//!
//! A [`Decoder`] holds the bytes of every token; it is shared. What belongs to one request is a
//! [`DecodeStream`], which gives text as soon as it is certain; a [`StopDecoder`], which also stops
//! at tokens and strings; and a [`Sequence`], which keeps tokens and text with their places.

mod decoder;
#[cfg(test)]
mod decoder_tests;
mod error;
mod sequence;
mod stop_decoder;
mod stops;
mod stream;
#[cfg(test)]
mod stream_tests;
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
