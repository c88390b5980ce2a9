//! `DecodeStream` and `TokenSequence`: text that is decoded token by token.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use super::bpe::token_list;
use super::decoder::{detached, PyDecoder, TokenArgument, TokensArgument};
use super::errors::{self, StreamInUseError};
use super::stream_events;
use ffwd_tokenizer::streaming::{DecodeStream, Decoder, Sequence};

/// A decoder, or an object with one as its attribute `decoder`: a tokenizer.
pub struct Source {
    pub decoder: Arc<Decoder>,
    /// The given object; observers of streams receive it.
    pub given: Py<PyAny>,
}

impl<'py> FromPyObject<'_, 'py> for Source {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let own = match given.cast::<PyDecoder>() {
            Ok(own) => own.to_owned(),
            Err(_) => {
                let attribute = given.getattr_opt("decoder")?;
                let own = attribute.and_then(|found| found.cast_into::<PyDecoder>().ok());
                own.ok_or_else(|| {
                    PyTypeError::new_err(format!(
                        "a stream needs a Decoder, or a tokenizer that has one as its attribute \
                         decoder, not {}",
                        given.get_type()
                    ))
                })?
            }
        };
        let decoder = Arc::clone(&own.get().decoder);
        Ok(Self { decoder, given: given.to_owned().unbind() })
    }
}

/// The state of a stream, for one caller at a time: a concurrent call raises an error.
pub struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    pub fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }

    #[inline]
    pub fn get(&self) -> PyResult<MutexGuard<'_, T>> {
        self.0.try_lock().ok_or_else(|| {
            StreamInUseError::new_err(
                "another thread is using this stream: a stream belongs to one request; what may \
                 be shared is its decoder",
            )
        })
    }
}

/// A decoder of one output, token by token.
///
/// The texts it returns join to the `decode` of all tokens. It holds back only the bytes of an
/// incomplete character. Malformed UTF-8 becomes U+FFFD as soon as it is certainly malformed; a
/// genuine U+FFFD is text like any other.
///
/// A stream belongs to one request. Threads may share the decoder, and must not share a stream.
///
/// Args:
///     source: A `Decoder`, or a tokenizer with one as its attribute `decoder`.
///     prompt_ids: The tokens before the first one. They decide whether the space is dropped that
///         some tokenizers add before each text: only at the start of a text, which is the start of
///         the stream or follows a special token. A character that starts in the prompt is returned
///         with the token that ends it.
///     skip_special_tokens: Skip special tokens; otherwise they are written by name.
///
/// Raises:
///     TokenError: An id in the prompt without a token.
///     TypeError: A source without a decoder.
#[pyclass(name = "DecodeStream", module = "ffwd.streaming", frozen)]
pub struct PyDecodeStream {
    source: Py<PyAny>,
    stream: Exclusive<DecodeStream>,
}

#[pymethods]
impl PyDecodeStream {
    #[new]
    #[pyo3(signature = (
        source, /, *, prompt_ids=TokensArgument(Vec::new()), skip_special_tokens=true
    ))]
    fn new(
        py: Python<'_>,
        source: Source,
        prompt_ids: TokensArgument,
        skip_special_tokens: bool,
    ) -> PyResult<Self> {
        let stream = stream_after(py, source.decoder, &prompt_ids, skip_special_tokens)?;
        Ok(Self { source: source.given, stream: Exclusive::new(stream) })
    }

    /// Return the text that a token adds, or None if it adds none.
    ///
    /// It adds none if it ends within a character, or is special and skipped.
    ///
    /// Raises:
    ///     TokenError: An id without a token. The stream is unchanged.
    ///     StreamInUseError: Another thread is using the stream.
    #[pyo3(signature = (token_id, /))]
    fn step<'py>(
        &self,
        py: Python<'py>,
        token_id: TokenArgument,
    ) -> PyResult<Option<Bound<'py, PyString>>> {
        let mut stream = self.stream.get()?;
        match stream.step(token_id.0) {
            Ok("") => Ok(None),
            Ok(text) => Ok(Some(PyString::new(py, text))),
            Err(error) => Err(errors::unknown_token(py, error)),
        }
    }

    /// Return the text that several tokens add; it may be empty.
    ///
    /// Raises:
    ///     TokenError: An id without a token. The stream is unchanged.
    ///     StreamInUseError: Another thread is using the stream.
    #[pyo3(signature = (token_ids, /))]
    fn step_batch<'py>(
        &self,
        py: Python<'py>,
        token_ids: TokensArgument,
    ) -> PyResult<Bound<'py, PyString>> {
        let mut guard = self.stream.get()?;
        let (stream, tokens) = (&mut *guard, &token_ids.0);
        let text = detached(py, tokens, || stream.step_batch(tokens));
        Ok(PyString::new(py, text.map_err(|error| errors::unknown_token(py, error))?))
    }

    /// End the text, and return U+FFFD if it ends within a character, else an empty text.
    ///
    /// The stream restarts at the start of a text.
    ///
    /// Raises:
    ///     StreamInUseError: Another thread is using the stream.
    fn flush<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        let mut stream = self.stream.get()?;
        let text = PyString::new(py, stream.flush());
        drop(stream);
        if !text.is_empty()? {
            stream_events::incomplete(py, &self.source);
        }
        Ok(text)
    }

    /// The bytes of an incomplete character, which are held back.
    #[getter]
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.stream.get()?.unfinished()))
    }

    /// Return an independent stream in the same state, for another answer to the same prompt.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        let stream = Exclusive::new(self.stream.get()?.clone());
        Ok(Self { source: self.source.clone_ref(py), stream })
    }

    fn __repr__(&self) -> PyResult<String> {
        let pending = self.stream.get()?.unfinished().len();
        Ok(format!("DecodeStream(pending_bytes={pending})"))
    }
}

pub fn stream_after(
    py: Python<'_>,
    decoder: Arc<Decoder>,
    prompt: &TokensArgument,
    skip_special_tokens: bool,
) -> PyResult<DecodeStream> {
    let mut stream = DecodeStream::new(decoder, skip_special_tokens);
    stream.after(&prompt.0).map_err(|error| errors::unknown_token(py, error))?;
    Ok(stream)
}

/// The tokens of a request so far, with their text and offsets.
///
/// Args:
///     source: A `Decoder`, or a tokenizer with one as its attribute `decoder`.
///     prompt_ids: The tokens of the prompt, which are counted apart from those that are appended.
///     skip_special_tokens: Exclude special tokens from the text.
///
/// Raises:
///     TokenError: An id in the prompt without a token.
#[pyclass(name = "TokenSequence", module = "ffwd.streaming", frozen, subclass)]
pub struct PyTokenSequence {
    source: Py<PyAny>,
    sequence: Exclusive<Sequence>,
}

#[pymethods]
impl PyTokenSequence {
    #[new]
    #[pyo3(signature = (
        source, /, *, prompt_ids=TokensArgument(Vec::new()), skip_special_tokens=true
    ))]
    fn new(
        py: Python<'_>,
        source: Source,
        prompt_ids: TokensArgument,
        skip_special_tokens: bool,
    ) -> PyResult<Self> {
        let mut sequence = Sequence::new(source.decoder, skip_special_tokens);
        for &token in &prompt_ids.0 {
            sequence.append(token).map_err(|error| errors::unknown_token(py, error))?;
        }
        sequence.end_prompt();
        Ok(Self { source: source.given, sequence: Exclusive::new(sequence) })
    }

    /// The decoder or tokenizer of the sequence.
    #[getter]
    fn source(&self, py: Python<'_>) -> Py<PyAny> {
        self.source.clone_ref(py)
    }

    /// Append a token, and return the text that it makes certain.
    ///
    /// The text is empty if the output ends within a character.
    ///
    /// Raises:
    ///     TokenError: An id without a token. Nothing is appended.
    #[pyo3(signature = (token_id, /))]
    fn append_token<'py>(
        &self,
        py: Python<'py>,
        token_id: TokenArgument,
    ) -> PyResult<Bound<'py, PyString>> {
        let mut sequence = self.sequence.get()?;
        let text = sequence.append(token_id.0).map_err(|error| errors::unknown_token(py, error))?;
        Ok(PyString::new(py, text))
    }

    /// Append tokens, and return the text that they make certain.
    ///
    /// Raises:
    ///     TokenError: An id without a token. Nothing is appended.
    #[pyo3(signature = (token_ids, /))]
    fn append_tokens<'py>(
        &self,
        py: Python<'py>,
        token_ids: TokensArgument,
    ) -> PyResult<Bound<'py, PyString>> {
        let mut sequence = self.sequence.get()?;
        let text = sequence
            .append_batch(&token_ids.0)
            .map_err(|error| errors::unknown_token(py, error))?;
        Ok(PyString::new(py, text))
    }

    /// Whether a text starts here: at the start, and after a special token.
    #[getter]
    fn at_text_start(&self) -> PyResult<bool> {
        Ok(self.sequence.get()?.at_text_start())
    }

    /// The ids of all tokens.
    #[getter]
    fn token_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        token_list(py, self.sequence.get()?.tokens())
    }

    /// The ids of the prompt's tokens.
    #[getter]
    fn prompt_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        token_list(py, self.sequence.get()?.prompt_tokens())
    }

    /// The ids of the tokens after the prompt.
    #[getter]
    fn generated_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        token_list(py, self.sequence.get()?.generated_tokens())
    }

    /// The text of all tokens, as `decode` returns it.
    #[getter]
    fn text(&self) -> PyResult<String> {
        Ok(self.sequence.get()?.text())
    }

    /// The text of the prompt.
    #[getter]
    fn prompt_text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        Ok(PyString::new(py, self.sequence.get()?.prompt_text()))
    }

    /// The text after the prompt's, including a character that starts in the prompt.
    #[getter]
    fn generated_text(&self) -> PyResult<String> {
        Ok(self.sequence.get()?.generated_text())
    }

    /// The bytes of all tokens: the text, if they are UTF-8.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.sequence.get()?.bytes()))
    }

    /// The bytes of an incomplete character at the end.
    #[getter]
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.sequence.get()?.unfinished()))
    }

    /// The offsets of each token in `data`: (start, end) in bytes; empty for a skipped token.
    #[getter]
    fn byte_offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let sequence = self.sequence.get()?;
        PyList::new(py, sequence.byte_ranges().map(|range| (range.start, range.end)))
    }

    /// The offsets of each token in `text`: (start, end) in characters.
    ///
    /// A token covers each character that it has a byte of; tokens with parts of one character
    /// overlap.
    #[getter]
    fn character_offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let sequence = self.sequence.get()?;
        PyList::new(py, sequence.character_ranges().map(|range| (range.start, range.end)))
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.sequence.get()?.tokens().len())
    }

    fn __repr__(&self) -> PyResult<String> {
        let sequence = self.sequence.get()?;
        let (prompt, generated) =
            (sequence.prompt_tokens().len(), sequence.generated_tokens().len());
        Ok(format!("TokenSequence({prompt} tokens of a prompt, {generated} after it)"))
    }
}
