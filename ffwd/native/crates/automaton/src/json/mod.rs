//! JSON values: objects, arrays, keys, and every alternative of a schema at once.

pub(crate) mod array;
pub(crate) mod cases;
pub(crate) mod endless;
pub(crate) mod exclusion;
pub(crate) mod exclusion_set;
pub(crate) mod history;
pub(crate) mod items;
pub(crate) mod key_texts;
pub mod keys;
pub(crate) mod layouts;
pub(crate) mod monitor;
pub(crate) mod name_set;
pub(crate) mod object;
pub(crate) mod object_group;
pub(crate) mod pointer;
pub mod punctuation;
pub(crate) mod rival_place;
pub(crate) mod rivals;
pub(crate) mod used_keys;
pub(crate) mod value;
