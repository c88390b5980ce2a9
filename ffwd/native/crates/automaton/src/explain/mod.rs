//! For people: what may come next, and why something may not.

pub mod expected;
pub mod obstacle;
