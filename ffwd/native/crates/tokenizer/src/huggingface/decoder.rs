//! The notation of bytes in pieces, which the decoder of a tokenizer determines.

use serde_json::Value;

use super::HuggingFaceError;
use crate::tokenizer::Writing;

/// How pieces write bytes.
pub(super) struct Notation {
    pub writing: Writing,
    /// `<0x0A>` is a byte.
    pub byte_fallback: bool,
}

impl Notation {
    pub fn replacements(&self) -> &[(String, String)] {
        match &self.writing {
            Writing::ByteLevel => &[],
            Writing::Characters(replacements) => replacements,
        }
    }

    /// Whether pieces have `written` for `meant`.
    pub fn writes(&self, written: &str, meant: &str) -> bool {
        self.replacements().iter().any(|pair| pair.0 == written && pair.1 == meant)
    }
}

/// Calls back with the steps of a part of a tokenizer.json; `plural` is the key of a sequence.
pub(super) fn steps<'v>(
    part: &'v Value,
    plural: &str,
    each: &mut impl FnMut(&'v Value) -> Result<(), HuggingFaceError>,
) -> Result<(), HuggingFaceError> {
    match part {
        Value::Null => Ok(()),
        _ if kind(part) != "Sequence" => each(part),
        _ => match part.get(plural).and_then(Value::as_array) {
            Some(listed) => listed.iter().try_for_each(|step| steps(step, plural, each)),
            None => Err(HuggingFaceError::Corrupt(format!("a sequence has no `{plural}`"))),
        },
    }
}

/// The type of a step; empty if it has none.
pub(super) fn kind(step: &Value) -> &str {
    step.get("type").and_then(Value::as_str).unwrap_or_default()
}

/// A text of a step; empty if it has none of that name.
pub(super) fn text<'v>(step: &'v Value, name: &str) -> Result<&'v str, HuggingFaceError> {
    match step.get(name) {
        None | Some(Value::Null) => Ok(""),
        Some(value) => value.as_str().ok_or_else(|| mistyped(name, "a string", value)),
    }
}

/// A flag of a step; `missing` if it has none of that name.
pub(super) fn flag(step: &Value, name: &str, missing: bool) -> Result<bool, HuggingFaceError> {
    match step.get(name) {
        None | Some(Value::Null) => Ok(missing),
        Some(value) => value.as_bool().ok_or_else(|| mistyped(name, "true or false", value)),
    }
}

pub(super) fn mistyped(name: &str, expected: &str, value: &Value) -> HuggingFaceError {
    HuggingFaceError::Corrupt(format!("`{name}` must be {expected}, not {}", summary(value)))
}

/// A value as text, for a message.
pub(super) fn summary(value: &Value) -> String {
    let all = value.to_string();
    match all.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &all[..end]),
        None => all,
    }
}

/// The text that a step looks for; empty for a regular expression.
pub(super) fn pattern(step: &Value) -> Result<&str, HuggingFaceError> {
    step.get("pattern").map_or(Ok(""), |pattern| text(pattern, "String"))
}

/// Reads the decoder.
///
/// # Errors
/// Under it a token has no bytes of its own.
pub(super) fn read(decoder: &Value) -> Result<Notation, HuggingFaceError> {
    let unsupported = |message: String| Err(HuggingFaceError::Unsupported(message));
    let mut listed = Vec::new();
    steps(decoder, "decoders", &mut |step| {
        listed.push(step);
        Ok(())
    })?;
    if listed.is_empty() {
        return unsupported(
            "the tokenizer has no `decoder`, so the bytes of its tokens are unknown: for byte-level \
             BPE it is {\"type\": \"ByteLevel\"}"
                .into(),
        );
    }
    let names: Vec<&str> = listed.iter().map(|step| kind(step)).collect();
    if names.contains(&"ByteLevel") {
        if names.iter().any(|name| !["ByteLevel", "Fuse"].contains(name)) {
            return unsupported(format!("the decoder has other steps beside ByteLevel: {names:?}"));
        }
        return Ok(Notation { writing: Writing::ByteLevel, byte_fallback: false });
    }
    let mut replacements = Vec::new();
    let (mut byte_fallback, mut fused) = (false, false);
    for step in listed {
        match kind(step) {
            "Replace" if !byte_fallback && !fused => {
                let written = pattern(step)?;
                if written.is_empty() {
                    return unsupported(format!(
                        "the decoder replaces by pattern: {}",
                        summary(step)
                    ));
                }
                replacements.push((written.to_owned(), text(step, "content")?.to_owned()));
            }
            "Metaspace" if !byte_fallback && !fused => {
                replacements.push((text(step, "replacement")?.to_owned(), " ".to_owned()));
            }
            "ByteFallback" if !fused => byte_fallback = true,
            "Fuse" => fused = true,
            // It undoes the space before a text; the bytes of no token change.
            "Strip" if fused && step.get("stop").and_then(Value::as_u64) == Some(0) => {}
            other => {
                return unsupported(format!(
                    "the decoder's step {other:?} (of {names:?}) is not supported: supported are \
                     ByteLevel, and Replace or Metaspace, ByteFallback, Fuse, Strip in this order"
                ));
            }
        }
    }
    Ok(Notation { writing: Writing::Characters(replacements), byte_fallback })
}
