//! Grammars of rules: symbols, unions of stacks, lexemes side by side, limits.

pub(crate) mod beginnings;
pub(crate) mod begun;
pub(crate) mod dead_ends;
pub(crate) mod limit_bounds;
pub(crate) mod limits;
pub(crate) mod rows;
pub(crate) mod starts;
pub(crate) mod swallowed;
pub(crate) mod unions;

pub use starts::{Leaf, Program};
