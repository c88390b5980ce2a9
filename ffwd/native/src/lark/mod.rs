//! Grammars in Lark's language, in the variant of llguidance.

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

use crate::error::LimitExceeded;
use crate::grammar::{Grammar, GrammarError};
use fault::Fault;
use lowering::Lowering;

/// Grammars by the names under which another refers to them, as `@name` or as a declared terminal.
pub type Grammars<'o> = FxHashMap<&'o str, &'o Grammar>;

/// How many bytes a grammar may have.
pub const MAX_LENGTH: usize = 4 << 20;

/// The grammar of a text.
pub fn parse(text: &str) -> Result<Grammar, GrammarError> {
    parse_with(text, &Grammars::default())
}

/// The grammar of a text that refers to others.
pub fn parse_with(text: &str, others: &Grammars<'_>) -> Result<Grammar, GrammarError> {
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
mod tests;
