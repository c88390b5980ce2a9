//! A compiled grammar: a lazily built automaton over bytes with interned states.
//!
//! A [`StateId`] identifies a *configuration*: a set of [`Thread`]s, each a state of a lexeme and
//! the interned stack after it. JSON's own syntax is deterministic, so a JSON grammar usually has
//! one thread; there are several where different lexemes may begin.
//!
//! Stacks are hash-consed lists of frames (`stacks`). The frames of JSON containers (`json::object`,
//! `json::array`) run every alternative of a schema at once, and the value inside returns a verdict: one
//! bit for each schema of its query. Every stored configuration is alive: some completion is
//! accepted.
//!
//! Start with [`Grammar`], which says what to compile, and [`Automaton::new`]. [`Automaton::walk`] reads
//! bytes from threads, [`Automaton::intern`] makes a state of what is left, and
//! [`Automaton::is_accepting`] says whether the text may end there. [`Automaton::completing`],
//! [`Automaton::limited`], [`Automaton::marked`], [`Automaton::items`] and [`Automaton::explaining`] are
//! views of it, each for one question.
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

mod completion;
mod error;
mod explain;
mod interning;
mod json;
mod rules;
mod run;
mod stacks;
mod writing;

pub use completion::forget::without_texts;
pub use completion::forget::Shared;
pub use completion::frontier::MAX_COMPLETION_STEPS;
pub use completion::search::Completing;
pub use completion::search::EndingText;
pub use error::EngineError;
pub use error::Result;
pub use explain::expected;
pub use explain::expected::Explaining;
pub use explain::obstacle;
pub use ffwd_grammar::Layout;
pub use ffwd_grammar::Whitespace;
pub use ffwd_grammar::WhitespaceMode;
pub use ffwd_json_schema::Numbers;
pub use json::array_state::Spare;
pub use json::items::last_value;
pub use json::keys;
pub use json::name_set::NameSet;
pub use json::pointer::Rivals;
pub use json::punctuation;
pub use json::rival_place::Beside;
pub use json::rival_place::BesideScalar;
pub use json::rival_place::Left;
pub use json::rival_place::NextPlace;
pub use json::rival_place::RivalPlace;
pub use json::spare::SPARE_ITEMS;
pub use json::tables::Json;
pub use json::used_keys::UsedId;
pub use keys::KeyBase;
pub use rules::limit_tables::Aged;
pub use rules::limit_tables::Ages;
pub use rules::limit_tables::OpenPart;
pub use rules::mark::Mark;
pub use rules::successors::after_values;
pub use rules::swallowed::Swallowing;
pub use rules::Leaf;
pub use rules::Program;
pub use run::automaton::Automaton;
pub use run::automaton::StateId;
pub use run::escapes::is_in_escape;
pub use run::escapes::Escaping;
pub use run::grammar::Grammar;
pub use run::grammar::RuleSchemas;
pub use run::items::Items;
pub use run::limits::Limited;
pub use run::marks::Marked;
pub use run::marks::Marks;
pub use run::memory::AutomatonBytes;
pub use run::next_byte::goes_on_within;
pub use stacks::ids::KeyNodeId;
pub use stacks::ids::LexemeId;
pub use stacks::ids::NameId;
pub use stacks::ids::StackId;
pub use stacks::ids::TextId;
pub use stacks::thread::Thread;
pub use stacks::thread::ThreadLexeme;
pub use stacks::thread::Threads;
pub use writing::Escapes;
pub use writing::PropertyOrder;
pub use writing::Writing;
