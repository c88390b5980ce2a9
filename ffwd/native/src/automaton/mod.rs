//! A compiled grammar: a lazily built automaton over bytes with interned states.
//!
//! A [`StateId`] stands for a *configuration*: a set of [`Thread`]s, each a state of a lexeme and
//! the interned stack of what must follow it. JSON's own syntax is deterministic, so a JSON
//! grammar mostly has one thread; several stand side by side where different lexemes may begin.
//! Stacks are hash-consed lists of frames ([`frame`]); the frames of JSON containers
//! ([`object`], [`array`]) run every alternative of a schema at once, and the value inside hands
//! back a verdict: one bit for each schema that was asked.
//!
//! Every configuration that is kept is alive: some completion is accepted.

pub mod array;
mod beginnings;
mod begun;
mod cases;
mod completion;
pub mod config;
mod dead_ends;
mod endless;
pub mod error;
mod estimate;
mod exclusion;
mod exclusion_set;
pub mod expected;
mod flow;
mod forget;
pub mod frame;
mod history;
pub mod intern;
mod items;
mod key_texts;
pub mod keys;
pub mod layouts;
mod limit_bounds;
pub mod limits;
pub mod marks;
pub mod memory;
mod monitor;
pub mod name_set;
mod next_byte;
pub mod object;
pub mod object_group;
pub mod obstacle;
pub mod pointer;
pub mod punctuation;
mod rival_place;
mod rivals;
mod rows;
pub mod rules;
pub mod swallowed;
#[cfg(test)]
mod tests;
mod thread;
mod unions;
pub mod used_keys;
pub mod value;
mod whole_tokens;

pub use crate::grammar::whitespace::{Layout, Whitespace, WhitespaceMode};
pub use crate::json_schema::Numbers;
pub use array::{Spare, SPARE_ITEMS};
pub use completion::{EndingText, MAX_COMPLETION_STEPS};
pub use config::{Automaton, StateId};
pub use error::EngineError;
pub use forget::Shared;
pub use frame::StackId;
pub use items::last_value;
pub use keys::{KeyBase, KeyNodeId, TextId};
pub use memory::AutomatonBytes;
pub use pointer::Rivals;
pub use rival_place::{Beside, Left, NextPlace, RivalPlace};
pub use thread::{Thread, ThreadLexeme, Threads};
pub use used_keys::UsedId;

/// What to compile.
#[derive(Debug)]
pub enum Grammar {
    /// A whole text of a regular language.
    Text(crate::regex::Ast),
    /// A JSON text that is valid against a schema.
    Json { schema: Box<crate::json_schema::SchemaSet>, writing: Writing },
    /// A text of a grammar of rules, with the schemas of its JSON values.
    Rules { program: std::sync::Arc<rules::Program>, json: Option<RuleSchemas> },
}

/// The schemas of a grammar of rules, by their places.
#[derive(Debug)]
pub struct RuleSchemas {
    pub schema: Box<crate::json_schema::SchemaSet>,
    /// With the white space of each.
    pub roots: Vec<(crate::json_schema::SchemaId, Whitespace)>,
    pub writing: Writing,
}

/// In which order the properties of an object come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PropertyOrder {
    /// As they are declared, and undeclared ones last.
    #[default]
    Declared,
    Any,
}

/// How a JSON text is written, where its schema leaves a choice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Writing {
    pub whitespace: Whitespace,
    pub property_order: PropertyOrder,
    pub numbers: Numbers,
}

impl Writing {
    /// Whether not every valid text is written: what is only observed is then kept apart.
    pub fn narrows(&self) -> bool {
        self.property_order == PropertyOrder::Declared || self.numbers == Numbers::Plain
    }
}

impl From<Whitespace> for Writing {
    fn from(whitespace: Whitespace) -> Self {
        Self { whitespace, property_order: PropertyOrder::default(), numbers: Numbers::default() }
    }
}
