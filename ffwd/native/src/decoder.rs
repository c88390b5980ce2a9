//! `Decoder`: token ids back to text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyList, PySequence, PyString};

use super::errors::{self, VocabularyError};
use super::released::Released;
use ffwd_tokenizer::streaming::{Decoder, TextStart};
use ffwd_tokenizer::vocabulary::TokenId;

/// A token id; an integer that none can be is an error that names it.
#[derive(Clone, Copy)]
pub struct TokenArgument(pub TokenId);

impl<'py> FromPyObject<'_, 'py> for TokenArgument {
    type Error = PyErr;

    #[inline]
    fn extract(id: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match id.extract::<u32>() {
            Ok(id) => Ok(Self(TokenId(id))),
            Err(error) if error.is_instance_of::<PyOverflowError>(id.py()) => {
                Err(errors::not_a_token(id.py(), &id))
            }
            Err(error) => Err(error),
        }
    }
}

/// Token ids, as any sequence of integers.
pub struct TokensArgument(pub Vec<TokenId>);

impl<'py> FromPyObject<'_, 'py> for TokensArgument {
    type Error = PyErr;

    fn extract(ids: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let token = |id: Bound<'py, PyAny>| id.extract().map(|TokenArgument(token)| token);
        if let Ok(list) = ids.cast::<PyList>() {
            let mut tokens = Vec::with_capacity(list.len());
            for id in list.iter() {
                tokens.push(token(id)?);
            }
            return Ok(Self(tokens));
        }
        if ids.is_instance_of::<PyString>() || ids.is_instance_of::<PyBytes>() {
            return Err(PyTypeError::new_err(format!(
                "token ids must be a sequence of integers, not {}",
                ids.get_type()
            )));
        }
        ids.try_iter()?.map(|id| token(id?)).collect::<PyResult<_>>().map(Self)
    }
}

/// So few tokens are decoded without releasing the interpreter lock, which would take longer than
/// the work.
const FEW: usize = 512;

/// Runs something with the interpreter lock released, if there are many tokens.
pub fn detached<T: Send>(py: Python<'_>, tokens: &[TokenId], f: impl FnOnce() -> T + Send) -> T {
    if tokens.len() < FEW {
        f()
    } else {
        py.released(f)
    }
}

/// The bytes of every token of a vocabulary. Immutable: any number of threads and streams share one.
///
/// Args:
///     tokens: `tokens[i]` is what token `i` stands for, special tokens by name; None where there
///         is no token with this id.
///     special: The ids of the tokens that `skip_special_tokens` leaves out.
///     strip_first_space: A space that a text begins with is not part of it, as in the tokenizers
///         that write one before each text (SentencePiece, WordPiece).
///     strip_every_first_space: If that leaves nothing of a token, the text begins with the next one.
///     first_tokens: What tokens stand for that a text begins with, where that differs: nothing of
///         it is dropped.
///
/// Raises:
///     VocabularyError: A special id that is no token, a first token outside of the vocabulary, or
///         4 GiB of tokens and more.
#[pyclass(name = "Decoder", module = "ffwd.streaming", frozen)]
pub struct PyDecoder {
    pub decoder: Arc<Decoder>,
}

#[pymethods]
impl PyDecoder {
    #[new]
    #[pyo3(signature = (
        tokens,
        *,
        special=TokensArgument(Vec::new()),
        strip_first_space=false,
        strip_every_first_space=false,
        first_tokens=HashMap::new(),
    ))]
    fn new(
        tokens: &Bound<'_, PySequence>,
        special: TokensArgument,
        strip_first_space: bool,
        strip_every_first_space: bool,
        first_tokens: HashMap<u32, PyBackedBytes>,
    ) -> PyResult<Self> {
        let items: Vec<Bound<'_, PyAny>> = tokens.to_list()?.iter().collect();
        let mut table: Vec<Option<Cow<'_, [u8]>>> = Vec::with_capacity(items.len());
        for (id, item) in items.iter().enumerate() {
            let bytes = item.extract::<Option<Cow<'_, [u8]>>>();
            table.push(bytes.map_err(|_| {
                PyTypeError::new_err(format!(
                    "token {id} must be bytes or None, not {}",
                    item.get_type()
                ))
            })?);
        }
        let first =
            first_tokens.into_iter().map(|(id, bytes)| (TokenId(id), bytes.as_ref().into()));
        let start =
            TextStart { strip_first_space, strip_every_first_space, first_tokens: first.collect() };
        let decoder = Decoder::new(&table, &special.0, start)
            .map_err(|error| VocabularyError::new_err(error.to_string()))?;
        Ok(Self { decoder: Arc::new(decoder) })
    }

    /// The number of ids.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.decoder.vocab_size()
    }

    /// Whether a space that a text begins with is not part of it.
    #[getter]
    fn strip_first_space(&self) -> bool {
        self.decoder.start().strip_first_space
    }

    /// How many bytes of memory the table takes.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.decoder.memory_bytes()
    }

    /// The text that tokens stand for. Malformed UTF-8 becomes U+FFFD as the Encoding Standard of
    /// WHATWG says: one for each longest beginning of a character that does not go on, and one for
    /// each byte that no character begins with.
    ///
    /// Args:
    ///     skip_special_tokens: Whether special tokens are left out; otherwise they are written by
    ///         name.
    ///
    /// Raises:
    ///     TokenError: An id that no token has.
    #[pyo3(signature = (token_ids, *, skip_special_tokens=true))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        token_ids: TokensArgument,
        skip_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyString>> {
        let tokens = &token_ids.0;
        let text = detached(py, tokens, || self.decoder.decode(tokens, skip_special_tokens));
        Ok(PyString::new(py, &text.map_err(|error| errors::unknown_token(py, error))?))
    }

    /// The bytes that tokens stand for, which need not be UTF-8.
    ///
    /// Raises:
    ///     TokenError: An id that no token has.
    #[pyo3(signature = (token_ids, *, skip_special_tokens=true))]
    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        token_ids: TokensArgument,
        skip_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let tokens = &token_ids.0;
        let bytes = detached(py, tokens, || self.decoder.decode_bytes(tokens, skip_special_tokens));
        Ok(PyBytes::new(py, &bytes.map_err(|error| errors::unknown_token(py, error))?))
    }

    fn __repr__(&self) -> String {
        format!("Decoder(vocab_size={})", self.decoder.vocab_size())
    }
}
