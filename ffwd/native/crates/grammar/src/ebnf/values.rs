//! The arguments of macros: strings, numbers, names, `true` and `false`, and tuples of these.

use crate::bnf::text::Cursor;
use crate::GrammarError;

/// Tuples that may nest.
const MAX_NESTING: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MacroValue<'t> {
    pub offset: usize,
    pub kind: ValueKind<'t>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueKind<'t> {
    Text(String),
    Number(u32),
    Boolean(bool),
    Name(&'t str),
    Tuple(Vec<MacroValue<'t>>),
}

/// The arguments of one call.
#[derive(Clone, Debug, Default)]
pub(super) struct Arguments<'t> {
    pub positional: Vec<MacroValue<'t>>,
    pub named: Vec<(&'t str, MacroValue<'t>)>,
}

impl<'t> Arguments<'t> {
    /// Reads arguments with their brackets.
    pub fn read(cursor: &mut Cursor<'t>, called: &str) -> Result<Self, GrammarError> {
        let mut arguments = Self::default();
        cursor.space(true);
        let opened = cursor.offset();
        if !cursor.take("(") {
            let message = format!("{called} is a macro: its arguments must follow in brackets");
            return Err(cursor.fault(opened, message));
        }
        cursor.space(true);
        if cursor.take(")") {
            return Ok(arguments);
        }
        loop {
            let value = MacroValue::read(cursor, 0)?;
            cursor.space(true);
            match value.kind {
                ValueKind::Name(name) if cursor.take("=") => {
                    if arguments.named.iter().any(|&(other, _)| other == name) {
                        let message = format!("the argument {name} is given twice");
                        return Err(cursor.fault(value.offset, message));
                    }
                    cursor.space(true);
                    let value = MacroValue::read(cursor, 0)?;
                    arguments.named.push((name, value));
                    cursor.space(true);
                }
                _ => arguments.positional.push(value),
            }
            if cursor.take(")") {
                return Ok(arguments);
            }
            if !cursor.take(",") {
                let message = match cursor.is_at_end() {
                    true => return Err(cursor.fault(opened, "the bracket is not closed by )")),
                    false => {
                        format!("a comma or ) must follow an argument, but {}", cursor.found())
                    }
                };
                return Err(cursor.fault(cursor.offset(), message));
            }
            cursor.space(true);
        }
    }
}

impl<'t> MacroValue<'t> {
    fn read(cursor: &mut Cursor<'t>, nesting: usize) -> Result<Self, GrammarError> {
        let offset = cursor.offset();
        let kind = match cursor.peek() {
            Some('"') => ValueKind::Text(cursor.string()?),
            Some('(') => {
                if nesting >= MAX_NESTING {
                    return Err(cursor.limit(offset, "macro_nesting", MAX_NESTING));
                }
                cursor.take("(");
                ValueKind::Tuple(Self::tuple(cursor, offset, nesting + 1)?)
            }
            Some(character) if character.is_ascii_digit() => ValueKind::Number(number(cursor)?),
            Some(_) if cursor.is_at_name() => match cursor.name() {
                "true" => ValueKind::Boolean(true),
                "false" => ValueKind::Boolean(false),
                name => ValueKind::Name(name),
            },
            _ => {
                let message = format!(
                    "a string, a number, true, false, the name of a rule or a tuple must stand \
                     here, but {}",
                    cursor.found()
                );
                return Err(cursor.fault(offset, message));
            }
        };
        Ok(Self { offset, kind })
    }

    /// Parses the items of a tuple, with its closing bracket.
    fn tuple(
        cursor: &mut Cursor<'t>,
        opened: usize,
        nesting: usize,
    ) -> Result<Vec<Self>, GrammarError> {
        let mut values = Vec::new();
        loop {
            cursor.space(true);
            if cursor.take(")") {
                return Ok(values);
            }
            values.push(Self::read(cursor, nesting)?);
            cursor.space(true);
            if !cursor.take(",") && !cursor.starts_with(")") {
                let message = match cursor.is_at_end() {
                    true => return Err(cursor.fault(opened, "the bracket is not closed by )")),
                    false => format!("a comma or ) must follow a value, but {}", cursor.found()),
                };
                return Err(cursor.fault(cursor.offset(), message));
            }
        }
    }
}

/// The id of a token.
fn number(cursor: &mut Cursor<'_>) -> Result<u32, GrammarError> {
    let offset = cursor.offset();
    let digits = cursor.take_while(|character| character.is_ascii_digit());
    digits
        .parse()
        .map_err(|_| cursor.fault(offset, "the number is too large for a token: ids have 32 bits"))
}
