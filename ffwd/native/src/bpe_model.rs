//! `BpeModel`: a table of pieces and merges, from Python objects or a tokenizer.json.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::errors;
use super::released::Released;
use ffwd_tokenizer::bpe::{Base, BpeSpec, BpeTable, Merges};
use ffwd_tokenizer::tokenizer::{read_model, TokenizerError, Writing};
use ffwd_tokenizer::vocabulary::TokenId;

/// The pieces of a byte-pair encoding, and which of them merge: a tokenizer without its special
/// tokens, its pre-tokenizer and its normalizer.
#[pyclass(name = "BpeModel", module = "ffwd", frozen)]
pub struct PyBpeModel {
    pub table: Arc<BpeTable>,
}

/// Pairs of bytes and a number, from a mapping or a sequence of pairs.
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
    /// A model in which any two adjacent tokens merge whose bytes together are a token.
    ///
    /// Args:
    ///     tokens: The bytes that each token means, `▁` already written as a space, with a mapping
    ///         to ranks (the rank plus `id_offset` is the id), or pairs of bytes and id in the order of rank.
    ///     id_offset: What a mapping's ranks lack to be ids.
    ///     characters: Texts begin as characters and not as bytes.
    ///     byte_tokens: With `characters`, the ids of the 256 tokens for the bytes of a character
    ///         that is no token.
    ///     whole_pieces: A piece of text that is a token is that token, whether or not merges
    ///         lead to it.
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

    /// The model of a tokenizer.json, or that section alone.
    ///
    /// Args:
    ///     text: The JSON text; only the model in it is read.
    ///     byte_level: Pieces are written in GPT-2's alphabet, one character for each byte.
    ///     replacements: Otherwise, what pieces write and what it stands for: `("▁", " ")`.
    ///     exclude: Ids that are no pieces, such as special tokens of the vocabulary. Merges that
    ///         need them are left out.
    ///     missing_from: Bytes without a token are allowed: a text that has one cannot be encoded.
    ///         The number of the vocabulary's ids; those from there on are not used otherwise.
    ///
    /// Raises:
    ///     VocabularyError: No BPE model, one with features that are not supported, or a broken
    ///         one; the message names what.
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

    /// What a token spells; empty for an id that is no token of the model.
    fn token_bytes<'py>(&self, py: Python<'py>, token_id: u32) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.table.text(TokenId(token_id)))
    }

    /// Whether some text is encoded with a token, by merges alone.
    fn is_reachable(&self, token_id: u32) -> bool {
        self.table.is_reachable(TokenId(token_id))
    }

    /// About how many bytes of memory the model holds.
    #[getter]
    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
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
