//! `Regex("…")` and `Substring("…", "…")`.

use super::values::{Arguments, Value, ValueKind};
use crate::gbnf::text::Cursor;
use crate::grammar::{GrammarError, GrammarErrorKind};
use crate::regex::{ecma, Ast, CharClass, PatternErrorKind};

/// Chunks of one `Substring`.
const MAX_CHUNKS: usize = 256;

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
    let mut language = whole(cursor, pattern, *at)?;
    for (name, value) in &arguments.named {
        match (*name, &value.kind) {
            ("json_string", ValueKind::Boolean(false)) => {}
            ("json_string", ValueKind::Boolean(true)) => {
                let inner = CharClass::new([(0, 0x1f), (0x22, 0x22), (0x5c, 0x5c)]).negate();
                let inner = Ast::repeat(Ast::class(inner), 0, None);
                language = Ast::intersection([language, inner]);
            }
            ("json_string", _) => {
                return Err(cursor.fault(value.offset, "json_string must be true or false"));
            }
            _ => {}
        }
    }
    Ok(language)
}

fn whole(cursor: &Cursor<'_>, pattern: &str, offset: usize) -> Result<Ast, GrammarError> {
    ecma::search(&format!("^(?:{pattern})$")).map_err(|error| {
        let kind = match error.kind {
            PatternErrorKind::Invalid => GrammarErrorKind::Pattern,
            PatternErrorKind::Unsupported(feature) => GrammarErrorKind::Unsupported(feature),
            PatternErrorKind::TooLarge(limit) => GrammarErrorKind::Limit(limit),
        };
        let at = error.offset.saturating_sub(4);
        let message = format!("{} (at character {at} of the pattern)", error.message);
        cursor.error(offset, kind, message)
    })
}

/// The runs of neighbours in a list of texts, and the empty one.
pub(super) fn substring(cursor: &Cursor<'_>, chunks: &[Value<'_>]) -> Result<Ast, GrammarError> {
    let mut runs = Ast::Epsilon;
    let mut all = vec![Ast::Epsilon];
    if let Some(value) = chunks.get(MAX_CHUNKS) {
        return Err(cursor.limit(value.offset, "chunks of one Substring", MAX_CHUNKS));
    }
    for value in chunks.iter().rev() {
        let ValueKind::Text(chunk) = &value.kind else {
            return Err(cursor.fault(value.offset, "a string must stand here"));
        };
        runs = Ast::optional(Ast::concat([Ast::literal(chunk), runs]));
        all.push(runs.clone());
    }
    Ok(Ast::alternation(all))
}
