//! The meaning of the frames of rules.

use smallvec::SmallVec;

use crate::interning::memory::Held;
use crate::stacks::ids::StackId;
use ffwd_grammar::symbols::SymbolId;

/// A number of repetitions of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Count {
    pub(crate) inner: SymbolId,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

impl Held for Count {}

/// Several stacks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Union {
    /// Sorted.
    pub(crate) members: SmallVec<[StackId; 4]>,
    /// Whether members with the same top are kept separate.
    pub(crate) is_wide: bool,
}

impl Held for Union {
    fn held_bytes(&self) -> usize {
        if self.members.spilled() {
            self.members.capacity() * 4
        } else {
            0
        }
    }
}

/// For each language of a lexeme the stack after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row(pub(crate) SmallVec<[StackId; 4]>);

impl Held for Row {
    fn held_bytes(&self) -> usize {
        if self.0.spilled() {
            self.0.capacity() * 4
        } else {
            0
        }
    }
}
