//! ffwd for C, and for every language that can call C: vocabularies, grammars and matchers.
//!
//! The header is `include/ffwd.h`; a test compares it with these sources. `docs/c.md` is the guide.
//!
//! * A [`ffwd_vocabulary`](vocabulary::ffwd_vocabulary) has the bytes of a model's tokens, given
//!   one by one or in a tokenizer.json.
//! * A [`ffwd_grammar`](grammar::ffwd_grammar) is a JSON Schema, a regular expression, or a Lark, GBNF
//!   or EBNF grammar, compiled for one vocabulary.
//! * A [`ffwd_matcher`](matcher::ffwd_matcher) follows one sequence of tokens.
//!
//! **Errors.** Functions that can fail return a [`ffwd_status`](error::ffwd_status), and write an
//! object with the text and its place to their last argument, which may be null. After an error
//! nothing has changed, and no result is written.
//!
//! **Threads.** Vocabularies and grammars may be used by any number of threads at once. A matcher,
//! and an error, may be used by one thread at a time.
//!
//! **Memory.** What a function creates is freed by the function of the same type that ends in
//! `_free`. A grammar keeps its vocabulary, and a matcher its grammar, so they may be freed in any
//! order. Freeing null does nothing.
//!
//! # Example
//!
//! ```
//! use std::ptr::{null, null_mut};
//!
//! use ffwd::{error::*, grammar::*, matcher::*, vocabulary::*};
//!
//! let bytes: Vec<[u8; 1]> = (0..=255).map(|byte| [byte]).collect();
//! let mut tokens: Vec<ffwd_bytes> = bytes.iter().map(|byte| ffwd_bytes::of(byte)).collect();
//! tokens.push(ffwd_bytes { data: null(), length: 0 });
//! let end = [256];
//!
//! let (mut vocabulary, mut grammar, mut matcher) = (null_mut(), null_mut(), null_mut());
//! // SAFETY: all pointers are valid, and each object is freed once.
//! unsafe {
//!     let status = ffwd_vocabulary_new(
//!         tokens.as_ptr(), 257, end.as_ptr(), 1, 0, None, null_mut(), &mut vocabulary, null_mut(),
//!     );
//!     assert_eq!(status, ffwd_status::FFWD_OK);
//!     let text = ffwd_bytes::of(b"ab+");
//!     let status = ffwd_compile(
//!         vocabulary, FFWD_REGEX, text, null(), null(), &mut grammar, null_mut(),
//!     );
//!     assert_eq!(status, ffwd_status::FFWD_OK);
//!     let status = ffwd_matcher_new(grammar, 0, &mut matcher, null_mut());
//!     assert_eq!(status, ffwd_status::FFWD_OK);
//!     let mut mask = vec![0; ffwd_vocabulary_mask_words(vocabulary)];
//!     let status = ffwd_matcher_fill(matcher, mask.as_mut_ptr(), mask.len(), null_mut());
//!     assert_eq!(status, ffwd_status::FFWD_OK);
//!     assert_eq!(mask[3], 1 << (b'a' - 96));
//!     ffwd_matcher_free(matcher);
//!     ffwd_grammar_free(grammar);
//!     ffwd_vocabulary_free(vocabulary);
//! }
//! ```

#![deny(missing_docs)]
// Pointers from C are what this crate is for. Each function says what it asks of them.
#![allow(unsafe_code)]
// The names are those of C.
#![allow(non_camel_case_types)]

pub mod error;
pub mod grammar;
pub mod matcher;
pub mod tokenizer_file;
pub mod vocabulary;

use ffwd_bounds::meter::heap::Metered;

// Limits on the memory of a call count what this allocator gives.
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: Metered<mimalloc::MiMalloc> = Metered(mimalloc::MiMalloc);
#[cfg(not(feature = "mimalloc"))]
#[global_allocator]
static ALLOCATOR: Metered<std::alloc::System> = Metered(std::alloc::System);

/// Return the version, such as `0.2.0`. The text is static and ends with a zero byte.
#[no_mangle]
pub extern "C" fn ffwd_version() -> *const std::ffi::c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
