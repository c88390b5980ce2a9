//! Tokens with which a scalar can only become an earlier item.

use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::rivalled::SettledRivalled;
use super::state_mask::{is_blank, Masker};
use super::token_set::{set_bits, TokenMaskBuilder, FEW};
use ffwd_automaton::{
    Automaton, Beside, BesideScalar, Left, LexemeId, NextPlace, Result, RivalPlace, Thread,
    ThreadLexeme,
};
use ffwd_bounds::meter;
use ffwd_regular::expr::{LexState, Lexeme};
use ffwd_tokenizer::vocabulary::{ByteTrie, NodeId, TokenId, Vocabulary};

/// By the place among the earlier items, the lexeme and its state, and the number of bytes of a
/// token that were read.
pub(super) type KnownRuled = FxHashMap<(RivalPlace, LexemeId, LexState, NodeId), Arc<Ruled>>;

/// The most bytes of a token that are distinguished. Few tokens are longer.
const MAX_DEPTH: usize = 48;

/// Tokens that the earlier items exclude. Results below a node are shared by all sets of items that
/// agree there.
#[derive(Debug, Default)]
pub(super) struct Ruled {
    out: Box<[Out]>,
    /// Tokens that must be read byte by byte.
    asked: Box<[TokenId]>,
    below: Box<[Arc<Ruled>]>,
    /// How many tokens are excluded here and below.
    count: usize,
    /// The most items that have one of these values.
    most: u32,
    has_asked: bool,
    /// The tokens that are ruled out here and below and go on after the scalar, once asked for. How
    /// much room is left after it says nothing of them: they choose what follows.
    leaving: OnceLock<Box<[TokenId]>>,
}

/// A subtree of the vocabulary's trie of which all tokens are ruled out.
#[derive(Debug)]
struct Out {
    node: NodeId,
    /// How many items, at most, have the same value.
    items: u32,
    /// The state of the lexeme there; `None` where the scalar has ended.
    state: Option<LexState>,
}

/// By the lexeme and its state, and how much of a token has been read.
pub(super) type KnownReadable = FxHashMap<(LexemeId, LexState, NodeId), Arc<Readable>>;

/// The tokens at a node of the vocabulary's trie and below it that a lexeme reads.
#[derive(Debug, Default)]
pub(super) struct Readable {
    /// Those in which the lexeme does not end, and those that end with it.
    within: Vec<TokenId>,
    /// Those that go on after its end.
    leaving: Vec<TokenId>,
}

/// What makes a part of an item the same as that of items that came.
#[derive(Debug)]
struct RuledPart {
    ruled: Arc<Ruled>,
    /// How many items may have it so that what follows tells the item from all of them.
    room: u32,
    scalar: BesideScalar,
}

impl Ruled {
    fn nothing() -> Arc<Self> {
        static NOTHING: OnceLock<Arc<Ruled>> = OnceLock::new();
        NOTHING.get_or_init(Arc::default).clone()
    }

    /// The subtrees with a value that more than some items have.
    fn out_beyond(&self, room: u32) -> impl Iterator<Item = &Out> {
        self.out.iter().filter(move |out| out.items > room)
    }

    fn is_nothing(&self) -> bool {
        self.count == 0 && !self.has_asked
    }

    fn memory_bytes(&self) -> usize {
        let lists = std::mem::size_of_val(&*self.out) + std::mem::size_of_val(&*self.asked);
        std::mem::size_of::<Self>() + lists + self.below.len() * std::mem::size_of::<Arc<Self>>()
    }
}

/// The tokens that the earlier items exclude in a state.
#[derive(Debug, Default)]
pub(super) struct RuledOut {
    /// Tokens with which an item equals an earlier one.
    found: SmallVec<[(Arc<Ruled>, BesideScalar); 2]>,
    /// Tokens with which a part of an item, or one parse of it, equals that of earlier items. The
    /// items may still differ later, so it counts how many have the part.
    parts: SmallVec<[RuledPart; 2]>,
    /// The first bytes of tokens that other threads may read, about which nothing is known.
    unknown: SmallVec<[u8; 16]>,
    is_unknown: bool,
}

impl RuledOut {
    /// Whether the excluded tokens that start with a byte are known.
    pub fn has_found(&self, byte: u8) -> bool {
        !self.is_unknown && !self.unknown.contains(&byte)
    }

    /// How many tokens are excluded.
    pub fn count(&self) -> usize {
        self.found.iter().map(|(ruled, _)| ruled.count).sum()
    }

    /// Removes the excluded tokens from the collected ones.
    pub fn remove_from(&self, builder: &mut TokenMaskBuilder, vocabulary: &Vocabulary) {
        let trie = vocabulary.trie();
        if self.count() <= FEW {
            let mut tokens: SmallVec<[TokenId; FEW]> = SmallVec::new();
            self.out_of_found(trie, |found| tokens.extend_from_slice(found));
            builder.remove(&tokens);
            return;
        }
        let mut row = vec![0; vocabulary.mask_words()];
        self.out_of_found(trie, |found| set_bits(&mut row, found));
        builder.remove_bitmap(&row);
    }

    /// The tokens that earlier items may exclude and that must be read byte by byte.
    pub fn asked(
        &self,
        masker: &Masker,
        automaton: &Automaton,
        rivalled: &SettledRivalled,
    ) -> Result<Vec<TokenId>> {
        let mut tokens = Vec::new();
        let add_asked = |tokens: &mut Vec<TokenId>, ruled, scalar: &BesideScalar| {
            let may_equal = |&token: &TokenId| {
                automaton.items().may_equal(scalar, masker.vocabulary.text(token))
            };
            visit(
                ruled,
                |ruled| ruled.has_asked,
                |ruled| tokens.extend(ruled.asked.iter().copied().filter(may_equal)),
            );
        };
        for (ruled, scalar) in &self.found {
            add_asked(&mut tokens, ruled, scalar);
        }
        for RuledPart { ruled, room, scalar } in &self.parts {
            let lexeme = scalar.lexeme.0;
            add_asked(&mut tokens, ruled, scalar);
            // Blanks choose nothing of what follows.
            let is_told_apart =
                |token: &TokenId| ruled.most <= *room && is_blank(masker.vocabulary.text(*token));
            let leaving = masker.leaving(automaton, lexeme, ruled)?.iter().copied();
            tokens.extend(leaving.filter(|token| !is_told_apart(token)));
            let mut outs: SmallVec<[&Out; 16]> = SmallVec::new();
            let subtrees = |ruled| outs.extend(Ruled::out_beyond(ruled, *room));
            visit(ruled, |ruled| ruled.count > 0 && ruled.most > *room, subtrees);
            for out in outs {
                if let Some(state) = out.state {
                    let found = masker.readable(automaton, (lexeme, state), out.node)?;
                    tokens.extend_from_slice(&found.within);
                }
            }
        }
        tokens.retain(|&token| rivalled.has(&masker.vocabulary, token));
        Ok(tokens)
    }

    fn out_of_found<'t>(&self, trie: &'t ByteTrie, mut each: impl FnMut(&'t [TokenId])) {
        for (ruled, _) in &self.found {
            let subtrees = |ruled: &Ruled| {
                ruled.out.iter().for_each(|out| each(trie.tokens_below(out.node)));
            };
            visit(ruled, |ruled| ruled.count > 0, subtrees);
        }
    }
}

fn visit<'r>(found: &'r Ruled, enters: impl Fn(&Ruled) -> bool, mut each: impl FnMut(&'r Ruled)) {
    let mut pending: SmallVec<[&Ruled; 64]> = SmallVec::new();
    pending.push(found);
    while let Some(ruled) = pending.pop() {
        each(ruled);
        pending.extend(ruled.below.iter().map(|below| &**below).filter(|below| enters(below)));
    }
}

impl Masker {
    /// The tokens that the earlier items exclude for current scalars of threads, or those that may
    /// begin.
    pub(super) fn ruled_out(&self, automaton: &Automaton, threads: &[Thread]) -> Result<RuledOut> {
        let mut ruled = RuledOut::default();
        let mut besides = Vec::with_capacity(threads.len());
        for thread in threads {
            let beside = automaton.items().beside(thread)?;
            let behind = match beside {
                Beside::Other => automaton.items().behind_blanks(thread)?,
                _ => None,
            };
            let Some(behind) = behind else {
                besides.push((*thread, beside));
                continue;
            };
            // What begins with a blank is read byte by byte.
            if let ThreadLexeme::Lexeme(index) = thread.lexeme {
                for byte in 0..=u8::MAX {
                    if automaton.lexeme(index).next(thread.lex_state(), byte)?.is_some() {
                        ruled.unknown.push(byte);
                    }
                }
            }
            for thread in behind {
                besides.push((thread, automaton.items().beside(&thread)?));
            }
        }
        let threads: SmallVec<[Thread; 4]> = besides.iter().map(|&(thread, _)| thread).collect();
        for (at, (thread, beside)) in besides.into_iter().enumerate() {
            let thread = &thread;
            let (scalar, room, is_item) = match beside {
                Beside::Nothing => continue,
                Beside::Scalar(scalar) => (scalar, 0, true),
                Beside::Member(scalar, room) => (scalar, room, false),
                Beside::Other => {
                    ruled.is_unknown |= threads.len() == 1;
                    for byte in self.first_bytes(automaton, thread)? {
                        ruled.unknown.push(byte);
                    }
                    continue;
                }
            };
            let (place, lexeme) = (scalar.place, scalar.lexeme);
            let below = self.ruled_below(automaton, place, lexeme, NodeId::ROOT, 0)?;
            if below.is_nothing() {
                continue;
            }
            let others = || threads.iter().enumerate().filter(|&(other, _)| other != at);
            let mut is_alone = is_item;
            if is_alone && threads.len() > 1 {
                'bytes: for byte in self.first_bytes(automaton, thread)? {
                    for (_, other) in others() {
                        if may_read(automaton, other, byte)? {
                            is_alone = false;
                            break 'bytes;
                        }
                    }
                }
            }
            match is_alone {
                true => ruled.found.push((below, scalar)),
                false => ruled.parts.push(RuledPart { ruled: below, room, scalar }),
            }
        }
        Ok(ruled)
    }

    /// The first bytes of tokens that a thread may read.
    fn first_bytes(&self, automaton: &Automaton, thread: &Thread) -> Result<SmallVec<[u8; 32]>> {
        let mut bytes = SmallVec::new();
        for (byte, _) in self.vocabulary.trie().children(NodeId::ROOT) {
            if may_read(automaton, thread, byte)? {
                bytes.push(byte);
            }
        }
        Ok(bytes)
    }

    /// The excluded tokens below a node of the vocabulary's trie: those in the intersection with
    /// the trie of the earlier items. One more item changes the nodes of one path.
    fn ruled_below(
        &self,
        automaton: &Automaton,
        place: RivalPlace,
        (index, state): (LexemeId, LexState),
        node: NodeId,
        depth: usize,
    ) -> Result<Arc<Ruled>> {
        let key = (place, index, state, node);
        if let Some(known) = self.ruled.lock().get(&key) {
            return Ok(known.clone());
        }
        let trie = self.vocabulary.trie();
        let lexeme = automaton.lexeme(index);
        let (mut out, mut asked): (Vec<Out>, Vec<TokenId>) = (Vec::new(), Vec::new());
        let mut below: Vec<Arc<Ruled>> = Vec::new();
        if automaton.items().is_item(place) && state.accepts() && !state.is_final() {
            // The scalar would end here.
            for (byte, child) in trie.children(node) {
                if lexeme.next(state, byte)?.is_none() {
                    let items = automaton.items().most_items(place, false);
                    out.push(Out { node: child, items, state: None });
                }
            }
        }
        let mut child = NodeId(node.0 + 1);
        for byte in automaton.items().bytes_from(place) {
            child = trie.child_from(node, child, byte);
            if !trie.is_child(node, child, byte) {
                continue;
            }
            meter::charge(1)?;
            let Some(next) = lexeme.next(state, byte)? else { continue };
            let there = match automaton.items().next_place(place, byte, (index, next)) {
                NextPlace::At(there) => there,
                NextPlace::Apart => continue,
                NextPlace::Exponent => {
                    self.add_readable(lexeme, next, child, &mut asked)?;
                    continue;
                }
            };
            match automaton.items().left_at(there, (index, next))? {
                Left::Nothing => {
                    let items = automaton.items().most_items(there, true);
                    out.push(Out { node: child, items, state: Some(next) });
                }
                Left::Exponents => self.add_readable(lexeme, next, child, &mut asked)?,
                Left::Something if next.is_final() || trie.is_leaf(child) => {}
                Left::Something if depth >= MAX_DEPTH => {
                    self.add_readable(lexeme, next, child, &mut asked)?;
                }
                Left::Something => {
                    let found =
                        self.ruled_below(automaton, there, (index, next), child, depth + 1)?;
                    if !found.is_nothing() {
                        below.push(found);
                    }
                }
            }
        }
        let tokens = out.iter().map(|out| trie.tokens_below(out.node).len()).sum::<usize>();
        let count = tokens + below.iter().map(|below| below.count).sum::<usize>();
        let own = out.iter().map(|out| out.items).max().unwrap_or(0);
        let most = below.iter().map(|below| below.most).max().unwrap_or(0).max(own);
        let has_asked = !asked.is_empty() || below.iter().any(|below| below.has_asked);
        let ruled = match (&below[..], out.is_empty() && asked.is_empty()) {
            ([], true) => Ruled::nothing(),
            ([only], true) => only.clone(),
            _ => {
                let (out, asked, below) = (out.into(), asked.into(), below.into());
                let leaving = OnceLock::new();
                let ruled = Ruled { out, asked, below, count, most, has_asked, leaving };
                self.make_room(ruled.memory_bytes());
                Arc::new(ruled)
            }
        };
        self.make_room(2 * (std::mem::size_of_val(&key) + 2 * std::mem::size_of::<usize>()));
        self.ruled.lock().insert(key, ruled.clone());
        Ok(ruled)
    }
}

impl Masker {
    /// Adds the tokens at a node and below it that a lexeme reads, or ends in.
    fn add_readable(
        &self,
        lexeme: &Lexeme,
        state: LexState,
        node: NodeId,
        tokens: &mut Vec<TokenId>,
    ) -> Result<()> {
        let found = self.find_readable(lexeme, state, node)?;
        tokens.extend(found.within);
        tokens.extend(found.leaving);
        Ok(())
    }

    /// The tokens at a node and below it that a lexeme reads, or ends in. They are the same whatever
    /// items came.
    fn readable(
        &self,
        automaton: &Automaton,
        (index, state): (LexemeId, LexState),
        node: NodeId,
    ) -> Result<Arc<Readable>> {
        let key = (index, state, node);
        if let Some(known) = self.readable.lock().get(&key) {
            return Ok(known.clone());
        }
        let found = self.find_readable(automaton.lexeme(index), state, node)?;
        let tokens = found.within.len() + found.leaving.len();
        let found = Arc::new(found);
        self.make_room(std::mem::size_of::<Readable>() + 64 + 4 * tokens);
        self.readable.lock().insert(key, found.clone());
        Ok(found)
    }

    fn find_readable(&self, lexeme: &Lexeme, state: LexState, node: NodeId) -> Result<Readable> {
        let trie = self.vocabulary.trie();
        let mut found = Readable::default();
        let mut pending = vec![(node, state)];
        while let Some((node, state)) = pending.pop() {
            meter::charge(1)?;
            found.within.extend_from_slice(trie.tokens_at(node));
            for (byte, child) in trie.children(node) {
                match lexeme.next(state, byte)? {
                    Some(next) => pending.push((child, next)),
                    None if state.accepts() => {
                        found.leaving.extend_from_slice(trie.tokens_below(child));
                    }
                    None => {}
                }
            }
        }
        Ok(found)
    }

    /// The tokens that are ruled out and go on after the scalar. One item more changes those of one
    /// path.
    fn leaving<'r>(
        &self,
        automaton: &Automaton,
        index: LexemeId,
        ruled: &'r Ruled,
    ) -> Result<&'r [TokenId]> {
        if let Some(known) = ruled.leaving.get() {
            return Ok(known);
        }
        let mut tokens = Vec::new();
        for out in &ruled.out {
            match out.state {
                None => tokens.extend_from_slice(self.vocabulary.trie().tokens_below(out.node)),
                Some(state) => {
                    let found = self.readable(automaton, (index, state), out.node)?;
                    tokens.extend_from_slice(&found.leaving);
                }
            }
        }
        // No deeper than tokens are long.
        for below in &ruled.below {
            tokens.extend_from_slice(self.leaving(automaton, index, below)?);
        }
        self.make_room(4 * tokens.len());
        Ok(ruled.leaving.get_or_init(|| tokens.into()))
    }
}

/// Whether a thread may read a byte.
fn may_read(automaton: &Automaton, thread: &Thread, byte: u8) -> Result<bool> {
    Ok(match thread.lexeme {
        ThreadLexeme::Lexeme(index) => {
            let state = thread.lex_state();
            state.accepts() || automaton.lexeme(index).next(state, byte)?.is_some()
        }
        ThreadLexeme::Key => true,
        ThreadLexeme::End | ThreadLexeme::Tokens(_) | ThreadLexeme::Escape(_) => false,
    })
}
