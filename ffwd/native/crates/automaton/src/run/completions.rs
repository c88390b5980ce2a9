//! The caches of completions, which `completion` fills.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::interning::memory::Bytes;
use crate::stacks::ids::{LexemeId, StackId, TextId};
use ffwd_json_schema::SchemaId;
use ffwd_regular::expr::{LexState, Verdict};

/// A lexeme that has ended. The text after it must not continue it.
pub(crate) type Ended = Option<(LexemeId, LexState)>;

/// The state of a text between two lexemes: the stack, the current item if later ones are compared
/// with it, and the lexeme that has just ended.
pub(crate) type Between = (StackId, TextId, Ended);

/// A text, and what follows it.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub text: Arc<[u8]>,
    /// Special tokens, with their positions in the text.
    pub tokens: SmallVec<[(usize, u32); 1]>,
    pub to: Between,
    /// The parts of it that must differ from earlier ones.
    pub distinct: Distinct,
}

impl Edge {
    pub(crate) fn of(text: Arc<[u8]>, to: Between) -> Self {
        Self { text, tokens: SmallVec::new(), to, distinct: None }
    }

    pub(crate) fn length(&self) -> u32 {
        (self.text.len() + self.tokens.len()) as u32
    }
}

/// The parts of a text that must differ from their neighbours: keys without a name, with their
/// quotes, and items of an array. Most texts have none.
pub(crate) type Distinct = Option<Arc<[Arc<[u8]>]>>;

/// The continuation of a text that is between two lexemes.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Up to a shorter stack. `None` if none was found.
    pub(crate) edge: Option<Edge>,
    /// The cached length of the rest.
    pub(crate) length: Option<Option<u32>>,
}

/// The cached completions.
#[derive(Debug, Default)]
pub(crate) struct Completions {
    pub(crate) known: Mutex<FxHashMap<Between, Known>>,
    pub estimates: Mutex<Estimates>,
    /// The estimates of the symbols of rules.
    pub symbols: OnceLock<Box<[u32]>>,
    pub held: Bytes,
}

#[derive(Debug, Default)]
pub(crate) struct Estimates {
    pub(crate) schemas: FxHashMap<SchemaId, u32>,
    pub(crate) stacks: FxHashMap<StackId, u32>,
    /// After a value that satisfies one of some schemas.
    pub(crate) after: FxHashMap<(StackId, Verdict), u32>,
}
