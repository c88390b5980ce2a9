//! `BpeModel`: a table of pieces and merges, from Python objects or a tokenizer.json.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use super::errors;
use super::released::Released;
use ffwd_tokenizer::bpe::{Base, BpeSpec, BpeTable, Merges};
use ffwd_tokenizer::tokenizer::{read_model, TokenizerError, Writing};
use ffwd_tokenizer::vocabulary::TokenId;

/// The pieces and merges of a byte-pair encoding.
///
/// A tokenizer adds special tokens, a pre-tokenizer and a normalizer.
#[pyclass(name = "BpeModel", module = "ffwd", frozen)]
pub struct PyBpeModel {
    pub table: Arc<BpeTable>,
}

/// Reads pairs of bytes and a number from a mapping or a sequence of pairs.
fn pairs<'py>(tokens: &Bound<'py, PyAny>) -> PyResult<Vec<(Bound<'py, PyBytes>, u32)>> {
    if let Ok(mapping) = tokens.cast::<PyDict>() {
        return mapping
            .iter()
            .map(|(text, number)| Ok((bytes_of(&text)?, number.extract()?)))
            .collect();
    }
    let mut out = Vec::new();
    for item in tokens.try_iter()? {
        let (text, number): (Bound<'py, PyAny>, u32) = item?.extract()?;
        out.push((bytes_of(&text)?, number));
    }
    Ok(out)
}

fn bytes_of<'py>(text: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    text.cast::<PyBytes>().cloned().map_err(|_| {
        PyTypeError::new_err(format!("a token's text must be bytes, not {}", text.get_type()))
    })
}

fn too_large(number: u32) -> PyErr {
    errors::VocabularyError::new_err(format!("the rank {number} is too large"))
}

#[pymethods]
impl PyBpeModel {
    /// Make a model in which two adjacent tokens merge if their joined bytes are a token.
    ///
    /// Args:
    ///     tokens: The bytes of each token, with `▁` already replaced by a space: a mapping to
    ///         ranks (the rank plus `id_offset` is the id), or pairs of bytes and id in the order
    ///         of rank.
    ///     id_offset: The difference between ids and the ranks of a mapping.
    ///     characters: Start from characters instead of bytes.
    ///     byte_tokens: With `characters`, the ids of the 256 byte tokens, for characters without a
    ///         token.
    ///     whole_pieces: Encode a piece that is a token as that token, even if no merges produce
    ///         it.
    ///
    /// Raises:
    ///     VocabularyError: Tokens without bytes, bytes without a token, or too many of either.
    #[staticmethod]
    #[pyo3(signature = (
        tokens, *, id_offset=0, characters=false, byte_tokens=None, whole_pieces=true
    ))]
    fn ranked(
        py: Python<'_>,
        tokens: &Bound<'_, PyAny>,
        id_offset: u32,
        characters: bool,
        byte_tokens: Option<Vec<Option<u32>>>,
        whole_pieces: bool,
    ) -> PyResult<Self> {
        let mut pairs = pairs(tokens)?;
        if tokens.cast::<PyDict>().is_ok() {
            pairs.sort_unstable_by_key(|&(_, rank)| rank);
        }
        let mut pieces = Vec::with_capacity(pairs.len());
        for (text, number) in &pairs {
            let id = number.checked_add(id_offset).ok_or_else(|| too_large(*number))?;
            pieces.push((TokenId(id), text.as_bytes().into()));
        }
        let mut spec = BpeSpec {
            base: if characters { Base::Characters } else { Base::Bytes },
            merges: Merges::Ranked(pieces.iter().map(|&(token, _)| token).collect()),
            byte_tokens: [None; 256],
            pieces,
            whole_pieces,
            missing_from: None,
        };
        match byte_tokens {
            Some(tokens) => {
                for (place, token) in spec.byte_tokens.iter_mut().zip(tokens) {
                    *place = token.map(TokenId);
                }
            }
            None => {
                for (token, text) in spec.pieces.iter().rev() {
                    if let [byte] = **text {
                        spec.byte_tokens[usize::from(byte)] = Some(*token);
                    }
                }
            }
        }
        Self::compile(py, move || Ok(spec))
    }

    /// Read the model of a tokenizer.json, or of that section alone.
    ///
    /// Args:
    ///     text: The JSON text; only its model is read.
    ///     byte_level: Pieces are written in GPT-2's alphabet, one character for each byte.
    ///     replacements: Otherwise, pairs of a text in pieces and its meaning: `("▁", " ")`.
    ///     exclude: Ids that are no pieces, such as special tokens of the vocabulary. Merges that
    ///         need them are dropped.
    ///     missing_from: Allow bytes without a token; a text with such a byte cannot be encoded.
    ///         The value is the number of the vocabulary's ids, and no id from there on is used
    ///         otherwise.
    ///
    /// Raises:
    ///     VocabularyError: The model is no BPE, is broken, or has an unsupported feature; the
    ///         message names it.
    #[staticmethod]
    #[pyo3(signature = (
        text, *, byte_level, replacements=Vec::new(), exclude=Vec::new(), missing_from=None
    ))]
    fn from_json(
        py: Python<'_>,
        text: super::text_argument::TextArgument<'_>,
        byte_level: bool,
        replacements: Vec<(String, String)>,
        exclude: Vec<u32>,
        missing_from: Option<u32>,
    ) -> PyResult<Self> {
        let exclude: Vec<TokenId> = exclude.into_iter().map(TokenId).collect();
        let writing = match byte_level {
            true => Writing::ByteLevel,
            false => Writing::Characters(replacements),
        };
        let json = text.bytes()?;
        Self::compile(py, || read_model(json, &writing, &exclude, missing_from.map(TokenId)))
    }

    /// Return the compiled model as bytes.
    ///
    /// None for a model of characters, and for one with several tokens of the same text.
    fn save<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let saved = py.released(|| self.table.save())?;
        Some(PyBytes::new(py, &saved))
    }

    /// Load a model from the bytes that `save` has returned.
    ///
    /// Raises:
    ///     VocabularyError: Other bytes.
    #[staticmethod]
    fn load(py: Python<'_>, data: &[u8]) -> PyResult<Self> {
        match py.released(|| BpeTable::load(data)) {
            Some(table) => Ok(Self { table: Arc::new(table) }),
            None => Err(errors::VocabularyError::new_err("these bytes are no saved model")),
        }
    }

    /// Return the bytes of each token by id; None for an id that is no token of the model.
    fn texts<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyList>> {
        let ids = (0..size)
            .map(|id| u32::try_from(id).map_or(&[][..], |id| self.table.text(TokenId(id))));
        let texts = ids.map(|text| (!text.is_empty()).then(|| PyBytes::new(py, text)));
        PyList::new(py, texts.collect::<Vec<_>>())
    }

    /// Return the bytes of a token; empty for an id that is no token of the model.
    fn token_bytes<'py>(&self, py: Python<'py>, token_id: u32) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.table.text(TokenId(token_id)))
    }

    /// Return whether merges alone encode some text with a token.
    fn is_reachable(&self, token_id: u32) -> bool {
        self.table.is_reachable(TokenId(token_id))
    }

    /// The estimated memory of the model, in bytes.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }

    fn __repr__(&self) -> String {
        format!("BpeModel(width={})", self.table.width())
    }
}

impl PyBpeModel {
    fn compile(
        py: Python<'_>,
        spec: impl FnOnce() -> Result<BpeSpec, TokenizerError> + Send,
    ) -> PyResult<Self> {
        let table = py
            .released(|| Ok(BpeTable::new(spec()?)?))
            .map_err(|error: TokenizerError| errors::tokenizer(&error))?;
        Ok(Self { table: Arc::new(table) })
    }
}
