//! Compiled grammars and sequences as bytes, and back.
//!
//! An automaton is built while texts are matched. The bytes of a grammar therefore hold its source,
//! and those of a sequence its start and its tokens, which are matched again. Each starts with the
//! same header:
//!
//! | bytes | |
//! | --- | --- |
//! | 4 | `ffwd` |
//! | 1 | the kind of object: `Kind` |
//! | 2 | the version of the format |
//! | 16 | the fingerprint of the vocabulary |
//! | 8 | the length of the rest, without the last 8 bytes |
//! | | these |
//! | 8 | a checksum of everything before |
//!
//! Numbers of the header are little-endian; others are written in groups of seven bits, the lowest
//! first. The bytes may be untrusted: every length is compared with the rest before it is used, and
//! the source of a grammar is compiled again, with all limits.

mod ast;
mod bytes;
mod fingerprint;
mod grammar;
mod options;
mod recipe;
mod text;

use thiserror::Error;

use bytes::Reader;
use fingerprint::Fingerprint;
pub use recipe::{load as load_grammar, save as save_grammar};
pub use text::{load as load_text, save as save_text};

use crate::engine::CompileError;
use crate::matcher::MatcherError;
use ffwd_bounds::error::LimitExceeded;

/// The version of the format. No other version is read.
const VERSION: u16 = 3;
const MAGIC: &[u8; 4] = b"ffwd";
const HEADER: usize = 4 + 1 + 2 + 16 + 8;
const CHECKSUM: usize = 8;

/// The kind of the saved object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SavedKind {
    Grammar = b'G' as isize,
    Text = b'T' as isize,
}

/// Bytes that cannot be loaded, or an object that cannot be saved.
#[derive(Debug, Error)]
pub enum SavedError {
    /// Bytes that ffwd has not saved, or those of the other kind of object.
    #[error("the bytes were not saved by ffwd, or hold another kind of object")]
    Kind,
    /// Bytes of another version of the format.
    #[error(
        "the bytes have the format {found}, and this version of ffwd reads {VERSION}: compile the \
         grammar again from its source, and save it again"
    )]
    Version {
        /// The version that they have.
        found: u16,
    },
    /// An option of JSON values that this version does not have.
    #[error(
        "the bytes have option {number}, which this version of ffwd does not know: load them with a \
         version not older than the one that saved them"
    )]
    Option {
        /// The number of the option.
        number: u64,
    },
    /// The vocabulary differs from that of the saved object, or lacks its exact tokenizer.
    #[error("the bytes were written for another vocabulary: ids, texts or end tokens differ")]
    Vocabulary,
    /// The text follows another grammar than the one given.
    #[error("the text was in another grammar than this one")]
    Grammar,
    /// The bytes end too early, or continue after their end.
    #[error("the bytes end too early, or go on too long")]
    Length,
    /// A byte differs from what was saved.
    #[error("the checksum differs: the bytes have changed since they were written")]
    Checksum,
    /// The named part cannot be read, although the checksum fits.
    #[error("the bytes make no sense at {0}")]
    Malformed(&'static str),
    /// The named part has no saved form.
    #[error("{0} cannot be saved")]
    Unsupported(&'static str),
    /// The budget of reading them is used up.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
    /// The grammar was read, and its compilation is refused.
    #[error(transparent)]
    Compile(Box<CompileError>),
    /// The text was read, and a matcher refuses it.
    #[error(transparent)]
    Matcher(Box<MatcherError>),
}

impl SavedError {
    /// The reason as one word.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Kind => "kind",
            Self::Version { .. } | Self::Option { .. } => "version",
            Self::Vocabulary => "vocabulary",
            Self::Grammar => "grammar",
            Self::Length => "length",
            Self::Checksum => "checksum",
            Self::Malformed(_) => "malformed",
            Self::Unsupported(_) => "unsupported",
            Self::Compile(_) | Self::Matcher(_) | Self::Limit(_) => "refused",
        }
    }
}

impl From<CompileError> for SavedError {
    fn from(error: CompileError) -> Self {
        match error.exceeded().filter(LimitExceeded::is_interruption) {
            Some(limit) => Self::Limit(limit),
            None => Self::Compile(Box::new(error)),
        }
    }
}

impl From<MatcherError> for SavedError {
    fn from(error: MatcherError) -> Self {
        let exceeded = match &error {
            MatcherError::Engine(error) => error.exceeded(),
            _ => None,
        };
        match exceeded.filter(LimitExceeded::is_interruption) {
            Some(limit) => Self::Limit(limit),
            None => Self::Matcher(Box::new(error)),
        }
    }
}

/// A checksum that every changed byte changes, by Fowler, Noll and Vo.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// The payload with its header and checksum.
fn seal(kind: SavedKind, vocabulary: Fingerprint, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len() + CHECKSUM);
    bytes.extend_from_slice(MAGIC);
    bytes.push(kind as u8);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&vocabulary.0.to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    bytes.extend_from_slice(payload);
    let sum = checksum(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}

/// The payload of what [`seal`] made.
fn unseal(
    bytes: &[u8],
    kind: SavedKind,
    vocabulary: Fingerprint,
) -> Result<Reader<'_>, SavedError> {
    if bytes.len() < 7 {
        return Err(SavedError::Length);
    }
    if !bytes.starts_with(MAGIC) || bytes[4] != kind as u8 {
        return Err(SavedError::Kind);
    }
    let found = u16::from_le_bytes([bytes[5], bytes[6]]);
    if found != VERSION {
        return Err(SavedError::Version { found });
    }
    let Some((before, sum)) = bytes.split_last_chunk::<CHECKSUM>() else {
        return Err(SavedError::Length);
    };
    let Some((header, payload)) = before.split_at_checked(HEADER) else {
        return Err(SavedError::Length);
    };
    let (of, length) = header[7..].split_at(16);
    if length != (payload.len() as u64).to_le_bytes() {
        return Err(SavedError::Length);
    }
    if checksum(before).to_le_bytes() != *sum {
        return Err(SavedError::Checksum);
    }
    if of != vocabulary.0.to_le_bytes() {
        return Err(SavedError::Vocabulary);
    }
    Ok(Reader::new(payload))
}

#[cfg(test)]
mod tests;
