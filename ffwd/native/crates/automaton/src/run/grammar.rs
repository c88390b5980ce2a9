//! What an automaton is built from.

use crate::rules::program::Program;
use crate::writing::Writing;
use ffwd_grammar::Whitespace;

/// The source of an automaton.
#[derive(Debug)]
pub enum Grammar {
    /// A whole text of a regular language.
    Text(ffwd_regular::regex::Ast),
    /// A JSON text that is valid against a schema.
    Json {
        /// The schema of the whole text.
        schema: Box<ffwd_json_schema::SchemaSet>,
        /// How the text is written.
        writing: Writing,
    },
    /// A text of a grammar of rules, with the schemas of its JSON values.
    Rules {
        /// Symbols and leaves.
        program: std::sync::Arc<Program>,
        /// The schemas of its JSON values; `None` without any.
        json: Option<RuleSchemas>,
    },
}

/// The schemas of a grammar of rules, by their places.
#[derive(Debug)]
pub struct RuleSchemas {
    /// The schemas, in one set.
    pub schema: Box<ffwd_json_schema::SchemaSet>,
    /// With the white space of each.
    pub roots: Vec<(ffwd_json_schema::SchemaId, Whitespace)>,
    /// How values are written, but for white space.
    pub writing: Writing,
}
