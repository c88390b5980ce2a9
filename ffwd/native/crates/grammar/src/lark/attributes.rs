//! The attributes of a rule.

use super::ast::{Definition, Ending};
use super::cursor::TokenCursor;
use super::fault::Fault;
use super::string;
use super::token::Token;
use super::value;

/// Reads `[name, name=value, ...]`.
pub(super) fn read<'t>(
    cursor: &mut TokenCursor<'t>,
    definition: &mut Definition<'t>,
) -> Result<(), Fault> {
    let attributes = &mut definition.attributes;
    cursor.expect_sign("[", "")?;
    let mut seen: Vec<&str> = Vec::new();
    while !cursor.is_sign("]") {
        let at = cursor.at();
        let name = cursor.expect_name("the name of an attribute")?;
        if seen.contains(&name) {
            return Err(Fault::syntax(at, format!("the attribute `{name}` is given twice")));
        }
        seen.push(name);
        match name {
            "lazy" => attributes.lazy = true,
            "capture" => {
                let given = if cursor.take_sign("=") { Some(text(cursor)?) } else { None };
                attributes.capture = given.or_else(|| Some(definition.name.into()));
            }
            "suffix" | "stop" => {
                if attributes.ending.is_some() {
                    let message = "a rule has one ending, by `suffix` or by `stop`";
                    return Err(Fault::syntax(at, message));
                }
                equals(cursor)?;
                let at = cursor.at();
                let value = value::read(cursor)?;
                attributes.ending = Some(Ending { at, value, hidden: name == "stop" });
            }
            "stop_capture" => {
                equals(cursor)?;
                attributes.stop_capture = Some(text(cursor)?);
            }
            "max_tokens" => {
                equals(cursor)?;
                let at = cursor.at();
                let number = number(cursor)?;
                let Ok(tokens) = number.parse() else {
                    return Err(Fault::syntax(at, "`max_tokens` is a whole number from 0 on"));
                };
                attributes.max_tokens = Some(tokens);
            }
            "max_chars" => {
                equals(cursor)?;
                let at = cursor.at();
                let Ok(characters) = number(cursor)?.parse() else {
                    return Err(Fault::syntax(at, "`max_chars` is a whole number from 0 on"));
                };
                attributes.max_chars = Some(characters);
            }
            "temperature" => {
                equals(cursor)?;
                let at = cursor.at();
                if !number(cursor)?.parse().is_ok_and(|value: f64| value >= 0.0) {
                    return Err(Fault::syntax(at, "`temperature` is a number from 0 on"));
                }
                attributes.temperature = true;
            }
            _ => {
                let message = format!(
                    "`{name}` is no attribute; there are `capture`, `lazy`, `suffix`, `stop`, \
                     `stop_capture`, `max_tokens`, `max_chars`, `temperature`"
                );
                return Err(Fault::syntax(at, message));
            }
        }
        if !cursor.take_sign(",") {
            break;
        }
    }
    let at = cursor.at();
    cursor.expect_sign("]", "behind the attributes")?;
    let attributes = &definition.attributes;
    if attributes.stop_capture.is_some() && attributes.ending.is_none() {
        return Err(Fault::syntax(at, "`stop_capture` goes with `suffix` or `stop`"));
    }
    if attributes.max_chars.is_some() && attributes.ending.is_some() {
        let message =
            "`max_chars` beside `suffix` or `stop` is not supported: limit the repetition \
                       in the rule itself, as in /[a-z]{0,8}/";
        return Err(Fault::unsupported(at, "a limit of characters beside an ending", message));
    }
    let lexical = attributes.lazy || attributes.ending.is_some() || attributes.max_chars.is_some();
    if definition.parametric
        && (lexical || attributes.max_tokens.is_some() || attributes.temperature)
    {
        let message = "a rule with a parameter can only have the attribute `capture`";
        return Err(Fault::unsupported(at, "attributes of rules with a parameter", message));
    }
    Ok(())
}

fn equals(cursor: &mut TokenCursor<'_>) -> Result<(), Fault> {
    cursor.expect_sign("=", "and a value behind this attribute")
}

fn text(cursor: &mut TokenCursor<'_>) -> Result<String, Fault> {
    let at = cursor.at();
    let Some(Token::Text { inner, ignore_case: false }) = cursor.peek() else {
        return Err(cursor.unexpected("a name between quotes, without flags"));
    };
    cursor.advance();
    string::unescape(at + 1, inner)
}

fn number<'t>(cursor: &mut TokenCursor<'t>) -> Result<&'t str, Fault> {
    let Some(Token::Number(number)) = cursor.peek() else {
        return Err(cursor.unexpected("a number"));
    };
    cursor.advance();
    Ok(number)
}
