//! Grammars of rules: symbols, unions of stacks, lexemes side by side, limits.
//!
//! The meaning of frames is data (`parts`, `families`, `limit_tables`), interned in one table
//! (`tables::Rules`). The other files have its methods.

pub(crate) mod beginnings;
pub(crate) mod begun;
pub(crate) mod dead_ends;
pub(crate) mod families;
pub(crate) mod firsts;
pub(crate) mod leaf;
pub(crate) mod limit_bounds;
pub(crate) mod limit_tables;
pub(crate) mod limits;
pub(crate) mod mark;
pub(crate) mod parts;
pub(crate) mod program;
pub(crate) mod rows;
pub(crate) mod shapes;
pub(crate) mod starts;
pub(crate) mod successors;
pub(crate) mod swallowed;
pub(crate) mod tables;
pub(crate) mod unions;

#[cfg(test)]
mod test_swallowed;

pub use leaf::Leaf;
pub use program::Program;
