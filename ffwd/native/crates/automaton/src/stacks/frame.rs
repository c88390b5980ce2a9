//! Stacks: hash-consed lists of frames, each a piece of what must still follow.

use std::sync::OnceLock;

use crate::json::array::{ArrayPendingId, ArrayStateId};
use crate::json::keys::TextId;
use crate::json::layouts::LayoutId;
use crate::json::object::{ObjectPendingId, ObjectStateId};
use crate::json::object_group::ObjectGroupId;
use crate::json::value::QueryId;
use crate::stacks::thread::{Thread, ThreadLexeme};
use ffwd_grammar::symbols::SymbolId;
use ffwd_grammar::NodeId;
use ffwd_regular::expr::Verdict;

/// An interned stack of frames of one automaton.
/// Its place among the stacks, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// Nothing may follow: the text is complete.
    pub(crate) const END: Self = Self(0);
}

/// The kind of the top of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// The end of the text.
    End,
    /// One lexeme; what follows is below.
    Lexeme(u32),
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
    /// The end of a reported part of a grammar; only on stacks for events, see [`crate::run::marks`].
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
    /// Whether a container stands before its first part, or after one.
    pub fn is_between_parts(self) -> bool {
        matches!(
            self,
            Self::ObjectOpen(_) | Self::ObjectAfter(_) | Self::ArrayOpen(_) | Self::ArrayAfter(_)
        )
    }

    /// Whether it belongs to a grammar of rules, and says what may begin.
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

/// How an accepted lexeme leaves a stack: the lexeme, its verdict, and the text of the key or item
/// that ends with it, where that matters.
pub type ExitKey = (ThreadLexeme, Verdict, TextId);

/// The first few exits of a stack: any thread appends to them, and reads them without a lock.
#[derive(Debug, Default)]
pub struct FirstExits(OnceLock<Box<(ExitKey, StackId, FirstExits)>>);

/// How many exits of a stack are kept in its own list; the rest, mostly the keys of large objects,
/// is found by hashing.
const MAX_FIRST_EXITS: usize = 6;

impl FirstExits {
    pub fn get(&self, key: &ExitKey) -> Option<StackId> {
        let mut list = self;
        while let Some(entry) = list.0.get() {
            if entry.0 == *key {
                return Some(entry.1);
            }
            list = &entry.2;
        }
        None
    }

    /// Keeps an exit; `false` where the list is full.
    pub fn insert(&self, key: ExitKey, stack: StackId) -> bool {
        let mut list = self;
        for _ in 0..MAX_FIRST_EXITS {
            let entry = list.0.get_or_init(|| Box::new((key, stack, Self::default())));
            if entry.0 == key {
                return true;
            }
            list = &entry.2;
        }
        false
    }
}

/// A frame on a stack.
#[derive(Debug)]
pub struct Cell {
    pub frame: Frame,
    pub parent: StackId,
    /// How many frames the stack has.
    pub height: u32,
    /// How many containers wait for the value above or inside this frame.
    pub depth: u32,
    /// How the JSON value of this frame is laid out.
    pub layout: LayoutId,
    /// Whether the text above is part of an item that later ones are compared with.
    pub transcribed: bool,
    /// Whether such an item ends with the value of this frame.
    pub ends_compared_item: bool,
    /// The nearest item of the stack that others are compared with, or [`Self::OWN_LEVEL`].
    pub level: StackId,
    /// Whether items that came lie beside the schema somewhere on the stack.
    pub has_history: bool,
    /// The lexemes that may begin here.
    pub starts: OnceLock<Box<[Thread]>>,
    pub exits: FirstExits,
}

impl Cell {
    /// The frame is itself the nearest item.
    pub const OWN_LEVEL: StackId = StackId(u32::MAX);
}
