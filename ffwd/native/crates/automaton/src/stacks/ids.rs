//! Ids of what is interned, each within one automaton.

/// An interned stack of frames of one automaton.
/// Its place among the stacks, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// Nothing may follow: the text is complete.
    pub(crate) const END: Self = Self(0);
}

/// A recorded text, byte by byte, by its place among the texts. A key starts with its opening
/// quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TextId(pub u32);

impl TextId {
    /// No text is recorded.
    pub const NONE: Self = Self(0);
    /// Nothing has been written yet.
    pub const EMPTY: Self = Self(1);
    /// An unknown text: masks are computed for all texts at once.
    pub const ANY: Self = Self(u32::MAX);
}

/// An interned place in the names of an object.
/// Its place among the nodes, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyNodeId(pub u32);

/// A lexeme of one automaton.
/// Its place among the lexemes, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LexemeId(pub u32);

/// How the rest of a value is laid out, among the layouts of one grammar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayoutId(pub u16);

/// An interned question of which schemas a value satisfies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueryId(pub u32);

/// A name of an object's alternatives.
/// Its place in the sorted list of them all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

impl NameId {
    /// What says which name has ended, where a stack is left with a declared name.
    pub fn as_text(self) -> TextId {
        TextId(self.0)
    }

    /// The name of [`Self::as_text`].
    pub(crate) fn of_text(text: TextId) -> Self {
        Self(text.0)
    }
}

/// The alternatives of a value that are objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectGroupId(pub u32);

/// An object between two members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectStateId(pub u32);

/// An object that waits for the verdict of a member's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectPendingId(pub u32);

/// The alternatives of a value that are arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayGroupId(pub u32);

/// An array between two items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayStateId(pub u32);

/// An array that waits for the verdict of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ArrayPendingId(pub u32);
