//! Configurations, and how a byte leads from one to the next.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::array::{ArrayGroup, ArrayPending, ArrayPendingId, ArrayState, ArrayStateId, Spare};
use super::beginnings::Beginnings;
use super::completion::Completions;
use super::error::EngineError;
use super::exclusion::Feasibility;
use super::frame::{Cell, ExitKey, FirstExits, Frame, StackId};
use super::history::Histories;
use super::intern::{Ids, Interner, ShortHash};
use super::keys::{KeyNode, Keys, Terminal, TextId};
use super::layouts::{LayoutId, Layouts};
use super::memory::{map_entry, Bytes, LexemeBytes};
use super::object::{ObjectPending, ObjectState};
use super::object_group::ObjectGroup;
use super::punctuation::{self, index};
use super::rivals::KnownRivals;
use super::rules::Rules;
use super::thread::{Thread, ThreadLexeme, Threads};
use super::value::{Query, QueryId, Schemas, ValueStarts};
use super::{Grammar, PropertyOrder, RuleSchemas, Whitespace, Writing};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_json_schema::SchemaSet;
use ffwd_regular::expr::lexeme::Ends;
use ffwd_regular::expr::{Lexeme, LexemeSpec, LexemeStore, Spelling, Verdict};

/// An interned configuration of one [`Automaton`].
/// The place of the configuration in the automaton, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateId(pub u32);

#[derive(Debug)]
pub(super) struct Config {
    threads: Box<[Thread]>,
    accepting: bool,
}

/// A value that is in no other one.
#[derive(Clone, Copy, Debug)]
pub(super) struct RootValue {
    pub query: QueryId,
    /// The layout, if values have different ones.
    layout: Option<LayoutId>,
}

/// The parts of the automaton that only JSON grammars have.
#[derive(Debug)]
pub struct JsonParts {
    /// The normal forms of all schemas, which grow as texts are read.
    pub schema: Box<SchemaSet>,
    pub(super) property_order: PropertyOrder,
    /// See [`Writing::narrows`].
    pub(super) narrows: bool,
    /// The names of all objects.
    pub keys: Keys,
    pub(super) layouts: Layouts,
    pub(super) queries: Interner<Query>,
    pub(super) value_starts: Mutex<FxHashMap<QueryId, Arc<ValueStarts>>>,
    pub(super) object_groups: boxcar::Vec<ObjectGroup>,
    pub(super) feasible: Mutex<FxHashMap<Feasibility, bool>>,
    pub(super) object_states: Interner<ObjectState>,
    pub(super) object_pendings: Interner<ObjectPending>,
    pub(super) array_groups: boxcar::Vec<ArrayGroup>,
    pub(super) array_states: Interner<ArrayState>,
    pub(super) array_pendings: Interner<ArrayPending>,
    pub(super) array_items: Mutex<FxHashMap<ArrayStateId, Option<ArrayPendingId>>>,
    pub(super) array_spares: Mutex<FxHashMap<ArrayStateId, Spare>>,
    /// Items that came, where they lie beside the schema.
    pub(super) histories: Histories,
    pub(super) rivals: KnownRivals,
    /// Bytes of what is not interned.
    pub(super) held: Bytes,
}

/// A grammar compiled as far as texts have needed it; threads may share it.
#[derive(Debug)]
pub struct Automaton {
    lexeme_store: Arc<LexemeStore>,
    pub(super) lexemes: boxcar::Vec<Arc<Lexeme>>,
    lexeme_ids: Mutex<FxHashMap<LexemeSpec, u32>>,
    pub(super) cells: boxcar::Vec<Cell>,
    cell_ids: Mutex<Ids>,
    /// Exits that are not in the lists of their stacks.
    exits: Mutex<FxHashMap<(StackId, ExitKey), StackId>>,
    pub(super) configs: boxcar::Vec<Config>,
    config_ids: Mutex<Ids>,
    json: Option<JsonParts>,
    rules: Option<Rules>,
    start: OnceLock<StateId>,
    /// Bytes of the threads of configurations.
    pub(super) thread_bytes: Bytes,
    /// Bytes of what begins on stacks, and of how they are left.
    pub(super) flow_bytes: Bytes,
    pub(super) lexeme_bytes: LexemeBytes,
    pub(super) completions: Completions,
    /// The beginnings on stacks with marks; see [`super::beginnings`].
    pub(super) marked: Mutex<Beginnings>,
}

pub(super) const MAX_CONFIGS: usize = 8_000_000;
pub(super) const MAX_CELLS: usize = 8_000_000;
const MAX_FRAMES: usize = 8_000_000;

impl Automaton {
    /// In a box from the beginning: its tables take kilobytes even where they are empty, and to move
    /// them takes a good part of the time in which a small grammar is compiled.
    pub fn new(grammar: Grammar, lexeme_store: Arc<LexemeStore>) -> Result<Box<Self>, EngineError> {
        let mut automaton = Box::new(Self {
            lexeme_store,
            lexemes: boxcar::Vec::new(),
            lexeme_ids: Mutex::default(),
            cells: boxcar::Vec::new(),
            cell_ids: Mutex::default(),
            exits: Mutex::default(),
            configs: boxcar::Vec::new(),
            config_ids: Mutex::default(),
            json: None,
            rules: None,
            start: OnceLock::new(),
            thread_bytes: Bytes::default(),
            flow_bytes: Bytes::default(),
            lexeme_bytes: LexemeBytes::default(),
            completions: Completions::default(),
            marked: Mutex::default(),
        });
        automaton.push(Frame::End, StackId::END)?;
        let root = match grammar {
            Grammar::Text(ast) => {
                let lexeme = automaton.add_lexeme(&punctuation::spec(Spelling::Utf8, [ast]))?;
                Frame::Lexeme(lexeme)
            }
            Grammar::Json { schema, writing } => {
                let root = schema.root();
                automaton.add_json(schema, &writing, &[&writing.whitespace])?;
                let mut schemas = Schemas::new(writing.narrows());
                schemas.require(root);
                let root = automaton.root_value(schemas, &writing.whitespace)?;
                let below = automaton.below_value(root, StackId::END)?;
                return automaton.starting(Frame::Value(root.query), below);
            }
            Grammar::Rules { program, json } => {
                let mut values = Vec::new();
                if let Some(RuleSchemas { schema, roots, writing }) = json {
                    let whitespaces: Vec<&Whitespace> = roots.iter().map(|(_, own)| own).collect();
                    automaton.add_json(schema, &writing, &whitespaces)?;
                    for (root, whitespace) in &roots {
                        let mut schemas = Schemas::new(writing.narrows());
                        schemas.require(*root);
                        values.push(automaton.root_value(schemas, whitespace)?);
                    }
                }
                let start = program.symbols.start;
                automaton.rules = Some(Rules::new(program, values));
                Frame::Symbol(start)
            }
        };
        automaton.starting(root, StackId::END)
    }

    /// With a configuration that begins with a frame.
    fn starting(self: Box<Self>, root: Frame, below: StackId) -> Result<Box<Self>, EngineError> {
        let stack = self.push(root, below)?;
        let mut threads: Threads = self.starts(stack)?.iter().copied().collect();
        if let Some(rules) = self.rules() {
            self.drop_dead_ends(rules, &mut threads)?;
        }
        let start = self.intern(threads)?;
        let _ = self.start.set(start);
        Ok(self)
    }

    fn root_value(
        &self,
        schemas: Schemas,
        whitespace: &Whitespace,
    ) -> Result<RootValue, EngineError> {
        let layout = |json: &JsonParts| json.layouts.of_whitespace(whitespace);
        match self.json.as_ref().map(|json| (json, layout(json))) {
            Some((json, Some(layout))) => {
                let layout = Some(layout).filter(|&layout| !json.layouts.is_plain(layout));
                Ok(RootValue { query: self.query(json, schemas)?, layout })
            }
            _ => Err(LimitExceeded::new("grammar_schemas", 0).into()),
        }
    }

    /// The stack below a value that is in no other one.
    pub(super) fn below_value(
        &self,
        value: RootValue,
        stack: StackId,
    ) -> Result<StackId, EngineError> {
        match value.layout {
            None => Ok(stack),
            Some(layout) => self.push(Frame::Layout(layout), stack),
        }
    }

    /// Begins with what JSON values have, whatever their schemas.
    fn add_json(
        &mut self,
        schema: Box<SchemaSet>,
        writing: &Writing,
        whitespaces: &[&Whitespace],
    ) -> Result<(), EngineError> {
        let mut different: Vec<&Whitespace> = Vec::new();
        for &whitespace in whitespaces {
            if !different.contains(&whitespace) {
                different.push(whitespace);
            }
        }
        // By position: two marks may have the same text.
        let mut firsts = Vec::with_capacity(different.len());
        for whitespace in &different {
            firsts.push(self.lexemes.count() as u32);
            for lexeme in punctuation::lexemes(whitespace, &self.lexeme_store)? {
                self.lexemes.push(lexeme);
            }
            if firsts.len() == 1 {
                let any_string = self.lexeme_store.get(&punctuation::any_string())?;
                self.lexeme_ids.lock().insert(any_string.spec().clone(), index::ANY_STRING);
                self.lexemes.push(any_string);
            }
        }
        let mut layouts = Layouts::default();
        for (whitespace, &first) in different.iter().zip(&firsts) {
            layouts.add(whitespace, first, |spec| self.add_lexeme(spec))?;
        }
        let frames = "grammar_frames";
        self.json = Some(JsonParts {
            schema,
            property_order: writing.property_order,
            narrows: writing.narrows(),
            keys: Keys::new()?,
            layouts,
            queries: Interner::new(frames, MAX_FRAMES),
            value_starts: Mutex::default(),
            object_groups: boxcar::Vec::new(),
            feasible: Mutex::default(),
            object_states: Interner::new(frames, MAX_FRAMES),
            object_pendings: Interner::new(frames, MAX_FRAMES),
            array_groups: boxcar::Vec::new(),
            array_states: Interner::new(frames, MAX_FRAMES),
            array_pendings: Interner::new(frames, MAX_FRAMES),
            array_items: Mutex::default(),
            array_spares: Mutex::default(),
            histories: Histories::new()?,
            rivals: KnownRivals::default(),
            held: Bytes::default(),
        });
        Ok(())
    }

    /// The configuration before any byte.
    pub fn start(&self) -> StateId {
        self.start.get().copied().unwrap_or(StateId(0))
    }

    /// Whether any text at all belongs to the grammar.
    pub fn is_satisfiable(&self) -> bool {
        !self.threads(self.start()).is_empty()
    }

    pub(super) fn lexeme_store(&self) -> &LexemeStore {
        &self.lexeme_store
    }

    pub(super) fn rules(&self) -> Option<&Rules> {
        self.rules.as_ref()
    }

    /// What JSON values need; `None` of a grammar without any.
    pub fn json(&self) -> Option<&JsonParts> {
        self.json.as_ref()
    }

    /// The lexeme of an index that a thread or a key has.
    #[inline]
    pub fn lexeme(&self, index: u32) -> &Arc<Lexeme> {
        &self.lexemes[index as usize]
    }

    pub(super) fn add_lexeme(&self, spec: &LexemeSpec) -> Result<u32, EngineError> {
        if let Some(&known) = self.lexeme_ids.lock().get(spec) {
            return Ok(known);
        }
        let lexeme = self.lexeme_store.get(spec)?;
        let mut ids = self.lexeme_ids.lock();
        if let Some(&known) = ids.get(spec) {
            return Ok(known);
        }
        let id = self.lexemes.push(lexeme) as u32;
        ids.insert(spec.clone(), id);
        Ok(id)
    }

    #[inline]
    pub(super) fn cell(&self, stack: StackId) -> &Cell {
        &self.cells[stack.0 as usize]
    }

    /// The stack with one frame more.
    pub(super) fn push(&self, frame: Frame, parent: StackId) -> Result<StackId, EngineError> {
        let hash = ShortHash::of(&(frame, parent));
        let is = |id: u32| {
            let cell = &self.cells[id as usize];
            (cell.frame, cell.parent) == (frame, parent)
        };
        let mut ids = self.cell_ids.lock();
        if let Some(known) = ids.find(hash, is) {
            return Ok(StackId(known));
        }
        meter::charge(1)?;
        meter::check::stacks(self.cells.count() + 1)?;
        if self.cells.count() >= MAX_CELLS {
            return Err(LimitExceeded::new("grammar_stacks", MAX_CELLS).into());
        }
        // The first cell is the end, and its own parent.
        let below = self.cells.get(parent.0 as usize);
        let is_compared = |frame: Frame| matches!(frame, Frame::AwaitComparedItem(_));
        let history = match (frame, self.json()) {
            (Frame::ArrayOpen(state) | Frame::ArrayAfter(state), Some(json)) => {
                self.history_at(json, state)
            }
            (Frame::AwaitComparedItem(item), Some(json)) => self.history_before(json, item),
            _ => None,
        };
        let level = match below {
            _ if is_compared(frame) => Cell::OWN_LEVEL,
            Some(cell) if cell.level == Cell::OWN_LEVEL => parent,
            Some(cell) => cell.level,
            None => StackId::END,
        };
        let id = self.cells.push(Cell {
            frame,
            parent,
            height: below.map_or(0, |cell| cell.height + 1),
            depth: below.map_or(0, |cell| cell.depth) + u32::from(frame.is_container()),
            layout: match frame {
                Frame::Layout(layout) => layout,
                _ => below.map_or(LayoutId::default(), |cell| cell.layout),
            },
            transcribed: is_compared(frame) || below.is_some_and(|cell| cell.transcribed),
            ends_compared_item: below.is_some_and(|cell| is_compared(cell.frame)),
            level,
            has_history: history.is_some() || below.is_some_and(|cell| cell.has_history),
            starts: OnceLock::new(),
            exits: FirstExits::default(),
        }) as u32;
        ids.insert(hash, id);
        Ok(StackId(id))
    }

    /// The lexemes that may begin on a stack. Those within an item that later ones are compared with
    /// have an empty transcript; see [`Self::following`].
    pub fn starts(&self, stack: StackId) -> Result<&[Thread], EngineError> {
        let cell = self.cell(stack);
        if let Some(known) = cell.starts.get() {
            return Ok(known);
        }
        meter::charge(2)?;
        let mut starts = self.compute_starts(stack)?;
        for start in &mut starts {
            if self.cell(start.stack).transcribed {
                start.transcript = TextId::EMPTY;
            }
        }
        self.flow_bytes.add(std::mem::size_of_val(&*starts));
        Ok(cell.starts.get_or_init(|| starts.into_vec().into_boxed_slice()))
    }

    /// Returns the lexemes that may begin on a stack, with a transcript to continue.
    pub fn following(&self, stack: StackId, transcript: TextId) -> Result<Threads, EngineError> {
        let mut threads: Threads = self.starts(stack)?.iter().copied().collect();
        if transcript != TextId::NONE {
            for thread in &mut threads {
                if thread.transcript != TextId::NONE {
                    thread.transcript = transcript;
                }
            }
        }
        Ok(threads)
    }

    /// The same. If `is_last`, it leaves out those that can only become items that came.
    pub(super) fn following_alive(
        &self,
        stack: StackId,
        transcript: TextId,
        is_last: bool,
    ) -> Result<Threads, EngineError> {
        let threads = self.following(stack, transcript)?;
        match transcript {
            _ if !is_last => Ok(threads),
            TextId::NONE | TextId::ANY => Ok(threads),
            _ => self.unrivalled(threads),
        }
    }

    /// Returns the stack after an accepted lexeme. `accept` has the languages that hold. `text` is
    /// the key if the lexeme was a key, or the item's text if later items are compared with it.
    pub fn exit(
        &self,
        stack: StackId,
        lexeme: ThreadLexeme,
        accept: Verdict,
        text: TextId,
    ) -> Result<StackId, EngineError> {
        let key = (lexeme, accept, text);
        if let Some(known) = self.known_exit(stack, key) {
            return Ok(known);
        }
        meter::charge(2)?;
        let next = self.compute_exit(stack, lexeme, accept, text)?;
        self.keep_exit(stack, key, next);
        Ok(next)
    }

    pub(super) fn known_exit(&self, stack: StackId, key: ExitKey) -> Option<StackId> {
        let first = self.cell(stack).exits.get(&key);
        first.or_else(|| self.exits.lock().get(&(stack, key)).copied())
    }

    pub(super) fn keep_exit(&self, stack: StackId, key: ExitKey, next: StackId) {
        self.flow_bytes.add(map_entry::<(StackId, ExitKey), StackId>());
        if !self.cell(stack).exits.insert(key, next) {
            self.exits.lock().insert((stack, key), next);
        }
    }

    /// Returns the exit of a thread whose lexeme ends here.
    pub fn exit_thread(&self, thread: &Thread, accept: Verdict) -> Result<StackId, EngineError> {
        let text = match thread.transcript {
            TextId::NONE => thread.text,
            transcript if self.ends_compared_item(thread)? => transcript,
            _ => thread.text,
        };
        self.exit(thread.stack, thread.lexeme, accept, text)
    }

    /// The threads after one more byte; none if no text goes on so.
    pub fn step(&self, threads: &[Thread], byte: u8) -> Result<Threads, EngineError> {
        self.step_within(threads, byte, true)
    }

    /// The same. Unless `is_last`, other bytes follow, and only the last one needs to tell whether
    /// an item can still become one that has not come.
    fn step_within(
        &self,
        threads: &[Thread],
        byte: u8,
        is_last: bool,
    ) -> Result<Threads, EngineError> {
        meter::charge(1 + threads.len())?;
        let mut next = Threads::new();
        for thread in threads {
            self.step_thread(thread, byte, is_last, &mut next)?;
        }
        self.settle(&mut next)?;
        Ok(next)
    }

    /// Sorts threads, makes those one that differ only in what follows them, and takes out those
    /// from which no text goes on to an end.
    pub fn settle(&self, threads: &mut Threads) -> Result<(), EngineError> {
        if threads.len() > 1 {
            threads.sort_unstable();
            threads.dedup();
            if let Some(rules) = &self.rules {
                self.merge(rules, threads)?;
            }
        }
        match &self.rules {
            Some(rules) => self.drop_dead_ends(rules, threads),
            None => Ok(()),
        }
    }

    fn step_thread(
        &self,
        thread: &Thread,
        byte: u8,
        is_last: bool,
        next: &mut Threads,
    ) -> Result<(), EngineError> {
        match thread.lexeme {
            ThreadLexeme::End | ThreadLexeme::Tokens(_) => {}
            ThreadLexeme::Key => self.step_key(thread, byte, is_last, next)?,
            ThreadLexeme::Lexeme(index) => {
                let lexeme = self.lexeme(index);
                let state = thread.lex_state();
                let after = lexeme.next(state, byte)?;
                let goes_on = after.is_some();
                if let Some(after) = after {
                    let transcript = self.append(thread.transcript, byte)?;
                    if after.is_final() {
                        let ended = Thread { transcript, ..*thread };
                        let stack = self.exit_thread(&ended, lexeme.accept(after))?;
                        next.extend(self.following_alive(stack, transcript, is_last)?);
                    } else {
                        let text = self.append(thread.text, byte)?;
                        let thread = Thread { state: after.0, text, transcript, ..*thread };
                        if !is_last || self.is_unrivalled(&thread)? {
                            next.push(thread);
                        }
                    }
                }
                if state.accepts() && !(goes_on && lexeme.spec().ends != Ends::Anywhere) {
                    let stack = self.exit_thread(thread, lexeme.accept(state))?;
                    for start in &self.following(stack, thread.transcript)? {
                        self.step_thread(start, byte, is_last, next)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn append(&self, text: TextId, byte: u8) -> Result<TextId, EngineError> {
        match &self.json {
            Some(json) if text != TextId::NONE => Ok(json.keys.texts.append(text, byte)?),
            _ => Ok(text),
        }
    }

    pub(super) fn step_key(
        &self,
        thread: &Thread,
        byte: u8,
        is_last: bool,
        next: &mut Threads,
    ) -> Result<(), EngineError> {
        let Some(json) = &self.json else { return Ok(()) };
        let node = json.keys.node(thread.key_node());
        if let Some(child) = json.keys.child(&node, byte)? {
            if !json.keys.is_dead(&child) {
                let text = match child.has_names() {
                    true => thread.text,
                    false => json.keys.texts.append(key_text(json, thread, &node)?, byte)?,
                };
                let state = json.keys.intern(child)?.0;
                let transcript = json.keys.texts.append(thread.transcript, byte)?;
                let thread = Thread { state, text, transcript, ..*thread };
                if !is_last || self.is_unrivalled(&thread)? {
                    next.push(thread);
                }
            }
            return Ok(());
        }
        // A quote ends a name, but right after the opening of an object it begins one.
        if byte == b'"' && !node.is_before_quote() {
            match json.keys.terminal(&node) {
                Terminal::Allowed(name) => {
                    let stack = self.exit(thread.stack, ThreadLexeme::Key, 1, TextId(name))?;
                    let transcript = json.keys.texts.append(thread.transcript, byte)?;
                    next.extend(self.following_alive(stack, transcript, is_last)?);
                    return Ok(());
                }
                Terminal::Refused => return Ok(()),
                Terminal::None => {}
            }
        }
        match self.as_other_key(json, thread, &node)? {
            Some(other) => self.step_thread(&other, byte, is_last, next),
            None => Ok(()),
        }
    }

    /// A thread within the names of an object, as one within a key that is no name.
    pub(super) fn as_other_key(
        &self,
        json: &JsonParts,
        thread: &Thread,
        node: &KeyNode,
    ) -> Result<Option<Thread>, EngineError> {
        let Some(base) = node.base else { return Ok(None) };
        let lexeme = ThreadLexeme::Lexeme(base.lexeme);
        let text = key_text(json, thread, node)?;
        Ok(Some(Thread { lexeme, state: base.state.0, text, ..*thread }))
    }

    /// Whether the text may end here.
    pub fn accepts(&self, threads: &[Thread]) -> Result<bool, EngineError> {
        for thread in threads {
            match thread.lexeme {
                ThreadLexeme::End => return Ok(true),
                ThreadLexeme::Key | ThreadLexeme::Tokens(_) => {}
                ThreadLexeme::Lexeme(index) => {
                    let accept = self.lexeme(index).accept(thread.lex_state());
                    if accept != 0 {
                        let stack = self.exit_thread(thread, accept)?;
                        if self.accepts(self.starts(stack)?)? {
                            return Ok(true);
                        }
                    }
                }
            }
        }
        Ok(false)
    }

    /// The configuration of these threads.
    pub fn intern(&self, mut threads: Threads) -> Result<StateId, EngineError> {
        if threads.len() > 1 {
            threads.sort_unstable();
            threads.dedup();
        }
        let hash = ShortHash::of(threads.as_slice());
        let is = |id: u32| *self.configs[id as usize].threads == *threads;
        if let Some(known) = self.config_ids.lock().find(hash, is) {
            return Ok(StateId(known));
        }
        let accepting = self.accepts(&threads)?;
        let mut ids = self.config_ids.lock();
        if let Some(known) = ids.find(hash, is) {
            return Ok(StateId(known));
        }
        meter::charge(threads.len())?;
        meter::check::states(self.configs.count() + 1)?;
        if self.configs.count() >= MAX_CONFIGS {
            return Err(LimitExceeded::new("grammar_states", MAX_CONFIGS).into());
        }
        let threads: Box<[Thread]> = threads.into_vec().into_boxed_slice();
        self.thread_bytes.add(std::mem::size_of_val(&*threads));
        let id = self.configs.push(Config { threads, accepting }) as u32;
        ids.insert(hash, id);
        Ok(StateId(id))
    }

    /// All readings of the text so far, one thread each.
    #[inline]
    pub fn threads(&self, state: StateId) -> &[Thread] {
        &self.configs[state.0 as usize].threads
    }

    /// Whether the text may end in this configuration.
    #[inline]
    pub fn is_accepting(&self, state: StateId) -> bool {
        self.configs[state.0 as usize].accepting
    }

    /// The threads after a run of bytes; `None` as soon as no text goes on so.
    pub fn walk(&self, threads: &[Thread], bytes: &[u8]) -> Result<Option<Threads>, EngineError> {
        let mut current: Threads = threads.iter().copied().collect();
        let mut rest = bytes;
        loop {
            if let [thread] = current.as_mut_slice() {
                rest = self.walk_names(thread, rest)?;
            }
            let Some((&byte, after)) = rest.split_first() else { return Ok(Some(current)) };
            current = self.step_within(&current, byte, after.is_empty())?;
            if current.is_empty() {
                return Ok(None);
            }
            rest = after;
        }
    }

    /// Moves a thread on for as long as names begin with the bytes; the rest of these. As
    /// [`Self::step`] does byte by byte, but the places on the way are not kept.
    fn walk_names<'b>(
        &self,
        thread: &mut Thread,
        bytes: &'b [u8],
    ) -> Result<&'b [u8], EngineError> {
        let Some(json) = &self.json else { return Ok(bytes) };
        if thread.lexeme != ThreadLexeme::Key || thread.transcript != TextId::NONE {
            return Ok(bytes);
        }
        let mut node = json.keys.node(thread.key_node());
        let mut read = 0;
        for &byte in bytes {
            match json.keys.child(&node, byte)? {
                Some(child) if child.has_names() && !json.keys.is_dead(&child) => node = child,
                _ => break,
            }
            read += 1;
        }
        if read > 0 {
            thread.state = json.keys.intern(node)?.0;
        }
        Ok(&bytes[read..])
    }

    /// Counts and sizes, for reports.
    pub fn num_states(&self) -> usize {
        self.configs.count()
    }

    /// How many stacks are interned.
    pub fn num_stacks(&self) -> usize {
        self.cells.count()
    }

    /// How many lexemes are in use.
    pub fn num_lexemes(&self) -> usize {
        self.lexemes.count()
    }

    /// How many places in names of objects are interned.
    pub fn num_key_nodes(&self) -> usize {
        self.json.as_ref().map_or(0, |json| json.keys.num_nodes())
    }
}

/// The key so far of a thread within the names of an object, where it matters.
fn key_text(json: &JsonParts, thread: &Thread, node: &KeyNode) -> Result<TextId, EngineError> {
    let append = |text, &byte| json.keys.texts.append(text, byte);
    match thread.text {
        TextId::EMPTY => Ok(json.keys.written(node).iter().try_fold(TextId::EMPTY, append)?),
        known => Ok(known),
    }
}
