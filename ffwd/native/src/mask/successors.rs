//! Where the tokens of a vocabulary lead, but for what is recorded of the text.

use rustc_hash::FxHashMap;

use crate::automaton::{Automaton, EngineError, TextId, Thread, ThreadLexeme, Threads};
use crate::expr::{LexState, Lexeme};
use crate::vocabulary::{ByteTrie, NodeId, TokenId};

/// A configuration, and tokens that lead to it or to one that has only recorded something else.
#[derive(Debug)]
pub(super) struct Found {
    pub threads: Threads,
    pub tokens: Vec<TokenId>,
}

/// The configurations that tokens lead to, with all that they have recorded forgotten.
#[derive(Debug, Default)]
pub(super) struct Successors {
    places: FxHashMap<Threads, usize>,
    pub found: Vec<Found>,
}

/// Nodes of a trie that are still to be looked below, each with where it leads.
type Pending = Vec<(NodeId, Threads)>;

/// Whether no text is recorded in which the lexeme is a part.
pub(super) fn is_unrecorded(thread: &Thread) -> bool {
    (thread.text, thread.transcript) == (TextId::NONE, TextId::NONE)
}

/// Whether something is recorded and has been forgotten.
pub(super) fn is_forgetful(threads: &[Thread]) -> bool {
    let forgot = |thread: &Thread| thread.text == TextId::ANY || thread.transcript == TextId::ANY;
    threads.iter().any(forgot)
}

impl Successors {
    fn place(&mut self, threads: Threads) -> usize {
        if let Some(&known) = self.places.get(&threads) {
            return known;
        }
        let place = self.found.len();
        self.places.insert(threads.clone(), place);
        self.found.push(Found { threads, tokens: Vec::new() });
        place
    }

    /// Tokens that lead to a configuration.
    pub fn add(&mut self, threads: &[Thread], tokens: &[TokenId]) {
        if !tokens.is_empty() {
            let place = self.place(Automaton::forget(threads));
            self.found[place].tokens.extend_from_slice(tokens);
        }
    }

    /// The tokens below a node that is reached with these threads.
    pub fn add_below(
        &mut self,
        automaton: &Automaton,
        trie: &ByteTrie,
        root: NodeId,
        threads: &[Thread],
    ) -> Result<(), EngineError> {
        let mut pending: Pending = vec![(root, Threads::from_slice(threads))];
        while let Some((node, threads)) = pending.pop() {
            if let [thread] = &*threads {
                if let ThreadLexeme::Lexeme(index) = thread.lexeme {
                    let lexeme = automaton.lexeme(index);
                    self.add_within(automaton, lexeme, (trie, node), thread, &mut pending)?;
                    continue;
                }
            }
            for (byte, child) in trie.children(node) {
                let next = automaton.step(&threads, byte)?;
                if !next.is_empty() {
                    self.add(&next, trie.tokens_at(child));
                    if !trie.is_leaf(child) {
                        pending.push((child, next));
                    }
                }
            }
        }
        Ok(())
    }

    /// The same for one thread, as long as its lexeme goes on and cannot have ended: then a byte is
    /// a look-up.
    fn add_within(
        &mut self,
        automaton: &Automaton,
        lexeme: &Lexeme,
        (trie, root): (&ByteTrie, NodeId),
        thread: &Thread,
        pending: &mut Pending,
    ) -> Result<(), EngineError> {
        let end = trie.after(root);
        let mut places: FxHashMap<LexState, usize> = FxHashMap::default();
        let mut last = (thread.lex_state(), usize::MAX);
        // Up to which node each state holds, and the bytes to the last one.
        let mut path: Vec<(NodeId, LexState)> = vec![(end, thread.lex_state())];
        let mut bytes: Vec<u8> = Vec::new();
        let mut node = NodeId(root.0 + 1);
        while node < end {
            while path.len() > 1 && path.last().is_some_and(|&(until, _)| node >= until) {
                path.pop();
            }
            bytes.truncate(path.len() - 1);
            let Some(&(_, state)) = path.last() else { break };
            let (byte, after) = (trie.byte(node), trie.after(node));
            let tokens = trie.tokens_at(node);
            let is_leaf = after.0 == node.0 + 1;
            let next = lexeme.next(state, byte)?;
            match next.filter(|next| !next.is_final() && !state.accepts()) {
                Some(next) => {
                    if !tokens.is_empty() {
                        if last.0 != next || last.1 == usize::MAX {
                            let place = match places.get(&next) {
                                Some(&known) => known,
                                None => {
                                    let at = Thread { state: next.0, ..forgotten(thread) };
                                    self.place(Threads::from_slice(&[at]))
                                }
                            };
                            places.insert(next, place);
                            last = (next, place);
                        }
                        self.found[last.1].tokens.extend_from_slice(tokens);
                    }
                    if !is_leaf {
                        path.push((after, next));
                        bytes.push(byte);
                    }
                    node = NodeId(node.0 + 1);
                }
                None if next.is_none() && !state.accepts() => node = after,
                None => {
                    let here = reached(automaton, thread, state, &bytes)?;
                    let threads = automaton.step(&[here], byte)?;
                    if !threads.is_empty() {
                        self.add(&threads, tokens);
                        if !is_leaf {
                            pending.push((node, threads));
                        }
                    }
                    node = after;
                }
            }
        }
        Ok(())
    }
}

/// A thread that has recorded something, which is forgotten.
fn forgotten(thread: &Thread) -> Thread {
    let forget = |text| if text == TextId::NONE { TextId::NONE } else { TextId::ANY };
    Thread { text: forget(thread.text), transcript: forget(thread.transcript), ..*thread }
}

/// A thread further on in its lexeme.
fn reached(
    automaton: &Automaton,
    thread: &Thread,
    state: LexState,
    bytes: &[u8],
) -> Result<Thread, EngineError> {
    let mut reached = Thread { state: state.0, ..*thread };
    if let (Some(json), false) = (automaton.json(), is_unrecorded(thread)) {
        for &byte in bytes {
            reached.text = json.keys.texts.append(reached.text, byte)?;
            reached.transcript = json.keys.texts.append(reached.transcript, byte)?;
        }
    }
    Ok(reached)
}
