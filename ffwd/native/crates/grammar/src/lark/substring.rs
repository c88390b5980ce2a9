//! `%regex`: the substrings of a text.

use serde_json::Value;

use super::fault::Fault;
use ffwd_regular::regex::substring::{chunks_of, Unit};
use ffwd_regular::regex::{substring_of, Ast};

const FORMS: &str = "`%regex` is followed by an object with one of `substring_chunks` (a list of \
                     strings), `substring_words` and `substring_chars` (a string)";

/// Returns the language of a JSON text after `%regex`, near a byte of the grammar.
pub(super) fn language(at: usize, text: &str) -> Result<Ast, Fault> {
    let unreadable = |error: serde_json::Error| Fault::syntax(at, format!("`%regex`: {error}"));
    let Value::Object(object) = serde_json::from_str(text).map_err(unreadable)? else {
        return Err(Fault::syntax(at, FORMS));
    };
    let mut fields = object.iter();
    let (Some((name, value)), None) = (fields.next(), fields.next()) else {
        return Err(Fault::syntax(at, FORMS));
    };
    let chunks = match (&**name, value) {
        ("substring_chunks", Value::Array(chunks)) => {
            let chunk = |chunk: &Value| chunk.as_str().map(String::from);
            chunks.iter().map(chunk).collect::<Option<Vec<_>>>()
        }
        ("substring_words", Value::String(text)) => Some(chunks_of(text, Unit::Words)),
        ("substring_chars", Value::String(text)) => Some(chunks_of(text, Unit::Characters)),
        _ => None,
    };
    chunks.map(|chunks| substring_of(&chunks)).ok_or_else(|| Fault::syntax(at, FORMS))
}
