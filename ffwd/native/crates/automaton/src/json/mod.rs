//! JSON values: objects, arrays, keys, and every alternative of a schema at once.
//!
//! States of objects and arrays, queries and layouts are data (`object_state`, `array_state`, `query`,
//! `layouts`), interned in one table (`tables::Json`). The other files have its methods, each for one
//! part of values. [`compared::Compared`] is the view of items that must differ from earlier ones.

pub(crate) mod agreement;
pub(crate) mod array;
pub(crate) mod array_state;
pub(crate) mod arrays;
pub(crate) mod blanks;
pub(crate) mod cases;
pub(crate) mod compared;
pub(crate) mod components;
pub(crate) mod endless;
pub(crate) mod exclusion;
pub(crate) mod exclusion_set;
pub(crate) mod flow;
pub(crate) mod history;
pub(crate) mod items;
pub(crate) mod key_texts;
pub mod keys;
pub(crate) mod known_rivals;
pub(crate) mod layouts;
pub(crate) mod lengths;
pub(crate) mod lengths_left;
pub(crate) mod members;
pub(crate) mod monitor;
pub(crate) mod name_set;
pub(crate) mod needs;
pub(crate) mod next_bytes;
pub(crate) mod object;
pub(crate) mod object_builder;
pub(crate) mod object_group;
pub(crate) mod object_state;
pub(crate) mod other;
pub(crate) mod pointer;
pub mod punctuation;
pub(crate) mod query;
pub(crate) mod relaid;
pub(crate) mod rival_place;
pub(crate) mod rivals;
pub(crate) mod room;
pub(crate) mod spare;
pub(crate) mod step_key;
pub(crate) mod tables;
#[cfg(test)]
mod test_items;
#[cfg(test)]
mod tests;
pub(crate) mod used_keys;
pub(crate) mod value;
