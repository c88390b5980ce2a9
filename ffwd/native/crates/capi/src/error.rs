//! Errors as codes and texts.

use std::ffi::{c_char, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null;

use ffwd_automaton::EngineError;
use ffwd_bounds::error::{Breach, LimitExceeded};
use ffwd_engine::engine::CompileError;
use ffwd_engine::fast_forward::FastForwardError;
use ffwd_engine::matcher::MatcherError;
use ffwd_grammar::{GrammarError, GrammarErrorKind};
use ffwd_json_schema::{SchemaError, SchemaErrorKind};
use ffwd_tokenizer::vocabulary::VocabularyError;

/// How a call ended.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ffwd_status {
    /// It succeeded.
    FFWD_OK = 0,
    /// A pointer is null, a text is not UTF-8, or a number has no meaning.
    FFWD_INVALID_ARGUMENT = 1,
    /// The tokens form no usable vocabulary, or the caller's encoder failed.
    FFWD_INVALID_VOCABULARY = 2,
    /// A grammar, pattern or schema breaks its syntax.
    FFWD_INVALID_GRAMMAR = 3,
    /// It is valid, and uses something that is not supported; the text names it.
    FFWD_UNSUPPORTED = 4,
    /// No text matches it.
    FFWD_UNSATISFIABLE = 5,
    /// A limit ran out. Everything works on, and the same call may be repeated with others.
    FFWD_LIMIT_EXCEEDED = 6,
    /// A token outside the vocabulary, or one after the end.
    FFWD_INVALID_TOKEN = 7,
    /// No text ends within the given number of tokens.
    FFWD_BUDGET_TOO_SMALL = 8,
    /// A fault of ffwd; please report it. The objects of the call must only be freed.
    FFWD_INTERNAL_ERROR = 9,
    /// A file is missing or cannot be read.
    FFWD_UNREADABLE_FILE = 10,
}

/// An error: its status, text and place.
pub struct ffwd_error {
    status: ffwd_status,
    message: CString,
    pointer: CString,
    line: usize,
    column: usize,
}

impl ffwd_error {
    pub(crate) fn new(status: ffwd_status, message: impl Into<Vec<u8>>) -> Self {
        let (message, pointer) = (text(message), CString::default());
        Self { status, message, pointer, line: 0, column: 0 }
    }

    pub(crate) fn argument(message: impl Into<Vec<u8>>) -> Self {
        Self::new(ffwd_status::FFWD_INVALID_ARGUMENT, message)
    }

    /// The same for an error about what is in a file.
    pub(crate) fn within(self, file: &str) -> Self {
        let message = [file.as_bytes(), b": ", self.message.as_bytes()].concat();
        Self { message: text(message), ..self }
    }

    fn at(self, line: usize, column: usize) -> Self {
        Self { line, column, ..self }
    }

    fn of_schema(error: &SchemaError, message: String) -> Self {
        let status = match error.kind {
            SchemaErrorKind::Invalid { .. } => ffwd_status::FFWD_INVALID_GRAMMAR,
            SchemaErrorKind::Unsupported { .. } => ffwd_status::FFWD_UNSUPPORTED,
            SchemaErrorKind::Unsatisfiable => ffwd_status::FFWD_UNSATISFIABLE,
            SchemaErrorKind::Limit { .. } => ffwd_status::FFWD_LIMIT_EXCEEDED,
        };
        Self { pointer: text(error.pointer.clone()), ..Self::new(status, message) }
    }
}

/// A text for C. Zero bytes, which end a text there, are written as `\0`.
fn text(text: impl Into<Vec<u8>>) -> CString {
    let bytes: Vec<u8> = text.into();
    let escaped = bytes.iter().flat_map(|byte| match byte {
        0 => &b"\\0"[..],
        _ => std::slice::from_ref(byte),
    });
    CString::new(escaped.copied().collect::<Vec<u8>>()).unwrap_or_default()
}

impl From<LimitExceeded> for ffwd_error {
    fn from(error: LimitExceeded) -> Self {
        let status = match error.breach() {
            Breach::Budget | Breach::Deadline | Breach::Cancelled | Breach::OutOfMemory => {
                ffwd_status::FFWD_LIMIT_EXCEEDED
            }
        };
        Self::new(status, error.to_string())
    }
}

impl From<EngineError> for ffwd_error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Limit(error) => error.into(),
            EngineError::Schema(error) => Self::of_schema(&error, error.to_string()),
        }
    }
}

impl From<GrammarError> for ffwd_error {
    fn from(error: GrammarError) -> Self {
        let status = match error.kind {
            GrammarErrorKind::Limit(_) => ffwd_status::FFWD_LIMIT_EXCEEDED,
            GrammarErrorKind::Unsupported(_) => ffwd_status::FFWD_UNSUPPORTED,
            GrammarErrorKind::NonProductive | GrammarErrorKind::Swallowed => {
                ffwd_status::FFWD_UNSATISFIABLE
            }
            _ => ffwd_status::FFWD_INVALID_GRAMMAR,
        };
        let converted = Self::new(status, error.to_string());
        match error.place {
            Some(_) => converted.at(error.line(), error.column()),
            None => converted,
        }
    }
}

impl From<CompileError> for ffwd_error {
    fn from(error: CompileError) -> Self {
        let message = error.to_string();
        match error {
            CompileError::Engine(error) => error.into(),
            CompileError::Grammar(error) => error.into(),
            CompileError::Pattern { line, column, .. } => {
                Self::new(ffwd_status::FFWD_INVALID_GRAMMAR, message).at(line, column)
            }
            CompileError::Schema { error, excerpt, .. } => {
                Self::of_schema(&error, message).at(excerpt.line, excerpt.column)
            }
            CompileError::Unsatisfiable(_) => Self::new(ffwd_status::FFWD_UNSATISFIABLE, message),
        }
    }
}

impl From<MatcherError> for ffwd_error {
    fn from(error: MatcherError) -> Self {
        let message = error.to_string();
        let status = match error {
            MatcherError::Engine(error) => return error.into(),
            MatcherError::OutOfRange { .. } | MatcherError::AfterEnd { .. } => {
                ffwd_status::FFWD_INVALID_TOKEN
            }
            MatcherError::Budget { .. } | MatcherError::Part { .. } | MatcherError::Ends { .. } => {
                ffwd_status::FFWD_BUDGET_TOO_SMALL
            }
            _ => ffwd_status::FFWD_INVALID_ARGUMENT,
        };
        Self::new(status, message)
    }
}

impl From<FastForwardError> for ffwd_error {
    fn from(error: FastForwardError) -> Self {
        let message = error.to_string();
        match error {
            FastForwardError::Engine(error) => error.into(),
            _ => Self::new(ffwd_status::FFWD_INVALID_VOCABULARY, message),
        }
    }
}

impl From<VocabularyError> for ffwd_error {
    fn from(error: VocabularyError) -> Self {
        Self::new(ffwd_status::FFWD_INVALID_VOCABULARY, error.to_string())
    }
}

/// Do the work of a call. A panic is an error like others, since it must not cross into C.
///
/// # Safety
/// `error` is null or can be written.
pub(crate) unsafe fn call(
    error: *mut *mut ffwd_error,
    work: impl FnOnce() -> Result<(), ffwd_error>,
) -> ffwd_status {
    let failed = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return ffwd_status::FFWD_OK,
        Ok(Err(failed)) => failed,
        Err(_) => ffwd_error::new(
            ffwd_status::FFWD_INTERNAL_ERROR,
            "ffwd failed; free the objects of this call and report it with the grammar",
        ),
    };
    let status = failed.status;
    if !error.is_null() {
        // SAFETY: the caller says that it can be written.
        unsafe { error.write(Box::into_raw(Box::new(failed))) };
    }
    status
}

/// Return the status of an error; `FFWD_OK` of null.
///
/// # Safety
/// `error` is null or an error that was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_error_status(error: *const ffwd_error) -> ffwd_status {
    // SAFETY: as above.
    unsafe { error.as_ref() }.map_or(ffwd_status::FFWD_OK, |error| error.status)
}

/// Return what is wrong, where, and what to do, in UTF-8 with a zero byte at the end; null of null.
///
/// # Safety
/// `error` is null or an error that was not freed; the text lives as long as it.
#[no_mangle]
pub unsafe extern "C" fn ffwd_error_message(error: *const ffwd_error) -> *const c_char {
    // SAFETY: as above.
    unsafe { error.as_ref() }.map_or(null(), |error| error.message.as_ptr())
}

/// Return the JSON pointer of the schema at fault, in UTF-8 with a zero byte at the end; empty
/// where no schema is at fault, null of null.
///
/// # Safety
/// `error` is null or an error that was not freed; the text lives as long as it.
#[no_mangle]
pub unsafe extern "C" fn ffwd_error_pointer(error: *const ffwd_error) -> *const c_char {
    // SAFETY: as above.
    unsafe { error.as_ref() }.map_or(null(), |error| error.pointer.as_ptr())
}

/// Return the line in the text of the grammar, from 1; 0 if none is known.
///
/// # Safety
/// `error` is null or an error that was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_error_line(error: *const ffwd_error) -> usize {
    // SAFETY: as above.
    unsafe { error.as_ref() }.map_or(0, |error| error.line)
}

/// Return the column in that line, in characters from 1; 0 if none is known.
///
/// # Safety
/// `error` is null or an error that was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_error_column(error: *const ffwd_error) -> usize {
    // SAFETY: as above.
    unsafe { error.as_ref() }.map_or(0, |error| error.column)
}

/// Free an error.
///
/// # Safety
/// `error` is null or an error that was not freed.
#[no_mangle]
pub unsafe extern "C" fn ffwd_error_free(error: *mut ffwd_error) {
    // SAFETY: as above.
    unsafe { free(error) };
}

/// Frees an object of the caller.
///
/// # Safety
/// `object` is null, or was made by `Box::into_raw` and not freed.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: as above.
        drop(unsafe { Box::from_raw(object) });
    }
}

/// The object that a pointer of the caller names.
///
/// # Safety
/// `object` is null or valid as long as the result is used.
pub(crate) unsafe fn borrowed<'a, T>(object: *const T, name: &str) -> Result<&'a T, ffwd_error> {
    // SAFETY: as above.
    unsafe { object.as_ref() }.ok_or_else(|| null_argument(name))
}

/// As [`borrowed`], for objects that change.
///
/// # Safety
/// `object` is null, or valid and used by nobody else as long as the result is used.
pub(crate) unsafe fn changed<'a, T>(object: *mut T, name: &str) -> Result<&'a mut T, ffwd_error> {
    // SAFETY: as above.
    unsafe { object.as_mut() }.ok_or_else(|| null_argument(name))
}

/// The values that a pointer of the caller and a number name.
///
/// # Safety
/// `length` values from `data` on can be read as long as the result is used.
pub(crate) unsafe fn slice<'a, T>(
    data: *const T,
    length: usize,
    name: &str,
) -> Result<&'a [T], ffwd_error> {
    match length {
        0 => Ok(&[]),
        _ if data.is_null() => Err(null_argument(name)),
        // SAFETY: as above.
        _ => Ok(unsafe { std::slice::from_raw_parts(data, length) }),
    }
}

fn null_argument(name: &str) -> ffwd_error {
    ffwd_error::argument(format!("`{name}` must not be null"))
}
