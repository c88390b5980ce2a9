//! How much a grammar, and each call on one of its texts, may use.

use std::time::Duration;

/// Budgets of a grammar. Passing one is an error that has the field's name. The largest value of a
/// type lifts a limit; fixed bounds of the core, such as how many states have a number, remain.
///
/// `docs/limits.md` says why the defaults are what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Length of the texts that a grammar is read from: schemas and the documents that they may
    /// refer to, grammars, patterns, literals.
    pub source_bytes: usize,
    /// Brackets in brackets of one schema or grammar.
    pub nesting: usize,
    /// Byte expressions of one lexeme, derivatives included.
    pub expression_nodes: usize,
    /// Configurations of the automaton at a time.
    pub states: usize,
    /// Stacks of the automaton at a time.
    pub stacks: usize,
    /// Memory of lazily built objects; exceeding it is no error, but evicts all of them.
    pub memory_bytes: usize,
    /// Memory that one compilation, or one call of a matcher, holds at a time. Counted if the
    /// program's allocator is a `Metered` one.
    pub work_bytes: usize,
    /// Elementary steps of one compilation.
    pub compile_steps: u64,
    /// Elementary steps of one call of a matcher.
    pub call_steps: u64,
    /// Wall-clock time of one compilation.
    pub compile_time: Duration,
    /// Wall-clock time of one call of a matcher.
    pub call_time: Duration,
}

impl Limits {
    /// Only the fixed bounds of the core hold.
    pub const NONE: Self = Self {
        source_bytes: usize::MAX,
        nesting: usize::MAX,
        expression_nodes: usize::MAX,
        states: usize::MAX,
        stacks: usize::MAX,
        memory_bytes: usize::MAX,
        work_bytes: usize::MAX,
        compile_steps: u64::MAX,
        call_steps: u64::MAX,
        compile_time: Duration::MAX,
        call_time: Duration::MAX,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes: 4 << 20,
            nesting: 512,
            expression_nodes: 250_000,
            states: 1_000_000,
            stacks: 700_000,
            memory_bytes: 256 << 20,
            work_bytes: 512 << 20,
            compile_steps: 6_000_000,
            call_steps: 6_000_000,
            compile_time: Duration::from_secs(10),
            call_time: Duration::from_secs(10),
        }
    }
}
