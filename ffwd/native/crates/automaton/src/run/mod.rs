//! Configurations, and how bytes and tokens lead from one to the next.

pub(crate) mod automaton;
pub(crate) mod flow;
pub(crate) mod grammar;
pub mod marks;
pub(crate) mod next_byte;
#[cfg(test)]
mod tests;
pub(crate) mod whole_tokens;
