//! JSON Schema: a document is parsed, its references are resolved, and each subschema is brought,
//! lazily, to a normal form per JSON type. This module is independent of automata and tokens.
//!
//! The steps from text to normal form:
//!
//! 1. `parser`: JSON text to an arena of nodes (`document`).
//! 2. `reader` (and the `read_` modules): the reachable subschemas are checked, keyword by keyword
//!    (`dialect`, `rules`), and become records of constraints (`schema`). References (`reference`,
//!    `resources`, `scopes`, `uri`) are resolved to nodes, also those into other documents
//!    (`registry`, `search`). `program` holds them, and `fidelity` reports the support of each
//!    keyword.
//! 3. `intern`: a [`SchemaId`] is a set of demands that must all hold: subschemas, equal `values`,
//!    and negations of schemas. `plain` and `shape` resolve the obvious cases at once.
//! 4. `expand`, `own`, `keys` and `merge`: the constraints on one value become alternatives per
//!    JSON type (`alternatives`, `number_range`, `lattice`, `languages`). `combine` and `exclude`
//!    join them by logic, `unevaluated` with the members that they have evaluated.
//! 5. `satisfy`, `evidence` and `emptiness`: whether an alternative has a value, and for items that
//!    depend on each other how many (`counting`, `holds`, `filling`, `matching`, `distinct`).
//!    `normalise`: the alternatives with a value are the [`Normal`] form.

mod alternatives;
mod circles;
mod clauses;
mod combine;
mod conflict;
mod conflict_words;
mod counting;
mod dialect;
mod distinct;
mod document;
mod emptiness;
mod error;
mod evidence;
mod exclude;
mod expand;
mod fidelity;
mod filling;
mod holds;
mod intern;
mod keys;
mod languages;
mod lattice;
mod matching;
mod memory;
mod merge;
pub mod normal;
mod normalise;
mod number_range;
mod one_of;
mod options;
mod own;
mod parser;
mod parts;
mod plain;
mod program;
mod read_arrays;
mod read_logic;
mod read_objects;
mod read_scalars;
mod reader;
mod reference;
mod registry;
mod resources;
mod rules;
mod satisfy;
mod schema;
mod scopes;
mod search;
mod set;
mod shape;
#[cfg(test)]
mod test_conflict;
#[cfg(test)]
mod test_emptiness;
#[cfg(test)]
mod test_exclude;
#[cfg(any(test, feature = "testing"))]
pub mod test_validator;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_items;
#[cfg(test)]
mod tests_logic;
mod unevaluated;
mod uri;
mod values;

pub use error::{LimitExceeded, SchemaError, SchemaErrorKind};
pub use fidelity::{fidelity_report, Fidelity, KeywordFidelity};
pub use normal::{
    ArraySpec, Contains, KeyClass, Normal, NumberSpec, ObjectSpec, Property, SchemaId, StringSpec,
};
pub use options::{LanguageIsEmpty, Limits, ListLanguage, Numbers, Policy, SchemaOptions};
pub use registry::Registry;
pub use set::{SchemaSet, PARTS};
pub use values::ValueId;
