//! Files of tokenizers without the libraries that they belong to: tokenizer.json, and ranks.

use std::collections::HashSet;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use super::bpe_model::PyBpeModel;
use super::errors;
use super::released::Released;
use ffwd_tokenizer::bpe::BpeTable;
use ffwd_tokenizer::tokenizer::{read_rank_file, ModelFile, TokenizerError, Writing};
use ffwd_tokenizer::vocabulary::TokenId;

/// The pieces and merges of a tokenizer.json whose model is byte-pair encoding.
#[pyclass(name = "ModelFile", module = "ffwd", frozen)]
pub struct PyModelFile {
    file: ModelFile,
    /// One more than the largest id.
    size: usize,
}

fn writing(byte_level: bool, replacements: Vec<(String, String)>) -> Writing {
    match byte_level {
        true => Writing::ByteLevel,
        false => Writing::Characters(replacements),
    }
}

#[pymethods]
impl PyModelFile {
    /// Read a file; None if anything in it is out of the ordinary.
    #[staticmethod]
    fn read(py: Python<'_>, data: &Bound<'_, PyBytes>) -> Option<Self> {
        let data = data.as_bytes();
        let file = py.released(|| ModelFile::read(data)).ok()?;
        let size = file.pieces().map(|(_, token)| token.index() + 1).max().unwrap_or(0);
        Some(Self { file, size })
    }

    /// Return the rest of the file: a tokenizer.json without pieces and merges.
    fn shell(&self) -> String {
        self.file.shell()
    }

    /// Return the number of pieces.
    fn __len__(&self) -> usize {
        self.file.len()
    }

    /// One more than the largest id of a piece.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// Return the ids of those names that are pieces.
    fn find<'py>(&self, py: Python<'py>, names: HashSet<String>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        for (piece, token) in self.file.pieces().filter(|(piece, _)| names.contains(*piece)) {
            found.set_item(piece, token.0)?;
        }
        Ok(found)
    }

    /// Return the ids of all pieces by their names.
    fn pieces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (piece, token) in self.file.pieces() {
            all.set_item(piece, token.0)?;
        }
        Ok(all)
    }

    /// Return the pieces that begin with one of these characters, with their ids.
    fn beginning_with(&self, characters: &str) -> Vec<(String, u32)> {
        let begins = |piece: &str| piece.starts_with(|first| characters.contains(first));
        let found = self.file.pieces().filter(|(piece, _)| begins(piece));
        found.map(|(piece, token)| (piece.to_owned(), token.0)).collect()
    }

    /// Return the ids of the pieces that contain a text.
    fn containing(&self, text: &str) -> Vec<u32> {
        let found = self.file.pieces().filter(|(piece, _)| piece.contains(text));
        found.map(|(_, token)| token.0).collect()
    }

    /// Return the pieces by id; None where there is none.
    fn names<'py>(&self, py: Python<'py>, size: usize) -> PyResult<Bound<'py, PyList>> {
        let mut names: Vec<Option<Bound<'py, PyString>>> = vec![None; size.max(self.size)];
        for (piece, token) in self.file.pieces() {
            names[token.index()] = Some(PyString::new(py, piece));
        }
        PyList::new(py, names)
    }

    /// Return the bytes of each piece by id; None where there are none.
    #[pyo3(signature = (size, *, byte_level, replacements, byte_fallback))]
    fn texts<'py>(
        &self,
        py: Python<'py>,
        size: usize,
        byte_level: bool,
        replacements: Vec<(String, String)>,
        byte_fallback: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut texts: Vec<Option<Bound<'py, PyBytes>>> = vec![None; size.max(self.size)];
        let writing = writing(byte_level, replacements);
        self.file.texts(&writing, byte_fallback, |token, text| {
            texts[token.index()] = (!text.is_empty()).then(|| PyBytes::new(py, text));
        });
        PyList::new(py, texts)
    }

    /// Compile the model; the parameters are those of `BpeModel.from_json`.
    ///
    /// Raises:
    ///     VocabularyError: The model is broken, or has an unsupported feature.
    #[pyo3(signature = (*, byte_level, replacements=Vec::new(), exclude=Vec::new(), missing_from=None))]
    fn compile(
        &self,
        py: Python<'_>,
        byte_level: bool,
        replacements: Vec<(String, String)>,
        exclude: Vec<u32>,
        missing_from: Option<u32>,
    ) -> PyResult<PyBpeModel> {
        let exclude: Vec<TokenId> = exclude.into_iter().map(TokenId).collect();
        let writing = writing(byte_level, replacements);
        let compiled = py.released(|| {
            let spec = self.file.spec(&writing, &exclude, missing_from.map(TokenId));
            Ok(BpeTable::new(spec)?)
        });
        let table = compiled.map_err(|error: TokenizerError| errors::tokenizer(&error))?;
        Ok(PyBpeModel { table: Arc::new(table) })
    }

    fn __repr__(&self) -> String {
        format!("ModelFile({} pieces)", self.file.len())
    }
}

/// Parse a file of ranks as a dict from texts to ranks; None if it has any unusual line.
#[pyfunction]
pub fn read_ranks<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyBytes>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    let ranks = PyDict::new(py);
    let mut error = None;
    let read = read_rank_file(data.as_bytes(), |text, rank| {
        if let Err(failed) = ranks.set_item(PyBytes::new(py, text), rank) {
            error = Some(failed);
        }
    });
    match error {
        Some(error) => Err(error),
        None => Ok(read.map(|()| ranks)),
    }
}
