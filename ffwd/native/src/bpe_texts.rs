//! Functions of a `Bpe` for batches, for texts with tokens between them, and for offsets.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use super::bpe::{token_list, PyBpe, SpecialArgument};
use super::errors;
use super::released::Released;
use super::text_argument::{detached, utf8, TextArgument};
use ffwd_tokenizer::tokenizer::{
    in_characters, EncodeOptions, PromptPart, SpecialPolicy, TextError,
};
use ffwd_tokenizer::vocabulary::TokenId;

type Places = Vec<(usize, usize)>;

/// Return the token ids of each text, as `Bpe.encode` does.
///
/// Works without the interpreter lock, on several threads if the texts are long.
///
/// Args:
///     bpe: The tokenizer.
///     texts: `str` or UTF-8 `bytes`.
///     special: As in `Bpe.encode`.
///     threads: The most threads to use; by default one per processor.
///
/// Raises:
///     TextError: As `Bpe.encode`; the message names the text.
#[pyfunction]
#[pyo3(signature = (bpe, texts, *, special=SpecialArgument(SpecialPolicy::Text), threads=None))]
pub fn encode_batch<'py>(
    py: Python<'py>,
    bpe: &PyBpe,
    texts: Vec<TextArgument<'py>>,
    special: SpecialArgument,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyList>> {
    if threads == Some(0) {
        return Err(PyValueError::new_err("threads must be at least 1"));
    }
    let options = EncodeOptions { special: special.0, ..EncodeOptions::default() };
    let in_batch = |index, error| TextError::InBatch { index, error: Box::new(error) };
    let texts = texts.iter().enumerate();
    let texts = texts
        .map(|(index, text)| text.bytes_or(|error| in_batch(index, error)))
        .collect::<PyResult<Vec<_>>>()?;
    let batch = py
        .released(|| bpe.tokenizer.encode_batch(&texts, &options, threads))
        .map_err(|error| errors::text(py, &error))?;
    let lists = batch.iter().map(|tokens| token_list(py, tokens)).collect::<PyResult<Vec<_>>>()?;
    PyList::new(py, lists)
}

/// Return the token ids of a text, with the offsets of each token in bytes and characters.
///
/// Args:
///     bpe: The tokenizer.
///     text: The text.
///     special: As in `Bpe.encode`.
///
/// Returns:
///     Ids, (start, end) in the text's UTF-8 bytes, and (start, end) in characters. A token with a
///     part of a character covers the whole character.
///
/// Raises:
///     TextError: As `Bpe.encode`.
#[pyfunction]
#[pyo3(signature = (bpe, text, *, special=SpecialArgument(SpecialPolicy::Text)))]
pub fn encode_with_offsets<'py>(
    py: Python<'py>,
    bpe: &PyBpe,
    text: &Bound<'py, PyString>,
    special: SpecialArgument,
) -> PyResult<(Bound<'py, PyList>, Places, Places)> {
    let options = EncodeOptions { special: special.0, ..EncodeOptions::default() };
    let text = utf8(text)?.as_bytes();
    let (located, characters) = detached(py, text, || {
        let located = bpe.tokenizer.encode_with_offsets(text, &options)?;
        let characters = in_characters(text, &located.offsets);
        Ok((located, characters))
    })
    .map_err(|error| errors::text(py, &error))?;
    Ok((token_list(py, &located.tokens)?, located.offsets, characters))
}

/// A text or a token id.
pub enum PartArgument<'py> {
    Text(TextArgument<'py>),
    Token(u32),
}

impl<'py> FromPyObject<'_, 'py> for PartArgument<'py> {
    type Error = PyErr;

    fn extract(part: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        match part.extract::<u32>() {
            Ok(token) => Ok(Self::Token(token)),
            Err(_) => Ok(Self::Text(part.extract()?)),
        }
    }
}

/// Return the token ids of texts with tokens between them.
///
/// Tokens are given as ids: no special token is found in a text. Otherwise the result is as if the
/// tokenizer had found just these tokens.
///
/// Args:
///     bpe: The tokenizer.
///     parts: Texts and ids.
///
/// Raises:
///     TokenError: An id outside the vocabulary.
///     TextError: As `Bpe.encode`; for a lone surrogate `byte` is the offset in its part.
#[pyfunction]
pub fn encode_parts<'py>(
    py: Python<'py>,
    bpe: &PyBpe,
    parts: Vec<PartArgument<'py>>,
) -> PyResult<Bound<'py, PyList>> {
    let parts = parts
        .iter()
        .map(|part| match part {
            PartArgument::Text(text) => text.bytes().map(PromptPart::Text),
            PartArgument::Token(token) => Ok(PromptPart::Token(TokenId(*token))),
        })
        .collect::<PyResult<Vec<_>>>()?;
    let tokens = py
        .released(|| bpe.tokenizer.encode_parts(&parts))
        .map_err(|error| errors::text(py, &error))?;
    token_list(py, &tokens)
}
