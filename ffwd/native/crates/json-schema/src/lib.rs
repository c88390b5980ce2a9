//! JSON Schema, from a document to a normal form that says per JSON type what is allowed.
//!
//! The idea: a schema is a conjunction of subschemas, but writing a value needs its alternatives.
//! So an interned [`SchemaId`] stands for a set of demands, and [`SchemaSet::normal`] converts it
//! to a [`Normal`]: for each type, a list of alternatives of which one must hold. These have no
//! references, `allOf`, `oneOf` or `not`, and each is satisfiable.
//!
//! Start with these:
//!
//! * [`SchemaSet`]: a document that was read, checked and resolved; its methods answer by id
//! * [`Normal`], [`ObjectSpec`], [`ArraySpec`]: the alternatives; members and items have ids again
//! * [`SchemaOptions`]: limits, and [`Parsing`]: the [`Policy`] for unsupported keywords, and a
//!   [`Registry`] of the documents that references may lead to; nothing is fetched
//! * [`SchemaError`]: what is wrong with a schema, and the JSON pointer where
//! * [`fidelity_report`]: the treatment of each keyword
//!
//! This crate does not know automata, bytes, tokens or layouts. Its caller answers whether a
//! pattern has any text, in [`SchemaOptions::new`].
//!
//! ```
//! use ffwd_json_schema::{SchemaErrorKind, SchemaOptions, SchemaSet};
//!
//! // These schemas have no pattern to ask about.
//! let options = || SchemaOptions::new(|_| Ok((false, 0)));
//! let text = r#"{"type": "object", "required": ["id"], "allOf": [
//!     {"properties": {"id": {"type": ["integer", "string"]}}},
//!     {"properties": {"id": {"minimum": 1, "not": {"type": "string"}}}}]}"#;
//! let set = SchemaSet::parse(text, options())?;
//! let object = &set.normal(set.root())?.objects[0];
//! let id = &object.properties[0];
//! assert_eq!((&*id.name, id.required), ("id", true));
//! let id = set.normal(id.schema)?;
//! assert_eq!((id.numbers.len(), id.strings.len()), (1, 0));
//!
//! let text = r#"{"type": "array", "minItems": 2, "maxItems": 1}"#;
//! let error = SchemaSet::parse(text, options()).unwrap_err();
//! assert_eq!((error.kind, &*error.pointer), (SchemaErrorKind::Unsatisfiable, ""));
//! # Ok::<(), ffwd_json_schema::SchemaError>(())
//! ```
//!
//! # From text to normal form, a module a step
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
//!    JSON type (`alternatives`, `number_range`, `lattice`, `languages`), and `numbers` are written. `combine` and `exclude`
//!    join them by logic, `unevaluated` with the members that they have evaluated.
//! 5. `satisfy`, `evidence` and `emptiness`: whether an alternative has a value. For items that
//!    depend on each other, also how many (`counting`, `holds`, `filling`, `matching`, `distinct`).
//!    `normalise`: the alternatives with a value are the [`Normal`] form.
//! 6. `conflict`, `conflict_names` and `conflict_words`: the keywords that are the reason if no
//!    value satisfies the schema.

#![deny(missing_docs)]

mod alternatives;
mod circles;
mod clauses;
mod combine;
mod conflict;
mod conflict_names;
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
mod extras;
mod fidelity;
mod filling;
pub mod formats;
mod holds;
mod intern;
mod keys;
mod languages;
mod lattice;
mod matching;
mod memory;
mod merge;
mod normal;
mod normalise;
mod number_range;
pub mod numbers;
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
#[cfg(test)]
mod test_items;
#[cfg(test)]
mod test_logic;
#[cfg(any(test, feature = "testing"))]
pub mod test_validator;
#[cfg(test)]
mod tests;
mod unevaluated;
mod uri;
mod values;

pub use error::{Result, SchemaError, SchemaErrorKind};
pub use fidelity::{fidelity_report, Fidelity, KeywordFidelity};
pub use normal::{
    ArraySpec, Contains, KeyClass, Normal, NumberSpec, ObjectSpec, Property, SchemaId, StringSpec,
};
pub use options::*;
pub use registry::Registry;
pub use set::SchemaSet;
pub use values::ValueId;
