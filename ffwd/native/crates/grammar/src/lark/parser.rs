//! Parses tokens to a syntax tree.

use super::ast::{Alternative, Atom, Attributes, Choice, Definition, Element, Item};
use super::attributes;
use super::cursor::TokenCursor;
use super::fault::Fault;
use super::lexer;
use super::parameter;
use super::token::{names_terminal, Token};
use super::value;

/// The items of a text.
pub(super) fn items(text: &str) -> Result<Vec<Item<'_>>, Fault> {
    let mut cursor = TokenCursor::new(lexer::tokens(text)?, text.len());
    items_until(&mut cursor, None)
}

/// The items up to the end of the text, or up to the sign that closes a nested grammar.
pub(super) fn items_until<'t>(
    cursor: &mut TokenCursor<'t>,
    close: Option<&'static str>,
) -> Result<Vec<Item<'t>>, Fault> {
    let mut items = Vec::new();
    loop {
        while cursor.take_newline() {}
        match (cursor.peek(), close) {
            (None, None) => return Ok(items),
            (None, Some(close)) => {
                return Err(cursor.unexpected(&format!("`{close}` behind the nested grammar")));
            }
            (Some(Token::Sign(sign)), Some(close)) if sign == close => return Ok(items),
            (Some(Token::Directive(_)), _) => statement(cursor, &mut items)?,
            _ => items.push(Item::Definition(definition(cursor)?)),
        }
    }
}

fn statement<'t>(cursor: &mut TokenCursor<'t>, items: &mut Vec<Item<'t>>) -> Result<(), Fault> {
    let at = cursor.at();
    let Some(Token::Directive(name)) = cursor.peek() else { return Ok(()) };
    cursor.advance();
    match name {
        "%ignore" => items.push(Item::Ignore(choice(cursor)?)),
        "%import" => import(cursor, at, items)?,
        "%declare" => {
            let mut found = false;
            while let Some(Token::Name(name)) = cursor.peek() {
                items.push(Item::Declare { at: cursor.at(), name });
                cursor.advance();
                found = true;
            }
            if !found {
                return Err(cursor.unexpected("the names of terminals"));
            }
        }
        "%llguidance" | "%grammar_options" => {
            let (at, Some(Token::Json(text))) = (cursor.at(), cursor.peek()) else {
                return Err(cursor.unexpected("a JSON object with options"));
            };
            cursor.advance();
            items.push(Item::Options { at, text });
        }
        "%override" | "%extend" => {
            let message = format!(
                "`{name}` is not supported: nothing but single terminals of `common` can be \
                 imported, so define the rule here"
            );
            return Err(Fault::unsupported(at, "changing imported rules", message));
        }
        _ => {
            let message = format!(
                "`{name}` stands within a rule; expected a rule, a terminal, \
                                   `%ignore`, `%import`, `%declare` or `%llguidance`"
            );
            return Err(Fault::syntax(at, message));
        }
    }
    Ok(())
}

fn import<'t>(
    cursor: &mut TokenCursor<'t>,
    at: usize,
    items: &mut Vec<Item<'t>>,
) -> Result<(), Fault> {
    const NAME: &str = "the name of a library or of a terminal in it";
    let mut path = String::new();
    if cursor.take_sign(".") {
        path.push('.');
    }
    let mut last = cursor.expect_name(NAME)?;
    path.push_str(last);
    while cursor.take_sign(".") {
        last = cursor.expect_name(NAME)?;
        path.push('.');
        path.push_str(last);
    }
    if cursor.take_sign("->") {
        let name = cursor.expect_name("what the terminal is called here")?;
        items.push(Item::Import { at, path, name });
    } else if cursor.take_sign("(") {
        loop {
            let at = cursor.at();
            let name = cursor.expect_name("the name of a terminal")?;
            items.push(Item::Import { at, path: format!("{path}.{name}"), name });
            if !cursor.take_sign(",") {
                break;
            }
        }
        cursor.expect_sign(")", "behind the list of terminals")?;
    } else {
        items.push(Item::Import { at, path, name: last });
    }
    Ok(())
}

fn definition<'t>(cursor: &mut TokenCursor<'t>) -> Result<Definition<'t>, Fault> {
    // Options for the shape of trees have no effect, because no trees are built.
    let shaped = cursor.take_sign("!");
    let shaped = cursor.take_sign("?") || shaped;
    let at = cursor.at();
    let Some(Token::Name(name)) = cursor.peek() else {
        return Err(cursor.unexpected("the name of a rule or terminal, or a directive"));
    };
    cursor.advance();
    let terminal = names_terminal(name);
    if terminal && shaped {
        return Err(Fault::syntax(at, "`!` and `?` stand before rules, not before terminals"));
    }
    let mut definition = Definition {
        name,
        at,
        parametric: false,
        placeholders: Vec::new(),
        attributes: Attributes::default(),
        body: Choice { at, alternatives: Vec::new() },
    };
    if !terminal && cursor.take_sign("::") {
        cursor.expect_sign("_", "behind `::` where a rule with a parameter is defined")?;
        definition.parametric = true;
    }
    if cursor.is_sign("{") {
        definition.placeholders = placeholders(cursor, &definition)?;
    }
    if cursor.is_sign(".") {
        let message = "priorities are not supported: all readings of a text count, whatever their \
                       order";
        return Err(Fault::unsupported(cursor.at(), "priorities", message));
    }
    if cursor.is_sign("[") {
        if terminal {
            let message = "terminals have no attributes: put them on a rule in lower case whose \
                           body is the terminal";
            return Err(Fault::syntax(cursor.at(), message));
        }
        attributes::read(cursor, &mut definition)?;
    }
    cursor.expect_sign(":", "behind the name that is defined")?;
    definition.body = choice(cursor)?;
    Ok(definition)
}

fn placeholders<'t>(
    cursor: &mut TokenCursor<'t>,
    definition: &Definition<'t>,
) -> Result<Vec<&'t str>, Fault> {
    let at = cursor.at();
    if names_terminal(definition.name) || definition.parametric {
        let message = "only rules without a parameter can be templates";
        return Err(Fault::unsupported(at, "templates of terminals or with a parameter", message));
    }
    cursor.expect_sign("{", "")?;
    let mut names: Vec<&str> = Vec::new();
    loop {
        let at = cursor.at();
        let name = cursor.expect_name("the name of a placeholder")?;
        if names.contains(&name) {
            return Err(Fault::syntax(at, format!("the placeholder `{name}` comes twice")));
        }
        names.push(name);
        if !cursor.take_sign(",") {
            break;
        }
    }
    cursor.expect_sign("}", "behind the placeholders")?;
    Ok(names)
}

/// Parses alternatives; those after the first may begin on a new line.
pub(super) fn choice<'t>(cursor: &mut TokenCursor<'t>) -> Result<Choice<'t>, Fault> {
    cursor.nested(|cursor| {
        let at = cursor.at();
        let mut alternatives = vec![alternative(cursor)?];
        loop {
            let bar = Some(Token::Sign("|"));
            if cursor.peek() == Some(Token::Newline) && cursor.second() == bar {
                cursor.advance();
            }
            if !cursor.take_sign("|") {
                return Ok(Choice { at, alternatives });
            }
            alternatives.push(alternative(cursor)?);
        }
    })
}

fn alternative<'t>(cursor: &mut TokenCursor<'t>) -> Result<Alternative<'t>, Fault> {
    let mut conjuncts = vec![sequence(cursor)?];
    while cursor.take_sign("&") {
        conjuncts.push(sequence(cursor)?);
    }
    if cursor.take_sign("->") {
        let at = cursor.at();
        if names_terminal(cursor.expect_name("the alias of an alternative")?) {
            return Err(Fault::syntax(at, "an alias is in lower case"));
        }
    }
    let mut condition = None;
    if cursor.peek() == Some(Token::Directive("%if")) {
        let at = cursor.at();
        cursor.advance();
        condition = Some((at, parameter::condition(cursor)?));
    }
    Ok(Alternative { conjuncts, condition })
}

fn sequence<'t>(cursor: &mut TokenCursor<'t>) -> Result<Vec<Element<'t>>, Fault> {
    let mut elements = Vec::new();
    loop {
        match cursor.peek() {
            None
            | Some(
                Token::Newline
                | Token::Sign("|" | "->" | "}" | ")" | "]" | "&")
                | Token::Directive("%if"),
            ) => return Ok(elements),
            _ => elements.push(element(cursor)?),
        }
    }
}

pub(super) fn element<'t>(cursor: &mut TokenCursor<'t>) -> Result<Element<'t>, Fault> {
    let at = cursor.at();
    let atom = atom(cursor)?;
    let count = count(cursor)?;
    if let Some(Token::Sign(sign @ ("?" | "*" | "+" | "{"))) = cursor.peek() {
        let message = format!("`{sign}` follows another count: put parentheses between them");
        return Err(Fault::syntax(cursor.at(), message));
    }
    Ok(Element { at, atom, count })
}

fn atom<'t>(cursor: &mut TokenCursor<'t>) -> Result<Atom<'t>, Fault> {
    if cursor.take_sign("~") {
        if cursor.is_sign("~") {
            return Err(Fault::syntax(
                cursor.at(),
                "`~` follows another: put the second in parentheses",
            ));
        }
        return Ok(Atom::Not(Box::new(atom(cursor)?)));
    }
    let closed = "behind the group; a group continues on the next line only if that begins \
                  with `|`";
    if cursor.take_sign("(") {
        let inner = choice(cursor)?;
        cursor.expect_sign(")", closed)?;
        return Ok(Atom::Group(inner));
    }
    if cursor.take_sign("[") {
        let inner = choice(cursor)?;
        cursor.expect_sign("]", closed)?;
        return Ok(Atom::Optional(inner));
    }
    value::read(cursor).map(Atom::Value)
}

/// The count of an atom: `?`, `*`, `+`, `~ 2`, `~ 2..3`, `{2}`, `{2,3}`, `{2,}` or `{,3}`.
fn count(cursor: &mut TokenCursor<'_>) -> Result<Option<(u32, Option<u32>)>, Fault> {
    let at = cursor.at();
    let (min, max) = match (cursor.peek(), cursor.second()) {
        (Some(Token::Sign("?")), _) => {
            cursor.advance();
            (0, Some(1))
        }
        (Some(Token::Sign("*")), _) => {
            cursor.advance();
            (0, None)
        }
        (Some(Token::Sign("+")), _) => {
            cursor.advance();
            (1, None)
        }
        (Some(Token::Sign("~")), Some(Token::Number(_))) => {
            cursor.advance();
            let min = times(cursor)?;
            let max = if cursor.take_sign("..") { times(cursor)? } else { min };
            (min, Some(max))
        }
        (Some(Token::Sign("{")), _) => {
            cursor.advance();
            let min = if cursor.is_sign(",") { 0 } else { times(cursor)? };
            let max = match (cursor.take_sign(","), cursor.is_sign("}")) {
                (false, _) => Some(min),
                (true, true) => None,
                (true, false) => Some(times(cursor)?),
            };
            cursor.expect_sign("}", "behind the count")?;
            (min, max)
        }
        _ => return Ok(None),
    };
    if max.is_some_and(|max| max < min) {
        return Err(Fault::syntax(at, "the largest count is less than the smallest"));
    }
    Ok(Some((min, max)))
}

fn times(cursor: &mut TokenCursor<'_>) -> Result<u32, Fault> {
    let at = cursor.at();
    let Some(Token::Number(written)) = cursor.peek() else {
        return Err(cursor.unexpected("how often something comes"));
    };
    cursor.advance();
    // As many as fit in 32 bits with a sign, as in llguidance.
    match written.parse::<i32>() {
        Ok(times) if times >= 0 => Ok(times as u32),
        _ => Err(Fault::syntax(at, format!("a count is a whole number from 0 to {}", i32::MAX))),
    }
}
