//! The targets of the vocabulary's tokens, without the recorded texts.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::inside::Inside;
use super::lexeme_mask::Inner;
use super::token_set::{bits, clear_bits, Bitmap};
use ffwd_automaton::{without_texts, Automaton, Result, TextId, Thread};
use ffwd_automaton::{ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_regular::expr::LexState;
use ffwd_tokenizer::vocabulary::{ByteTrie, Descent, NodeId, TokenId};

/// The heights on the stack of the objects whose last key was forgotten.
pub(super) type Left = SmallVec<[u32; 2]>;

/// A configuration, and tokens that lead to it or to one that differs only in recorded texts.
#[derive(Debug)]
pub(super) struct Found {
    pub threads: Threads,
    pub left: Left,
    pub tokens: Vec<TokenId>,
    pub bitmaps: Vec<Bitmap>,
}

impl Found {
    /// Whether something has been forgotten.
    pub fn is_forgetful(&self) -> bool {
        let forgot =
            |thread: &Thread| thread.text == TextId::ANY || thread.transcript == TextId::ANY;
        !self.left.is_empty() || self.threads.iter().any(forgot)
    }
}

impl Found {
    /// Removes the tokens that satisfy a predicate.
    pub fn take(&mut self, holds: impl Fn(&TokenId) -> bool) -> Vec<TokenId> {
        let mut taken: Vec<TokenId> = self.tokens.extract_if(.., |token| holds(token)).collect();
        for bitmap in &mut self.bitmaps {
            let of_it: Vec<TokenId> = bits(bitmap).filter(&holds).collect();
            if !of_it.is_empty() {
                let mut rest = bitmap.to_vec();
                clear_bits(&mut rest, &of_it);
                *bitmap = rest.into();
                taken.extend(of_it);
            }
        }
        taken
    }
}

/// The configurations to which tokens lead, without recorded texts.
#[derive(Debug, Default)]
pub(super) struct Successors {
    places: FxHashMap<(Threads, Left), usize>,
    pub found: Vec<Found>,
}

/// Nodes of a trie whose subtrees are unexamined, each with its threads.
type Pending = Vec<(NodeId, Threads)>;

/// Whether the lexeme is part of no recorded text.
pub(super) fn is_unrecorded(thread: &Thread) -> bool {
    (thread.text, thread.transcript) == (TextId::NONE, TextId::NONE)
}

impl Successors {
    fn place(&mut self, threads: Threads, left: &Left) -> usize {
        let key = (threads, left.clone());
        if let Some(&known) = self.places.get(&key) {
            return known;
        }
        let place = self.found.len();
        let (threads, left) = key.clone();
        self.places.insert(key, place);
        self.found.push(Found { threads, left, tokens: Vec::new(), bitmaps: Vec::new() });
        place
    }

    /// Tokens that lead to a configuration.
    pub fn add(&mut self, threads: &[Thread], left: &Left, tokens: &[TokenId]) {
        self.add_exactly(&without_texts(threads), left, tokens);
    }

    /// Tokens that lead to a configuration, with what is recorded there.
    pub fn add_exactly(&mut self, threads: &[Thread], left: &Left, tokens: &[TokenId]) {
        if !tokens.is_empty() {
            let place = self.place(Threads::from_slice(threads), left);
            self.found[place].tokens.extend_from_slice(tokens);
        }
    }

    /// Removes the tokens of a bitmap.
    pub fn remove(&mut self, removed: &[u32]) {
        let is_left = |token: &TokenId| removed[token.index() / 32] >> (token.0 % 32) & 1 == 0;
        for Found { tokens, bitmaps, .. } in &mut self.found {
            tokens.retain(is_left);
            for bitmap in bitmaps {
                if bitmap.iter().zip(removed).any(|(word, removed)| word & removed != 0) {
                    let left = bitmap.iter().zip(removed).map(|(word, removed)| word & !removed);
                    *bitmap = left.collect();
                }
            }
        }
    }

    pub fn add_all(&mut self, others: Self) {
        for Found { threads, left, tokens, bitmaps } in others.found {
            let place = self.place(threads, &left);
            self.found[place].tokens.extend(tokens);
            self.found[place].bitmaps.extend(bitmaps);
        }
    }

    /// The tokens that stay in the lexeme of a thread, or end where it must.
    pub fn add_inside(
        &mut self,
        automaton: &Automaton,
        thread: &Thread,
        inside: &Arc<Inside>,
    ) -> Result<()> {
        for (state, tokens) in inside.groups() {
            let at = Thread { state: state.0, ..forgotten(thread) };
            let (threads, left) = match (state.is_final(), thread.lexeme) {
                (true, ThreadLexeme::Lexeme(index)) => {
                    let accept = automaton.lexeme(index).accept(*state);
                    let stack = automaton.exit_thread(&at, accept)?;
                    let threads = without_texts(&automaton.following(stack, at.transcript)?);
                    (threads, left_behind(automaton, thread))
                }
                _ => (Threads::from_slice(&[at]), Left::new()),
            };
            if threads.is_empty() {
                continue;
            }
            let place = self.place(threads, &left);
            match &**tokens {
                Inner::Few(tokens) => self.found[place].tokens.extend_from_slice(tokens),
                Inner::Many(bitmap) => self.found[place].bitmaps.push(bitmap.clone()),
            }
        }
        Ok(())
    }

    /// The tokens below a node that is reached with these threads.
    pub fn add_below(
        &mut self,
        automaton: &Automaton,
        trie: &ByteTrie,
        root: NodeId,
        threads: &[Thread],
        left: &Left,
    ) -> Result<()> {
        let mut pending: Pending = vec![(root, Threads::from_slice(threads))];
        while let Some((node, threads)) = pending.pop() {
            if let [thread] = &*threads {
                if matches!(thread.lexeme, ThreadLexeme::Lexeme(_)) {
                    self.add_within(automaton, (trie, node), thread, left, &mut pending)?;
                    continue;
                }
            }
            for (byte, child) in trie.children(node) {
                let next = automaton.step(&threads, byte)?;
                if !next.is_empty() {
                    self.add(&next, left, trie.tokens_at(child));
                    if !trie.is_leaf(child) {
                        pending.push((child, next));
                    }
                }
            }
        }
        Ok(())
    }

    /// The same for one thread, while its lexeme continues and cannot have ended: then each byte is
    /// a look-up.
    fn add_within(
        &mut self,
        automaton: &Automaton,
        (trie, root): (&ByteTrie, NodeId),
        thread: &Thread,
        left: &Left,
        pending: &mut Pending,
    ) -> Result<()> {
        let ThreadLexeme::Lexeme(index) = thread.lexeme else { return Ok(()) };
        let lexeme = automaton.lexeme(index);
        let mut places: FxHashMap<LexState, usize> = FxHashMap::default();
        let mut last = (thread.lex_state(), usize::MAX);
        // The bytes between the root and the node.
        let mut bytes: Vec<u8> = Vec::new();
        trie.walk(root, thread.lex_state(), |&state, node, depth| {
            meter::charge(1)?;
            bytes.truncate(depth);
            let byte = trie.byte(node);
            let tokens = trie.tokens_at(node);
            let next = lexeme.next(state, byte)?;
            match next.filter(|next| !next.is_final() && !state.accepts()) {
                Some(next) => {
                    if !tokens.is_empty() {
                        if last.0 != next || last.1 == usize::MAX {
                            let place = match places.get(&next) {
                                Some(&known) => known,
                                None => {
                                    let at = Thread { state: next.0, ..forgotten(thread) };
                                    self.place(Threads::from_slice(&[at]), left)
                                }
                            };
                            places.insert(next, place);
                            last = (next, place);
                        }
                        self.found[last.1].tokens.extend_from_slice(tokens);
                    }
                    bytes.push(byte);
                    return Ok(Descent::Below(next));
                }
                None if next.is_none() && !state.accepts() => {}
                None => {
                    let here = reached(automaton, thread, state, &bytes)?;
                    let threads = automaton.step(&[here], byte)?;
                    if !threads.is_empty() {
                        self.add(&threads, left, tokens);
                        if !trie.is_leaf(node) {
                            pending.push((node, threads));
                        }
                    }
                }
            }
            Ok(Descent::Skip)
        })
    }
}

/// A thread with recorded texts, which are dropped.
pub(super) fn forgotten(thread: &Thread) -> Thread {
    let forget = |text| if text == TextId::NONE { TextId::NONE } else { TextId::ANY };
    Thread { text: forget(thread.text), transcript: forget(thread.transcript), ..*thread }
}

/// Returns the object whose key may have ended with the lexeme of a thread.
pub(super) fn left_behind(automaton: &Automaton, thread: &Thread) -> Left {
    match thread.text {
        TextId::NONE => Left::new(),
        _ => Left::from_slice(&[automaton.height(thread.stack)]),
    }
}

/// A thread further on in its lexeme.
fn reached(
    automaton: &Automaton,
    thread: &Thread,
    state: LexState,
    bytes: &[u8],
) -> Result<Thread> {
    let mut reached = Thread { state: state.0, ..*thread };
    if let (Some(json), false) = (automaton.json(), is_unrecorded(thread)) {
        for &byte in bytes {
            reached.text = json.keys.texts.append(reached.text, byte)?;
            reached.transcript = json.keys.texts.append(reached.transcript, byte)?;
        }
    }
    Ok(reached)
}
