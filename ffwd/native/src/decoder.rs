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

/// A token id; an integer outside the range of ids raises an error that names it.
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

/// Fewer tokens are decoded with the interpreter lock held, because releasing it takes longer than
/// the work.
const FEW: usize = 512;

/// Releases the interpreter lock if there are many tokens.
pub fn detached<T: Send>(py: Python<'_>, tokens: &[TokenId], f: impl FnOnce() -> T + Send) -> T {
    if tokens.len() < FEW {
        f()
    } else {
        py.released(f)
    }
}

/// The bytes of every token of a vocabulary.
///
/// It is immutable: threads and streams may share it.
///
/// Args:
///     tokens: `tokens[i]` is the text of token `i` in bytes, special tokens by name; None if no
///         token has this id.
///     special: The ids of the tokens that `skip_special_tokens` skips.
///     strip_first_space: Drop a space at the start of a text, for tokenizers that add one before
///         each text (SentencePiece, WordPiece).
///     strip_every_first_space: If that leaves a token empty, drop the space of the next one too.
///     first_tokens: The bytes of tokens that differ at the start of a text; no space of them is
///         dropped.
///
/// Raises:
///     VocabularyError: A special id without a token, a first token outside the vocabulary, or 4
///         GiB of tokens and more.
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

    /// Whether a space at the start of a text is dropped.
    #[getter]
    fn strip_first_space(&self) -> bool {
        self.decoder.start().strip_first_space
    }

    /// The memory of the table, in bytes.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.decoder.memory_bytes()
    }

    /// Return the text of tokens.
    ///
    /// Malformed UTF-8 becomes U+FFFD as WHATWG's Encoding Standard says: one for each longest
    /// prefix of a character that does not continue, and one for each byte that starts no
    /// character.
    ///
    /// Args:
    ///     skip_special_tokens: Skip special tokens; otherwise they are written by name.
    ///
    /// Raises:
    ///     TokenError: An id without a token.
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

    /// Return the bytes of tokens, which need not be UTF-8.
    ///
    /// Raises:
    ///     TokenError: An id without a token.
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
