//! The tokens that may follow canonically, as bits.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once, OnceLock};

use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::pretokenizer::{Boundaries, HypothesisId};
use crate::vocabulary::{Descent, NodeId, TokenId, Vocabulary};

use super::apart::MAX_APART;
use super::context::{at_a_piece, Canonicality, Context, Hypothesis, Role, Way, Whole};

/// The tokens that can be read from one place in the pieces, all within one piece.
#[derive(Debug)]
pub struct Readable {
    /// Tokens that others may follow, or come before, in the same piece.
    parts: Box<[u32]>,
    /// These, and the tokens that occur only as whole pieces: the possible starts of a piece.
    beginnings: Box<[u32]>,
    /// The latter by where the piece after them begins.
    groups: Box<[(HypothesisId, Box<[u32]>)]>,
    /// By token, one more than its group, or 0.
    group_of: Box<[u8]>,
    /// Those with which no piece ends, as within a character, and where they lead.
    unclosed: Box<[(TokenId, HypothesisId)]>,
    unclosed_bits: Box<[u32]>,
    closings: OnceLock<Closings>,
    /// Those after which a piece ends only with the text, and where they lead.
    endless: Box<[(TokenId, HypothesisId)]>,
    /// Of them those after which any text may go on with a character of one byte, as bits, for each
    /// of [`Canonicality::apart_first`].
    apart: OnceLock<Box<[Box<[u32]>]>>,
    /// [`CanonicalMasks::unclosable`] where a piece begins.
    unclosable: OnceLock<Arc<[u32]>>,
}

/// How a piece may end after a token with which it does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Closing {
    /// After more tokens.
    With {
        /// These.
        text: Box<[u8]>,
        /// The context of the piece that may begin after them.
        next: Context,
    },
    /// It cannot: no token may follow.
    Never,
    /// No short tokens end it.
    Unknown,
}

/// How pieces may end after tokens with which they do not.
#[derive(Debug)]
pub struct Closings {
    all: Box<[Closing]>,
    /// The tokens, sorted, each with its place among these.
    of: Box<[(TokenId, u32)]>,
}

impl Closings {
    /// All of them.
    pub fn all(&self) -> &[Closing] {
        &self.all
    }

    /// The place of that of a token.
    pub fn of(&self, token: TokenId) -> Option<usize> {
        let at = self.of.binary_search_by_key(&token, |&(token, _)| token).ok()?;
        Some(self.of[at].1 as usize)
    }
}

impl Readable {
    /// Groups of tokens, as bits: each with the place where a piece begins after any of them.
    pub fn groups(&self) -> &[(HypothesisId, Box<[u32]>)] {
        &self.groups
    }

    /// The groups in which some of these tokens are, as bits.
    pub fn groups_of(&self, tokens: &[TokenId]) -> u64 {
        let group = |token: &TokenId| self.group_of.get(token.index()).copied().unwrap_or(0);
        tokens.iter().fold(0, |groups, token| groups | 1 << group(token)) >> 1
    }

    /// The tokens with which no piece ends, as within a character, as bits.
    pub fn unclosed(&self) -> &[u32] {
        &self.unclosed_bits
    }

    fn bytes(&self) -> usize {
        let apart = if self.endless.is_empty() { 0 } else { MAX_APART };
        let words = self.parts.len() * (4 + self.groups.len() + apart);
        words * 4 + self.group_of.len() + self.unclosed.len() * 16 + self.endless.len() * 8
    }
}

/// Tokens that are read one by one.
#[derive(Debug, Default)]
struct FoundReadable {
    parts: Vec<TokenId>,
    alone: Vec<TokenId>,
    groups: Vec<(HypothesisId, Vec<TokenId>)>,
    unclosed: Vec<(TokenId, HypothesisId)>,
    endless: Vec<(TokenId, HypothesisId)>,
}

impl FoundReadable {
    /// The tokens after which a piece begins at a place; `None` if there are too many such places.
    fn group(&mut self, after: HypothesisId) -> Option<&mut Vec<TokenId>> {
        let at = match self.groups.iter().position(|(known, _)| *known == after) {
            Some(known) => known,
            None if self.groups.len() < MAX_GROUPS => {
                self.groups.push((after, Vec::new()));
                self.groups.len() - 1
            }
            None => return None,
        };
        Some(&mut self.groups[at].1)
    }

    /// Adds tokens that are read as from another place; `false` if there are too many groups.
    fn add_from(&mut self, other: &Readable, tokens: impl Iterator<Item = TokenId>) -> bool {
        let mut grouped: Vec<Vec<TokenId>> = vec![Vec::new(); other.groups.len()];
        let mut added = vec![0; other.parts.len()];
        for token in tokens.filter(|&token| has(&other.beginnings, token)) {
            set(&mut added, &[token]);
            match has(&other.parts, token) {
                true => self.parts.push(token),
                false => self.alone.push(token),
            }
            if let Some(group) = usize::from(other.group_of[token.index()]).checked_sub(1) {
                grouped[group].push(token);
            }
        }
        let is_added = |&&(token, _): &&(TokenId, HypothesisId)| has(&added, token);
        self.unclosed.extend(other.unclosed.iter().filter(is_added));
        self.endless.extend(other.endless.iter().filter(is_added));
        for ((after, _), tokens) in other.groups.iter().zip(grouped) {
            if tokens.is_empty() {
                continue;
            }
            let Some(group) = self.group(*after) else { return false };
            group.extend(tokens);
        }
        true
    }

    fn readable(mut self, words: usize) -> Readable {
        let bits = |tokens: &[TokenId]| {
            let mut bits = vec![0; words];
            set(&mut bits, tokens);
            bits
        };
        let parts = bits(&self.parts);
        let mut beginnings = parts.clone();
        set(&mut beginnings, &self.alone);
        let mut group_of = vec![0; words * 32];
        for (group, (_, tokens)) in self.groups.iter().enumerate() {
            tokens.iter().for_each(|token| group_of[token.index()] = group as u8 + 1);
        }
        let groups = self.groups.iter().map(|(after, tokens)| (*after, bits(tokens).into()));
        self.unclosed.sort_unstable();
        let unclosed: Vec<TokenId> = self.unclosed.iter().map(|&(token, _)| token).collect();
        Readable {
            parts: parts.into(),
            beginnings: beginnings.into(),
            groups: groups.collect(),
            group_of: group_of.into(),
            unclosed_bits: bits(&unclosed).into(),
            unclosed: self.unclosed.into(),
            closings: OnceLock::new(),
            endless: self.endless.into(),
            apart: OnceLock::new(),
            unclosable: OnceLock::new(),
        }
    }
}

/// Whether a byte is among characters of one byte, given as bits.
fn is_in(bytes: u128, byte: u8) -> bool {
    byte < 0x80 && bytes >> byte & 1 == 1
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

/// How many groups of tokens one place in the pieces has. Others are looked at one by one.
const MAX_GROUPS: usize = 63;

/// For how many places in the pieces tables are made beforehand.
const MAX_PREPARED: usize = 48;

/// How many ways to end a piece are kept, and how many places are looked at for one.
const MAX_CLOSINGS: usize = 1 << 14;
const MAX_UNCLOSED: usize = 64;

/// How many bytes of masks are cached, of either kind.
const MAX_BYTES: usize = 16 << 20;

/// Restricts masks to canonical tokens, for one vocabulary.
#[derive(Debug)]
pub struct CanonicalMasks {
    canonicality: Arc<Canonicality>,
    vocabulary: Arc<Vocabulary>,
    prepared: Once,
    readable: RwLock<FxHashMap<HypothesisId, Arc<Readable>>>,
    readable_bytes: AtomicUsize,
    /// By token, those that may not follow it within a piece.
    forbidden: RwLock<FxHashMap<TokenId, Arc<[u32]>>>,
    /// Tokens of one byte, and of the last bytes of a character, that merges produce or begin with.
    short: Box<[TokenId]>,
    /// How pieces may end, by token and place after it.
    closings: RwLock<FxHashMap<(TokenId, HypothesisId), Closing>>,
}

impl CanonicalMasks {
    /// Starts with no mask cached. `vocabulary` has the tokens of the tokenizer in `canonicality`.
    pub fn new(canonicality: Arc<Canonicality>, vocabulary: Arc<Vocabulary>) -> Self {
        let short =
            vocabulary.trie().below(NodeId::ROOT).map(|(_, token)| token).filter(|&token| {
                let text = vocabulary.text(token);
                let is_rest = text.len() < 4 && text.iter().all(|byte| byte & 0xC0 == 0x80);
                (text.len() == 1 || is_rest) && canonicality.role(token) != Role::Byte
            });
        let short = short.collect();
        Self {
            canonicality,
            vocabulary,
            prepared: Once::new(),
            short,
            readable: RwLock::default(),
            readable_bytes: AtomicUsize::new(0),
            forbidden: RwLock::default(),
            closings: RwLock::default(),
        }
    }

    /// Makes the tables of the tokenizer that most masks need, so that no mask waits for them.
    pub fn prepare(&self) {
        self.prepared.call_once(|| {
            self.canonicality.table().forbidden_after(TokenId(0));
            let Some(boundaries) = self.canonicality.boundaries() else { return };
            for place in boundaries.places().take(MAX_PREPARED) {
                let readable = self.readable(boundaries, place);
                self.closings(&readable);
                let _ = self.apart(&readable);
            }
        });
    }

    /// Removes from a mask the tokens that are not canonical after `context`.
    pub fn restrict(&self, context: &Context, mask: &mut [u32]) -> Restricted {
        if context.is_lost() {
            return Restricted::Lost;
        }
        let ends = self.without_text(mask);
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

    /// The tokens of a mask at which a text ends: end tokens, and special tokens of the grammar.
    fn without_text(&self, mask: &[u32]) -> SmallVec<[TokenId; 4]> {
        let mut found = SmallVec::new();
        for (at, (word, texts)) in mask.iter().zip(self.vocabulary.texts()).enumerate() {
            let mut rest = word & !texts;
            while rest != 0 {
                found.push(TokenId(at as u32 * 32 + rest.trailing_zeros()));
                rest &= rest - 1;
            }
        }
        found
    }

    /// Whether a mask has so few tokens that each is better looked at alone.
    pub fn are_few(&self, mask: &[u32]) -> bool {
        few(mask)
    }

    /// Checks each token of a mask. Returns whether any is left.
    fn one_by_one(&self, context: &Context, mask: &mut [u32]) -> bool {
        let mut any = false;
        for (at, word) in mask.iter_mut().enumerate() {
            let mut rest = *word;
            while rest != 0 {
                let bit = rest & rest.wrapping_neg();
                let token = TokenId(at as u32 * 32 + bit.trailing_zeros());
                if self.canonicality.continues(context, token) {
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
        let mut bytes = self.readable_bytes.load(Ordering::Relaxed) + readable.bytes();
        if bytes > MAX_BYTES {
            kept.clear();
            bytes = readable.bytes();
        }
        if kept.insert(from, readable.clone()).is_none() {
            self.readable_bytes.store(bytes, Ordering::Relaxed);
        }
        readable
    }

    /// The tokens that can be read in one way.
    pub fn in_way(&self, way: Way) -> Option<Arc<Readable>> {
        Some(self.readable(self.canonicality.boundaries()?, way.from.boundary))
    }

    /// How a piece may end after the tokens with which none does.
    pub fn closings<'r>(&self, readable: &'r Readable) -> &'r Closings {
        readable.closings.get_or_init(|| {
            let mut places: FxHashMap<Closing, u32> = FxHashMap::default();
            let mut all = Vec::new();
            let of = readable.unclosed.iter().map(|&(token, boundary)| {
                let place = places.entry(self.closing(token, boundary)).or_insert_with_key(|new| {
                    all.push(new.clone());
                    all.len() as u32 - 1
                });
                (token, *place)
            });
            let of = of.collect();
            Closings { all: all.into(), of }
        })
    }

    /// Groups of tokens after which a piece ends only with the text, as bits: after those of each,
    /// any text may go on with a character of one byte.
    pub fn apart<'r>(&'r self, readable: &'r Readable) -> impl Iterator<Item = (u8, &'r [u32])> {
        let canonicality = &*self.canonicality;
        let bytes = canonicality.apart_first();
        let groups = readable.apart.get_or_init(|| {
            if readable.endless.is_empty() {
                return Box::default();
            }
            let mut groups: Vec<Box<[u32]>> =
                bytes.iter().map(|_| vec![0; self.vocabulary.mask_words()].into()).collect();
            for &(token, boundary) in &readable.endless {
                let apart = match canonicality.role(token) {
                    Role::WholePiece => 0,
                    _ => canonicality.apart(token, boundary),
                };
                for (&byte, group) in bytes.iter().zip(&mut groups) {
                    if is_in(apart, byte) {
                        set(group, &[token]);
                    }
                }
            }
            groups.into()
        });
        bytes.iter().copied().zip(groups.iter().map(|group| &**group))
    }

    fn closing(&self, token: TokenId, boundary: HypothesisId) -> Closing {
        if let Some(known) = self.closings.read().get(&(token, boundary)) {
            return known.clone();
        }
        let closing = self.find_closing(token, boundary);
        let mut kept = self.closings.write();
        if kept.len() >= MAX_CLOSINGS {
            kept.clear();
        }
        kept.insert((token, boundary), closing.clone());
        closing
    }

    /// Looks for tokens of one byte, or of the last bytes of a character, of which few suffice.
    fn find_closing(&self, token: TokenId, boundary: HypothesisId) -> Closing {
        let canonicality = &*self.canonicality;
        // It depends on the earlier bytes of the character whether it has a token of its own.
        if canonicality.role(token) == Role::Byte {
            return Closing::Unknown;
        }
        let Some(boundaries) = canonicality.boundaries() else { return Closing::Unknown };
        let mut ends: Vec<(TokenId, HypothesisId, Vec<u8>)> = vec![(token, boundary, Vec::new())];
        for _ in 0..3 {
            let mut later = Vec::new();
            for (last, boundary, text) in ends {
                let from = Hypothesis { boundary, whole: Whole::Nothing };
                for &token in &self.short {
                    let next = canonicality.read(Way { from, goes_on: true }, token);
                    let Some(next) = next.filter(|_| canonicality.may_go_on(last, token)) else {
                        continue;
                    };
                    let text = [&text, self.vocabulary.text(token)].concat();
                    if let Some(&fresh) = boundaries.close(next.boundary).first() {
                        return Closing::With { text: text.into(), next: at_a_piece(fresh) };
                    }
                    later.push((token, next.boundary, text));
                }
            }
            later.truncate(MAX_UNCLOSED);
            ends = later;
        }
        match self.may_be_followed(token, boundary) {
            true => Closing::Unknown,
            false => Closing::Never,
        }
    }

    /// Whether some token may follow one within its piece.
    fn may_be_followed(&self, last: TokenId, boundary: HypothesisId) -> bool {
        let canonicality = &*self.canonicality;
        let Some(boundaries) = canonicality.boundaries() else { return true };
        let trie = self.vocabulary.trie();
        let from = Hypothesis { boundary, whole: Whole::Nothing };
        let follows = |token: TokenId| {
            let next = canonicality.read(Way { from, goes_on: true }, token);
            next.is_some() && canonicality.may_go_on(last, token)
        };
        let begins = |&(byte, _): &(u8, NodeId)| boundaries.step(boundary, byte).is_some();
        let mut below = trie.children(NodeId::ROOT).filter(begins);
        below.any(|(_, node)| trie.tokens_below(node).iter().any(|&token| follows(token)))
    }

    /// The tokens after which a piece may not end although its boundary is there, for another token
    /// has exactly its bytes; as bits, or empty.
    pub fn unclosable(&self, readable: &Readable, way: Way) -> Arc<[u32]> {
        match way.from.whole {
            Whole::Node(NodeId::ROOT) => {
                readable.unclosable.get_or_init(|| self.find_unclosable(way, NodeId::ROOT)).clone()
            }
            Whole::Node(node) => self.find_unclosable(way, node),
            Whole::Nothing | Whole::Alone => Arc::from([]),
        }
    }

    fn find_unclosable(&self, way: Way, node: NodeId) -> Arc<[u32]> {
        let canonicality = &*self.canonicality;
        let mut found = Vec::new();
        for (depth, whole) in canonicality.wholes.below(node) {
            let text = canonicality.table().text(whole);
            let rest = &text[text.len() - depth..];
            let Some(node) = self.vocabulary.trie().find(rest) else { continue };
            let open = |&&token: &&TokenId| {
                let next = canonicality.read(way, token);
                next.is_some_and(|next| !canonicality.may_close(next.whole))
            };
            found.extend(self.vocabulary.trie().tokens_at(node).iter().filter(open));
        }
        let mut bits = Vec::new();
        if !found.is_empty() {
            bits.resize(self.vocabulary.mask_words(), 0);
            set(&mut bits, &found);
        }
        bits.into()
    }

    /// Removes tokens from a mask unless another way to read them is left: for each way of a
    /// context, the tokens that are removed, sorted.
    pub fn remove(&self, context: &Context, removed: &[(Way, Arc<[TokenId]>)], mask: &mut [u32]) {
        let canonicality = &*self.canonicality;
        let reads = |way: Way, token: TokenId| {
            let may_go_on = || context.last.is_some_and(|last| canonicality.may_go_on(last, token));
            (!way.goes_on || may_go_on()) && canonicality.read(way, token).is_some()
        };
        for (way, tokens) in removed {
            for &token in tokens.iter() {
                let is_kept = |(other, tokens): &(Way, Arc<[TokenId]>)| {
                    other != way && tokens.binary_search(&token).is_err() && reads(*other, token)
                };
                if has(mask, token) && !removed.iter().any(is_kept) {
                    mask[token.index() / 32] &= !(1 << (token.0 % 32));
                }
            }
        }
    }

    /// Reads all tokens from one place. Those that begin with a character after which nothing of
    /// earlier pieces matters are read as at the start of a text.
    fn read_all(&self, boundaries: &Boundaries, from: HypothesisId) -> Readable {
        let start = boundaries.start();
        let anew = if from == start { 0 } else { boundaries.anew(from) };
        let words = self.vocabulary.mask_words();
        if anew != 0 {
            let mut found = self.read_but(boundaries, from, anew);
            let trie = self.vocabulary.trie();
            let begins = trie.children(NodeId::ROOT).filter(|&(byte, _)| is_in(anew, byte));
            let tokens = begins.flat_map(|(_, node)| trie.tokens_below(node));
            if found.add_from(&self.readable(boundaries, start), tokens.copied()) {
                return found.readable(words);
            }
        }
        self.read_but(boundaries, from, 0).readable(words)
    }

    /// Reads the tokens that begin with other bytes than some.
    fn read_but(&self, boundaries: &Boundaries, from: HypothesisId, bytes: u128) -> FoundReadable {
        let trie = self.vocabulary.trie();
        let mut found = FoundReadable::default();
        let Ok(()) = trie.walk(NodeId::ROOT, from, |&place, node, depth| {
            let byte = trie.byte(node);
            let next = match depth == 0 && is_in(bytes, byte) {
                true => None,
                false => boundaries.step(place, byte),
            };
            let Some(next) = next else { return Ok::<_, Infallible>(Descent::Skip) };
            let after = boundaries.close(next).first().copied();
            for &token in trie.tokens_at(node) {
                match self.canonicality.role(token) {
                    Role::Merged => found.parts.push(token),
                    Role::Byte if self.canonicality.begins_character(token) => {
                        found.parts.push(token);
                    }
                    Role::WholePiece if boundaries.can_end(next) || after.is_some() => {
                        found.alone.push(token);
                    }
                    Role::Never | Role::Byte | Role::WholePiece => continue,
                }
                if after.is_some_and(|after| boundaries.is_over(after)) {
                    found.endless.push((token, next));
                }
                match after.and_then(|after| found.group(after)) {
                    Some(group) => group.push(token),
                    None => found.unclosed.push((token, next)),
                }
            }
            Ok(Descent::Below(next))
        });
        found
    }

    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        let forbidden = self.forbidden.read().len() * self.vocabulary.mask_words() * 4;
        self.readable_bytes.load(Ordering::Relaxed) + forbidden
    }
}

fn has(mask: &[u32], token: TokenId) -> bool {
    mask.get(token.index() / 32).is_some_and(|word| word >> (token.0 % 32) & 1 == 1)
}

fn few(mask: &[u32]) -> bool {
    let mut count = 0;
    // Words by the dozen, so that the compiler adds them up side by side.
    mask.chunks(64).all(|words| {
        count += words.iter().map(|word| word.count_ones()).sum::<u32>();
        count <= FEW
    })
}
