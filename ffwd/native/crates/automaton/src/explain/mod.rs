//! Explanations for people: which continuations are allowed, and why others are not.

pub mod expected;
pub mod obstacle;
