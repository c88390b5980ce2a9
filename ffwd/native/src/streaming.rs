//! `DecodeStream` and `TokenSequence`: text while its tokens come.

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

/// A decoder, or what has one as its attribute `decoder`: a tokenizer.
pub struct Source {
    pub decoder: Arc<Decoder>,
    /// What was given; whoever observes streams may ask it.
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

/// What a stream holds, for one caller at a time: whoever comes in between gets an error.
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

/// The text of tokens while they come: together it is `decode` of all of them.
///
/// Text is held back only while it ends within a character. Malformed UTF-8 becomes U+FFFD as soon
/// as it is certainly malformed; a genuine U+FFFD is text like any other.
///
/// A stream belongs to one request. Threads may share the decoder, and must not share a stream.
///
/// Args:
///     source: A `Decoder`, or a tokenizer that has one as its attribute `decoder`.
///     prompt_ids: What stands before the first token. It decides whether the space is dropped that
///         some tokenizers write before each text: only at the start of one, which is the start of
///         the stream and behind a special token. A character that the prompt begins comes with the
///         token that ends it.
///     skip_special_tokens: Whether special tokens are left out; otherwise they are written by
///         name.
///
/// Raises:
///     TokenError: An id in the prompt that no token has.
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

    /// The text that a token adds, or None while there is none: the token ends within a character,
    /// or is special and left out.
    ///
    /// Raises:
    ///     TokenError: An id that no token has. The stream is as it was before.
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

    /// The text that several tokens add; it may be empty.
    ///
    /// Raises:
    ///     TokenError: An id that no token has. The stream is as it was before.
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

    /// Ends the text: U+FFFD if it ends within a character, and otherwise nothing. The stream begins
    /// anew, at the start of a text.
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

    /// The bytes that are held back: the beginning of a character.
    #[getter]
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.stream.get()?.unfinished()))
    }

    /// A second stream that goes on from here, for another answer to the same prompt.
    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        let stream = Exclusive::new(self.stream.get()?.clone());
        Ok(Self { source: self.source.clone_ref(py), stream })
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

/// The tokens of a request so far, their text, and where each of them lies in it.
///
/// Args:
///     source: A `Decoder`, or a tokenizer that has one as its attribute `decoder`.
///     prompt_ids: The tokens that it begins with, which are told apart from those that are
///         appended.
///     skip_special_tokens: Whether special tokens are no part of the text.
///
/// Raises:
///     TokenError: An id in the prompt that no token has.
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

    /// What the sequence was made with.
    #[getter]
    fn source(&self, py: Python<'_>) -> Py<PyAny> {
        self.source.clone_ref(py)
    }

    /// Appends a token. Returns the text that has become certain by it, which is empty while the
    /// text ends within a character.
    ///
    /// Raises:
    ///     TokenError: An id that no token has. Nothing was appended.
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

    /// Appends tokens. Returns the text that has become certain by them.
    ///
    /// Raises:
    ///     TokenError: An id that no token has. Nothing was appended.
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

    /// Whether a text begins here: at the beginning, and after a special token.
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

    /// The text of all tokens, as `decode` gives it.
    #[getter]
    fn text(&self) -> PyResult<String> {
        Ok(self.sequence.get()?.text())
    }

    /// The text of the prompt.
    #[getter]
    fn prompt_text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        Ok(PyString::new(py, self.sequence.get()?.prompt_text()))
    }

    /// The text after that of the prompt. A character that the prompt begins belongs here.
    #[getter]
    fn generated_text(&self) -> PyResult<String> {
        Ok(self.sequence.get()?.generated_text())
    }

    /// The bytes of all tokens: the text, where they are UTF-8.
    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.sequence.get()?.bytes()))
    }

    /// The bytes at the end that begin a character.
    #[getter]
    fn pending<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.sequence.get()?.unfinished()))
    }

    /// Where each token lies in `data`: (start, end) in bytes. Empty for a token that is not shown.
    #[getter]
    fn byte_offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let sequence = self.sequence.get()?;
        PyList::new(py, sequence.byte_ranges().map(|range| (range.start, range.end)))
    }

    /// Where each token lies in `text`: (start, end) in characters, of which it has at least one
    /// byte each. Tokens that share a character overlap there.
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
