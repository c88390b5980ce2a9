//! How a text can end: for a configuration, bytes after which the text is complete.
//!
//! The search goes over stacks, best first. From a stack it goes on with each lexeme that may begin
//! there, in the short texts that the lexeme knows ([`crate::expr::Lexeme::endings`]), to the stack
//! that [`Automaton::exit`] says. An estimate of what each frame still needs ([`super::estimate`])
//! leads it. What it finds are texts of the grammar, for it goes where texts go. They are mostly
//! shortest ones, as far as the estimates are exact, and short ones otherwise.
//!
//! Each stack on the way remembers how it goes on, so a search ends where it meets one that is known.
//! A new kind of frame needs an estimate, or has none: then it is searched like anything else.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::config::{Automaton, JsonParts, Thread, ThreadLexeme};
use super::error::EngineError;
use super::estimate::Estimates;
use super::frame::{Frame, StackId};
use super::keys::{KeyNode, TextId};
use super::memory::{map_entry, Bytes};
use super::punctuation::index;
use crate::expr::{Lexeme, Verdict};

/// Where a text stands between two lexemes: what must follow, and the item so far that later ones
/// are compared with.
pub(super) type Between = (StackId, TextId);

/// A lexeme's text, and what follows it.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    pub text: Arc<[u8]>,
    pub to: Between,
}

/// How a text goes on that is between two lexemes.
#[derive(Clone, Debug)]
struct Known {
    /// Of all that follows.
    length: u32,
    edge: Edge,
}

/// What is known of how texts end.
#[derive(Debug, Default)]
pub(super) struct Completions {
    known: Mutex<FxHashMap<Between, Known>>,
    pub estimates: Mutex<Estimates>,
    pub held: Bytes,
}

/// How many stacks one search may look at.
pub const MAX_COMPLETION_STEPS: usize = 20_000;
/// How many keys of one object are tried at one place.
const MAX_KEYS: usize = 32;
/// How many beginnings of a key without a name are tried.
const MAX_BEGINNINGS: usize = 2_000;

/// The text that ends here already.
const ENDED: Between = (StackId::END, TextId::NONE);

/// A stack that the search has come to.
struct Visit {
    at: Between,
    length: u32,
    from: usize,
    text: Arc<[u8]>,
}

impl Automaton {
    /// Bytes after which a text is complete that stands in a configuration, mostly a shortest such
    /// text. `None` where that takes too long to find.
    ///
    /// # Errors
    /// A limit of what is built on the way is passed.
    pub fn completion(&self, threads: &[Thread]) -> Result<Option<Vec<u8>>, EngineError> {
        let Some((text, mut at)) = self.search(threads)? else { return Ok(None) };
        let mut bytes = text.concat();
        let known = self.completions.known.lock();
        while at.0 != StackId::END {
            let Some(Known { edge, .. }) = known.get(&at) else { return Ok(None) };
            bytes.extend_from_slice(&edge.text);
            at = edge.to;
        }
        Ok(Some(bytes))
    }

    /// The length of [`Self::completion`].
    ///
    /// # Errors
    /// As there.
    pub fn completion_length(&self, threads: &[Thread]) -> Result<Option<usize>, EngineError> {
        let Some((text, at)) = self.search(threads)? else { return Ok(None) };
        let known = self.completions.known.lock();
        let rest = if at.0 == StackId::END { Some(0) } else { known.get(&at).map(|k| k.length) };
        Ok(rest.map(|rest| text.iter().map(|part| part.len()).sum::<usize>() + rest as usize))
    }

    /// The first lexemes of a completion, and a place from which on it is known.
    fn search(&self, threads: &[Thread]) -> Result<Option<(Vec<Arc<[u8]>>, Between)>, EngineError> {
        if self.accepts(threads)? {
            return Ok(Some((Vec::new(), ENDED)));
        }
        let mut visits: Vec<Visit> = Vec::new();
        let mut shortest: FxHashMap<Between, usize> = FxHashMap::default();
        // By about how long the whole is, then by what is left, then the newest first.
        let mut queue: BinaryHeap<Reverse<(u64, u64, Reverse<usize>)>> = BinaryHeap::new();
        let mut edges: Vec<Edge> = Vec::new();
        for thread in threads {
            self.edges(thread, &mut edges)?;
        }
        let mut from = usize::MAX;
        let mut length = 0;
        loop {
            for Edge { text, to } in edges.drain(..) {
                let length = length + text.len() as u32;
                let worse = |&at: &usize| visits[at].length <= length;
                if shortest.get(&to).is_some_and(worse) {
                    continue;
                }
                let known = self.completions.known.lock().get(&to).map(|known| known.length);
                let (left, priority) = match known {
                    Some(left) => (u64::from(left), u64::from(left)),
                    None => {
                        let left = u64::from(self.estimate(to.0)?);
                        // Where estimates are too small, rather on than aside.
                        (left, left + left / 4)
                    }
                };
                shortest.insert(to, visits.len());
                let whole = u64::from(length) + priority;
                queue.push(Reverse((whole, left, Reverse(visits.len()))));
                visits.push(Visit { at: to, length, from, text });
            }
            if visits.len() > MAX_COMPLETION_STEPS {
                return Ok(None);
            }
            let Some(Reverse((_, _, Reverse(current)))) = queue.pop() else { return Ok(None) };
            let visit = &visits[current];
            if shortest.get(&visit.at) != Some(&current) {
                continue;
            }
            let known = self.completions.known.lock().get(&visit.at).map(|known| known.length);
            let rest = if visit.at.0 == StackId::END { Some(0) } else { known };
            if let Some(rest) = rest {
                return Ok(Some(self.remember(&visits, current, rest)));
            }
            from = current;
            length = visit.length;
            for thread in &self.following(visit.at.0, visit.at.1)? {
                if thread.lexeme == ThreadLexeme::End {
                    // Nothing is left but frames that need nothing.
                    edges.push(Edge { text: Arc::from([]), to: ENDED });
                } else {
                    self.edges(thread, &mut edges)?;
                }
            }
        }
    }

    /// Takes note of a way that was found, and gives its first lexeme.
    fn remember(&self, visits: &[Visit], last: usize, rest: u32) -> (Vec<Arc<[u8]>>, Between) {
        let whole = visits[last].length + rest;
        let mut known = self.completions.known.lock();
        let mut at = last;
        while visits[at].from != usize::MAX {
            let Visit { from, at: to, ref text, .. } = visits[at];
            let before = &visits[from];
            let length = whole - before.length;
            let edge = Edge { text: text.clone(), to };
            let held = map_entry::<Between, Known>() + text.len();
            match known.get_mut(&before.at) {
                Some(known) if known.length <= length => {}
                Some(known) => *known = Known { length, edge },
                None => {
                    self.completions.held.add(held);
                    known.insert(before.at, Known { length, edge });
                }
            }
            at = from;
        }
        (vec![visits[at].text.clone()], visits[at].at)
    }

    /// Texts with which the lexeme of a thread can end, and what follows then.
    fn edges(&self, thread: &Thread, edges: &mut Vec<Edge>) -> Result<(), EngineError> {
        match thread.lexeme {
            ThreadLexeme::End => {}
            ThreadLexeme::Lexeme(index) => {
                let lexeme = self.lexeme(index);
                for ending in lexeme.endings(thread.lex_state())?.iter() {
                    let accept = lexeme.accept(ending.end);
                    edges.push(self.ended(thread, &ending.text, accept, ending.end.is_final())?);
                }
            }
            ThreadLexeme::Key => {
                if let Some(json) = self.json() {
                    self.key_edges(json, thread, edges)?;
                }
            }
        }
        Ok(())
    }

    /// Where a lexeme's text leads that ends with a verdict.
    fn ended(
        &self,
        thread: &Thread,
        text: &Arc<[u8]>,
        accept: Verdict,
        is_final: bool,
    ) -> Result<Edge, EngineError> {
        let mut ended = *thread;
        if let Some(json) = self.json() {
            // Of a key the closing quote is no part.
            let key = &text[..text.len() - usize::from(is_final && !text.is_empty())];
            let texts = &json.keys.texts;
            ended.text = key.iter().try_fold(thread.text, |id, &byte| texts.append(id, byte))?;
            let transcript = thread.transcript;
            ended.transcript =
                text.iter().try_fold(transcript, |id, &byte| texts.append(id, byte))?;
        }
        let stack = self.exit_thread(&ended, accept)?;
        Ok(Edge { text: text.clone(), to: self.between(stack, ended.transcript) })
    }

    fn between(&self, stack: StackId, transcript: TextId) -> Between {
        (stack, if self.cell(stack).transcribed { transcript } else { TextId::NONE })
    }

    /// The keys that may come: those that some alternative still needs, and where there are none,
    /// a few others.
    fn key_edges(
        &self,
        json: &JsonParts,
        thread: &Thread,
        edges: &mut Vec<Edge>,
    ) -> Result<(), EngineError> {
        let (Frame::ObjectOpen(state) | Frame::ObjectKey(state)) = self.cell(thread.stack).frame
        else {
            return Ok(());
        };
        let node = json.keys.node(thread.key_node());
        let needed = self.needed_names(json, state, json.keys.allowed_names(&node), MAX_KEYS);
        let any = needed.is_empty();
        let names =
            if any { json.keys.allowed_names(&node).take(MAX_KEYS).collect() } else { needed };
        for name in names {
            let text: Arc<[u8]> = json.keys.rest_of_name(&node, name).into();
            let stack = self.exit(thread.stack, ThreadLexeme::Key, 1, TextId(name))?;
            let texts = &json.keys.texts;
            let transcript =
                text.iter().try_fold(thread.transcript, |id, &byte| texts.append(id, byte))?;
            edges.push(Edge { text, to: self.between(stack, transcript) });
        }
        if any {
            if let Some(edge) = self.other_key(thread, &node)? {
                edges.push(edge);
            }
        }
        Ok(())
    }

    /// A key without a name that has not come yet.
    fn other_key(&self, thread: &Thread, node: &KeyNode) -> Result<Option<Edge>, EngineError> {
        let Some(base) = node.base else { return Ok(None) };
        let lexeme = self.lexeme(base.lexeme);
        // Beginnings, the shortest first, each with the state of the lexeme that it leads to.
        let mut pending = std::collections::VecDeque::from([(Vec::new(), base.state)]);
        let mut tried = 0;
        while let Some((beginning, state)) = pending.pop_front() {
            for ending in lexeme.endings(state)?.iter() {
                let text = [&beginning[..], &ending.text].concat();
                if let Some(to) = self.after_key(thread, &text)? {
                    return Ok(Some(Edge { text: text.into(), to }));
                }
            }
            tried += 1;
            if tried > MAX_BEGINNINGS {
                break;
            }
            for (byte, next) in further(lexeme, state)? {
                pending.push_back((beginning.iter().copied().chain([byte]).collect(), next));
            }
        }
        Ok(None)
    }

    /// Where a key leads, if it may come: to its colon.
    fn after_key(&self, thread: &Thread, text: &[u8]) -> Result<Option<Between>, EngineError> {
        let Some(threads) = self.walk(&[*thread], text)? else { return Ok(None) };
        let is_colon = |thread: &&Thread| {
            self.cell(thread.stack).frame == Frame::Lexeme(index::COLON)
                && thread.lexeme == ThreadLexeme::Lexeme(index::COLON)
        };
        let after = threads.iter().find(is_colon);
        Ok(after.map(|after| self.between(after.stack, after.transcript)))
    }
}

/// Bytes with which a key can go on, without ending.
fn further(
    lexeme: &Lexeme,
    state: crate::expr::LexState,
) -> Result<Vec<(u8, crate::expr::LexState)>, EngineError> {
    let mut found = Vec::new();
    let likely = (b'a'..=b'z').chain(b'0'..=b'9').chain(b' '..=b'~').chain(0x80..=0xFF);
    let mut seen = [false; 256];
    for byte in likely.filter(|&byte| byte != b'\\') {
        if std::mem::replace(&mut seen[usize::from(byte)], true) {
            continue;
        }
        if let Some(next) = lexeme.next(state, byte)?.filter(|next| !next.is_final()) {
            found.push((byte, next));
        }
    }
    Ok(found)
}
