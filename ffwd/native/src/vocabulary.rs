//! `Vocabulary`: an engine for one tokenizer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySequence};

use super::bpe::PyBpe;
use super::errors::{TokenError, VocabularyError};
use super::released::Released;
use ffwd_engine::engine::{EncodeError, Encoder, Engine, EngineConfig};
use ffwd_tokenizer::tokenizer::Tokenizer;
use ffwd_tokenizer::vocabulary::{TokenId, Vocabulary};

/// The tokenizer's own encode function.
struct PyEncoder(Py<PyAny>);

impl Encoder for PyEncoder {
    fn encode(&self, text: &str) -> Result<Vec<TokenId>, EncodeError> {
        Python::attach(|py| {
            let encoded = self.0.bind(py).call1((PyBytes::new(py, text.as_bytes()),));
            encoded.and_then(|ids| ids.extract::<Vec<u32>>())
        })
        .map(|ids| ids.into_iter().map(TokenId).collect())
        .map_err(|error| EncodeError { text: text.to_owned(), message: error.to_string() })
    }
}

/// Checks that tokens with text are the same in both. The tokenizer may lack some: no text is ever
/// encoded with them.
fn check_same(vocabulary: &Vocabulary, tokenizer: &Tokenizer) -> PyResult<()> {
    let table = tokenizer.table();
    for token in (0..vocabulary.width() as u32).map(TokenId) {
        let (text, encoded) = (vocabulary.text(token), table.text(token));
        if !text.is_empty() && !encoded.is_empty() && text != encoded {
            return Err(VocabularyError::new_err(format!(
                "token {token} is {:?} in the vocabulary and {:?} in the tokenizer",
                String::from_utf8_lossy(text),
                String::from_utf8_lossy(encoded)
            )));
        }
    }
    Ok(())
}

/// The tokens of a model, and what the grammars compiled for it share.
///
/// Args:
///     tokens: `tokens[i]` is the text of token `i` in bytes; `None` for tokens without text
///         (control, padding, unused), which masks never allow.
///     eos_token_ids: The tokens that end a sequence; allowed when the grammar accepts.
///     width: The number of logits of the model; by default the number of tokens.
///     encode: A function from UTF-8 bytes to the tokenizer's ids, without special tokens and as in
///         the middle of a text. Only `fast_forward_tokens` needs it.
///     token_names: Ids by the names that grammars use for tokens, such as `<|im_end|>`.
///     bpe: The compiled tokenizer, instead of `encode`. If it is exact, forced tokens are exact
///         and canonical masks are available.
///
/// Raises:
///     VocabularyError: No end token, ids out of range, bytes without a token, or a `bpe` with
///         other texts for the tokens.
///     ValueError: Both `encode` and `bpe`.
#[pyclass(name = "Vocabulary", module = "ffwd", frozen)]
pub struct PyVocabulary {
    pub engine: Arc<Engine>,
    bpe: Option<Py<PyBpe>>,
    token_names: BTreeMap<String, u32>,
}

#[pymethods]
impl PyVocabulary {
    #[new]
    #[pyo3(signature = (tokens, *, eos_token_ids, width=None, encode=None, bpe=None,
                        token_names=BTreeMap::new()))]
    fn new(
        py: Python<'_>,
        tokens: &Bound<'_, PySequence>,
        eos_token_ids: Vec<u32>,
        width: Option<usize>,
        encode: Option<Py<PyAny>>,
        bpe: Option<Py<PyBpe>>,
        token_names: BTreeMap<String, u32>,
    ) -> PyResult<Self> {
        if encode.is_some() && bpe.is_some() {
            return Err(PyValueError::new_err("encode and bpe are both given: bpe encodes itself"));
        }
        let tokens: Bound<'_, PyList> = tokens.to_list()?;
        let mut texts: Vec<Option<Cow<'_, [u8]>>> = Vec::with_capacity(tokens.len());
        let items: Vec<Bound<'_, PyAny>> = tokens.iter().collect();
        for (id, item) in items.iter().enumerate() {
            if item.is_none() {
                texts.push(None);
            } else {
                let bytes = item.cast::<PyBytes>().map_err(|_| {
                    let kind = item.get_type();
                    PyTypeError::new_err(format!("token {id} must be bytes or None, not {kind}"))
                })?;
                texts.push(Some(Cow::Borrowed(bytes.as_bytes())));
            }
        }
        let texts: Vec<Option<&[u8]>> = texts.iter().map(Option::as_deref).collect();
        let eos: Vec<TokenId> = eos_token_ids.into_iter().map(TokenId).collect();
        let vocabulary = py
            .released(|| Vocabulary::new(&texts, &eos, width))
            .map_err(|error| VocabularyError::new_err(error.to_string()))?;
        let width = vocabulary.width();
        if let Some((name, id)) = token_names.iter().find(|(_, &id)| id as usize >= width) {
            return Err(VocabularyError::new_err(format!(
                "the token {name:?} has the id {id}, and there are {width}"
            )));
        }
        let named = token_names.iter().map(|(name, &id)| (name.clone(), TokenId(id)));
        let vocabulary = vocabulary.with_names(named);
        let encoder = encode.map(|encode| Box::new(PyEncoder(encode)) as Box<dyn Encoder>);
        let mut engine = Engine::new(vocabulary, encoder, EngineConfig::default());
        if let Some(bpe) = &bpe {
            let bpe = bpe.get();
            check_same(engine.vocabulary(), &bpe.tokenizer)?;
            let canonicality =
                py.released(|| bpe.sequences()).map(|sequences| sequences.canonicality.clone());
            engine = engine.with_tokenizer(Arc::clone(&bpe.tokenizer), canonicality);
        }
        let engine = Arc::new(engine);
        py.released(|| engine.prepare()).map_err(|error| super::errors::compile(py, &error))?;
        Ok(Self { engine, bpe, token_names })
    }

    /// Ids by the names that grammars use for tokens.
    #[getter]
    fn token_names(&self) -> BTreeMap<String, u32> {
        self.token_names.clone()
    }

    /// The compiled tokenizer of the vocabulary.
    #[getter]
    fn bpe(&self, py: Python<'_>) -> Option<Py<PyBpe>> {
        self.bpe.as_ref().map(|bpe| bpe.clone_ref(py))
    }

    /// The number of logits of the model, at least the number of tokens.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.engine.vocabulary().width()
    }

    /// The tokens that end a sequence, sorted.
    #[getter]
    fn eos_token_ids(&self) -> Vec<u32> {
        self.engine.vocabulary().eos().iter().map(|token| token.0).collect()
    }

    /// The length of the longest token, in bytes.
    #[getter]
    fn max_token_bytes(&self) -> usize {
        self.engine.vocabulary().max_token_bytes()
    }

    /// The estimated memory, in bytes, of the vocabulary and of what grammars share.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.engine.memory_bytes()
    }

    /// Set the memory limits for what the grammars of this vocabulary share.
    ///
    /// The defaults are 256 MiB and 128 MiB, besides what was made with the vocabulary itself.
    /// Entries that were not used recently are evicted and rebuilt on demand; grammars keep those
    /// in use.
    ///
    /// Args:
    ///     lexeme_bytes: The limit for lexemes: patterns, strings and numbers as automata.
    ///     lexeme_mask_bytes: The limit for masks of their states.
    #[pyo3(signature = (*, lexeme_bytes=None, lexeme_mask_bytes=None))]
    fn limit_memory(
        &self,
        py: Python<'_>,
        lexeme_bytes: Option<usize>,
        lexeme_mask_bytes: Option<usize>,
    ) {
        py.released(|| self.engine.limit_memory(lexeme_bytes, lexeme_mask_bytes));
    }

    /// Return the bytes of a token; `None` if it has no text.
    ///
    /// Raises:
    ///     TokenError: An id outside the vocabulary.
    fn token_bytes<'py>(
        &self,
        py: Python<'py>,
        token_id: u32,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let vocabulary = self.engine.vocabulary();
        if token_id as usize >= vocabulary.width() {
            let error = TokenError::new_err(format!(
                "token {token_id} is outside the vocabulary of {} ids",
                vocabulary.width()
            ));
            error.value(py).setattr("token", token_id)?;
            return Err(error);
        }
        let text = vocabulary.text(TokenId(token_id));
        Ok((!text.is_empty()).then(|| PyBytes::new(py, text)))
    }

    /// Return the tokenizer's tokens of a UTF-8 text, as in the middle of a longer one.
    ///
    /// Raises:
    ///     VocabularyError: Bytes that are not UTF-8, or no encode function was given.
    fn encode(&self, py: Python<'_>, data: &[u8]) -> PyResult<Vec<u32>> {
        let text = std::str::from_utf8(data)
            .map_err(|error| VocabularyError::new_err(format!("not UTF-8: {error}")))?;
        let tokens = py
            .released(|| self.engine.encode(text))
            .map_err(|error| VocabularyError::new_err(error.to_string()))?
            .ok_or_else(|| VocabularyError::new_err("made without an encode function"))?;
        Ok(tokens.iter().map(|token| token.0).collect())
    }

    /// Evict what was built for all grammars of this vocabulary.
    ///
    /// Entries that were made with the vocabulary itself stay. Compiled grammars remain usable and rebuild
    /// on demand.
    fn clear_memos(&self, py: Python<'_>) {
        py.released(|| self.engine.clear_memos());
    }

    /// Return the object itself, because it is immutable.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__(&self) -> PyResult<Py<PyAny>> {
        Err(PyTypeError::new_err(
            "a Vocabulary is not pickled: each process makes its own from the tokenizer, with \
             ffwd.tokenizer",
        ))
    }

    fn __repr__(&self) -> String {
        let vocabulary = self.engine.vocabulary();
        let eos: Vec<u32> = vocabulary.eos().iter().map(|token| token.0).collect();
        format!("Vocabulary(vocab_size={}, eos_token_ids={eos:?})", vocabulary.width())
    }
}
