//! Vocabularies of tokenizer files.

use std::ffi::{c_char, CStr};
use std::path::Path;
use std::sync::Arc;

use ffwd_engine::engine::{Engine, EngineConfig};
use ffwd_tokenizer::canonical::Canonicality;
use ffwd_tokenizer::huggingface::{read, HuggingFaceError};
use ffwd_tokenizer::vocabulary::TokenId;

use crate::error::{call, changed, ffwd_error, ffwd_status, slice};
use crate::vocabulary::{ffwd_bytes, ffwd_vocabulary};

impl From<HuggingFaceError> for ffwd_error {
    fn from(error: HuggingFaceError) -> Self {
        let status = match error {
            HuggingFaceError::Unsupported(_) => ffwd_status::FFWD_UNSUPPORTED,
            _ => ffwd_status::FFWD_INVALID_VOCABULARY,
        };
        Self::new(status, error.to_string())
    }
}

/// Make a vocabulary of a tokenizer.json of Hugging Face, with an encoder for forced tokens.
///
/// Supported is byte-pair encoding: byte-level, or with U+2581 for spaces and byte fallback.
///
/// Args:
///     path: The path of the file, in UTF-8 with a zero byte at the end.
///     end_tokens, num_end_tokens: The tokens that end a sequence. With none, the added tokens with
///         a well-known name, such as `</s>` and `<|im_end|>`.
///     width: The number of logits of the model; 0 for the number of the tokenizer's ids.
///     vocabulary: Receives the vocabulary.
///
/// # Safety
/// The pointers are valid for the given numbers.
#[no_mangle]
pub unsafe extern "C" fn ffwd_vocabulary_from_file(
    path: *const c_char,
    end_tokens: *const u32,
    num_end_tokens: usize,
    width: usize,
    vocabulary: *mut *mut ffwd_vocabulary,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        if path.is_null() {
            return Err(ffwd_error::argument("`path` must not be null"));
        }
        // SAFETY: the caller says that these are valid.
        let (path, ends, made) = unsafe {
            (
                CStr::from_ptr(path),
                slice(end_tokens, num_end_tokens, "end_tokens")?,
                changed(vocabulary, "vocabulary")?,
            )
        };
        let path = path.to_str().map_err(|error| {
            let at = error.valid_up_to();
            ffwd_error::argument(format!("`path` is not UTF-8: byte {at} begins no character"))
        })?;
        let json = contents(path)?;
        *made = vocabulary_of(&json, ends, width).map_err(|error| error.within(path))?;
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Make a vocabulary of the text of a tokenizer.json; the rest is as in `ffwd_vocabulary_from_file`.
///
/// Args:
///     json: The contents of the file. They are not used after the call.
///
/// # Safety
/// The pointers are valid for the given numbers.
#[no_mangle]
pub unsafe extern "C" fn ffwd_vocabulary_from_json(
    json: ffwd_bytes,
    end_tokens: *const u32,
    num_end_tokens: usize,
    width: usize,
    vocabulary: *mut *mut ffwd_vocabulary,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that these are valid.
        let (json, ends, made) = unsafe {
            (
                slice(json.data, json.length, "json")?,
                slice(end_tokens, num_end_tokens, "end_tokens")?,
                changed(vocabulary, "vocabulary")?,
            )
        };
        *made = vocabulary_of(json, ends, width)?;
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Reads a file. A pipe or a device, which may have no end, is none.
fn contents(path: &str) -> Result<Vec<u8>, ffwd_error> {
    let failed = |message: String| ffwd_error::new(ffwd_status::FFWD_UNREADABLE_FILE, message);
    let found = Path::new(path).metadata();
    let found = found.map_err(|error| failed(format!("{path}: {error}")))?;
    if found.is_dir() {
        return Err(failed(format!("{path} is a folder: pass the tokenizer.json in it")));
    }
    if !found.is_file() {
        return Err(failed(format!("{path} is not a regular file")));
    }
    std::fs::read(path).map_err(|error| failed(format!("{path}: {error}")))
}

fn vocabulary_of(
    json: &[u8],
    ends: &[u32],
    width: usize,
) -> Result<*mut ffwd_vocabulary, ffwd_error> {
    let ends: Vec<TokenId> = ends.iter().copied().map(TokenId).collect();
    let read = read(json, (!ends.is_empty()).then_some(&ends), (width > 0).then_some(width))?;
    let canonicality = Canonicality::new(Arc::clone(&read.tokenizer)).map(Arc::new);
    let engine = Engine::new(read.vocabulary, None, EngineConfig::default());
    let engine = Arc::new(engine.with_tokenizer(read.tokenizer, canonicality));
    engine.prepare()?;
    Ok(Box::into_raw(Box::new(ffwd_vocabulary { engine })))
}
