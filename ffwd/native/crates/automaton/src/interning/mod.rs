//! Values that are held once and found again, and how much memory they take.

pub(crate) mod intern;
pub(crate) mod memory;
