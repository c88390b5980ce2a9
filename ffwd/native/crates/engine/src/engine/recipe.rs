//! The source of a compiled grammar, from which it can be compiled again.

use std::sync::Arc;

use super::{CompileError, Compiled, Engine, GrammarOptions};
use ffwd_grammar::Grammar;
use ffwd_regular::regex::Ast;

/// The source of a compiled grammar.
#[derive(Clone, Debug)]
pub enum Recipe {
    /// A text of a regular language.
    Language(Ast),
    /// A JSON Schema, as JSON text.
    Json { schema: Arc<str>, options: GrammarOptions },
    /// Rules whose lexemes are folded, and the JSON Schemas in them.
    Rules { grammar: Arc<Grammar>, options: GrammarOptions },
}

impl Recipe {
    /// Returns the name of the kind of grammar.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Language(_) => "regular_language",
            Self::Json { .. } => "json_schema",
            Self::Rules { .. } => "rules",
        }
    }
}

impl Engine {
    /// Compiles a recipe.
    pub(crate) fn compile_recipe(
        self: &Arc<Self>,
        recipe: &Recipe,
    ) -> Result<Compiled, CompileError> {
        match recipe {
            Recipe::Language(language) => self.compile_language(language.clone()),
            Recipe::Json { schema, options } => self.compile_json_schema(schema, options.clone()),
            Recipe::Rules { grammar, options } => self.compile_folded(grammar, options.clone()),
        }
    }
}
