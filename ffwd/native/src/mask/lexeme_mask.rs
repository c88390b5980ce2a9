//! What the tokens of a vocabulary do from one state of a lexeme.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::token_set::{bits, set_bits, Bitmap};
use crate::error::LimitExceeded;
use crate::expr::lexeme::{FreeText, Row};
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

/// Subtrees with more tokens than this are not copied into an exit trie.
const GRAFT_TOKENS: usize = 256;

/// Subtrees of at most this many nodes are walked rather than looked at as a whole.
const BULK_NODES: u32 = 2;

/// Walks the whole trie from a state.
fn compute(
    vocabulary: &Vocabulary,
    lexeme: &Lexeme,
    start: LexState,
) -> Result<LexemeMask, LimitExceeded> {
    let trie = vocabulary.trie();
    let mut inner: Vec<TokenId> = Vec::new();
    let mut exits: Vec<Collected<'_>> = Vec::new();
    let mut loops_of: FxHashMap<LexState, Summary> = FxHashMap::default();
    // The states on the way to the current node, each with the end of its subtree.
    let mut path: Vec<(NodeId, Row<'_>)> = Vec::new();
    let mut node = NodeId(1);
    let end = trie.after(NodeId::ROOT);
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
            collect(&mut exits, vocabulary, lexeme.accept(next), node, path.len(), true);
            node = after;
            continue;
        }
        if after.0 > node.0 + BULK_NODES {
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
                    let accept = lexeme.accept(next);
                    Collected::group(&mut exits, accept).everywhere.push(node);
                }
                node = after;
                continue;
            }
        }
        inner.extend_from_slice(trie.tokens_at(node));
        if after.0 > node.0 + 1 {
            if next.accepts() {
                let accept = lexeme.accept(next);
                collect(&mut exits, vocabulary, accept, node, path.len(), false);
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

/// Records that the lexeme ends at a node, `depth` bytes into the tokens below it.
fn collect<'v>(
    exits: &mut Vec<Collected<'v>>,
    vocabulary: &'v Vocabulary,
    accept: u64,
    node: NodeId,
    depth: usize,
    with_node: bool,
) {
    let trie = vocabulary.trie();
    let group = Collected::group(exits, accept);
    let below = trie.tokens_below(node);
    if below.len() > GRAFT_TOKENS {
        group.grafts.push((node, with_node));
        return;
    }
    let skipped = if with_node { 0 } else { trie.tokens_at(node).len() };
    for &token in &below[skipped..] {
        group.rests.push((&vocabulary.text(token)[depth..], token));
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

/// The inside of a JSON string of any characters, from which those of a bounded number of
/// characters are derived without another walk.
#[derive(Debug)]
struct FreeBasis {
    unbounded: Arc<LexemeMask>,
    /// The inner tokens by how many characters begin in them.
    by_characters: Vec<Vec<TokenId>>,
    /// The exit tokens: characters before the quote, what follows it, the token.
    exits: Vec<(u32, Vec<u8>, TokenId)>,
    /// The most characters in one token.
    longest: u32,
}

impl FreeBasis {
    fn new(vocabulary: &Vocabulary, unbounded: Arc<LexemeMask>) -> Self {
        let tokens: Vec<TokenId> = match &unbounded.inner {
            Inner::Few(tokens) => tokens.to_vec(),
            Inner::Many(bitmap) => bits(bitmap).collect(),
        };
        let mut by_characters: Vec<Vec<TokenId>> = Vec::new();
        for token in tokens {
            let count = characters_begun(vocabulary.text(token)) as usize;
            if by_characters.len() <= count {
                by_characters.resize_with(count + 1, Vec::new);
            }
            by_characters[count].push(token);
        }
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
                    exits.push((before, text[quote + 1..].to_vec(), token));
                }
            }
        }
        let longest = by_characters.len() as u32;
        Self { unbounded, by_characters, exits, longest }
    }

    fn bounded(&self, vocabulary: &Vocabulary, free: FreeText) -> LexemeMask {
        let inner = match (&self.unbounded.inner, free.max) {
            (_, Some(max)) if max < self.longest => {
                let split = (max as usize + 1).min(self.by_characters.len());
                let kept: usize = self.by_characters[..split].iter().map(Vec::len).sum();
                let dropped: usize = self.by_characters[split..].iter().map(Vec::len).sum();
                match &self.unbounded.inner {
                    Inner::Many(all) if dropped < kept => {
                        let mut bitmap = all.to_vec();
                        for token in self.by_characters[split..].iter().flatten() {
                            if let Some(word) = bitmap.get_mut(token.index() / 32) {
                                *word &= !(1 << (token.0 % 32));
                            }
                        }
                        Inner::Many(bitmap.into())
                    }
                    _ => {
                        let tokens = self.by_characters[..split].iter().flatten();
                        inner_of(vocabulary, tokens.copied().collect())
                    }
                }
            }
            (inner, _) => inner.clone(),
        };
        let max = free.max.unwrap_or(u32::MAX);
        let rests = self
            .exits
            .iter()
            .filter(|&&(characters, _, _)| free.min <= characters && characters <= max)
            .map(|(_, rest, token)| (rest.as_slice(), *token))
            .collect();
        let exits = vec![Collected { rests, ..Collected::new(1) }.build()];
        LexemeMask { inner, exits }
    }
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

#[derive(Debug, Default)]
struct Memos {
    by_state: FxHashMap<(u64, LexState), Arc<LexemeMask>>,
    free: FxHashMap<FreeText, Arc<LexemeMask>>,
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

    pub fn get(
        &self,
        vocabulary: &Vocabulary,
        lexeme: &Lexeme,
        state: LexState,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        if let Some(known) = self.memos.lock().by_state.get(&(lexeme.id(), state)) {
            return Ok(known.clone());
        }
        let mask = match lexeme.free_text(state) {
            Some(free) => self.free_text(vocabulary, free)?,
            _ => {
                let horizon = vocabulary.max_token_bytes() as u32;
                let same = lexeme.within_horizon(state, horizon)?;
                if same != state {
                    self.get(vocabulary, lexeme, same)?
                } else {
                    let mask = Arc::new(compute(vocabulary, lexeme, state)?);
                    let mut memos = self.memos.lock();
                    memos.walks += 1;
                    memos.bytes += mask.memory_bytes();
                    mask
                }
            }
        };
        let mut memos = self.memos.lock();
        if memos.bytes > self.max_bytes {
            memos.by_state.clear();
            memos.free.clear();
            memos.bytes = 0;
        }
        memos.bytes += 64;
        memos.by_state.insert((lexeme.id(), state), mask.clone());
        Ok(mask)
    }

    fn free_text(
        &self,
        vocabulary: &Vocabulary,
        free: FreeText,
    ) -> Result<Arc<LexemeMask>, LimitExceeded> {
        let basis = self.basis(vocabulary)?;
        let free = FreeText {
            min: free.min.min(basis.longest + 1),
            max: free.max.filter(|&max| max <= basis.longest),
        };
        if free == (FreeText { min: 0, max: None }) {
            return Ok(basis.unbounded.clone());
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
        let unbounded = Arc::new(compute(vocabulary, &any, any.inside())?);
        let built = Arc::new(FreeBasis::new(vocabulary, unbounded));
        *basis = Some(built.clone());
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
