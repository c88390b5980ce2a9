//! The options of a rule: `name[max_tokens=8, capture="what"] ::= …`.

use rustc_hash::FxHashMap;

use crate::bnf::text::Cursor;
use crate::fold::visit_rules;
use crate::{Grammar, GrammarError, GrammarErrorKind, RuleId, SpanKind};
use ffwd_regular::regex::Ast;

/// The distance to which a list of options is searched.
const MAX_LOOK: usize = 4096;

#[derive(Clone, Debug, Default)]
pub(super) struct RuleOptions {
    max_tokens: Option<u32>,
    max_chars: Option<u32>,
    capture: Option<String>,
    lazy: bool,
}

/// Whether a list of options and `::=` come next, and not a character class.
pub(super) fn follow(cursor: &Cursor<'_>) -> bool {
    let rest = cursor.rest().as_bytes();
    if rest.first() != Some(&b'[') {
        return false;
    }
    let mut quoted = false;
    for (at, &byte) in rest.iter().enumerate().take(MAX_LOOK).skip(1) {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' | b'\r' => return false,
            b'[' if !quoted => return false,
            b']' if !quoted => {
                return rest[at + 1..].trim_ascii_start().starts_with(b"::=");
            }
            _ => {}
        }
    }
    false
}

/// Reads the options of a rule, with their brackets.
pub(super) fn read(cursor: &mut Cursor<'_>, rule: &str) -> Result<RuleOptions, GrammarError> {
    let mut options = RuleOptions::default();
    let mut seen: Vec<&str> = Vec::new();
    cursor.take("[");
    loop {
        cursor.space(false);
        let offset = cursor.offset();
        let name = cursor.name();
        if seen.contains(&name) {
            return Err(cursor.fault(offset, format!("the option `{name}` is given twice")));
        }
        match name {
            "max_tokens" => {
                let at = value(cursor, name)?;
                options.max_tokens = Some(cursor.count()?);
                if options.max_tokens == Some(0) {
                    let message = "max_tokens must be at least 1";
                    return Err(cursor.error(at, GrammarErrorKind::Contradiction, message));
                }
            }
            "max_chars" => {
                value(cursor, name)?;
                options.max_chars = Some(cursor.count()?);
            }
            "capture" => {
                cursor.space(false);
                options.capture = Some(rule.to_owned());
                if cursor.starts_with("=") {
                    options.capture = Some(capture_name(cursor)?);
                }
            }
            "lazy" => options.lazy = true,
            _ => return Err(unknown(cursor, name, offset)),
        }
        seen.push(name);
        cursor.space(false);
        if cursor.take("]") {
            return Ok(options);
        }
        if !cursor.take(",") {
            let message =
                format!("a comma or ] must follow the option `{name}`, but {}", cursor.found());
            return Err(cursor.fault(cursor.offset(), message));
        }
    }
}

fn unknown(cursor: &Cursor<'_>, name: &str, offset: usize) -> GrammarError {
    let feature = match name {
        "temperature" => "the temperature of a rule",
        "stop_capture" => "the option stop_capture",
        "capture_hidden_suffix_bytes"
        | "capture_hidden_stop_bytes"
        | "capture_hidden_body_rule_id"
        | "capture_hidden_marker_rule_id" => "captures with hidden parts",
        _ => {
            let message = format!(
                "{name:?} is no option of a rule: there are max_tokens=8, max_chars=80, capture, \
                 capture=\"name\" and lazy"
            );
            return cursor.fault(offset, message);
        }
    };
    let message = format!("{feature}: not supported; leave the option `{name}` out");
    cursor.error(offset, GrammarErrorKind::Unsupported(feature), message)
}

/// Goes to the value of an option.
fn value(cursor: &mut Cursor<'_>, name: &str) -> Result<usize, GrammarError> {
    cursor.space(false);
    if !cursor.take("=") {
        let message = format!("the option `{name}` needs a number, as in `{name}=8`");
        return Err(cursor.fault(cursor.offset(), message));
    }
    cursor.space(false);
    Ok(cursor.offset())
}

fn capture_name(cursor: &mut Cursor<'_>) -> Result<String, GrammarError> {
    let offset = value(cursor, "capture")?;
    let name = if cursor.starts_with("\"") { cursor.string()? } else { String::new() };
    if name.is_empty() {
        return Err(cursor.fault(offset, "the name of a capture must stand here, as in \"name\""));
    }
    Ok(name)
}

/// Gives the rules what their options make of their bodies.
pub(super) fn apply(
    grammar: &mut Grammar,
    cursor: &Cursor<'_>,
    options: FxHashMap<RuleId, RuleOptions>,
) -> Result<(), GrammarError> {
    shorten(grammar, cursor, &options)?;
    for index in 0..grammar.rules.len() {
        let id = RuleId(index as u32);
        let (Some(options), Some(mut body)) = (options.get(&id), grammar.rules[index].body) else {
            continue;
        };
        if let Some(max_tokens) = options.max_tokens {
            body = grammar.limit(max_tokens, body)?;
        }
        if let Some(name) = &options.capture {
            body = grammar.span(SpanKind::Capture, name, body)?;
        }
        grammar.define(id, body);
    }
    Ok(())
}

/// Restricts a rule to the texts that end where `lazy` and `max_chars` require.
fn shorten(
    grammar: &mut Grammar,
    cursor: &Cursor<'_>,
    options: &FxHashMap<RuleId, RuleOptions>,
) -> Result<(), GrammarError> {
    let shortened = |options: &RuleOptions| options.lazy || options.max_chars.is_some();
    if !options.values().any(shortened) {
        return Ok(());
    }
    // A rule that nothing names has a language too.
    for &id in options.keys() {
        grammar.rule(id)?;
    }
    let mut languages: FxHashMap<RuleId, Ast> = FxHashMap::default();
    visit_rules(grammar, |rule, language| {
        let Some(options) = options.get(&rule) else { return Some(language.clone()) };
        let mut language = language.clone();
        if options.lazy {
            language = language.earliest(0);
        }
        if let Some(max_chars) = options.max_chars {
            language = language.earliest(max_chars);
        }
        languages.insert(rule, language.clone());
        // A captured or limited part is more than its text.
        (options.capture.is_none() && options.max_tokens.is_none()).then_some(language)
    });
    for index in 0..grammar.rules.len() {
        let id = RuleId(index as u32);
        let Some(options) = options.get(&id).filter(|options| shortened(options)) else { continue };
        let rule = &grammar.rules[index];
        let Some(language) = languages.remove(&id) else {
            let (feature, option) = match options.lazy {
                true => ("a lazy rule that is not regular", "lazy"),
                false => ("a limit of characters of a rule that is not regular", "max_chars"),
            };
            let message = format!(
                "{feature}: not supported. With the option `{option}` the rule `{}` can have strings, \
                 character classes and rules of these, but not thousands of them. Such rules must \
                 not call themselves, and have neither capture nor max_tokens",
                rule.name
            );
            let kind = GrammarErrorKind::Unsupported(feature);
            let offset = rule.place.map_or(0, |place| place.offset as usize);
            return Err(cursor.error(offset, kind, message));
        };
        let body = grammar.text(language)?;
        grammar.define(id, body);
    }
    Ok(())
}
