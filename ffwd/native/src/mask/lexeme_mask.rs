//! What the tokens of a vocabulary do from one state of a lexeme.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::token_set::{bits, set_bits, Bitmap};
use crate::error::LimitExceeded;
use crate::expr::lexeme::{FreeText, Row};
use crate::expr::store::ExprId;
use crate::expr::{LexState, Lexeme, LexemeSpec, Spelling};
use crate::regex::Ast;
use crate::vocabulary::{ByteTrie, NodeId, Summary, TokenId, Utf8Place, Vocabulary};

/// Tokens that stay within a lexeme.
#[derive(Clone, Debug)]
pub enum Inner {
    Few(Box<[TokenId]>),
    Many(Bitmap),
}

/// Tokens that go past the end of a lexeme, with one verdict.
#[derive(Debug)]
pub struct ExitGroup {
    /// Which languages of the lexeme hold at the end.
    pub accept: u64,
    /// What the tokens spell after the end.
    pub rests: ByteTrie,
    /// Subtrees of the vocabulary's own trie, too large to copy: below these nodes the lexeme has
    /// ended. With `true` the tokens at the node itself belong to the group too.
    pub grafts: Box<[(NodeId, bool)]>,
    /// Large subtrees of the vocabulary's trie in which the lexeme may end at every node, the top
    /// one included.
    pub everywhere: Box<[NodeId]>,
}

#[derive(Debug)]
pub struct LexemeMask {
    pub inner: Inner,
    pub exits: Vec<ExitGroup>,
}

impl LexemeMask {
    /// The mask of another state that differs from this one's at most in what it says of the
    /// tokens in `doubtful`. `None` where the exits are too many to be listed.
    fn recheck(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
        doubtful: &[TokenId],
    ) -> Result<Option<Self>, LimitExceeded> {
        if self.exits.iter().any(|exit| !exit.everywhere.is_empty()) {
            return Ok(None);
        }
        let mut doubted = vec![0; vocabulary.mask_words()];
        set_bits(&mut doubted, doubtful);
        let is_doubted = |token: TokenId| doubted[token.index() / 32] >> (token.0 % 32) & 1 == 1;
        let mut inner: Vec<TokenId> = Vec::new();
        let mut exits: Vec<Collected<'_>> = Vec::new();
        for group in &self.exits {
            let own = Collected::group(&mut exits, group.accept);
            for (depth, token) in group.rests.below(NodeId::ROOT) {
                if !is_doubted(token) {
                    let text = vocabulary.text(token);
                    own.rests.push((&text[text.len() - depth..], token));
                }
            }
            for &(node, with_node) in &group.grafts {
                for (depth, token) in vocabulary.trie().below(node) {
                    if (depth > 0 || with_node) && !is_doubted(token) {
                        let text = vocabulary.text(token);
                        own.rests.push((&text[text.len() - depth..], token));
                    }
                }
            }
        }
        for &token in doubtful {
            let text = vocabulary.text(token);
            let mut current = Some(state);
            for (at, &byte) in text.iter().enumerate() {
                let Some(from) = current else { break };
                current = lexeme.next(from, byte)?;
                let Some(next) = current else { break };
                if next.accepts() && (next.is_final() || at + 1 < text.len()) {
                    let own = Collected::group(&mut exits, lexeme.accept(next));
                    own.rests.push((&text[at + 1..], token));
                }
                if next.is_final() {
                    current = None;
                }
            }
            if current.is_some() {
                inner.push(token);
            }
        }
        let inner = match &self.inner {
            Inner::Few(tokens) => {
                inner.extend(tokens.iter().copied().filter(|&token| !is_doubted(token)));
                inner_of(vocabulary, inner)
            }
            Inner::Many(bitmap) => {
                let mut own: Vec<u32> =
                    bitmap.iter().zip(&doubted).map(|(word, doubt)| word & !doubt).collect();
                set_bits(&mut own, &inner);
                Inner::Many(own.into())
            }
        };
        let exits = exits.into_iter().map(Collected::build).collect();
        Ok(Some(Self { inner, exits }))
    }

    fn memory_bytes(&self) -> usize {
        let inner = match &self.inner {
            Inner::Few(tokens) => tokens.len() * 4,
            Inner::Many(bitmap) => bitmap.len() * 4,
        };
        let exits: usize =
            self.exits.iter().map(|exit| exit.rests.memory_bytes() + exit.grafts.len() * 8).sum();
        inner + exits + 128
    }
}

/// How many tokens are looked at one by one rather than walking the whole trie.
const MAX_DOUBTFUL: usize = 4096;

/// Subtrees with more tokens than this are not copied into an exit trie.
const GRAFT_TOKENS: usize = 256;

/// Subtrees of at most this many nodes are walked rather than looked at as a whole.
const BULK_NODES: u32 = 2;

/// A subtree of a trie: the whole vocabulary, or what follows the end of a lexeme.
#[derive(Clone, Copy, Debug)]
pub struct View<'t> {
    pub trie: &'t ByteTrie,
    pub root: NodeId,
}

impl<'t> View<'t> {
    /// All tokens.
    pub fn of(vocabulary: &'t Vocabulary) -> Self {
        Self { trie: vocabulary.trie(), root: NodeId::ROOT }
    }
}

/// Walks a subtree from a state of a lexeme.
fn compute(
    vocabulary: &Vocabulary,
    View { trie, root }: View<'_>,
    lexeme: &Lexeme,
    start: LexState,
) -> Result<LexemeMask, LimitExceeded> {
    let whole = trie.id() == vocabulary.trie().id();
    let mut inner: Vec<TokenId> = Vec::new();
    let mut exits: Vec<Collected<'_>> = Vec::new();
    let mut loops_of: FxHashMap<LexState, Summary> = FxHashMap::default();
    // The rows of the states on the way to the current node, each with the end of its subtree.
    let mut path: Vec<(NodeId, Row<'_>)> = Vec::new();
    let mut node = NodeId(root.0 + 1);
    let end = trie.after(root);
    let mut row = lexeme.row(start);
    let mut row_end = end;
    path.push((row_end, row));
    while node < end {
        while node >= row_end {
            path.pop();
            let Some(&(outer_end, outer)) = path.last() else { break };
            (row_end, row) = (outer_end, outer);
        }
        let after = trie.after(node);
        let Some(next) = row.next(trie.byte(node))? else {
            node = after;
            continue;
        };
        if next.is_final() {
            let group = Collected::group(&mut exits, lexeme.accept(next));
            group.end_at(vocabulary, trie, node, true);
            node = after;
            continue;
        }
        if whole && after.0 > node.0 + BULK_NODES {
            let known = match loops_of.get(&next) {
                Some(&known) => known,
                None => {
                    let known = loops(lexeme, next)?;
                    loops_of.insert(next, known);
                    known
                }
            };
            let large = trie.tokens_below(node).len() > GRAFT_TOKENS;
            if vocabulary.below(node).within(known) && (large || !next.accepts()) {
                inner.extend_from_slice(trie.tokens_below(node));
                if next.accepts() {
                    let group = Collected::group(&mut exits, lexeme.accept(next));
                    group.everywhere.push(node);
                }
                node = after;
                continue;
            }
        }
        inner.extend_from_slice(trie.tokens_at(node));
        if !trie.is_leaf(node) {
            if next.accepts() {
                let group = Collected::group(&mut exits, lexeme.accept(next));
                group.end_at(vocabulary, trie, node, false);
            }
            (row_end, row) = (after, lexeme.row(next));
            path.push((row_end, row));
        }
        node = NodeId(node.0 + 1);
    }
    let exits = exits.into_iter().map(Collected::build).collect();
    Ok(LexemeMask { inner: inner_of(vocabulary, inner), exits })
}

struct Collected<'v> {
    accept: u64,
    rests: Vec<(&'v [u8], TokenId)>,
    grafts: Vec<(NodeId, bool)>,
    everywhere: Vec<NodeId>,
}

impl<'v> Collected<'v> {
    fn new(accept: u64) -> Self {
        Self { accept, rests: Vec::new(), grafts: Vec::new(), everywhere: Vec::new() }
    }

    fn build(mut self) -> ExitGroup {
        self.rests.sort_unstable();
        ExitGroup {
            accept: self.accept,
            rests: ByteTrie::from_sorted(&self.rests),
            grafts: self.grafts.into(),
            everywhere: self.everywhere.into(),
        }
    }

    /// Records that the lexeme ends at a node. `with_node`: the tokens at the node have ended with
    /// it; else they are inner ones.
    fn end_at(
        &mut self,
        vocabulary: &'v Vocabulary,
        trie: &ByteTrie,
        node: NodeId,
        with_node: bool,
    ) {
        let whole = trie.id() == vocabulary.trie().id();
        if whole && trie.tokens_below(node).len() > GRAFT_TOKENS {
            self.grafts.push((node, with_node));
            return;
        }
        for (depth, token) in trie.below(node) {
            if depth > 0 || with_node {
                let text = vocabulary.text(token);
                self.rests.push((&text[text.len() - depth..], token));
            }
        }
    }

    /// The group of a verdict.
    fn group(groups: &mut Vec<Self>, accept: u64) -> &mut Self {
        let at = match groups.iter().position(|known| known.accept == accept) {
            Some(at) => at,
            None => {
                groups.push(Self::new(accept));
                groups.len() - 1
            }
        };
        &mut groups[at]
    }
}

/// The groups of bytes under which a state stays what it is.
fn loops(lexeme: &Lexeme, state: LexState) -> Result<Summary, LimitExceeded> {
    let row = lexeme.row(state);
    let mut leaving = Summary::default();
    let mut staying = Summary::default();
    for byte in 0..0x80u8 {
        let group = Summary::of_ascii(byte);
        if row.next(byte)? == Some(state) {
            staying = staying.union(group);
        } else {
            leaving = leaving.union(group);
        }
    }
    let mut loops = Summary(staying.0 & !leaving.0);
    if loops.0 != 0 && loops_on_characters(lexeme, state)? {
        loops = loops.union(Summary::MULTIBYTE);
    }
    Ok(loops)
}

/// Whether every character above ASCII leads back to the state, without an end on the way.
fn loops_on_characters(lexeme: &Lexeme, state: LexState) -> Result<bool, LimitExceeded> {
    let mut seen: Vec<(Utf8Place, LexState)> = Vec::new();
    let mut pending = vec![(Utf8Place::BOUNDARY, state)];
    while let Some((place, current)) = pending.pop() {
        let row = lexeme.row(current);
        for byte in 0x80..=0xFFu8 {
            let Some(next_place) = place.next(byte) else { continue };
            let Some(next) = row.next(byte)? else { return Ok(false) };
            if next_place == Utf8Place::BOUNDARY {
                if next != state {
                    return Ok(false);
                }
            } else if next.accepts() {
                return Ok(false);
            } else if !seen.contains(&(next_place, next)) {
                seen.push((next_place, next));
                pending.push((next_place, next));
            }
        }
    }
    Ok(true)
}

fn inner_of(vocabulary: &Vocabulary, tokens: Vec<TokenId>) -> Inner {
    if tokens.len() <= vocabulary.mask_words() / 4 {
        Inner::Few(tokens.into())
    } else {
        let mut bitmap = vec![0; vocabulary.mask_words()];
        set_bits(&mut bitmap, &tokens);
        Inner::Many(bitmap.into())
    }
}

/// How many characters of a JSON string begin within spelled bytes.
fn characters_begun(bytes: &[u8]) -> u32 {
    let mut count = 0;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        count += 1;
        at += match byte {
            b'\\' if bytes.get(at + 1) == Some(&b'u') => 6,
            b'\\' => 2,
            0xF0.. => 4,
            0xE0.. => 3,
            0xC0.. => 2,
            _ => 1,
        };
    }
    count
}

/// The most characters of a token that are counted apart.
const MAX_CHARACTERS: usize = 255;

/// How many characters of a JSON string begin in each token, and the tokens of at most so many.
#[derive(Debug)]
struct Lengths {
    /// Saturating.
    of: Box<[u8]>,
    longest: u32,
    at_most: Box<[OnceLock<Bitmap>]>,
}

impl Lengths {
    fn new(vocabulary: &Vocabulary) -> Self {
        let of: Box<[u8]> = (0..vocabulary.width() as u32)
            .map(|id| {
                let count = characters_begun(vocabulary.text(TokenId(id)));
                count.min(MAX_CHARACTERS as u32) as u8
            })
            .collect();
        let longest = u32::from(of.iter().copied().max().unwrap_or(0));
        Self { of, longest, at_most: (0..=MAX_CHARACTERS).map(|_| OnceLock::new()).collect() }
    }

    fn at_most(&self, characters: u8) -> &Bitmap {
        self.at_most[usize::from(characters)].get_or_init(|| {
            self.of
                .chunks(32)
                .map(|chunk| {
                    chunk
                        .iter()
                        .enumerate()
                        .fold(0, |word, (bit, &count)| word | u32::from(count <= characters) << bit)
                })
                .collect()
        })
    }
}

/// The inside of a JSON string of any number of characters of one kind, from which those of a
/// bounded number are derived without another walk.
#[derive(Debug)]
struct FreeBasis {
    unbounded: Arc<LexemeMask>,
    lengths: Arc<Lengths>,
    /// The exit tokens, sorted: what follows the quote, the token, characters before the quote.
    exits: Vec<(Vec<u8>, TokenId, u32)>,
}

impl FreeBasis {
    fn new(vocabulary: &Vocabulary, lengths: Arc<Lengths>, unbounded: Arc<LexemeMask>) -> Self {
        // Every token whose first quote closes the string, and is reached from the inside.
        let mut exits = Vec::new();
        for group in &unbounded.exits {
            let grafted = group
                .grafts
                .iter()
                .flat_map(|&(node, _)| vocabulary.trie().tokens_below(node).iter().copied());
            let copied = group.rests.tokens_below(NodeId::ROOT).iter().copied();
            for token in copied.chain(grafted) {
                let text = vocabulary.text(token);
                if let Some(quote) = closing_quote(text) {
                    let before = characters_begun(&text[..quote]);
                    exits.push((text[quote + 1..].to_vec(), token, before));
                }
            }
        }
        exits.sort_unstable();
        Self { unbounded, lengths, exits }
    }

    fn bounded(&self, vocabulary: &Vocabulary, free: FreeText) -> LexemeMask {
        let inner = match free.max {
            Some(max) if max < self.lengths.longest => {
                let max = max as u8;
                match &self.unbounded.inner {
                    Inner::Few(tokens) => {
                        let short = |token: &TokenId| self.lengths.of[token.index()] <= max;
                        Inner::Few(tokens.iter().copied().filter(short).collect())
                    }
                    Inner::Many(all) => {
                        let short = self.lengths.at_most(max);
                        let both: Bitmap =
                            all.iter().zip(short.iter()).map(|(all, short)| all & short).collect();
                        let count: u32 = both.iter().map(|word| word.count_ones()).sum();
                        if count as usize <= vocabulary.mask_words() / 4 {
                            Inner::Few(bits(&both).collect())
                        } else {
                            Inner::Many(both)
                        }
                    }
                }
            }
            _ => self.unbounded.inner.clone(),
        };
        let max = free.max.unwrap_or(u32::MAX);
        let rests = self
            .exits
            .iter()
            .filter(|&&(_, _, characters)| free.min <= characters && characters <= max)
            .map(|(rest, token, _)| (rest.as_slice(), *token))
            .collect();
        let exits = vec![Collected { rests, ..Collected::new(1) }.build()];
        LexemeMask { inner, exits }
    }
}

impl FreeBasis {
    /// The mask of a state that any characters may follow: inner tokens are those of any string,
    /// and of the exits those whose characters before the quote complete the text.
    fn searching(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<LexemeMask, LimitExceeded> {
        let mut exits: Vec<Collected<'_>> = Vec::new();
        for (rest, token, _) in &self.exits {
            let text = vocabulary.text(*token);
            let end = run(lexeme, state, &text[..text.len() - rest.len()])?;
            if let Some(end) = end.filter(|end| end.is_final()) {
                Collected::group(&mut exits, lexeme.accept(end)).rests.push((rest, *token));
            }
        }
        let exits = exits.into_iter().map(Collected::build).collect();
        Ok(LexemeMask { inner: self.unbounded.inner.clone(), exits })
    }

    fn memory_bytes(&self) -> usize {
        let exits: usize = self.exits.iter().map(|(rest, _, _)| rest.capacity() + 40).sum();
        self.unbounded.memory_bytes() + exits
    }
}

/// The state after a run of bytes.
fn run(lexeme: &Lexeme, state: LexState, bytes: &[u8]) -> Result<Option<LexState>, LimitExceeded> {
    let mut state = state;
    for &byte in bytes {
        match lexeme.next(state, byte)? {
            Some(next) => state = next,
            None => return Ok(None),
        }
    }
    Ok(Some(state))
}

/// Where the first quote stands that no backslash escapes.
fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// A subtree and a lexeme's state.
type Place = (u64, NodeId, u64, LexState);

#[derive(Debug, Default)]
struct Memos {
    by_place: FxHashMap<Place, Arc<LexemeMask>>,
    free: FxHashMap<FreeText, Arc<LexemeMask>>,
    bases: FxHashMap<(u64, ExprId), Arc<FreeBasis>>,
    bytes: usize,
    walks: u64,
}

/// Masks of lexeme states for one vocabulary, shared by all grammars, under a byte budget.
#[derive(Debug)]
pub struct LexemeMaskStore {
    memos: Mutex<Memos>,
    basis: Mutex<Option<Arc<FreeBasis>>>,
    max_bytes: usize,
}

impl LexemeMaskStore {
    pub fn new(max_bytes: usize) -> Self {
        Self { memos: Mutex::default(), basis: Mutex::default(), max_bytes }
    }

    /// What all tokens of the vocabulary do.
    pub fn get(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let view = View::of(vocabulary);
        self.memoised(view, lexeme, state, || self.build(vocabulary, lexeme, state))
    }

    /// What the rests of tokens do that lie below a node of a trie.
    pub fn below(
        &self,
        vocabulary: &Vocabulary,
        view: View<'_>,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        self.memoised(view, lexeme, state, || {
            compute(vocabulary, view, lexeme, state).map(Arc::new)
        })
    }

    fn memoised(
        &self,
        view: View<'_>,
        lexeme: &Lexeme,
        state: LexState,
        build: impl FnOnce() -> Result<Arc<LexemeMask>, LimitExceeded>,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let place = (view.trie.id(), view.root, lexeme.id(), state);
        if let Some(known) = self.memos.lock().by_place.get(&place) {
            return Ok(known.clone());
        }
        let mask = build()?;
        let mut memos = self.memos.lock();
        if memos.bytes > self.max_bytes {
            *memos = Memos { walks: memos.walks, ..Memos::default() };
        }
        // What is shared with another entry is counted once.
        memos.bytes += 64;
        if Arc::strong_count(&mask) == 1 {
            memos.bytes += mask.memory_bytes();
        }
        memos.by_place.insert(place, mask.clone());
        Ok(mask)
    }

    fn build(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        if let Some(free) = lexeme.free_text(state) {
            let basis = match free.kind {
                None => self.basis(vocabulary)?,
                Some(kind) => self.basis_of(vocabulary, lexeme, kind)?,
            };
            return self.free_text(vocabulary, &basis, free);
        }
        if lexeme.takes_anything(state) {
            let basis = self.basis(vocabulary)?;
            return Ok(Arc::new(basis.searching(vocabulary, lexeme, state)?));
        }
        let longest = vocabulary.max_token_bytes() as u32;
        if let Some((relaxed, within)) = lexeme.relaxed(state, longest)? {
            let doubtful = vocabulary.longer_than(within as usize);
            if doubtful.is_empty() {
                return self.get(vocabulary, lexeme, relaxed);
            }
            if doubtful.len() <= MAX_DOUBTFUL {
                let mask = self.get(vocabulary, lexeme, relaxed)?;
                if let Some(own) = mask.recheck(vocabulary, lexeme, state, doubtful)? {
                    return Ok(Arc::new(own));
                }
            }
        }
        self.memos.lock().walks += 1;
        let view = View::of(vocabulary);
        Ok(Arc::new(compute(vocabulary, view, lexeme, state)?))
    }

    fn free_text(
        &self,
        vocabulary: &Vocabulary,
        basis: &FreeBasis,
        free: FreeText,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let free = FreeText {
            min: free.min.min(basis.lengths.longest + 1),
            max: free.max.filter(|&max| max < basis.lengths.longest),
            ..free
        };
        if (free.min, free.max) == (0, None) {
            return Ok(basis.unbounded.clone());
        }
        if free.kind.is_some() {
            return Ok(Arc::new(basis.bounded(vocabulary, free)));
        }
        if let Some(known) = self.memos.lock().free.get(&free) {
            return Ok(known.clone());
        }
        let mask = Arc::new(basis.bounded(vocabulary, free));
        let mut memos = self.memos.lock();
        memos.bytes += mask.memory_bytes();
        memos.free.insert(free, mask.clone());
        Ok(mask)
    }

    /// The inside of any JSON string.
    fn basis(&self, vocabulary: &Vocabulary) -> Result<Arc<FreeBasis>, LimitExceeded> {
        let mut basis = self.basis.lock();
        if let Some(known) = &*basis {
            return Ok(known.clone());
        }
        let languages = Arc::from([Ast::any_text()]);
        let any = Lexeme::new(LexemeSpec { spelling: Spelling::JsonString, languages })?;
        let unbounded = Arc::new(compute(vocabulary, View::of(vocabulary), &any, any.inside())?);
        let lengths = Arc::new(Lengths::new(vocabulary));
        let built = Arc::new(FreeBasis::new(vocabulary, lengths, unbounded));
        *basis = Some(built.clone());
        Ok(built)
    }

    /// The inside of a JSON string of characters of one kind.
    fn basis_of(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        kind: ExprId,
    ) -> Result<Arc<FreeBasis>, LimitExceeded> {
        if let Some(known) = self.memos.lock().bases.get(&(lexeme.id(), kind)) {
            return Ok(known.clone());
        }
        let run = lexeme.run_of(kind)?;
        let unbounded = Arc::new(compute(vocabulary, View::of(vocabulary), lexeme, run)?);
        let lengths = self.basis(vocabulary)?.lengths.clone();
        let built = Arc::new(FreeBasis::new(vocabulary, lengths, unbounded));
        let mut memos = self.memos.lock();
        memos.walks += 1;
        memos.bytes += built.memory_bytes();
        memos.bases.insert((lexeme.id(), kind), built.clone());
        Ok(built)
    }

    /// Forgets everything.
    pub fn clear(&self) {
        *self.memos.lock() = Memos::default();
        *self.basis.lock() = None;
    }

    /// How many times a lexeme state was walked over the whole trie.
    pub fn walks(&self) -> u64 {
        self.memos.lock().walks
    }

    pub fn memory_bytes(&self) -> usize {
        self.memos.lock().bytes
    }
}
