//! A compiled grammar: a lazily built automaton over bytes with interned states.
//!
//! A [`StateId`] identifies a *configuration*: a set of [`Thread`]s, each a state of a lexeme and
//! the interned stack after it. JSON's own syntax is deterministic, so a JSON grammar usually has
//! one thread; there are several where different lexemes may begin.
//!
//! Stacks are hash-consed lists of frames (`frame`). The frames of JSON containers (`object`,
//! `array`) run every alternative of a schema at once, and the value inside returns a verdict: one
//! bit for each schema of its query. Every stored configuration is alive: some completion is
//! accepted.
//!
//! Start with [`Grammar`], which says what to compile, and [`Automaton::new`]. [`Automaton::walk`] reads
//! bytes from threads, [`Automaton::intern`] makes a state of what is left, and
//! [`Automaton::is_accepting`] says whether the text may end there. [`Automaton::expected`] and
//! [`Automaton::obstacles`] say for people what may come, and what may not.
//!
//! The crate knows bytes and no vocabulary: tokens that are taken as a whole are numbers to it. It has
//! no output so far: callers keep the states that their texts led through. Nor does it limit memory: it
//! says how much it holds, and callers begin anew.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use ffwd_automaton::{Automaton, Grammar};
//! use ffwd_regular::expr::LexemeStore;
//! use ffwd_regular::regex::rust_dialect;
//!
//! let language = rust_dialect::anchored("ab+")?;
//! let lexemes = Arc::new(LexemeStore::new(1 << 20));
//! let automaton = Automaton::new(Grammar::Text(language), lexemes)?;
//!
//! let start = automaton.threads(automaton.start());
//! let state = automaton.intern(automaton.walk(start, b"ab")?.ok_or("refused")?)?;
//! assert!(automaton.is_accepting(state));
//! assert_eq!(automaton.walk(automaton.threads(state), b"a")?, None);
//! assert!(automaton.walk(automaton.threads(state), b"bb")?.is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(missing_docs)]

mod array;
mod beginnings;
mod begun;
mod cases;
mod completion;
mod config;
mod dead_ends;
mod endless;
mod error;
mod estimate;
mod exclusion;
mod exclusion_set;
pub mod expected;
mod flow;
mod forget;
mod frame;
mod history;
mod intern;
mod items;
mod key_texts;
pub mod keys;
mod layouts;
mod limit_bounds;
mod limits;
pub mod marks;
mod members;
mod memory;
mod monitor;
mod name_set;
mod next_byte;
mod object;
mod object_group;
pub mod obstacle;
mod pointer;
pub mod punctuation;
mod rival_place;
mod rivals;
mod room;
mod rows;
pub mod rules;
mod swallowed;
#[cfg(test)]
mod tests;
mod thread;
mod unions;
mod used_keys;
mod value;
mod whole_tokens;

pub use array::{Spare, SPARE_ITEMS};
pub use completion::{EndingText, MAX_COMPLETION_STEPS};
pub use config::{Automaton, StateId};
pub use error::EngineError;
pub use ffwd_grammar::{Layout, Whitespace, WhitespaceMode};
pub use ffwd_json_schema::Numbers;
pub use forget::Shared;
pub use frame::StackId;
pub use items::last_value;
pub use keys::{KeyBase, KeyNodeId, TextId};
pub use limits::OpenPart;
pub use memory::AutomatonBytes;
pub use name_set::NameSet;
pub use pointer::Rivals;
pub use rival_place::{Beside, Left, NextPlace, RivalPlace};
pub use swallowed::Swallowing;
pub use thread::{Thread, ThreadLexeme, Threads};
pub use used_keys::UsedId;

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
        program: std::sync::Arc<rules::Program>,
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

/// In which order the properties of an object come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PropertyOrder {
    /// As they are declared, and undeclared ones last.
    #[default]
    Declared,
    /// In any order.
    Any,
}

/// How a JSON text is written, where its schema leaves a choice.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Writing {
    /// Which white space stands between values.
    pub whitespace: Whitespace,
    /// In which order the members of objects come.
    pub property_order: PropertyOrder,
    /// Which notations of numbers are written.
    pub numbers: Numbers,
}

impl Writing {
    /// Whether not every valid text is written: what is only observed is then kept apart.
    pub(crate) fn narrows(&self) -> bool {
        self.property_order == PropertyOrder::Declared || self.numbers == Numbers::Plain
    }
}

impl From<Whitespace> for Writing {
    fn from(whitespace: Whitespace) -> Self {
        Self { whitespace, property_order: PropertyOrder::default(), numbers: Numbers::default() }
    }
}
