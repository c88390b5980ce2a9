//! `Regex("…")` and `Substring("…", "…")`.

use super::values::{Arguments, MacroValue, ValueKind};
use crate::bnf::text::Cursor;
use crate::{GrammarError, GrammarErrorKind};
use ffwd_regular::regex::{self, Ast, CharClass, Dialect, PatternErrorKind, PatternOptions};

/// The texts that a regular expression matches from their start to their end.
pub(super) fn regex(
    cursor: &Cursor<'_>,
    arguments: &Arguments<'_>,
    offset: usize,
) -> Result<Ast, GrammarError> {
    let [MacroValue { kind: ValueKind::Text(pattern), offset: at }] =
        arguments.positional.as_slice()
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
    let portable = Portable::read(pattern);
    if portable.ignore_case && !flags.contains('i') {
        flags.push('i');
    }
    let options = PatternOptions::new(Dialect::Ecma).with_flags(&flags);
    let language = regex::parse(&portable.pattern, &options).map_err(|error| {
        let character = portable.given(error.offset);
        let message = format!("{} (at character {character} of the pattern)", error.message);
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
    // The characters without an escape in a JSON string.
    let plain = CharClass::new([(0, 0x1f), (0x22, 0x22), (0x5c, 0x5c)]).negate();
    Ok(Ast::intersection([language, Ast::repeat(Ast::class(plain), 0, None)]))
}

/// A pattern as ECMAScript has it. XGrammar writes two things of other dialects itself: `(?i)` before
/// the whole pattern, and names of groups as `(?P<name>`.
struct Portable {
    pattern: String,
    ignore_case: bool,
    /// The characters of the pattern before which some were removed, and how many.
    left_out: Vec<(usize, usize)>,
}

impl Portable {
    fn read(given: &str) -> Self {
        const IGNORE_CASE: &str = "(?i)";
        let rest = given.strip_prefix(IGNORE_CASE);
        let mut portable =
            Self { pattern: String::new(), ignore_case: rest.is_some(), left_out: Vec::new() };
        if portable.ignore_case {
            portable.left_out.push((0, IGNORE_CASE.len()));
        }
        let mut rest = rest.unwrap_or(given);
        let mut in_class = false;
        while let Some(character) = rest.chars().next() {
            let mut length = character.len_utf8();
            match character {
                '\\' => length += rest[length..].chars().next().map_or(0, char::len_utf8),
                '[' => in_class = true,
                ']' => in_class = false,
                '(' if !in_class && rest.starts_with("(?P<") => {
                    portable.pattern.push_str("(?");
                    portable.left_out.push((portable.pattern.chars().count(), 1));
                    rest = &rest["(?P".len()..];
                    continue;
                }
                _ => {}
            }
            portable.pattern.push_str(&rest[..length]);
            rest = &rest[length..];
        }
        portable
    }

    /// The position in the given pattern of a position in this one.
    fn given(&self, offset: usize) -> usize {
        let before = self.left_out.iter().filter(|(at, _)| *at <= offset);
        offset + before.map(|(_, count)| count).sum::<usize>()
    }
}

/// The runs of neighbours in a list of texts, and the empty one.
pub(super) fn substring(
    cursor: &Cursor<'_>,
    chunks: &[MacroValue<'_>],
) -> Result<Ast, GrammarError> {
    let mut texts = Vec::with_capacity(chunks.len());
    for value in chunks {
        let ValueKind::Text(chunk) = &value.kind else {
            return Err(cursor.fault(value.offset, "a string must stand here"));
        };
        texts.push(chunk.clone());
    }
    Ok(regex::substring_of(&texts))
}
