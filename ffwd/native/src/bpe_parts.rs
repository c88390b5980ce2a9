//! The parts of a tokenizer that Python gives in the terms of tokenizer.json.

use pyo3::prelude::*;
use pyo3::types::PyString;

use super::errors::VocabularyError;
use ffwd_tokenizer::pretokenizer::{Behavior, Dialect, StageSpec};
use ffwd_tokenizer::tokenizer::SpecialToken;
use ffwd_tokenizer::vocabulary::TokenId;

/// Id, content and flags.
pub type AddedTokenArgument<'py> = (u32, String, Bound<'py, PyAny>);

/// A value of a mapping that may be missing.
fn get<'py>(of: &Bound<'py, PyAny>, key: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !of.contains(key)? {
        return Ok(None);
    }
    let value = of.get_item(key)?;
    Ok((!value.is_none()).then_some(value))
}

fn flag(of: &Bound<'_, PyAny>, key: &str) -> PyResult<bool> {
    get(of, key)?.map_or(Ok(false), |value| value.extract())
}

fn required<'py>(of: &Bound<'py, PyAny>, key: &str) -> PyResult<Bound<'py, PyAny>> {
    get(of, key)?.ok_or_else(|| {
        VocabularyError::new_err(format!("a stage of the pre-tokenizer lacks its {key:?}: {of}"))
    })
}

pub fn special_token((id, content, flags): &AddedTokenArgument<'_>) -> PyResult<SpecialToken> {
    Ok(SpecialToken {
        id: TokenId(*id),
        content: content.clone(),
        text: flag(flags, "text")?,
        single_word: flag(flags, "single_word")?,
        lstrip: flag(flags, "lstrip")?,
        rstrip: flag(flags, "rstrip")?,
        normalized: flag(flags, "normalized")?,
    })
}

fn behavior(of: &Bound<'_, PyAny>) -> PyResult<Behavior> {
    let name = required(of, "behavior")?;
    match name.extract::<String>()?.to_ascii_lowercase().replace('_', "").as_str() {
        "isolated" => Ok(Behavior::Isolated),
        "removed" => Ok(Behavior::Removed),
        "mergedwithprevious" => Ok(Behavior::MergedWithPrevious),
        "mergedwithnext" => Ok(Behavior::MergedWithNext),
        "contiguous" => Ok(Behavior::Contiguous),
        other => Err(VocabularyError::new_err(format!(
            "the behavior {other:?} of a pre-tokenizer is not known"
        ))),
    }
}

fn dialect(of: &Bound<'_, PyAny>) -> PyResult<Dialect> {
    let Some(name) = get(of, "dialect")? else { return Ok(Dialect::Oniguruma) };
    match name.extract::<String>()?.as_str() {
        "oniguruma" => Ok(Dialect::Oniguruma),
        "fancy-regex" => Ok(Dialect::FancyRegex),
        other => Err(VocabularyError::new_err(format!(
            "the dialect {other:?} of a pattern is not known: it is \"oniguruma\" (tokenizers) or \
             \"fancy-regex\" (tiktoken)"
        ))),
    }
}

/// Reads a separator: a pattern, or a verbatim text.
fn split(of: &Bound<'_, PyAny>) -> PyResult<StageSpec> {
    let (behavior, invert) = (behavior(of)?, flag(of, "invert")?);
    let pattern = required(of, "pattern")?;
    if pattern.cast::<PyString>().is_ok() {
        let pattern = pattern.extract()?;
        return Ok(StageSpec::Split { pattern, dialect: dialect(of)?, invert, behavior });
    }
    if let Some(text) = get(&pattern, "String")? {
        return Ok(StageSpec::SplitText { text: text.extract()?, invert, behavior });
    }
    let pattern = required(&pattern, "Regex")?.extract()?;
    Ok(StageSpec::Split { pattern, dialect: dialect(of)?, invert, behavior })
}

pub fn stage(of: &Bound<'_, PyAny>) -> PyResult<StageSpec> {
    match required(of, "type")?.extract::<String>()?.as_str() {
        "Split" => split(of),
        "ByteLevel" => Ok(StageSpec::ByteLevelRegex),
        "Digits" => Ok(StageSpec::Digits { individual: flag(of, "individual_digits")? }),
        "Punctuation" => Ok(StageSpec::Punctuation { behavior: behavior(of)? }),
        "Metaspace" => Ok(StageSpec::Metaspace),
        other => {
            Err(VocabularyError::new_err(format!("the pre-tokenizer {other} is not supported")))
        }
    }
}
