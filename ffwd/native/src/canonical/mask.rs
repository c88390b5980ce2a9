//! Which tokens may follow canonically, as bits.

use std::sync::Arc;

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::pretokenizer::{Boundaries, HypothesisId};
use crate::vocabulary::{NodeId, TokenId, Vocabulary};

use super::context::{Canonicality, Context, Role, Whole};

/// The tokens that can be read from one place in the pieces, all within one piece.
#[derive(Debug)]
struct Readable {
    /// Tokens that others may follow, or come before, in the same piece.
    parts: Tokens,
    /// Tokens that are pieces by themselves only.
    alone: Box<[TokenId]>,
}

#[derive(Debug)]
enum Tokens {
    Few(Box<[TokenId]>),
    Many(Box<[u32]>),
}

impl Tokens {
    fn of(tokens: Vec<TokenId>, words: usize) -> Self {
        // Setting a bit costs about as much as copying four words.
        if tokens.len() < words / 4 {
            return Self::Few(tokens.into());
        }
        let mut bits = vec![0u32; words];
        set(&mut bits, &tokens);
        Self::Many(bits.into())
    }

    fn add_to(&self, bits: &mut [u32]) {
        match self {
            Self::Few(tokens) => set(bits, tokens),
            Self::Many(own) => bits.iter_mut().zip(own.iter()).for_each(|(a, b)| *a |= b),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Few(tokens) => tokens.len() * 4,
            Self::Many(bits) => bits.len() * 4,
        }
    }
}

fn set(bits: &mut [u32], tokens: &[TokenId]) {
    for token in tokens {
        if let Some(word) = bits.get_mut(token.index() / 32) {
            *word |= 1 << (token.0 % 32);
        }
    }
}

fn clear(bits: &mut [u32], tokens: &[TokenId]) {
    for token in tokens {
        if let Some(word) = bits.get_mut(token.index() / 32) {
            *word &= !(1 << (token.0 % 32));
        }
    }
}

/// What became of a mask that was to be restricted to canonical tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restricted {
    /// It holds canonical tokens only.
    Canonical,
    /// No token that the mask has is canonical here: it is as it was.
    NothingLeft,
    /// What came before is not canonical, so that nothing is known: it is as it was.
    Lost,
}

/// Masks with this many tokens or fewer are looked at token by token.
const FEW: u32 = 48;

/// How many bytes of masks are kept.
const MAX_BYTES: usize = 8 << 20;

/// Restricts masks to canonical tokens, for one vocabulary.
#[derive(Debug)]
pub struct CanonicalMasks {
    canonicality: Arc<Canonicality>,
    vocabulary: Arc<Vocabulary>,
    readable: RwLock<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_place: FxHashMap<HypothesisId, Arc<Readable>>,
    bytes: usize,
}

impl CanonicalMasks {
    pub fn new(canonicality: Arc<Canonicality>, vocabulary: Arc<Vocabulary>) -> Self {
        Self { canonicality, vocabulary, readable: RwLock::default() }
    }

    /// Takes out of a mask the tokens that are not canonical after `context`, unless none is left.
    pub fn restrict(&self, context: &Context, mask: &mut [u32]) -> Restricted {
        if context.is_lost() {
            return Restricted::Lost;
        }
        let ends: SmallVec<[TokenId; 4]> =
            self.vocabulary.eos().iter().copied().filter(|&token| has(mask, token)).collect();
        let left = if few(mask) { self.one_by_one(context, mask) } else { self.all(context, mask) };
        let may_end = !ends.is_empty() && self.canonicality.can_end(context);
        let Some(mut left) = left else {
            if !may_end {
                return Restricted::NothingLeft;
            }
            mask.fill(0);
            set(mask, &ends);
            return Restricted::Canonical;
        };
        if may_end {
            set(&mut left, &ends);
        }
        let words = left.len().min(mask.len());
        mask[..words].copy_from_slice(&left[..words]);
        mask[words..].fill(0);
        Restricted::Canonical
    }

    /// The tokens of a small mask that are canonical; `None` if there is none.
    fn one_by_one(&self, context: &Context, mask: &[u32]) -> Option<Vec<u32>> {
        let mut left = vec![0u32; mask.len()];
        let mut any = false;
        for (at, &word) in mask.iter().enumerate() {
            let mut rest = word;
            while rest != 0 {
                let token = TokenId(at as u32 * 32 + rest.trailing_zeros());
                if self.canonicality.step(context, token).is_some() {
                    left[at] |= rest & rest.wrapping_neg();
                    any = true;
                }
                rest &= rest - 1;
            }
        }
        any.then_some(left)
    }

    fn all(&self, context: &Context, mask: &[u32]) -> Option<Vec<u32>> {
        let mut left = self.canonical(context)?;
        left.iter_mut().zip(mask).for_each(|(bits, mask)| *bits &= mask);
        left.iter().any(|&word| word != 0).then_some(left)
    }

    /// All tokens that may follow, as bits.
    fn canonical(&self, context: &Context) -> Option<Vec<u32>> {
        let canonicality = &*self.canonicality;
        let boundaries = canonicality.boundaries()?;
        let mut bits = vec![0u32; self.vocabulary.mask_words()];
        if !context.pending.is_empty() {
            let follows = |&token: &TokenId| canonicality.step(context, token).is_some();
            let tokens: Vec<TokenId> = self.byte_tokens().filter(follows).collect();
            set(&mut bits, &tokens);
            return Some(bits);
        }
        let goes_on = |whole: Whole| context.last.is_some() && whole != Whole::Alone;
        let mut forbidden = None;
        for hypothesis in &context.hypotheses {
            if goes_on(hypothesis.whole) {
                self.readable(boundaries, hypothesis.boundary).parts.add_to(&mut bits);
                forbidden = context.last;
            }
        }
        if let Some(last) = forbidden {
            clear(&mut bits, &canonicality.table().forbidden_after(last));
        }
        for hypothesis in &context.hypotheses {
            let own = [hypothesis.boundary];
            let begun: &[HypothesisId] = match context.last {
                None => &own,
                Some(_) if canonicality.may_close(hypothesis.whole) => {
                    boundaries.close(hypothesis.boundary)
                }
                Some(_) => &[],
            };
            for &fresh in begun {
                let readable = self.readable(boundaries, fresh);
                readable.parts.add_to(&mut bits);
                set(&mut bits, &readable.alone);
            }
        }
        Some(bits)
    }

    fn byte_tokens(&self) -> impl Iterator<Item = TokenId> + '_ {
        let tokens = (0..self.canonicality.width() as u32).map(TokenId);
        tokens.filter(|&token| self.canonicality.role(token) == Role::Byte)
    }

    fn readable(&self, boundaries: &Boundaries, from: HypothesisId) -> Arc<Readable> {
        if let Some(known) = self.readable.read().by_place.get(&from) {
            return known.clone();
        }
        let readable = Arc::new(self.read_all(boundaries, from));
        let bytes = readable.parts.memory_bytes() + readable.alone.len() * 4;
        let mut kept = self.readable.write();
        if kept.bytes + bytes > MAX_BYTES {
            *kept = Kept::default();
        }
        kept.bytes += bytes;
        kept.by_place.insert(from, readable.clone());
        readable
    }

    /// Reads all tokens from one place.
    fn read_all(&self, boundaries: &Boundaries, from: HypothesisId) -> Readable {
        let trie = self.vocabulary.trie();
        let end = trie.after(NodeId::ROOT);
        let mut parts: Vec<TokenId> = Vec::new();
        let mut alone: Vec<TokenId> = Vec::new();
        let mut path: Vec<(NodeId, HypothesisId)> = vec![(end, from)];
        let mut node = NodeId(1);
        while node < end {
            while path.len() > 1 && path.last().is_some_and(|(end, _)| node >= *end) {
                path.pop();
            }
            let Some(&(_, place)) = path.last() else { break };
            let Some(next) = boundaries.step(place, trie.byte(node)) else {
                node = trie.after(node);
                continue;
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
            path.push((trie.after(node), next));
            node = NodeId(node.0 + 1);
        }
        Readable { parts: Tokens::of(parts, self.vocabulary.mask_words()), alone: alone.into() }
    }

    pub fn memory_bytes(&self) -> usize {
        self.readable.read().bytes
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
