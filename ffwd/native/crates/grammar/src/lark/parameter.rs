//! The computations of rules with a parameter, and their conditions.

use super::cursor::TokenCursor;
use super::fault::Fault;
use super::token::Token;
use crate::{Argument, BitRange, Change, Comparison, Condition, Operand};

const BITS: u64 = 64;

/// Parses the argument after `name::`.
pub(super) fn argument(cursor: &mut TokenCursor<'_>) -> Result<Argument, Fault> {
    if cursor.take_sign("_") {
        return Ok(Argument::Same);
    }
    if matches!(cursor.peek(), Some(Token::Number(_))) {
        return Ok(Argument::Value(number(cursor, u64::MAX)?));
    }
    let at = cursor.at();
    let name = cursor.expect_name("a number, `_` or a function such as `incr([0:4])`")?;
    let change: fn(&mut TokenCursor<'_>) -> Result<Change, Fault> = match name {
        "incr" => |cursor| bits(cursor).map(Change::Increment),
        "decr" => |cursor| bits(cursor).map(Change::Decrement),
        "set_bit" => |cursor| bit(cursor).map(Change::SetBit),
        "clear_bit" => |cursor| bit(cursor).map(Change::ClearBit),
        "bit_and" => |cursor| number(cursor, u64::MAX).map(Change::And),
        "bit_or" => |cursor| number(cursor, u64::MAX).map(Change::Or),
        _ => {
            let message = format!(
                "`{name}` is no function of a parameter; there are `incr`, `decr`, `set_bit`, \
                 `clear_bit`, `bit_and`, `bit_or`"
            );
            return Err(Fault::syntax(at, message));
        }
    };
    cursor.expect_sign("(", "behind the function's name")?;
    let change = change(cursor)?;
    cursor.expect_sign(")", "behind the function's argument")?;
    Ok(Argument::Changed(change))
}

/// Parses the condition after `%if`.
pub(super) fn condition(cursor: &mut TokenCursor<'_>) -> Result<Condition, Fault> {
    cursor.nested(condition_inside)
}

fn condition_inside(cursor: &mut TokenCursor<'_>) -> Result<Condition, Fault> {
    let at = cursor.at();
    let name = cursor.expect_name("a condition such as `bit_clear(0)`")?;
    if name == "true" {
        if cursor.take_sign("(") {
            cursor.expect_sign(")", "behind `true(`")?;
        }
        return Ok(Condition::True);
    }
    let read: fn(&mut TokenCursor<'_>, &str) -> Result<Condition, Fault> = match name {
        "bit_set" => |cursor, _| bit(cursor).map(Condition::BitSet),
        "bit_clear" => |cursor, _| bit(cursor).map(Condition::BitClear),
        "is_zeros" => |cursor, _| {
            let of = Operand::Value(bits(cursor)?);
            Ok(Condition::Compare { of, comparison: Comparison::Equal, with: 0 })
        },
        "is_ones" => |cursor, _| {
            let run = bits(cursor)?;
            let with = u64::MAX >> (BITS - u64::from(run.length));
            Ok(Condition::Compare { of: Operand::Value(run), comparison: Comparison::Equal, with })
        },
        "not" => |cursor, _| Ok(Condition::Not(condition(cursor)?.into())),
        "and" => |cursor, _| conditions(cursor).map(|all| Condition::And(all.into())),
        "or" => |cursor, _| conditions(cursor).map(|all| Condition::Or(all.into())),
        _ if comparison(name).is_some() => compare,
        _ => {
            let message = format!(
                "`{name}` is no condition; there are `true`, `bit_set`, `bit_clear`, `is_ones`, \
                 `is_zeros`, `eq`, `ne`, `lt`, `le`, `gt`, `ge`, the same behind `bit_count_`, \
                 `and`, `or`, `not`"
            );
            return Err(Fault::syntax(at, message));
        }
    };
    cursor.expect_sign("(", "behind the condition's name")?;
    let condition = read(cursor, name)?;
    cursor.expect_sign(")", "behind the condition's arguments")?;
    Ok(condition)
}

/// The comparison that a condition makes, and whether it is one of the number of set bits.
fn comparison(name: &str) -> Option<(Comparison, bool)> {
    let (name, count) = match name.strip_prefix("bit_count_") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let comparison = match name {
        "eq" => Comparison::Equal,
        "ne" => Comparison::NotEqual,
        "lt" => Comparison::Less,
        "le" => Comparison::LessOrEqual,
        "gt" => Comparison::Greater,
        "ge" => Comparison::GreaterOrEqual,
        _ => return None,
    };
    Some((comparison, count))
}

fn compare(cursor: &mut TokenCursor<'_>, name: &str) -> Result<Condition, Fault> {
    let run = bits(cursor)?;
    cursor.expect_sign(",", "and the number to compare")?;
    let with = number(cursor, u64::MAX)?;
    let (comparison, count) = comparison(name).unwrap_or((Comparison::Equal, false));
    let of = if count { Operand::Count(run) } else { Operand::Value(run) };
    Ok(Condition::Compare { of, comparison, with })
}

/// Two conditions or more.
fn conditions(cursor: &mut TokenCursor<'_>) -> Result<Vec<Condition>, Fault> {
    let mut all = vec![condition(cursor)?];
    cursor.expect_sign(",", "and another condition")?;
    all.push(condition(cursor)?);
    while cursor.take_sign(",") {
        all.push(condition(cursor)?);
    }
    Ok(all)
}

fn bit(cursor: &mut TokenCursor<'_>) -> Result<u8, Fault> {
    Ok(number(cursor, BITS - 1)? as u8)
}

/// `[from:to]`, or `_` for all bits.
fn bits(cursor: &mut TokenCursor<'_>) -> Result<BitRange, Fault> {
    if cursor.take_sign("_") {
        return Ok(BitRange { start: 0, length: BITS as u8 });
    }
    cursor.expect_sign("[", "and a run of bits such as `[0:4]`, or `_` for all")?;
    let start = number(cursor, BITS - 1)?;
    cursor.expect_sign(":", "between the first bit and the one behind the last")?;
    let at = cursor.at();
    let end = number(cursor, BITS)?;
    if end <= start {
        let message = format!("the run of bits from {start} to {end} has no bit");
        return Err(Fault::syntax(at, message));
    }
    cursor.expect_sign("]", "behind the run of bits")?;
    Ok(BitRange { start: start as u8, length: (end - start) as u8 })
}

/// A number, decimal or hexadecimal.
fn number(cursor: &mut TokenCursor<'_>, maximum: u64) -> Result<u64, Fault> {
    let at = cursor.at();
    let Some(Token::Number(written)) = cursor.peek() else {
        return Err(cursor.unexpected("a number"));
    };
    let hexadecimal = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"));
    let value = match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => written.parse(),
    };
    match value {
        Ok(value) if value <= maximum => {
            cursor.advance();
            Ok(value)
        }
        _ => Err(Fault::syntax(at, format!("expected a whole number from 0 to {maximum}"))),
    }
}
