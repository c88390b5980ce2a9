//! JSON Schema: a document is parsed, its references are resolved, and each subschema is brought,
//! lazily, to a normal form per JSON type. Nothing here knows automata or tokens.

pub mod normal;

pub use normal::{ArraySpec, Normal, NumberSpec, ObjectSpec, Property, SchemaId, StringSpec};
