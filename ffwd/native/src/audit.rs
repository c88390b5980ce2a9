//! What the audit of a tokenizer asks about all of its tokens.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustc_hash::{FxHashMap, FxHashSet};

type Survey = (Vec<u32>, Vec<u32>, Vec<Vec<u32>>, Vec<u32>);

/// Return what stands out in the text of a tokenizer.
///
/// Args:
///     tokens: The bytes of each token by id.
///     kinds: The kind of each token by id.
///     text: The kind of text.
///     ends: The ids of end tokens, which are no text.
///
/// Returns:
///     The ids of other kinds; those of text that begins with `<` or `[`, perhaps after a space;
///     those of each text that several tokens have; and the bytes that are no token.
#[pyfunction]
pub fn survey_tokens(
    tokens: &Bound<'_, PyAny>,
    kinds: &Bound<'_, PyAny>,
    text: &Bound<'_, PyAny>,
    ends: FxHashSet<u32>,
) -> PyResult<Survey> {
    let mut others: Vec<u32> = Vec::new();
    let mut texts: Vec<(u32, Bound<'_, PyBytes>)> = Vec::with_capacity(tokens.len()?);
    for ((id, token), kind) in (0u32..).zip(tokens.try_iter()?).zip(kinds.try_iter()?) {
        if !kind?.is(text) {
            others.push(id);
        } else if let Ok(token) = token?.cast_into::<PyBytes>() {
            if !token.as_bytes().is_empty() && !ends.contains(&id) {
                texts.push((id, token));
            }
        }
    }
    let mut bracketed: Vec<u32> = Vec::new();
    let mut has_byte = [false; 256];
    let mut firsts: FxHashMap<&[u8], u32> = FxHashMap::default();
    firsts.reserve(texts.len());
    let mut same: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (id, token) in &texts {
        let bytes = token.as_bytes();
        if let [byte] = bytes {
            has_byte[usize::from(*byte)] = true;
        }
        if let [b'<' | b'[', ..] | [b' ', b'<' | b'[', ..] = bytes {
            bracketed.push(*id);
        }
        let first = *firsts.entry(bytes).or_insert(*id);
        if first != *id {
            same.entry(first).or_insert_with(|| vec![first]).push(*id);
        }
    }
    let mut same: Vec<Vec<u32>> = same.into_values().collect();
    same.sort_unstable();
    let missing = (0..256).filter(|&byte| !has_byte[byte as usize]).collect();
    Ok((others, bracketed, same, missing))
}
