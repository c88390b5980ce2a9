//! The file, in a form that [`ModelFile`] reads.

use serde_json::Value;

use super::decoder::{flag, mistyped, text};
use super::{HuggingFaceError, SUPPORTED};
use crate::tokenizer::ModelFile;

/// Reads the file, and rejects a model that is not supported by its name.
pub(super) fn read(json: &[u8]) -> Result<ModelFile, HuggingFaceError> {
    let file = match ModelFile::read(json) {
        Ok(file) => file,
        Err(_) => unusual(json)?,
    };
    let model = Value::Object(file.model().clone());
    for name in ["byte_fallback", "ignore_merges"] {
        flag(&model, name, false)?;
    }
    text(&model, "unk_token")?;
    let before = text(&model, "continuing_subword_prefix")?;
    let after = text(&model, "end_of_word_suffix")?;
    if !before.is_empty() || !after.is_empty() {
        return Err(HuggingFaceError::Unsupported(format!(
            "the tokenizer marks parts of words with {before:?} and {after:?}: {SUPPORTED}"
        )));
    }
    let dropout = match model.get("dropout") {
        None | Some(Value::Null) => 0.0,
        Some(value) => value.as_f64().ok_or_else(|| mistyped("dropout", "a number", value))?,
    };
    if dropout != 0.0 {
        return Err(HuggingFaceError::Unsupported(format!(
            "the tokenizer drops merges at random (dropout {dropout}), so that its encoding of a \
             text is not unique: set `dropout` of its model to null"
        )));
    }
    Ok(file)
}

/// Older files do not name the kind of their model, and some have its merges first.
fn unusual(json: &[u8]) -> Result<ModelFile, HuggingFaceError> {
    let corrupt = |error: &dyn std::fmt::Display| HuggingFaceError::Corrupt(error.to_string());
    let mut file: Value = serde_json::from_slice(json).map_err(|error| corrupt(&error))?;
    let Some(model) = file.get_mut("model").and_then(Value::as_object_mut) else {
        return Err(corrupt(&"it has no `model`"));
    };
    let (pieces, merges) = (model.remove("vocab"), model.remove("merges"));
    let kind = match model.get("type").and_then(Value::as_str) {
        Some(kind) => kind,
        None if pieces.as_ref().is_some_and(Value::is_array) => "Unigram",
        None if merges.is_some() => "BPE",
        None => "WordPiece or WordLevel",
    };
    if kind != "BPE" {
        return Err(HuggingFaceError::Unsupported(format!(
            "the tokenizer's model is {kind}: {SUPPORTED}"
        )));
    }
    model.insert("type".into(), "BPE".into());
    model.extend(
        [("vocab", pieces), ("merges", merges)]
            .map(|(key, value)| (key.to_owned(), value.unwrap_or_default())),
    );
    let ordinary = serde_json::to_vec(&file).map_err(|error| corrupt(&error))?;
    ModelFile::read(&ordinary).map_err(|error| corrupt(&error))
}
