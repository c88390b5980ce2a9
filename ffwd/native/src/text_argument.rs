//! Text arguments from Python: `str`, which may have lone surrogates, or UTF-8 bytes.

use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PySlice, PyString};

use super::errors;
use super::released::Released;
use ffwd_tokenizer::tokenizer::TextError;

/// A text, as `str` or as UTF-8 bytes.
pub enum TextArgument<'py> {
    Text(Bound<'py, PyString>),
    Bytes(Bound<'py, PyBytes>),
}

impl<'py> FromPyObject<'_, 'py> for TextArgument<'py> {
    type Error = PyErr;

    fn extract(text: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(text) = text.cast::<PyString>() {
            return Ok(Self::Text(text.to_owned()));
        }
        match text.cast::<PyBytes>() {
            Ok(bytes) => Ok(Self::Bytes(bytes.to_owned())),
            Err(_) => Err(PyTypeError::new_err(format!(
                "a text must be str or bytes, not {}",
                text.get_type()
            ))),
        }
    }
}

impl TextArgument<'_> {
    /// The text in UTF-8.
    ///
    /// Raises `TextError` for a lone surrogate.
    pub fn bytes(&self) -> PyResult<&[u8]> {
        self.bytes_or(|error| error)
    }

    /// The same; `tell` adapts the error of a lone surrogate, for example to name the text.
    pub fn bytes_or(&self, tell: impl FnOnce(TextError) -> TextError) -> PyResult<&[u8]> {
        match self {
            Self::Text(text) => utf8_or(text, tell).map(str::as_bytes),
            Self::Bytes(bytes) => Ok(bytes.as_bytes()),
        }
    }
}

/// A string as UTF-8.
///
/// Raises `TextError` for a lone surrogate.
pub fn utf8<'t>(text: &'t Bound<'_, PyString>) -> PyResult<&'t str> {
    utf8_or(text, |error| error)
}

fn utf8_or<'t>(
    text: &'t Bound<'_, PyString>,
    tell: impl FnOnce(TextError) -> TextError,
) -> PyResult<&'t str> {
    text.to_str().map_err(|error| {
        let found = lone_surrogate(text, &error);
        found.map_or(error, |found| errors::text(text.py(), &tell(found)))
    })
}

/// Returns the surrogate that keeps a string from being UTF-8; `None` for another error.
pub fn lone_surrogate(text: &Bound<'_, PyString>, error: &PyErr) -> Option<TextError> {
    let py = text.py();
    if !error.is_instance_of::<PyUnicodeEncodeError>(py) {
        return None;
    }
    let character: usize = error.value(py).getattr("start").ok()?.extract().ok()?;
    // A surrogate is encoded as three bytes, which identify it.
    let data = text.call_method1("encode", ("utf-8", "surrogatepass")).ok()?;
    let data = data.cast_into::<PyBytes>().ok()?;
    let before = text.get_item(PySlice::new(py, 0, character.try_into().ok()?, 1)).ok()?;
    let at = before.cast::<PyString>().ok()?.to_str().ok()?.len();
    let &[_, middle, last] = data.as_bytes().get(at..)?.first_chunk::<3>()?;
    let code = 0xD000 | u32::from(middle & 0x3F) << 6 | u32::from(last & 0x3F);
    Some(TextError::LoneSurrogate { character, code, at })
}

/// Shorter texts are encoded with the interpreter lock held, because releasing it takes longer than
/// the work.
const SHORT: usize = 512;

/// Releases the interpreter lock if the text is long.
pub fn detached<T: Send>(py: Python<'_>, text: &[u8], f: impl FnOnce() -> T + Send) -> T {
    if text.len() < SHORT {
        f()
    } else {
        py.released(f)
    }
}
