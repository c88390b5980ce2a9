//! Encoders that count the tokens of a changing text: `AppendEncoder`, `PrependEncoder`,
//! `IntervalCounter`.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::bpe::token_list;
use super::errors;
use super::released::Released;
use super::text_argument::{detached, TextArgument};
use ffwd_tokenizer::tokenizer::{AppendEncoder, IntervalCounter, PrependEncoder};

/// A text that grows at its end, with its token count.
///
/// The count is that of encoding the current text alone. Bytes of an incomplete character at the
/// end are not counted until the character is complete. `Bpe.append_encoder` makes it.
#[pyclass(name = "AppendEncoder", module = "ffwd")]
pub struct PyAppendEncoder {
    pub encoder: AppendEncoder,
}

#[pymethods]
impl PyAppendEncoder {
    /// Append text; bytes may end within a character.
    ///
    /// Raises:
    ///     TextError: The text is not UTF-8, or the tokenizer normalizes it; `byte` is the offset
    ///         in the whole text. Nothing is appended then.
    fn push(&mut self, py: Python<'_>, text: TextArgument<'_>) -> PyResult<()> {
        let before = self.encoder.len();
        let text = text.bytes_or(|error| error.shifted(before))?;
        let encoder = &mut self.encoder;
        detached(py, text, || encoder.push(text)).map_err(|error| errors::text(py, &error))
    }

    /// Keep only the first `length` bytes of the text.
    fn truncate(&mut self, length: usize) {
        self.encoder.truncate(length);
    }

    /// Return the number of tokens of the text.
    fn count(&mut self) -> usize {
        self.encoder.count()
    }

    /// Return the tokens of the text; encodes all of it.
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let tokens = detached(py, self.encoder.text(), || self.encoder.tokens())
            .map_err(|error| errors::text(py, &error))?;
        token_list(py, &tokens)
    }

    /// The text, including the bytes of an incomplete character.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.encoder.text())
    }

    /// Return the length of the text in bytes.
    fn __len__(&self) -> usize {
        self.encoder.len()
    }

    fn __repr__(&mut self) -> String {
        format!("AppendEncoder(bytes={}, tokens={})", self.encoder.len(), self.encoder.count())
    }
}

/// A text that grows at its start, with its token count.
///
/// The count is that of encoding the current text alone. Bytes of an incomplete character at the
/// start are not counted until the character is complete. `Bpe.prepend_encoder` makes it.
#[pyclass(name = "PrependEncoder", module = "ffwd")]
pub struct PyPrependEncoder {
    pub encoder: PrependEncoder,
}

#[pymethods]
impl PyPrependEncoder {
    /// Prepend text; bytes may start within a character.
    ///
    /// Raises:
    ///     TextError: The text is not UTF-8, or the tokenizer normalizes it; `byte` is the offset
    ///         in `text`. Nothing is prepended then.
    fn push(&mut self, py: Python<'_>, text: TextArgument<'_>) -> PyResult<()> {
        let text = text.bytes()?;
        let encoder = &mut self.encoder;
        detached(py, text, || encoder.push(text)).map_err(|error| errors::text(py, &error))
    }

    /// Keep only the last `length` bytes of the text.
    fn truncate(&mut self, length: usize) {
        self.encoder.truncate(length);
    }

    /// Return the number of tokens of the text.
    fn count(&mut self, py: Python<'_>) -> PyResult<usize> {
        self.encoder.count().map_err(|error| errors::text(py, &error))
    }

    /// Return the tokens of the text; encodes all of it.
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let tokens =
            py.released(|| self.encoder.tokens()).map_err(|error| errors::text(py, &error))?;
        token_list(py, &tokens)
    }

    /// The text, including the bytes of an incomplete character.
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.encoder.text())
    }

    /// Return the length of the text in bytes.
    fn __len__(&self) -> usize {
        self.encoder.len()
    }

    fn __repr__(&self) -> String {
        format!("PrependEncoder(bytes={})", self.encoder.len())
    }
}

/// A text whose parts' tokens can be counted quickly.
///
/// The count is that of encoding the part alone. `Bpe.interval_counter` makes it.
#[pyclass(name = "IntervalCounter", module = "ffwd", frozen)]
pub struct PyIntervalCounter {
    pub counter: IntervalCounter,
}

#[pymethods]
impl PyIntervalCounter {
    /// Return the number of tokens of the bytes from `start` to `end`, exclusive.
    ///
    /// Raises:
    ///     TextError: The range is outside the text, or starts or ends within a character.
    #[pyo3(signature = (start=0, end=None))]
    fn count(&self, py: Python<'_>, start: usize, end: Option<usize>) -> PyResult<usize> {
        let end = end.unwrap_or(self.counter.text().len());
        self.counter.count(start..end).map_err(|error| errors::text(py, &error))
    }

    /// Return the length of the text in bytes.
    fn __len__(&self) -> usize {
        self.counter.text().len()
    }

    fn __repr__(&self) -> String {
        format!("IntervalCounter(bytes={})", self.counter.text().len())
    }
}
