//! The leaves of a grammar of rules.

use std::sync::Arc;

use ffwd_grammar::Lexing;
use ffwd_regular::regex::Ast;

/// The kind of a leaf of the symbols.
#[derive(Clone, Debug)]
pub enum Leaf {
    /// A language without the empty text.
    Lexeme {
        /// Its texts, in UTF-8.
        language: Ast,
        /// Where a text of it may end.
        lexing: Lexing,
    },
    /// Sorted ranges of token ids, from the first to the last.
    Tokens(Arc<[(u32, u32)]>),
    /// One of the schemas, by its place.
    Json(usize),
}
