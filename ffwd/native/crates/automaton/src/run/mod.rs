//! Configurations, and how bytes and tokens lead from one to the next.

pub(crate) mod ages;
pub(crate) mod automaton;
pub(crate) mod completions;
pub(crate) mod escapes;
pub(crate) mod grammar;
pub(crate) mod items;
pub(crate) mod limits;
pub(crate) mod marks;
pub(crate) mod meaning;
pub(crate) mod memory;
pub(crate) mod next_byte;
pub(crate) mod rules;
pub(crate) mod step;
#[cfg(test)]
mod test_blanks;
#[cfg(test)]
mod tests;
pub(crate) mod whole_tokens;
