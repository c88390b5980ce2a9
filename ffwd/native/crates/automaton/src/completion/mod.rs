//! Shortest texts that end a configuration's text.

pub(crate) mod estimate;
pub(crate) mod forget;
pub(crate) mod frontier;
pub(crate) mod search;
