//! Values: strings, patterns, names and the other elements of a sequence.

use super::ast::Value;
use super::cursor::TokenCursor;
use super::fault::Fault;
use super::parameter;
use super::parser;
use super::string;
use super::token::{names_terminal, Token};

pub(super) fn read<'t>(cursor: &mut TokenCursor<'t>) -> Result<Value<'t>, Fault> {
    let at = cursor.at();
    let Some(token) = cursor.peek() else { return Err(expected(cursor)) };
    match token {
        Token::Text { inner, ignore_case } => {
            cursor.advance();
            let text = string::unescape(at + 1, inner)?;
            if cursor.is_sign("..") {
                return range(cursor, at, &text, ignore_case);
            }
            Ok(Value::Text { text, ignore_case })
        }
        Token::Regex { pattern, flags } => {
            cursor.advance();
            Ok(Value::Regex { at: at + 1, pattern, flags })
        }
        Token::Special(token) => {
            cursor.advance();
            Ok(Value::Special(token))
        }
        Token::Reference(name) => {
            cursor.advance();
            Ok(Value::Reference(name))
        }
        Token::Directive(name @ ("%json" | "%regex")) => {
            cursor.advance();
            let Some(Token::Json(text)) = cursor.peek() else {
                return Err(cursor.unexpected("a JSON text"));
            };
            cursor.advance();
            Ok(if name == "%json" { Value::Json(text) } else { Value::Substring(text) })
        }
        Token::Directive("%lark") => {
            cursor.advance();
            cursor.expect_sign("{", "behind `%lark`")?;
            let items = cursor.nested(|cursor| parser::items_until(cursor, Some("}")))?;
            cursor.expect_sign("}", "behind the nested grammar")?;
            Ok(Value::Nested(items))
        }
        Token::Name(name) => {
            cursor.advance();
            named(cursor, name)
        }
        _ => Err(expected(cursor)),
    }
}

fn expected(cursor: &TokenCursor<'_>) -> Fault {
    cursor.unexpected("a string, a pattern, a name, a special token, `(`, `[` or a directive")
}

fn range<'t>(
    cursor: &mut TokenCursor<'t>,
    at: usize,
    first: &str,
    first_flag: bool,
) -> Result<Value<'t>, Fault> {
    cursor.advance();
    let last_at = cursor.at();
    let Some(Token::Text { inner, ignore_case }) = cursor.peek() else {
        return Err(cursor.unexpected("the string with the last character of the range"));
    };
    cursor.advance();
    if first_flag || ignore_case {
        return Err(Fault::syntax(at, "the ends of a range have no flags"));
    }
    let last = string::unescape(last_at + 1, inner)?;
    match (single(first), single(&last)) {
        (None, _) => Err(Fault::syntax(at, "a range begins with a single character")),
        (_, None) => Err(Fault::syntax(last_at, "a range ends with a single character")),
        (Some(first), Some(last)) if last < first => {
            Err(Fault::syntax(at, format!("the range ends with {last:?}, before {first:?}")))
        }
        (Some(first), Some(last)) => Ok(Value::Range(first, last)),
    }
}

fn single(text: &str) -> Option<char> {
    let mut characters = text.chars();
    let first = characters.next();
    first.filter(|_| characters.next().is_none())
}

/// Parses a name with its suffix: `name`, `name::...` or `name{...}`.
fn named<'t>(cursor: &mut TokenCursor<'t>, name: &'t str) -> Result<Value<'t>, Fault> {
    if cursor.take_sign("::") {
        return Ok(Value::Parametric(name, parameter::argument(cursor)?));
    }
    // A number or comma makes it a count.
    let count = matches!(cursor.second(), Some(Token::Number(_) | Token::Sign(",")));
    if !cursor.is_sign("{") || count {
        return Ok(Value::Name(name));
    }
    if names_terminal(name) {
        let message = "only rules can be templates; a count has the form `{2}`, `{2,3}` or `{2,}`";
        return Err(Fault::syntax(cursor.at(), message));
    }
    cursor.advance();
    let mut values = Vec::new();
    loop {
        values.push(cursor.nested(parser::element)?);
        if !cursor.take_sign(",") {
            break;
        }
    }
    cursor.expect_sign("}", "behind the template's arguments")?;
    Ok(Value::Template(name, values))
}
