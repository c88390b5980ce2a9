//! Limits of tokens of parts, as they lie on stacks.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::interning::intern::Interner;
use crate::interning::memory::{Bytes, Held};
use crate::stacks::ids::StackId;
use crate::stacks::thread::Threads;
use ffwd_grammar::NodeId;

/// The part has not begun.
pub(crate) const UNOPENED: u32 = u32::MAX;
/// The part has begun with the current token.
pub(crate) const FRESH: u32 = u32::MAX - 1;

/// A part with a limit, as a frame has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Limit {
    pub(crate) node: NodeId,
    pub(crate) age: u32,
}

impl Held for Limit {}

/// The limits of a stack.
#[derive(Clone, Debug)]
pub(crate) struct OnStack {
    /// The limits on the stack, or on one of those that it unites; sorted.
    pub(crate) limits: Arc<[u32]>,
    /// The tightest limit of the parts that contain every continuation.
    pub(crate) tightest: u32,
}

/// The parts of the automaton that only grammars with limits have.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) frames: Interner<Limit>,
    pub(crate) on_stacks: Mutex<FxHashMap<StackId, OnStack>>,
    /// The stacks after their unopened parts have begun.
    pub(crate) opened: Mutex<FxHashMap<StackId, StackId>>,
    pub(crate) nothing: Arc<[u32]>,
    pub(crate) bounds: OnceLock<Bounds>,
    /// By state: see `Limited::keep_steady`.
    pub(crate) steady: Mutex<FxHashMap<u32, Option<u32>>>,
    pub(crate) held: Bytes,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frames: Interner::new("open_part_limits", 1 << 20),
            on_stacks: Mutex::default(),
            opened: Mutex::default(),
            nothing: Arc::from([]),
            bounds: OnceLock::new(),
            steady: Mutex::default(),
            held: Bytes::default(),
        }
    }
}

impl Limits {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.frames.memory_bytes() + self.held.get()
    }
}

/// A part that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpenPart {
    /// The limit, a node of the grammar.
    pub node: NodeId,
    /// How many tokens the part may have.
    pub max_tokens: u32,
    /// The rank of its first token among those of the open parts.
    pub age: u32,
}

/// For each age the position of the token with which these parts began.
pub type Ages = SmallVec<[u32; 2]>;

impl OpenPart {
    /// How many more tokens it is allowed before the token at a position.
    pub fn left(&self, ages: &Ages, position: usize) -> usize {
        let begun = ages.get(self.age as usize).map_or(position, |&begun| begun as usize);
        (begun + self.max_tokens as usize).saturating_sub(position)
    }
}

impl Aged {
    /// The ages of those parts that remain, of the former ones.
    pub fn remaining(&self, ages: &Ages) -> Ages {
        self.kept.iter().filter_map(|&age| ages.get(age as usize).copied()).collect()
    }
}

/// A configuration after a token.
#[derive(Clone, Debug)]
pub struct Aged {
    /// The threads, with the ages of the parts that they are in.
    pub threads: Threads,
    /// The remaining ages, in the order of the new ones.
    pub kept: SmallVec<[u32; 2]>,
    /// Whether parts that are open began with the token; theirs is the last age.
    pub fresh: bool,
}

/// A change of a limit on a stack.
pub(crate) enum Change {
    Keep,
    Age(u32),
    /// No text goes on through it.
    Drop,
}

/// How stacks become others.
pub(crate) type Rewritten = FxHashMap<StackId, Option<StackId>>;

/// Not known, or not bounded.
pub(crate) const UNKNOWN_BOUND: u32 = u32::MAX / 4;

/// For each part with a limit, the most bytes that end it after its first byte.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    pub(crate) parts: FxHashMap<NodeId, u32>,
    /// Whether every part is ended within its limit, whatever its first token is.
    pub(crate) all_are_roomy: bool,
}

impl Bounds {
    /// The most bytes that end a part that has begun; `None` if that is unknown.
    pub fn bytes_to_end(&self, part: NodeId) -> Option<u32> {
        self.parts.get(&part).copied().filter(|&bytes| bytes < UNKNOWN_BOUND)
    }
}
