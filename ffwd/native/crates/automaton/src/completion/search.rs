//! Completions: for a configuration, bytes after which the text is complete.
//!
//! From a stack the search follows each lexeme that may begin there, in the short texts that the
//! lexeme knows ([`ffwd_regular::expr::Lexeme::endings`]), to the stack of [`Automaton::exit`]. This
//! search ([`Frontier`]) ends when something is popped off the stack, and then restarts from there. An
//! estimate of the rest of each frame ([`crate::completion::estimate`]) guides it. The results are texts of the
//! grammar, because the search uses the automaton's own transitions. They are shortest texts if the
//! estimates are exact, and short ones otherwise. A result depends on the stack alone, not on
//! earlier searches, so a sequence that is parsed again elsewhere is completed in the same way.
//!
//! A new kind of frame needs an estimate; without one it is searched like any other.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::completion::forget::Written;
use crate::completion::frontier::Frontier;
use crate::error::Result;
use crate::interning::memory::map_entry;
use crate::json::keys::KeyNode;
use crate::json::lengths::UNKNOWN;
use crate::json::tables::Json;
use crate::run::automaton::Automaton;
use crate::run::completions::{Between, Edge, Known};
use crate::run::escapes::Escaped;
use crate::stacks::frame::Frame;
use crate::stacks::ids::{LexemeId, StackId, TextId};
use crate::stacks::on::On;
use crate::stacks::thread::{Thread, ThreadLexeme, Threads};
use ffwd_bounds::meter;
use ffwd_grammar::symbols::{Symbol, SymbolId};
use ffwd_grammar::NodeId;
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::{LexState, Lexeme, Verdict};

/// A text that ends something, and its special tokens, each with its position in the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndingText {
    /// The bytes, without those of the tokens.
    pub text: Vec<u8>,
    /// Places in `text` and token ids, in order.
    pub tokens: Vec<(usize, u32)>,
}

impl EndingText {
    /// Returns the length in bytes and in tokens.
    pub fn len(&self) -> usize {
        self.text.len() + self.tokens.len()
    }

    /// Whether nothing is needed to end.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn push(&mut self, edge: &Edge) {
        let before = self.text.len();
        self.tokens.extend(edge.tokens.iter().map(|&(place, token)| (before + place, token)));
        self.text.extend_from_slice(&edge.text);
    }
}

/// The greatest estimated length of a text that is searched, in bytes.
const MAX_COMPLETION_BYTES: u32 = 1 << 18;
/// How many keys of one object are tried at one place, and among how many needed ones the shortest
/// members are chosen.
const MAX_KEYS: usize = 32;
const MAX_NEEDED: usize = 1_024;
/// How many beginnings of a key without a name are tried.
const MAX_BEGINNINGS: usize = 2_000;

/// How many texts of a scalar within an item are tried.
const MAX_MEMBERS: usize = 128;

/// Finds short texts that end a text.
#[derive(Clone, Copy, Debug)]
pub struct Completing<'a> {
    pub(crate) automaton: &'a Automaton,
}

impl Automaton {
    /// The short texts that end the texts of configurations.
    pub fn completing(&self) -> Completing<'_> {
        Completing { automaton: self }
    }
}

impl Completing<'_> {
    /// A short text of a part with a limit; `None` where it may be empty, or none is found.
    pub fn of_part(&self, part: NodeId) -> Result<Option<EndingText>> {
        let Some(rules) = self.automaton.rules() else { return Ok(None) };
        let symbols = &rules.program.symbols;
        for id in (0..symbols.len() as u32).map(SymbolId) {
            let &Symbol::Marked(node, inner) = symbols.get(id) else { continue };
            if node != part {
                continue;
            }
            if symbols.is_nullable(inner) {
                return Ok(None);
            }
            let stack = rules.push_symbol(self.automaton, inner, StackId::END)?;
            return self.shortest(self.automaton.starts(stack)?);
        }
        Ok(None)
    }

    /// Bytes and special tokens that complete the text of a configuration, mostly a shortest such
    /// text. `None` if the search takes too long.
    ///
    /// # Errors
    /// A limit of what is built on the way is passed.
    pub fn shortest(&self, threads: &[Thread]) -> Result<Option<EndingText>> {
        for like in self.relaxed(threads)? {
            let Some(written) = self.written(&like, &self.levels_beside(&like))? else {
                return Ok(None);
            };
            if self.is_completed_by(threads, &written)? {
                return Ok(Some(written.ending));
            }
        }
        Ok(self.written(threads, &FxHashSet::default())?.map(|written| written.ending))
    }

    /// The completion of a configuration, independent of its recorded texts. `levels`: the heights
    /// on the stack at which it must differ from earlier text.
    pub(crate) fn written(
        &self,
        threads: &[Thread],
        levels: &FxHashSet<u32>,
    ) -> Result<Option<Written>> {
        let mut written = Written::default();
        if self.automaton.accepts(threads)? {
            return Ok(Some(written));
        }
        let Some((first, _)) = self.first_edge(threads)? else { return Ok(None) };
        written.ending.push(&first);
        let mut at = first.to;
        while at.0 != StackId::END {
            let Some(edge) = self.way_off(at)? else { return Ok(None) };
            if let Some(distinct) = &edge.distinct {
                if levels.contains(&self.automaton.cell(at.0).height) {
                    written.distinct.extend_from_slice(distinct);
                }
            }
            written.ending.push(&edge);
            at = edge.to;
        }
        // Adjacent lexemes of rules may parse the rest differently.
        if self.automaton.rules().is_some() {
            let ends = self.is_ended_by(threads, &written.ending)?;
            return Ok(ends.then_some(written));
        }
        Ok(Some(written))
    }

    /// Whether a text ends with what has been read.
    pub(crate) fn is_ended_by(&self, threads: &[Thread], ending: &EndingText) -> Result<bool> {
        match self.read_ending(threads, ending)? {
            Some(end) => self.automaton.accepts(&end),
            None => Ok(false),
        }
    }

    fn read_ending(&self, threads: &[Thread], ending: &EndingText) -> Result<Option<Threads>> {
        let mut threads = Threads::from_slice(threads);
        let mut read = 0;
        for &(place, token) in &ending.tokens {
            let Some(next) = self.automaton.walk(&threads, &ending.text[read..place])? else {
                return Ok(None);
            };
            threads = self.automaton.step_token(&next, token)?;
            if threads.is_empty() {
                return Ok(None);
            }
            read = place;
        }
        self.automaton.walk(&threads, &ending.text[read..])
    }

    /// The length of [`Self::shortest`].
    ///
    /// # Errors
    /// As there.
    pub fn length(&self, threads: &[Thread]) -> Result<Option<usize>> {
        let is_plain = self.automaton.rules().is_none() && self.relaxed(threads)?.is_empty();
        if !is_plain {
            return Ok(self.shortest(threads)?.map(|bytes| bytes.len()));
        }
        if self.automaton.accepts(threads)? {
            return Ok(Some(0));
        }
        Ok(self.first_edge(threads)?.map(|(_, length)| length as usize))
    }

    /// The beginning of a configuration's completion, and the length of all of it.
    fn first_edge(&self, threads: &[Thread]) -> Result<Option<(Edge, u32)>> {
        let mut edges = Vec::new();
        for thread in threads {
            self.edges(thread, &mut edges)?;
        }
        let mut promising: Vec<(u32, Edge)> = Vec::with_capacity(edges.len());
        for edge in in_order(edges) {
            let length = edge.length().saturating_add(self.estimate(edge.to.0)?);
            promising.push((length, edge));
        }
        promising.sort_by_key(|&(length, _)| length);
        let mut best: Option<(Edge, u32)> = None;
        for (least, edge) in promising {
            if best.as_ref().is_some_and(|&(_, length)| length <= least) {
                break;
            }
            let Some(rest) = self.length_from(edge.to)? else { continue };
            let length = edge.length().saturating_add(rest);
            if best.as_ref().is_none_or(|&(_, known)| length < known) {
                best = Some((edge, length));
            }
        }
        Ok(best)
    }

    /// The length of the completion of a text that is between two lexemes.
    fn length_from(&self, start: Between) -> Result<Option<u32>> {
        if (MAX_COMPLETION_BYTES..UNKNOWN).contains(&self.estimate(start.0)?) {
            return Ok(None);
        }
        let mut way: Vec<(Between, u32)> = Vec::new();
        let mut at = start;
        let mut length = loop {
            if at.0 == StackId::END {
                break Some(0);
            }
            if let Some(known) =
                self.automaton.completions.known.lock().get(&at).and_then(|k| k.length)
            {
                break known;
            }
            match self.way_off(at)? {
                Some(edge) => {
                    way.push((at, edge.length()));
                    at = edge.to;
                }
                None => break None,
            }
        };
        let mut known = self.automaton.completions.known.lock();
        for (at, text) in way.into_iter().rev() {
            length = length.map(|length: u32| length.saturating_add(text));
            if let Some(known) = known.get_mut(&at) {
                known.length = Some(length);
            }
        }
        Ok(length)
    }

    /// A text after which something is off a stack.
    fn way_off(&self, start: Between) -> Result<Option<Edge>> {
        if let Some(known) = self.automaton.completions.known.lock().get(&start) {
            return Ok(known.edge.clone());
        }
        let edge = Frontier::new(*self, start).search()?;
        let bytes = |edge: &Edge| {
            let distinct = edge.distinct.iter().flat_map(|distinct| distinct.iter());
            edge.text.len() + distinct.map(|text| text.len() + 16).sum::<usize>()
        };
        let text = edge.as_ref().map_or(0, bytes);
        self.automaton.completions.held.add(map_entry::<Between, Known>() + text);
        self.automaton
            .completions
            .known
            .lock()
            .insert(start, Known { edge: edge.clone(), length: None });
        Ok(edge)
    }

    /// Texts that end the lexeme of a thread, and the stacks after them.
    pub(crate) fn edges(&self, thread: &Thread, edges: &mut Vec<Edge>) -> Result<()> {
        match thread.lexeme {
            ThreadLexeme::End => {}
            ThreadLexeme::Tokens(set) => {
                if let Some(&(token, _)) = self.automaton.token_set(set).first() {
                    let to = self.between(self.automaton.cell(thread.stack).parent, TextId::NONE);
                    let tokens = SmallVec::from_slice(&[(0, token)]);
                    edges.push(Edge { tokens, ..Edge::of(Arc::from([]), to) });
                }
            }
            ThreadLexeme::Escape(_) => {
                let escaping = self.automaton.escaping();
                let endings = escaping.map_or(Ok(Vec::new()), |it| it.endings(thread))?;
                for Escaped { rest, threads } in endings {
                    let first = edges.len();
                    for thread in &threads {
                        self.edges(thread, edges)?;
                    }
                    for edge in &mut edges[first..] {
                        edge.text = [&rest, &edge.text[..]].concat().into();
                        edge.tokens.iter_mut().for_each(|(place, _)| *place += rest.len());
                    }
                }
            }
            ThreadLexeme::Lexeme(index) => {
                let lexeme = self.automaton.lexeme(index);
                let before = edges.len();
                for ending in lexeme.endings(thread.lex_state())?.iter() {
                    let accept = lexeme.accept(ending.end);
                    let mut edge =
                        self.ended(thread, &ending.text, accept, ending.end.is_final())?;
                    if lexeme.spec().ends != Ends::Anywhere && !ending.end.is_final() {
                        edge.to.2 = Some((index, ending.end));
                    }
                    if !self.automaton.has_history(thread.stack) || self.goes_on(&edge)? {
                        edges.push(edge);
                    }
                }
                if edges.len() == before {
                    edges.extend(self.unused_edge(thread, index)?);
                }
                self.other_members(thread, index, edges)?;
            }
            ThreadLexeme::Key => {
                if let Some(json) = self.automaton.json() {
                    self.key_edges(json, thread, edges)?;
                }
            }
        }
        Ok(())
    }

    /// Whether something can follow. Behind an item that came, and behind a member that leaves only
    /// such items, nothing can.
    fn goes_on(&self, edge: &Edge) -> Result<bool> {
        let (stack, transcript, _) = edge.to;
        Ok(!self.automaton.following_alive(stack, transcript, true)?.is_empty())
    }

    /// The end of an item that must differ from earlier ones, which may include the shortest
    /// values.
    fn unused_edge(&self, thread: &Thread, index: LexemeId) -> Result<Option<Edge>> {
        if !self.automaton.has_history(thread.stack) {
            return Ok(None);
        }
        let Some(compared) = self.automaton.compared() else { return Ok(None) };
        let Some(beginning) = compared.unused_ending(thread)? else { return Ok(None) };
        let lexeme = self.automaton.lexeme(index);
        let mut state = thread.lex_state();
        for &byte in &beginning {
            let Some(next) = lexeme.next(state, byte)? else { return Ok(None) };
            state = next;
        }
        let ends = [(Arc::from([]), state)];
        let endings = match state.is_final() {
            true => Vec::new(),
            false => {
                let endings = lexeme.endings(state)?;
                endings.iter().map(|ending| (ending.text.clone(), ending.end)).collect()
            }
        };
        for (rest, end) in if state.is_final() { &ends[..] } else { &endings[..] } {
            let text: Arc<[u8]> = [&beginning[..], rest].concat().into();
            let edge = self.ended(thread, &text, lexeme.accept(*end), end.is_final())?;
            if self.goes_on(&edge)? {
                return Ok(Some(edge));
            }
        }
        Ok(None)
    }

    /// Further texts of a scalar within an item: one more than the earlier items that the item may
    /// still equal.
    fn other_members(&self, thread: &Thread, index: LexemeId, edges: &mut Vec<Edge>) -> Result<()> {
        let is_value = matches!(self.automaton.cell(thread.stack).frame, Frame::Value(_));
        let rivals = match self.automaton.compared().filter(|_| is_value) {
            // A bracket with blanks begins no other value than without.
            Some(compared) if compared.json.layouts.place(index).is_none() => {
                compared.num_rivals_of_member(thread)?
            }
            _ => 0,
        };
        if rivals == 0 {
            return Ok(());
        }
        let lexeme = self.automaton.lexeme(index);
        let start = (Vec::new(), thread.lex_state());
        let mut pending = VecDeque::from([start]);
        let mut tried = 0;
        let mut found = 0;
        while let Some((text, state)) = pending.pop_front() {
            tried += 1;
            meter::charge(4)?;
            for byte in (b'0'..=b'9').chain(b' '..=b'/').chain(b':'..=0xFF) {
                let Some(next) = lexeme.next(state, byte)? else { continue };
                let text: Vec<u8> = text.iter().copied().chain([byte]).collect();
                if next.accepts() {
                    let (text, accept) = (Arc::from(&text[..]), lexeme.accept(next));
                    let edge = self.ended(thread, &text, accept, next.is_final())?;
                    if self.goes_on(&edge)? {
                        edges.push(edge);
                        found += 1;
                    }
                }
                if !next.is_final() {
                    pending.push_back((text, next));
                }
            }
            if found > rivals.min(MAX_MEMBERS) || tried > MAX_BEGINNINGS {
                break;
            }
        }
        Ok(())
    }

    /// Returns the state after a lexeme's text that ends with a verdict.
    fn ended(
        &self,
        thread: &Thread,
        text: &Arc<[u8]>,
        accept: Verdict,
        is_final: bool,
    ) -> Result<Edge> {
        let mut ended = *thread;
        if let Some(json) = self.automaton.json() {
            // The closing quote is no part of a key.
            let key = &text[..text.len() - usize::from(is_final && !text.is_empty())];
            let texts = &json.keys.texts;
            ended.text = key.iter().try_fold(thread.text, |id, &byte| texts.append(id, byte))?;
            let transcript = thread.transcript;
            ended.transcript =
                text.iter().try_fold(transcript, |id, &byte| texts.append(id, byte))?;
        }
        let stack = self.automaton.exit_thread(&ended, accept)?;
        Ok(Edge::of(text.clone(), self.between(stack, ended.transcript)))
    }

    fn between(&self, stack: StackId, transcript: TextId) -> Between {
        (
            stack,
            if self.automaton.cell(stack).transcribed { transcript } else { TextId::NONE },
            None,
        )
    }

    /// The keys to try: those that some alternative still requires, or one of which avoids an
    /// excluded alternative. If there are none, others. If there are many, those whose values are
    /// estimated to be the shortest.
    fn key_edges(&self, json: &Json, thread: &Thread, edges: &mut Vec<Edge>) -> Result<()> {
        let (Frame::ObjectOpen(state) | Frame::ObjectKey(state)) =
            self.automaton.cell(thread.stack).frame
        else {
            return Ok(());
        };
        let node = json.keys.node(thread.key_node());
        let (needed, others) =
            json.needed_names(state, json.keys.allowed_names(&node), MAX_NEEDED)?;
        let any = needed.is_empty();
        let mut names = needed;
        if any {
            // An object that may close needs no more names.
            let most = if json.object_verdict(state) == 0 { usize::MAX } else { MAX_KEYS };
            names.extend(json.keys.allowed_names(&node).take(most));
        }
        if names.len() > MAX_KEYS {
            names =
                json.shortest_members(state, names, |schema| self.estimate_schema(json, schema))?;
            names.truncate(MAX_KEYS);
        }
        for name in names {
            let text: Arc<[u8]> = json.keys.rest_of_name(&node, name).into();
            let stack = self.automaton.exit(thread.stack, ThreadLexeme::Key, 1, name.as_text())?;
            let texts = &json.keys.texts;
            let transcript =
                text.iter().try_fold(thread.transcript, |id, &byte| texts.append(id, byte))?;
            edges.push(Edge::of(text, self.between(stack, transcript)));
        }
        if any || others {
            self.other_keys(thread, &node, edges)?;
        }
        Ok(())
    }

    /// Undeclared keys that have not occurred: a shortest one of each class of keys, since the
    /// values of a class may all be long.
    fn other_keys(&self, thread: &Thread, node: &KeyNode, edges: &mut Vec<Edge>) -> Result<()> {
        let Some(base) = node.base else { return Ok(()) };
        let lexeme = self.automaton.lexeme(base.lexeme);
        // Each has a verdict of its own.
        for ending in lexeme.endings(base.state)?.iter() {
            let class = lexeme.accept(ending.end);
            edges.extend(self.key_of_class(thread, lexeme, base.state, class)?);
        }
        Ok(())
    }

    /// A shortest key with a verdict that has not occurred.
    fn key_of_class(
        &self,
        thread: &Thread,
        lexeme: &Lexeme,
        start: LexState,
        class: Verdict,
    ) -> Result<Option<Edge>> {
        let rest = |state: LexState| -> Result<Option<Arc<[u8]>>> {
            let endings = lexeme.endings(state)?;
            let ending = endings.iter().find(|ending| lexeme.accept(ending.end) == class);
            Ok(ending.map(|ending| ending.text.clone()))
        };
        // Beginnings, each with its state and the shortest key that it has; the shortest key first,
        // then the oldest.
        let mut beginnings: Vec<(Vec<u8>, LexState, Arc<[u8]>)> = Vec::new();
        let mut queue = BinaryHeap::new();
        if let Some(rest) = rest(start)? {
            queue.push(Reverse((rest.len(), 0)));
            beginnings.push((Vec::new(), start, rest));
        }
        for _ in 0..MAX_BEGINNINGS {
            let Some(Reverse((_, at))) = queue.pop() else { break };
            meter::charge(4)?;
            let (beginning, state, ending) = &beginnings[at];
            let (beginning, state) = (beginning.clone(), *state);
            let text = [&beginning[..], ending].concat();
            if let Some(to) = self.after_key(thread, &text)? {
                let text: Arc<[u8]> = text.into();
                let distinct = Some([text.clone()].into());
                return Ok(Some(Edge { distinct, ..Edge::of(text, to) }));
            }
            for (byte, next) in further(lexeme, state)? {
                if let Some(rest) = rest(next)? {
                    let beginning: Vec<u8> = beginning.iter().copied().chain([byte]).collect();
                    queue.push(Reverse((beginning.len() + rest.len(), beginnings.len())));
                    beginnings.push((beginning, next, rest));
                }
            }
        }
        Ok(None)
    }

    /// Returns the state at a key's colon, if the key is allowed.
    fn after_key(&self, thread: &Thread, text: &[u8]) -> Result<Option<Between>> {
        let Some(threads) = self.automaton.walk(&[*thread], text)? else { return Ok(None) };
        let is_colon = |thread: &&Thread| self.automaton.cell(thread.stack).frame == Frame::Colon;
        let after = threads.iter().find(is_colon);
        Ok(after.map(|after| self.between(after.stack, after.transcript)))
    }
}

/// In an order that does not depend on numbers that were given out.
pub(crate) fn in_order(mut edges: Vec<Edge>) -> Vec<Edge> {
    let by = |edge: &Edge| (edge.length(), edge.text.clone(), edge.tokens.clone());
    edges.sort_by_cached_key(by);
    edges
}

/// Bytes that continue a key without ending it.
fn further(lexeme: &Lexeme, state: LexState) -> Result<Vec<(u8, LexState)>> {
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
