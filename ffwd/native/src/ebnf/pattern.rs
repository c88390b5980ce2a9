//! `Regex("…")` and `Substring("…", "…")`.

use super::values::{Arguments, Value, ValueKind};
use crate::gbnf::text::Cursor;
use crate::grammar::{GrammarError, GrammarErrorKind};
use crate::regex::{self, Ast, CharClass, Dialect, PatternErrorKind, PatternOptions};

/// The texts that a regular expression matches from their start to their end.
pub(super) fn regex(
    cursor: &Cursor<'_>,
    arguments: &Arguments<'_>,
    offset: usize,
) -> Result<Ast, GrammarError> {
    let [Value { kind: ValueKind::Text(pattern), offset: at }] = arguments.positional.as_slice()
    else {
        return Err(cursor.fault(offset, "Regex needs one string, as in Regex(\"[0-9]+\")"));
    };
    // Without the argument a dot is any character.
    let mut flags = "s".to_owned();
    let mut json_string = false;
    for (name, value) in &arguments.named {
        match (*name, &value.kind) {
            ("json_string", &ValueKind::Boolean(wanted)) => json_string = wanted,
            ("json_string", _) => {
                return Err(cursor.fault(value.offset, "json_string must be true or false"));
            }
            (_, ValueKind::Text(letters)) => {
                if let Some(other) = letters.chars().find(|letter| !"isu".contains(*letter)) {
                    let message = format!("there is no flag {other:?}: there are i, s and u");
                    return Err(cursor.fault(value.offset, message));
                }
                // Patterns are of code points anyway.
                flags = letters.replace('u', "");
            }
            _ => return Err(cursor.fault(value.offset, "flags must be a string, such as \"is\"")),
        }
    }
    let options = PatternOptions::new(Dialect::Ecma).with_flags(&flags);
    let language = regex::parse(pattern, &options).map_err(|error| {
        let message = format!("{} (at character {} of the pattern)", error.message, error.offset);
        let kind = match error.kind {
            PatternErrorKind::Invalid => GrammarErrorKind::Pattern,
            PatternErrorKind::Unsupported(feature) => GrammarErrorKind::Unsupported(feature),
            PatternErrorKind::TooLarge(limit) => GrammarErrorKind::Limit(limit),
        };
        cursor.error(*at, kind, message)
    })?;
    if !json_string {
        return Ok(language);
    }
    // What stands as itself in a JSON string.
    let plain = CharClass::new([(0, 0x1f), (0x22, 0x22), (0x5c, 0x5c)]).negate();
    Ok(Ast::intersection([language, Ast::repeat(Ast::class(plain), 0, None)]))
}

/// The runs of neighbours in a list of texts, and the empty one.
pub(super) fn substring(cursor: &Cursor<'_>, chunks: &[Value<'_>]) -> Result<Ast, GrammarError> {
    let mut texts = Vec::with_capacity(chunks.len());
    for value in chunks {
        let ValueKind::Text(chunk) = &value.kind else {
            return Err(cursor.fault(value.offset, "a string must stand here"));
        };
        texts.push(chunk.clone());
    }
    Ok(regex::substring_of(&texts))
}
