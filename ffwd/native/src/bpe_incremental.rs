//! Texts in progress whose tokens are counted: `AppendEncoder`, `PrependEncoder`,
//! `IntervalCounter`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::bpe::token_list;
use super::errors;
use super::released::Released;
use super::text_argument::{detached, TextArgument};
use ffwd_tokenizer::tokenizer::{AppendEncoder, IntervalCounter, PrependEncoder};

/// A text that grows at its end, and how many tokens it has at every moment.
///
/// The count is that of encoding the text so far on its own. Bytes at its end that are not yet a
/// whole character are left out until the character is complete. Made by `Bpe.append_encoder`.
#[pyclass(name = "AppendEncoder", module = "ffwd")]
pub struct PyAppendEncoder {
    pub encoder: AppendEncoder,
}

#[pymethods]
impl PyAppendEncoder {
    /// Appends text; bytes may end within a character.
    ///
    /// Raises:
    ///     TextError: Not UTF-8, or text that the tokenizer normalizes; `byte` is the place in the
    ///         whole text. Then nothing has been appended.
    fn push(&mut self, py: Python<'_>, text: TextArgument<'_>) -> PyResult<()> {
        let before = self.encoder.len();
        let text = text.bytes_or(|error| error.shifted(before))?;
        let encoder = &mut self.encoder;
        detached(py, text, || encoder.push(text)).map_err(|error| errors::text(py, &error))
    }

    /// Rolls back to the first `length` bytes of the text; does nothing if it has no more.
    fn truncate(&mut self, length: usize) {
        self.encoder.truncate(length);
    }

    /// How many tokens the text has.
    fn count(&mut self) -> usize {
        self.encoder.count()
    }

    /// The tokens of the text. Encodes all of it.
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let tokens = detached(py, self.encoder.text(), || self.encoder.tokens())
            .map_err(|error| errors::text(py, &error))?;
        token_list(py, &tokens)
    }

    /// The text, with what there is of a character that is not complete.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.encoder.text())
    }

    /// The length of the text in bytes.
    fn __len__(&self) -> usize {
        self.encoder.len()
    }

    fn __repr__(&mut self) -> String {
        format!("AppendEncoder(bytes={}, tokens={})", self.encoder.len(), self.encoder.count())
    }
}

/// A text that grows at its beginning, and how many tokens it has at every moment.
///
/// The count is that of encoding the text so far on its own. Bytes at its beginning that are the
/// end of a character are left out until the character is complete. Made by
/// `Bpe.prepend_encoder`.
#[pyclass(name = "PrependEncoder", module = "ffwd")]
pub struct PyPrependEncoder {
    pub encoder: PrependEncoder,
}

#[pymethods]
impl PyPrependEncoder {
    /// Puts text in front; bytes may begin within a character.
    ///
    /// Raises:
    ///     TextError: Not UTF-8, or text that the tokenizer normalizes; `byte` is the place in
    ///         `text`. Then nothing has been put in front.
    fn push(&mut self, py: Python<'_>, text: TextArgument<'_>) -> PyResult<()> {
        let text = text.bytes()?;
        let encoder = &mut self.encoder;
        detached(py, text, || encoder.push(text)).map_err(|error| errors::text(py, &error))
    }

    /// Rolls back to the last `length` bytes of the text; does nothing if it has no more.
    fn truncate(&mut self, length: usize) {
        self.encoder.truncate(length);
    }

    /// How many tokens the text has.
    fn count(&mut self, py: Python<'_>) -> PyResult<usize> {
        self.encoder.count().map_err(|error| errors::text(py, &error))
    }

    /// The tokens of the text. Encodes all of it.
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let tokens =
            py.released(|| self.encoder.tokens()).map_err(|error| errors::text(py, &error))?;
        token_list(py, &tokens)
    }

    /// The text, with what there is of a character that is not complete.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.encoder.text())
    }

    /// The length of the text in bytes.
    fn __len__(&self) -> usize {
        self.encoder.len()
    }

    fn __repr__(&self) -> String {
        format!("PrependEncoder(bytes={})", self.encoder.len())
    }
}

/// A text, prepared so that the tokens of any stretch of it can be counted.
///
/// The count is that of encoding the stretch on its own. Made by `Bpe.interval_counter`.
#[pyclass(name = "IntervalCounter", module = "ffwd", frozen)]
pub struct PyIntervalCounter {
    pub counter: IntervalCounter,
}

#[pymethods]
impl PyIntervalCounter {
    /// How many tokens the bytes from `start` up to, and without, `end` have.
    ///
    /// Raises:
    ///     TextError: A range outside of the text, or an end of it inside a character.
    #[pyo3(signature = (start=0, end=None))]
    fn count(&self, py: Python<'_>, start: usize, end: Option<usize>) -> PyResult<usize> {
        let end = end.unwrap_or(self.counter.text().len());
        self.counter.count(start..end).map_err(|error| errors::text(py, &error))
    }

    /// The length of the text in bytes.
    fn __len__(&self) -> usize {
        self.counter.text().len()
    }

    fn __repr__(&self) -> String {
        format!("IntervalCounter(bytes={})", self.counter.text().len())
    }
}
