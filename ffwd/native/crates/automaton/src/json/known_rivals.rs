//! Cached results about earlier items that are stored beside the schema.

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::json::rival_place::{Left, RivalPlace};
use crate::json::used_keys::UsedId;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LexemeId, StackId};
use ffwd_regular::expr::texts::TextCounter;
use ffwd_regular::expr::LexState;

/// The known results for frames, and for scalars with sets of items.
#[derive(Debug, Default)]
pub(crate) struct KnownRivals {
    /// For each frame, `None` if it allows infinitely many values, or the depth to which none were
    /// found.
    pub(crate) endless: Mutex<FxHashMap<Frame, Option<usize>>>,
    pub(crate) counter: Mutex<TextCounter>,
    pub(crate) exchanged: Mutex<FxHashMap<(StackId, UsedId), StackId>>,
    /// Whether numbers can go on in many ways, by lexeme and state.
    pub(crate) many: Mutex<FxHashMap<(LexemeId, LexState), bool>>,
    /// The possible values of scalars, by their places and the states of their lexemes.
    pub(crate) left: Mutex<FxHashMap<(RivalPlace, LexemeId, LexState), Left>>,
    /// The number of continuations of an item after a member, by its lexeme and its stack without
    /// the earlier items.
    pub(crate) rooms: Mutex<FxHashMap<(StackId, LexemeId), u32>>,
    /// Whether an item at a height can only be closed after a member.
    pub(crate) closings: Mutex<FxHashMap<(StackId, LexemeId, u32), bool>>,
}
