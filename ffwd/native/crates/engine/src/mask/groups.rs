//! The allowed tokens of a state, grouped by target.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::lexeme_mask::Inner;
use super::state_mask::Masker;
use super::successors::is_unrecorded;
use super::token_set::{bits, has_bit, set_bits};
use ffwd_automaton::{
    is_in_escape, Automaton, LexemeId, Result, StateId, Thread, ThreadLexeme, Threads,
};
use ffwd_bounds::meter;
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::LexState;
use ffwd_tokenizer::vocabulary::{ByteTrie, NodeId, TokenId, Vocabulary};

/// Tokens that lead from one state to another.
#[derive(Debug)]
pub struct Group {
    /// Their target, before parts that start with them get an age.
    pub next: StateId,
    tokens: Inner,
}

impl Group {
    /// One of its tokens.
    pub fn first_token(&self) -> Option<TokenId> {
        match &self.tokens {
            Inner::Few(tokens) => tokens.first().copied(),
            Inner::Many(bitmap) => bits(bitmap).next(),
        }
    }

    pub fn add_to(&self, row: &mut [u32]) {
        match &self.tokens {
            Inner::Few(tokens) => set_bits(row, tokens),
            Inner::Many(bitmap) => {
                row.iter_mut().zip(bitmap.iter()).for_each(|(word, more)| *word |= more);
            }
        }
    }
}

/// Collects the targets of tokens, thread by thread.
struct Gathering<'a> {
    automaton: &'a Automaton,
    trie: &'a ByteTrie,
    ids: FxHashMap<Threads, u32>,
    found: Vec<(TokenId, u32)>,
    /// Threads still to follow, each from a node of the trie.
    pending: Vec<(Threads, NodeId)>,
}

impl Masker {
    /// Returns the allowed tokens of a state by target, without end tokens.
    pub fn groups(&self, automaton: &Automaton, state: StateId) -> Result<Arc<[Group]>> {
        if let Some(known) = self.groups.with(state.0, Arc::clone) {
            return Ok(known);
        }
        let vocabulary = &self.vocabulary;
        let threads = automaton.threads(state);
        let mut gathering = Gathering {
            automaton,
            trie: vocabulary.trie(),
            ids: FxHashMap::default(),
            found: Vec::new(),
            pending: vec![(Threads::from_slice(threads), NodeId::ROOT)],
        };
        gathering.read_all()?;
        if automaton.escaping().is_some() && !is_in_escape(threads) {
            let escaped = vocabulary.with_backslash();
            gathering.found.retain(|&(token, _)| !has_bit(&escaped.row, token));
            gathering.trie = &escaped.trie;
            for thread in threads {
                gathering.read_bytes(thread, NodeId::ROOT)?;
            }
        }
        for (set, stack) in automaton.token_exits(threads)? {
            let id = gathering
                .id(Threads::from_slice(automaton.starts(automaton.limited().begun(stack)?)?));
            for &(first, last) in automaton.token_set(set) {
                gathering.found.extend((first..=last).map(|token| (TokenId(token), id)));
            }
        }
        let mut groups = Vec::new();
        for tokens in alike(gathering.found) {
            let Some(&token) = tokens.first() else { continue };
            let whole = automaton.has_tokens().then_some(token.0);
            let next = automaton.limited().read(threads, whole, vocabulary.text(token))?;
            let Some(next) = next else { continue };
            let next = automaton.intern(next)?;
            groups.push(Group { next, tokens: Inner::of(vocabulary, tokens) });
        }
        let groups: Arc<[Group]> = groups.into();
        self.make_room(groups.iter().map(|group| group.memory_bytes(vocabulary)).sum());
        self.groups.set(state.0, Arc::new(groups.clone()));
        Ok(groups)
    }
}

impl Group {
    fn memory_bytes(&self, vocabulary: &Vocabulary) -> usize {
        let tokens = match &self.tokens {
            Inner::Few(tokens) => tokens.len(),
            Inner::Many(_) => vocabulary.mask_words(),
        };
        std::mem::size_of::<Self>() + tokens * 4
    }
}

/// Tokens with the same target, in any order.
fn alike(mut found: Vec<(TokenId, u32)>) -> Vec<Vec<TokenId>> {
    found.sort_unstable();
    found.dedup();
    let mut places: FxHashMap<SmallVec<[u32; 4]>, usize> = FxHashMap::default();
    let mut groups: Vec<Vec<TokenId>> = Vec::new();
    for same in found.chunk_by(|a, b| a.0 == b.0) {
        let ids: SmallVec<[u32; 4]> = same.iter().map(|&(_, id)| id).collect();
        let place = *places.entry(ids).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].extend(same.first().map(|&(token, _)| token));
    }
    groups
}

impl Gathering<'_> {
    fn id(&mut self, threads: Threads) -> u32 {
        let fresh = self.ids.len() as u32;
        *self.ids.entry(threads).or_insert(fresh)
    }

    fn add(&mut self, id: u32, tokens: &[TokenId]) {
        self.found.extend(tokens.iter().map(|&token| (token, id)));
    }

    fn read_all(&mut self) -> Result<()> {
        while let Some((threads, root)) = self.pending.pop() {
            let is_within_escape = is_in_escape(&threads);
            for thread in &threads {
                match thread.lexeme {
                    ThreadLexeme::End | ThreadLexeme::Tokens(_) => {}
                    _ if is_within_escape => self.read_bytes(thread, root)?,
                    ThreadLexeme::Lexeme(index) if is_unrecorded(thread) => {
                        self.read_lexeme(thread, index, root)?;
                    }
                    _ => self.read_bytes(thread, root)?,
                }
            }
        }
        Ok(())
    }

    fn read_bytes(&mut self, thread: &Thread, root: NodeId) -> Result<()> {
        let trie = self.trie;
        let mut pending = vec![(root, Threads::from_slice(&[*thread]))];
        while let Some((node, threads)) = pending.pop() {
            for (byte, child) in trie.children(node) {
                let next = self.automaton.limited().step(&threads, byte)?;
                if next.is_empty() {
                    continue;
                }
                let tokens = trie.tokens_at(child);
                if !tokens.is_empty() {
                    let id = self.id(next.clone());
                    self.add(id, tokens);
                }
                if !trie.is_leaf(child) {
                    pending.push((child, next));
                }
            }
        }
        Ok(())
    }

    /// Within a lexeme each byte is a look-up.
    fn read_lexeme(&mut self, thread: &Thread, index: LexemeId, root: NodeId) -> Result<()> {
        let (automaton, trie) = (self.automaton, self.trie);
        let lexeme = automaton.lexeme(index);
        let begun = Thread { stack: automaton.limited().begun(thread.stack)?, ..*thread };
        let mut ids: FxHashMap<LexState, u32> = FxHashMap::default();
        let mut pending = vec![(root, thread.lex_state())];
        while let Some((node, state)) = pending.pop() {
            meter::charge(1)?;
            let ended = match state.accepts() {
                true => {
                    let from = if node == root { thread } else { &begun };
                    let at = Thread { state: state.0, ..*from };
                    let stack = automaton.exit_thread(&at, lexeme.accept(state))?;
                    Some(automaton.starts(stack)?)
                }
                false => None,
            };
            let anywhere = lexeme.spec().ends == Ends::Anywhere;
            if let Some(starts) = ended.filter(|starts| anywhere && !starts.is_empty()) {
                if !trie.is_leaf(node) {
                    self.pending.push((Threads::from_slice(starts), node));
                }
            }
            for (byte, child) in trie.children(node) {
                let tokens = trie.tokens_at(child);
                let Some(next) = lexeme.next(state, byte)? else {
                    if let Some(starts) = ended.filter(|_| !anywhere) {
                        let next = automaton.limited().step(starts, byte)?;
                        self.arrive(next, tokens, child);
                    }
                    continue;
                };
                if next.is_final() {
                    let stack = automaton.exit_thread(&begun, lexeme.accept(next))?;
                    self.arrive(Threads::from_slice(automaton.starts(stack)?), tokens, child);
                    continue;
                }
                if !tokens.is_empty() {
                    let id = match ids.get(&next) {
                        Some(&known) => known,
                        None => {
                            let at = Thread { state: next.0, ..begun };
                            let id = self.id(Threads::from_slice(&[at]));
                            ids.insert(next, id);
                            id
                        }
                    };
                    self.add(id, tokens);
                }
                if !trie.is_leaf(child) {
                    pending.push((child, next));
                }
            }
        }
        Ok(())
    }

    fn arrive(&mut self, threads: Threads, tokens: &[TokenId], node: NodeId) {
        if threads.is_empty() {
            return;
        }
        if !tokens.is_empty() {
            let id = self.id(threads.clone());
            self.add(id, tokens);
        }
        if !self.trie.is_leaf(node) {
            self.pending.push((threads, node));
        }
    }
}
