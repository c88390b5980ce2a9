//! The tokens that may follow canonically, as bits.

use std::convert::Infallible;
use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::pretokenizer::{Boundaries, HypothesisId};
use crate::vocabulary::{Descent, NodeId, TokenId, Vocabulary};

use super::context::{Canonicality, Context, Role, Whole};

/// The tokens that can be read from one place in the pieces, all within one piece.
#[derive(Debug)]
struct Readable {
    /// Tokens that others may follow, or come before, in the same piece.
    parts: Box<[u32]>,
    /// These, and the tokens that occur only as whole pieces: the possible starts of a piece.
    beginnings: Box<[u32]>,
}

fn set(bits: &mut [u32], tokens: &[TokenId]) {
    for token in tokens {
        if let Some(word) = bits.get_mut(token.index() / 32) {
            *word |= 1 << (token.0 % 32);
        }
    }
}

/// The result of restricting a mask to canonical tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restricted {
    /// It holds canonical tokens only.
    Canonical,
    /// No token that the mask had is canonical here: it is empty.
    NothingLeft,
    /// The earlier tokens are not canonical, so the mask is unchanged.
    Lost,
}

/// Masks with at most this many tokens are checked token by token.
const FEW: u32 = 48;

/// How many bytes of masks are cached, of either kind.
const MAX_BYTES: usize = 16 << 20;

/// Restricts masks to canonical tokens, for one vocabulary.
#[derive(Debug)]
pub struct CanonicalMasks {
    canonicality: Arc<Canonicality>,
    vocabulary: Arc<Vocabulary>,
    readable: RwLock<FxHashMap<HypothesisId, Arc<Readable>>>,
    /// By token, those that may not follow it within a piece.
    forbidden: RwLock<FxHashMap<TokenId, Arc<[u32]>>>,
}

impl CanonicalMasks {
    /// Starts with no mask cached. `vocabulary` has the tokens of the tokenizer in `canonicality`.
    pub fn new(canonicality: Arc<Canonicality>, vocabulary: Arc<Vocabulary>) -> Self {
        Self { canonicality, vocabulary, readable: RwLock::default(), forbidden: RwLock::default() }
    }

    /// Removes from a mask the tokens that are not canonical after `context`.
    pub fn restrict(&self, context: &Context, mask: &mut [u32]) -> Restricted {
        if context.is_lost() {
            return Restricted::Lost;
        }
        let ends: SmallVec<[TokenId; 4]> =
            self.vocabulary.eos().iter().copied().filter(|&token| has(mask, token)).collect();
        let mut any = if few(mask) || !context.pending.is_empty() {
            self.one_by_one(context, mask)
        } else {
            self.all(context, mask)
        };
        if !ends.is_empty() && self.canonicality.can_end(context) {
            set(mask, &ends);
            any = true;
        }
        match any {
            true => Restricted::Canonical,
            false => Restricted::NothingLeft,
        }
    }

    /// Checks each token of a mask. Returns whether any is left.
    fn one_by_one(&self, context: &Context, mask: &mut [u32]) -> bool {
        let mut any = false;
        for (at, word) in mask.iter_mut().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let bit = rest & rest.wrapping_neg();
                let token = TokenId(at as u32 * 32 + bit.trailing_zeros());
                if self.canonicality.step(context, token).is_some() {
                    any = true;
                } else {
                    *word &= !bit;
                }
                rest &= !bit;
            }
        }
        any
    }

    /// The same by whole words.
    fn all(&self, context: &Context, mask: &mut [u32]) -> bool {
        let canonicality = &*self.canonicality;
        let Some(boundaries) = canonicality.boundaries() else { return false };
        let mut going_on: SmallVec<[Arc<Readable>; 2]> = SmallVec::new();
        let mut begun: SmallVec<[Arc<Readable>; 2]> = SmallVec::new();
        for hypothesis in &context.hypotheses {
            if context.last.is_none() {
                begun.push(self.readable(boundaries, hypothesis.boundary));
                continue;
            }
            if hypothesis.whole != Whole::Alone {
                going_on.push(self.readable(boundaries, hypothesis.boundary));
            }
            if canonicality.may_close(hypothesis.whole) {
                let closed = boundaries.close(hypothesis.boundary).iter();
                begun.extend(closed.map(|&fresh| self.readable(boundaries, fresh)));
            }
        }
        let nothing = || -> Arc<[u32]> { vec![0; self.vocabulary.mask_words()].into() };
        let forbidden = match context.last {
            Some(last) if !going_on.is_empty() => self.forbidden(last),
            _ => nothing(),
        };
        // One pass where there is one hypothesis, as there nearly always is.
        let (first, second) = (going_on.pop(), begun.pop());
        let nothing = if first.is_none() || second.is_none() { nothing() } else { Arc::from([]) };
        let parts = first.as_ref().map_or(&*nothing, |readable| &readable.parts);
        let beginnings = second.as_ref().map_or(&*nothing, |readable| &readable.beginnings);
        let known = parts.iter().zip(beginnings).zip(forbidden.iter()).enumerate();
        let mut any = 0;
        let words = self.vocabulary.mask_words().min(mask.len());
        let (mask, rest) = mask.split_at_mut(words);
        rest.fill(0);
        if going_on.is_empty() && begun.is_empty() {
            for (word, (_, ((part, beginning), forbidden))) in mask.iter_mut().zip(known) {
                *word &= part & !forbidden | beginning;
                any |= *word;
            }
        } else {
            for (word, (at, ((part, beginning), forbidden))) in mask.iter_mut().zip(known) {
                let part = going_on.iter().fold(*part, |part, other| part | other.parts[at]);
                let begun =
                    begun.iter().fold(*beginning, |bits, other| bits | other.beginnings[at]);
                *word &= part & !forbidden | begun;
                any |= *word;
            }
        }
        any != 0
    }

    /// The tokens that may not follow one within a piece, as bits.
    fn forbidden(&self, last: TokenId) -> Arc<[u32]> {
        if let Some(known) = self.forbidden.read().get(&last) {
            return known.clone();
        }
        let mut bits = vec![0; self.vocabulary.mask_words()];
        set(&mut bits, &self.canonicality.table().forbidden_after(last));
        let bits: Arc<[u32]> = bits.into();
        let mut kept = self.forbidden.write();
        if (kept.len() + 1) * bits.len() * 4 > MAX_BYTES {
            kept.clear();
        }
        kept.insert(last, bits.clone());
        bits
    }

    fn readable(&self, boundaries: &Boundaries, from: HypothesisId) -> Arc<Readable> {
        if let Some(known) = self.readable.read().get(&from) {
            return known.clone();
        }
        let readable = Arc::new(self.read_all(boundaries, from));
        let mut kept = self.readable.write();
        if (kept.len() + 1) * readable.parts.len() * 8 > MAX_BYTES {
            kept.clear();
        }
        kept.insert(from, readable.clone());
        readable
    }

    /// Reads all tokens from one place.
    fn read_all(&self, boundaries: &Boundaries, from: HypothesisId) -> Readable {
        let trie = self.vocabulary.trie();
        let mut parts: Vec<TokenId> = Vec::new();
        let mut alone: Vec<TokenId> = Vec::new();
        let Ok(()) = trie.walk(NodeId::ROOT, from, |&place, node, _| {
            let Some(next) = boundaries.step(place, trie.byte(node)) else {
                return Ok::<_, Infallible>(Descent::Skip);
            };
            for &token in trie.tokens_at(node) {
                match self.canonicality.role(token) {
                    Role::Never => {}
                    Role::Merged => parts.push(token),
                    Role::Byte if self.canonicality.begins_character(token) => parts.push(token),
                    Role::Byte => {}
                    Role::WholePiece => {
                        if boundaries.can_end(next) || !boundaries.close(next).is_empty() {
                            alone.push(token);
                        }
                    }
                }
            }
            Ok(Descent::Below(next))
        });
        let mut bits = vec![0; self.vocabulary.mask_words()];
        set(&mut bits, &parts);
        let mut beginnings = bits.clone();
        set(&mut beginnings, &alone);
        Readable { parts: bits.into(), beginnings: beginnings.into() }
    }

    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        let words = 2 * self.readable.read().len() + self.forbidden.read().len();
        words * self.vocabulary.mask_words() * 4
    }
}

fn has(mask: &[u32], token: TokenId) -> bool {
    mask.get(token.index() / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1)
}

fn few(mask: &[u32]) -> bool {
    let mut count = 0;
    mask.iter().all(|word| {
        count += word.count_ones();
        count <= FEW
    })
}
