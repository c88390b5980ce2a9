//! Patterns with their dialects and flags, as Python gives them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::errors;
use super::released::Released;
use ffwd_regular::regex::{parse, Ast, Dialect, PatternOptions};

/// Returns the language of a pattern.
///
/// `dialect` is `"rust"`, `"ecma"` or `"python"`; `flags` are letters. With `search` the language
/// is every text that contains a match. `characters` are the names for `\N{..}`.
pub fn read(
    py: Python<'_>,
    pattern: &str,
    dialect: &str,
    flags: &str,
    search: bool,
    characters: Vec<(String, char)>,
) -> PyResult<Ast> {
    let dialect =
        Dialect::ALL.into_iter().find(|known| known.name() == dialect).ok_or_else(|| {
            PyValueError::new_err(format!(
                "dialect must be 'rust', 'ecma' or 'python', not {dialect:?}"
            ))
        })?;
    let options =
        PatternOptions { dialect, flags: flags.into(), search, characters: characters.into() };
    let language = py.released(|| parse(pattern, &options));
    language.map_err(|error| errors::pattern(py, pattern, &error))
}

/// Return the chunks of a text: `"words"` or `"chars"`.
#[pyfunction]
pub fn text_chunks(text: &str, by: &str) -> PyResult<Vec<String>> {
    let unit = match by {
        "words" => ffwd_regular::regex::substring::Unit::Words,
        "chars" => ffwd_regular::regex::substring::Unit::Characters,
        other => {
            let message = format!("by must be 'words' or 'chars', not {other:?}");
            return Err(PyValueError::new_err(message));
        }
    };
    Ok(ffwd_regular::regex::substring::chunks_of(text, unit))
}
