//! Grammars in Lark's language, in the variant of llguidance.
//!
//! ```text
//! start: sum
//! sum: sum "+" product | product
//! product: INT | "(" sum ")"
//! %import common.INT
//! %ignore / +/
//! ```
//!
//! `lexer` cuts a text into tokens, `parser` reads them as what is written (`ast`), `lowering` makes of
//! it what is compiled: terminals become regular languages (`terminals`, within the limits of
//! `language`), rules become rules (`sequence`). Only what `start` reaches is made. What is accepted, and
//! where it differs from llguidance and from Lark, is in `docs/lark.md`.
//!
//! # What texts a grammar has
//!
//! This is what llguidance 1.9.1 was found to do, by experiments on a vocabulary of single bytes, and
//! what a grammar that is made here asks for:
//!
//! * Each terminal that a rule uses, and each string and pattern in a rule, is one lexeme. At any place
//!   those compete that may come there, for the longest match: with `ID: /[a-z]+/`, `ifx` is one `ID`
//!   and never `if` and `x`. Several that match the same longest text are all read: `if` is the
//!   keyword and the `ID`.
//! * There is no way back to a shorter match: with `"a" "b" "d" | /abc/`, `abd` is refused, as `ab` is
//!   the beginning of the pattern.
//! * Lexemes that cannot come at a place do not compete there.
//! * A lazy lexeme ends as soon as it matches. Then it, and other lazy ones that end there as well, are
//!   read, and none that is not lazy, even if it matches the same text.
//! * What is ignored is a lexeme too. It may come behind any lexeme, special token, JSON value or nested
//!   grammar, any number of times, where something else may follow, and not before the first
//!   (`allow_initial_skip`: there too). So it follows each of them as a repetition.
//! * A lexeme that matches the empty text may be left out.
//! * Grammars that ignore the same share one scope of lexemes, nested ones have their own otherwise.
//! * The body of a rule that is lazy or has an ending, and of one with `max_tokens` or `temperature` if it
//!   could be a terminal, is one lexeme: nothing is ignored within.

mod ast;
mod attributes;
mod common;
mod cursor;
mod definitions;
mod fault;
mod language;
mod lexer;
mod lowering;
mod options;
mod parameter;
mod parser;
#[cfg(test)]
mod print;
mod sequence;
mod special;
mod string;
mod substring;
mod terminals;
mod token;
mod value;

use rustc_hash::FxHashMap;

use crate::{Grammar, GrammarError};
use fault::Fault;
use ffwd_bounds::error::LimitExceeded;
use lowering::Lowering;

/// Grammars by the names under which another refers to them, as `@name` or as a declared terminal.
pub(crate) type Grammars<'o> = FxHashMap<&'o str, &'o Grammar>;

/// How many bytes a grammar may have.
pub(crate) const MAX_LENGTH: usize = 1 << 26;

/// The grammar of a text.
///
/// Syntax, names and the structure of terminals are checked, of what `start` reaches. Rules without any
/// text, unknown tokens and faults of JSON Schemas are found where the grammar is compiled.
pub fn parse(text: &str) -> Result<Grammar, GrammarError> {
    parse_with(text, &Grammars::default())
}

/// The grammar of a text that refers to others, by `@name` or by `%declare NAME`.
pub(crate) fn parse_with(text: &str, others: &Grammars<'_>) -> Result<Grammar, GrammarError> {
    if text.len() > MAX_LENGTH {
        return Err(LimitExceeded::new("bytes of a Lark grammar", MAX_LENGTH).into());
    }
    lower(text, others).map_err(|fault| fault.into_error(text))
}

fn lower(text: &str, others: &Grammars<'_>) -> Result<Grammar, Fault> {
    let items = parser::items(text)?;
    let mut lowering = Lowering::new(text, others);
    let start = lowering.items(0, &items)?;
    let mut grammar = lowering.grammar;
    grammar.start = Some(start);
    Ok(grammar)
}

#[cfg(test)]
mod test_limits;
#[cfg(test)]
mod tests;
