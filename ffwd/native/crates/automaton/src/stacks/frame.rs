//! Frames: the elements of stacks. Each is a piece of what must still follow.

use crate::stacks::ids::{
    ArrayPendingId, ArrayStateId, LayoutId, LexemeId, ObjectGroupId, ObjectPendingId,
    ObjectStateId, QueryId,
};
use ffwd_grammar::symbols::SymbolId;
use ffwd_grammar::NodeId;

/// The kind of the top of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// The end of the text.
    End,
    /// One lexeme; what follows is below.
    Lexeme(LexemeId),
    /// A symbol of a grammar of rules.
    Symbol(SymbolId),
    /// A number of repetitions of a symbol.
    Count(u32),
    /// Any of several stacks.
    Union(u32),
    /// Lexemes side by side, each with a stack after it.
    Row(u32),
    /// Lexemes of the family side by side; the stack below is the one on which they have begun.
    Begun,
    /// A token of a set.
    Tokens(NodeId),
    /// The end of a reported part of a grammar; only on stacks for events, see `rules::beginnings`.
    Mark(NodeId),
    /// The part above has a limit.
    Limit(u32),
    /// How the JSON value above is laid out.
    Layout(LayoutId),
    /// The colon between a key and its value.
    Colon,
    /// A JSON value that answers a query; the verdict goes to the frame below.
    Value(QueryId),
    /// An object of one group, where the alternatives of a value are several.
    Part(ObjectGroupId),
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
    /// The verdict of an item, and its text: later items are compared with it.
    AwaitComparedItem(ArrayPendingId),
}

impl Frame {
    /// Whether the text is before a container's first part, or after one.
    pub fn is_between_parts(self) -> bool {
        matches!(
            self,
            Self::ObjectOpen(_) | Self::ObjectAfter(_) | Self::ArrayOpen(_) | Self::ArrayAfter(_)
        )
    }

    /// Whether it belongs to a grammar of rules and determines what may begin.
    pub fn is_rule(self) -> bool {
        matches!(
            self,
            Self::Symbol(_) | Self::Count(_) | Self::Union(_) | Self::Mark(_) | Self::Limit(_)
        )
    }

    /// Whether the value above is inside a container that has no other frame on the stack.
    pub fn is_container(self) -> bool {
        matches!(self, Self::AwaitMember(_) | Self::AwaitItem(_) | Self::AwaitComparedItem(_))
    }
}

/// A JSON value that is within no other value.
#[derive(Clone, Copy, Debug)]
pub struct RootValue {
    /// The query of the value.
    pub query: QueryId,
    /// The layout, if values have different ones.
    pub layout: Option<LayoutId>,
}
