//! Contexts by number: what many sequences step through is worked out once.

use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;

use super::context::{Canonicality, Context, Hypotheses, Pending};
use crate::vocabulary::TokenId;

/// A [`Context`]: the last token, and a number for all the rest.
///
/// Many sequences have the same rest, so there are few numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContextId {
    rest: u32,
    last: u32,
}

/// There is no last token.
const NONE: u32 = u32::MAX;

/// How many rests get a number; with more, sequences do without.
const MAX_RESTS: usize = 1 << 16;

const SHARD_BITS: u32 = 6;
const SLOT_BITS: u32 = 10;

#[derive(Default)]
struct Rests {
    ids: FxHashMap<(Hypotheses, Pending), u32>,
    all: Vec<(Hypotheses, Pending)>,
}

/// A step that was taken: from where, by which token, and to where.
type Taken = Option<(ContextId, TokenId, ContextId)>;

/// The contexts of all sequences of a tokenizer, and the steps between them.
///
/// The memory is bounded: a slot keeps its last step.
pub struct KnownContexts {
    rests: RwLock<Rests>,
    steps: Box<[Mutex<Box<[Taken]>>]>,
}

impl std::fmt::Debug for KnownContexts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rests = self.rests.read().all.len();
        formatter.debug_struct("KnownContexts").field("rests", &rests).finish_non_exhaustive()
    }
}

impl Default for KnownContexts {
    fn default() -> Self {
        let shard = |_| Mutex::new(Box::default());
        Self { rests: RwLock::default(), steps: (0..1 << SHARD_BITS).map(shard).collect() }
    }
}

impl KnownContexts {
    /// Returns the number of a context; `None` where there are too many.
    pub fn id(&self, context: &Context) -> Option<ContextId> {
        let last = context.last.map_or(NONE, |token| token.0);
        let key = (context.hypotheses.clone(), context.pending);
        if let Some(&rest) = self.rests.read().ids.get(&key) {
            return Some(ContextId { rest, last });
        }
        let mut rests = self.rests.write();
        if let Some(&rest) = rests.ids.get(&key) {
            return Some(ContextId { rest, last });
        }
        if rests.all.len() >= MAX_RESTS {
            return None;
        }
        let rest = rests.all.len() as u32;
        rests.all.push(key.clone());
        rests.ids.insert(key, rest);
        Some(ContextId { rest, last })
    }

    /// Returns the context of a number.
    pub fn context(&self, id: ContextId) -> Option<Context> {
        let (hypotheses, pending) = self.rests.read().all.get(id.rest as usize)?.clone();
        let last = (id.last != NONE).then_some(TokenId(id.last));
        Some(Context { last, hypotheses, pending })
    }

    /// Returns the context after one more token, whether or not the sequence is canonical.
    pub fn after(
        &self,
        canonicality: &Canonicality,
        from: ContextId,
        token: TokenId,
    ) -> Option<ContextId> {
        let key = u64::from(from.last) << 32 | u64::from(token.0);
        let key = (key ^ u64::from(from.rest).rotate_left(17)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let shard = &self.steps[(key >> (64 - SHARD_BITS)) as usize];
        let slot = (key >> (64 - SHARD_BITS - SLOT_BITS)) as usize % (1 << SLOT_BITS);
        if let Some(Some((known, by, to))) = shard.lock().get(slot) {
            if (*known, *by) == (from, token) {
                return Some(*to);
            }
        }
        let to = self.id(&canonicality.follow(&self.context(from)?, token).0)?;
        let mut steps = shard.lock();
        if steps.is_empty() {
            *steps = vec![None; 1 << SLOT_BITS].into();
        }
        steps[slot] = Some((from, token, to));
        Some(to)
    }
}
