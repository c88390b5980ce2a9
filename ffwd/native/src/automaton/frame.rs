//! Stacks: hash-consed lists of frames, each a piece of what must still follow.

use std::sync::OnceLock;

use super::array::{ArrayPendingId, ArrayStateId};
use super::config::Thread;
use super::object::{ObjectPendingId, ObjectStateId};
use super::value::QueryId;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// Nothing may follow: the text is complete.
    pub const END: Self = Self(0);
}

/// What the top of a stack waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// The end of the text.
    End,
    /// One lexeme; what follows is below.
    Lexeme(u32),
    /// A JSON value that answers a query; the verdict goes to the frame below.
    Value(QueryId),
    /// After `{`: a key or `}`.
    ObjectOpen(ObjectStateId),
    /// After a comma: a key.
    ObjectKey(ObjectStateId),
    /// After a member: a comma or `}`.
    ObjectAfter(ObjectStateId),
    /// The verdict of a member's value.
    AwaitMember(ObjectPendingId),
    /// After `[`: an item or `]`.
    ArrayOpen(ArrayStateId),
    /// After an item: a comma or `]`.
    ArrayAfter(ArrayStateId),
    /// The verdict of an item.
    AwaitItem(ArrayPendingId),
}

/// A frame on a stack.
#[derive(Debug)]
pub struct Cell {
    pub frame: Frame,
    pub parent: StackId,
    /// The lexemes that may begin here.
    pub starts: OnceLock<Box<[Thread]>>,
}
