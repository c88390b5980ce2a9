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
//! `lexer` splits a text into tokens, `parser` builds the syntax tree (`ast`), and `lowering` makes
//! the grammar of it. Terminals become regular languages (`terminals`, within the limits of
//! `language`), and rules become rules (`sequence`). Only the part that `start` reaches is made.
//! `docs/lark.md` lists the accepted syntax, and the differences from llguidance and from Lark.
//!
//! # The texts of a grammar
//!
//! These rules were found by experiments with llguidance 1.9.1 on a vocabulary of single bytes.
//! Grammars that are made here follow them:
//!
//! * Each terminal that a rule uses, and each string and pattern in a rule, is one lexeme. At any
//!   position the allowed ones compete for the longest match: with `ID: /[a-z]+/`, `ifx` is one
//!   `ID` and never `if` and `x`. Several that match the same longest text are all accepted: `if`
//!   is the keyword and the `ID`.
//! * A match is never shortened: with `"a" "b" "d" | /abc/`, `abd` is refused, because `ab` is a
//!   prefix of the pattern.
//! * Lexemes that are not allowed at a position do not compete there.
//! * A lazy lexeme ends as soon as it matches. It and other lazy ones that end there are accepted;
//!   a greedy one is not, even if it matches the same text.
//! * Ignored text is a lexeme too. It is allowed any number of times after any lexeme, special
//!   token, JSON value or nested grammar, if something else may follow. Before the first one it
//!   needs `allow_initial_skip`. So it follows each of them as a repetition.
//! * A lexeme that matches the empty text is optional.
//! * Grammars that ignore the same text share one scope of lexemes; other nested ones have their
//!   own.
//! * The body of a rule that is lazy or has an ending is one lexeme: nothing is ignored within it.
//!   The same holds for a rule with `max_tokens` or `temperature` that could be a terminal.

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
/// Syntax, names and the structure of terminals are checked in the part that `start` reaches.
/// Compilation finds rules without any text, unknown tokens and invalid JSON Schemas.
pub fn parse(text: &str) -> Result<Grammar, GrammarError> {
    parse_with(text, &Grammars::default())
}

/// The grammar of a text that refers to others, by `@name` or by `%declare NAME`.
pub(crate) fn parse_with(text: &str, others: &Grammars<'_>) -> Result<Grammar, GrammarError> {
    if text.len() > MAX_LENGTH {
        return Err(LimitExceeded::new("lark_bytes", MAX_LENGTH).into());
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
