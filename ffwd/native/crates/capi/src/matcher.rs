//! Matchers: one sequence of tokens, its masks and what it forces.

use std::sync::Arc;

use ffwd_bounds::meter::Meter;
use ffwd_engine::fast_forward::{default_method, fast_forward_tokens, forced_bytes, FastForward};
use ffwd_engine::matcher::{Beginning, Matcher};
use ffwd_tokenizer::vocabulary::TokenId;

use crate::error::{borrowed, call, changed, ffwd_error, ffwd_status, free, slice};
use crate::grammar::ffwd_grammar;
use crate::vocabulary::ffwd_bytes;

/// The state of one sequence. One thread may use it at a time.
pub struct ffwd_matcher {
    matcher: Matcher,
    /// The last result of `ffwd_matcher_forced_tokens`.
    forced_tokens: Vec<u32>,
    /// The last result of `ffwd_matcher_forced_bytes`.
    forced_bytes: Vec<u8>,
}

impl ffwd_matcher {
    fn new(matcher: Matcher) -> *mut Self {
        let (forced_tokens, forced_bytes) = (Vec::new(), Vec::new());
        Box::into_raw(Box::new(Self { matcher, forced_tokens, forced_bytes }))
    }
}

fn ids(tokens: &[u32]) -> Vec<TokenId> {
    tokens.iter().copied().map(TokenId).collect()
}

/// Make a matcher at the start of a sequence.
///
/// Args:
///     max_tokens: The most tokens of the output, the end token included; masks then leave out
///         tokens after which too few remain. 0 for no bound.
///     matcher: Receives the matcher.
///
/// # Safety
/// The pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_new(
    grammar: *const ffwd_grammar,
    max_tokens: usize,
    matcher: *mut *mut ffwd_matcher,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that these are valid.
        let (grammar, made) =
            unsafe { (borrowed(grammar, "grammar")?, changed(matcher, "matcher")?) };
        let compiled = &grammar.compiled;
        let max_tokens = (max_tokens > 0).then_some(max_tokens);
        let beginning = Beginning { max_tokens, ..Beginning::default() };
        let mut meter = Meter::calling(compiled.limits(), None);
        let begun = meter.run(|| Matcher::beginning(Arc::clone(compiled), &beginning));
        *made = ffwd_matcher::new(compiled.settle_after(begun)?);
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Make an independent matcher in the same state.
///
/// # Safety
/// The pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_fork(
    matcher: *const ffwd_matcher,
    fork: *mut *mut ffwd_matcher,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that these are valid.
        let (matcher, made) = unsafe { (borrowed(matcher, "matcher")?, changed(fork, "fork")?) };
        *made = ffwd_matcher::new(matcher.matcher.clone());
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Write the mask: bit `t % 32` of word `t / 32` is set if token `t` may come next.
///
/// After the end these are the end tokens. Words behind those of the vocabulary are not written.
///
/// Args:
///     words: `num_words` words of the caller, at least `ffwd_vocabulary_mask_words`.
///
/// # Safety
/// The pointers are valid for the given numbers.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_fill(
    matcher: *const ffwd_matcher,
    words: *mut u32,
    num_words: usize,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that it is valid.
        let matcher = &unsafe { borrowed(matcher, "matcher") }?.matcher;
        let needed = matcher.compiled().engine.vocabulary().mask_words();
        if words.is_null() || num_words < needed {
            return Err(ffwd_error::argument(format!(
                "the mask has {num_words} words, but the vocabulary needs {needed}"
            )));
        }
        // SAFETY: the caller says that there are so many.
        let row = unsafe { std::slice::from_raw_parts_mut(words, needed) };
        if !matcher.fill_known(row) {
            matcher.bounded(|matcher| matcher.fill_bitmask(row))?;
        }
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Accept a token, or write false to `accepted` and change nothing if the grammar refuses it.
///
/// # Safety
/// The pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_accept(
    matcher: *mut ffwd_matcher,
    token: u32,
    accepted: *mut bool,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that these are valid.
        let (matcher, accepted) =
            unsafe { (changed(matcher, "matcher")?, changed(accepted, "accepted")?) };
        let matcher = &mut matcher.matcher;
        *accepted = match matcher.accept_known(TokenId(token)) {
            Some(accepted) => accepted,
            None => matcher.bounded_mut(|matcher| matcher.accept(TokenId(token))),
        }?;
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Accept all tokens, or write false to `accepted` and accept none if the grammar refuses one.
///
/// # Safety
/// The pointers are valid for the given number.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_accept_all(
    matcher: *mut ffwd_matcher,
    tokens: *const u32,
    num_tokens: usize,
    accepted: *mut bool,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that these are valid.
        let (matcher, accepted, tokens) = unsafe {
            (
                changed(matcher, "matcher")?,
                changed(accepted, "accepted")?,
                ids(slice(tokens, num_tokens, "tokens")?),
            )
        };
        *accepted = matcher.matcher.bounded_mut(|matcher| matcher.accept_all(&tokens))?;
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Write how many of the tokens, from the first on, the grammar accepts; change nothing.
///
/// # Safety
/// The pointers are valid for the given number.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_validate(
    matcher: *const ffwd_matcher,
    tokens: *const u32,
    num_tokens: usize,
    num_valid: *mut usize,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that these are valid.
        let (matcher, valid, tokens) = unsafe {
            (
                borrowed(matcher, "matcher")?,
                changed(num_valid, "num_valid")?,
                ids(slice(tokens, num_tokens, "tokens")?),
            )
        };
        *valid = matcher.matcher.bounded(|matcher| matcher.validate(&tokens))?;
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Take back the last tokens, an end token included.
///
/// # Safety
/// The pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_rollback(
    matcher: *mut ffwd_matcher,
    num_tokens: usize,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that it is valid.
        let matcher = unsafe { changed(matcher, "matcher") }?;
        Ok(matcher.matcher.bounded_mut(|matcher| matcher.rollback(num_tokens))?)
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Return to the start of the sequence.
///
/// # Safety
/// The pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_reset(
    matcher: *mut ffwd_matcher,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that it is valid.
        let matcher = unsafe { changed(matcher, "matcher") }?;
        Ok(matcher.matcher.bounded_mut(|matcher| matcher.reset())?)
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Return the number of tokens accepted so far, an end token included; 0 of null.
///
/// # Safety
/// `matcher` is null or was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_num_tokens(matcher: *const ffwd_matcher) -> usize {
    // SAFETY: as above.
    unsafe { borrowed(matcher, "matcher") }.map_or(0, |matcher| matcher.matcher.tokens().len())
}

/// Return whether the output may end here; false of null.
///
/// # Safety
/// `matcher` is null or was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_is_accepting(matcher: *const ffwd_matcher) -> bool {
    // SAFETY: as above.
    unsafe { borrowed(matcher, "matcher") }.is_ok_and(|matcher| matcher.matcher.is_accepting())
}

/// Return whether an end token was accepted; false of null.
///
/// # Safety
/// `matcher` is null or was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_is_terminated(matcher: *const ffwd_matcher) -> bool {
    // SAFETY: as above.
    unsafe { borrowed(matcher, "matcher") }.is_ok_and(|matcher| matcher.matcher.is_terminated())
}

/// Find the tokens that must come next, spelled as the vocabulary's encoder spells the text.
///
/// Tokens at the end that later text could change are left out. None are accepted.
///
/// Args:
///     tokens, num_tokens: Receive them. They live until the next call with this matcher.
///
/// # Safety
/// The pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_forced_tokens(
    matcher: *mut ffwd_matcher,
    tokens: *mut *const u32,
    num_tokens: *mut usize,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that these are valid.
        let (matcher, tokens, num_tokens) = unsafe {
            (
                changed(matcher, "matcher")?,
                changed(tokens, "tokens")?,
                changed(num_tokens, "num_tokens")?,
            )
        };
        let method = default_method(&matcher.matcher);
        let options = FastForward { max_tokens: None, method };
        let found = matcher.matcher.bounded(|matcher| fast_forward_tokens(matcher, &options))?;
        matcher.forced_tokens = found.iter().map(|token| token.0).collect();
        *tokens = matcher.forced_tokens.as_ptr();
        *num_tokens = matcher.forced_tokens.len();
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Find the bytes that must come next, up to a character boundary.
///
/// Args:
///     max_bytes: The most bytes to return.
///     bytes: Receives them. They live until the next call with this matcher.
///
/// # Safety
/// The pointers are valid.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_forced_bytes(
    matcher: *mut ffwd_matcher,
    max_bytes: usize,
    bytes: *mut ffwd_bytes,
    error: *mut *mut ffwd_error,
) -> ffwd_status {
    let work = || {
        // SAFETY: the caller says that these are valid.
        let (matcher, bytes) = unsafe { (changed(matcher, "matcher")?, changed(bytes, "bytes")?) };
        let found = matcher.matcher.bounded(|matcher| forced_bytes(matcher, max_bytes))?;
        matcher.forced_bytes = found;
        *bytes = ffwd_bytes::of(&matcher.forced_bytes);
        Ok(())
    };
    // SAFETY: the caller says that `error` can be written.
    unsafe { call(error, work) }
}

/// Free a matcher.
///
/// # Safety
/// `matcher` is null or was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_matcher_free(matcher: *mut ffwd_matcher) {
    // SAFETY: as above.
    unsafe { free(matcher) };
}
