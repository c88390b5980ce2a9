//! Vocabularies: the bytes of a model's tokens.

use std::ffi::c_void;
use std::ptr::null;
use std::sync::Arc;

use ffwd_engine::engine::{EncodeError, Encoder, Engine, EngineConfig};
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

use crate::error::{borrowed, call, changed, ffwd_error, ffwd_status, free, slice};

/// Bytes of the caller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ffwd_bytes {
    /// The first byte; may be null if there are none.
    pub data: *const u8,
    /// The number of bytes.
    pub length: usize,
}

impl ffwd_bytes {
    /// Those of a slice, which must outlive them.
    pub fn of(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), length: bytes.len() }
    }

    /// # Safety
    /// The bytes can be read as long as the result is used.
    pub(crate) unsafe fn text<'a>(self, name: &str) -> Result<&'a str, ffwd_error> {
        // SAFETY: as above.
        let bytes = unsafe { slice(self.data, self.length, name) }?;
        std::str::from_utf8(bytes).map_err(|error| {
            let at = error.valid_up_to();
            ffwd_error::argument(format!("`{name}` is not UTF-8: byte {at} begins no character"))
        })
    }
}

/// Encode a text as the model's tokenizer does, without special tokens, as in the middle of a text.
///
/// `text` has `length` bytes of UTF-8. Write up to `capacity` ids to `tokens`, and return the number
/// of ids that the text has. If that is more than `capacity`, the function is called again with
/// enough room. `SIZE_MAX` says that the text cannot be encoded. Any thread may call it.
pub type ffwd_encode = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        text: *const u8,
        length: usize,
        tokens: *mut u32,
        capacity: usize,
    ) -> usize,
>;

type Encode = unsafe extern "C" fn(*mut c_void, *const u8, usize, *mut u32, usize) -> usize;

/// The tokens of a model, and what its grammars share.
pub struct ffwd_vocabulary {
    pub(crate) engine: Arc<Engine>,
}

/// The caller's encoder.
struct CallerEncoder {
    encode: Encode,
    context: *mut c_void,
}

// SAFETY: `ffwd_encode` says that any thread may call it, with the context.
unsafe impl Send for CallerEncoder {}
// SAFETY: likewise.
unsafe impl Sync for CallerEncoder {}

impl Encoder for CallerEncoder {
    fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        let failed = |message: &str| EncodeError { text: text.into(), message: message.into() };
        // No byte has more than one token.
        let mut ids = vec![0; text.len()];
        loop {
            // SAFETY: the text can be read and the ids be written.
            let count = unsafe {
                let (text, length) = (text.as_ptr(), text.len());
                (self.encode)(self.context, text, length, ids.as_mut_ptr(), ids.len())
            };
            match count {
                usize::MAX => return Err(failed("the caller's encoder refused it")),
                _ if count <= ids.len() => {
                    ids.truncate(count);
                    return Ok(ids.into_iter().map(TokenId).collect());
                }
                // Byte-level tokenizers never get here; others may add a few tokens.
                _ if count <= text.len().saturating_mul(8).max(64) => ids.resize(count, 0),
                _ => return Err(failed("the caller's encoder returned too many tokens")),
            }
        }
    }
}

/// Make a vocabulary of the bytes of its tokens.
///
/// Args:
///     tokens: The bytes of token `i` at index `i`. A null `data` stands for a token without text
///         (control, padding, unused), which masks never allow.
///     num_tokens: How many there are.
///     end_tokens, num_end_tokens: The tokens that end a sequence, at least one.
///     width: The number of logits of the model; 0 for the number of tokens.
///     encode: May be null. `ffwd_matcher_forced_tokens` needs it.
///     context: Passed on to `encode`; must live as long as the vocabulary and its grammars.
///     vocabulary: Receives the vocabulary.
///
/// # Safety
/// The pointers are valid for the given numbers.
#[no_mangle]
pub unsafe extern "C" fn ffwd_vocabulary_new(
    tokens: *const ffwd_bytes,
    num_tokens: usize,
    end_tokens: *const u32,
    num_end_tokens: usize,
    width: usize,
    encode: ffwd_encode,
    context: *mut c_void,
    vocabulary: *mut *mut ffwd_vocabulary,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that these are valid.
        let (made, tokens, end_tokens) = unsafe {
            (
                changed(vocabulary, "vocabulary")?,
                slice(tokens, num_tokens, "tokens")?,
                slice(end_tokens, num_end_tokens, "end_tokens")?,
            )
        };
        let mut texts = Vec::with_capacity(tokens.len());
        for token in tokens {
            texts.push(match token.data.is_null() {
                true => None,
                // SAFETY: likewise.
                false => Some(unsafe { slice(token.data, token.length, "tokens") }?),
            });
        }
        let ends: Vec<TokenId> = end_tokens.iter().copied().map(TokenId).collect();
        let read = Vocabulary::new(&texts, &ends, (width > 0).then_some(width))?;
        let encoder =
            encode.map(|encode| Box::new(CallerEncoder { encode, context }) as Box<dyn Encoder>);
        let engine = Arc::new(Engine::new(read, encoder, EngineConfig::default()));
        engine.prepare()?;
        *made = Box::into_raw(Box::new(ffwd_vocabulary { engine }));
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Return the number of ids: the width of the model's logits; 0 of null.
///
/// # Safety
/// `vocabulary` is null or was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_vocabulary_width(vocabulary: *const ffwd_vocabulary) -> usize {
    // SAFETY: as above.
    unsafe { borrowed(vocabulary, "vocabulary") }
        .map_or(0, |vocabulary| vocabulary.engine.vocabulary().width())
}

/// Return the number of 32-bit words of a mask: a bit for each id, rounded up; 0 of null.
///
/// # Safety
/// `vocabulary` is null or was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_vocabulary_mask_words(vocabulary: *const ffwd_vocabulary) -> usize {
    // SAFETY: as above.
    unsafe { borrowed(vocabulary, "vocabulary") }
        .map_or(0, |vocabulary| vocabulary.engine.vocabulary().mask_words())
}

/// Return the bytes of a token; none, with null `data`, if it has no text or does not exist.
///
/// # Safety
/// `vocabulary` is null or was not freed; the bytes live as long as it.
#[no_mangle]
pub unsafe extern "C" fn ffwd_vocabulary_token(
    vocabulary: *const ffwd_vocabulary,
    token: u32,
) -> ffwd_bytes {
    let none = ffwd_bytes { data: null(), length: 0 };
    // SAFETY: as above.
    unsafe { borrowed(vocabulary, "vocabulary") }.map_or(none, |vocabulary| {
        let known = vocabulary.engine.vocabulary();
        match (token as usize) < known.width() {
            true if !known.text(TokenId(token)).is_empty() => {
                ffwd_bytes::of(known.text(TokenId(token)))
            }
            _ => none,
        }
    })
}

/// Free a vocabulary. Its grammars keep what they need of it.
///
/// # Safety
/// `vocabulary` is null or was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_vocabulary_free(vocabulary: *mut ffwd_vocabulary) {
    // SAFETY: as above.
    unsafe { free(vocabulary) };
}
