//! The symbols of a grammar while texts are read: those known from the start, and those of rules
//! with a parameter, which are added with the values that texts reach.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::graph::begins_with_itself;
use super::left_corner_transform::{transformed, Corners};
use super::symbols::{Symbol, SymbolId, Symbols};
use super::table::Table;
use super::values::{Facts, Key, Question, Values};
use super::{GrammarError, Node};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// How many symbols may be added with values.
const MAX_GROWN: usize = 16_000_000;
/// The steps of one part with a value.
const STEPS: usize = 16;
/// Room for the symbols between one whose meaning comes later and its first symbols.
const ROOM: u32 = 4;

/// The symbols of one grammar.
#[derive(Debug)]
pub struct Live {
    fixed: Arc<Symbols>,
    grown: Option<Box<Grown>>,
}

#[derive(Debug)]
struct Entry {
    symbol: Symbol,
    nullable: bool,
    rank: u32,
}

/// The parts with values so far.
#[derive(Debug)]
struct Grown {
    values: Arc<Values>,
    entries: boxcar::Vec<Entry>,
    /// The parts with values, the initial ones first, and their symbols.
    parts: boxcar::Vec<(Key, OnceLock<SymbolId>)>,
    growing: Mutex<Growing>,
    held: AtomicUsize,
}

#[derive(Debug, Default)]
struct Growing {
    ids: FxHashMap<Symbol, SymbolId>,
    parts: FxHashMap<Key, u32>,
    facts: Facts,
}

impl Live {
    /// The symbols of a grammar before any text is read.
    pub fn new(fixed: Arc<Symbols>) -> Self {
        let grown = fixed.values().map(|(values, keys)| {
            let parts = boxcar::Vec::new();
            let mut growing = Growing::default();
            for &key in keys {
                growing.parts.insert(key, parts.push((key, OnceLock::new())) as u32);
            }
            let (values, growing) = (values.clone(), Mutex::new(growing));
            let (entries, held) = (boxcar::Vec::new(), AtomicUsize::new(0));
            Box::new(Grown { values, entries, parts, growing, held })
        });
        Self { fixed, grown }
    }

    fn entry(&self, id: SymbolId) -> Option<&Entry> {
        self.grown.as_ref()?.entries.get(id.0 as usize - self.fixed.len())
    }

    /// The symbol of an id of this grammar.
    #[inline]
    pub fn get(&self, id: SymbolId) -> &Symbol {
        match self.fixed.known(id) {
            Some(symbol) => symbol,
            None => self.entry(id).map_or(&Symbol::Empty, |entry| &entry.symbol),
        }
    }

    /// Whether the empty text belongs to a symbol.
    #[inline]
    pub fn is_nullable(&self, id: SymbolId) -> bool {
        match self.fixed.known(id) {
            Some(_) => self.fixed.is_nullable(id),
            None => self.entry(id).is_some_and(|entry| entry.nullable),
        }
    }

    /// See [`Symbols::rank`].
    #[inline]
    pub fn rank(&self, id: SymbolId) -> u32 {
        match self.fixed.known(id) {
            Some(_) => self.fixed.rank(id),
            None => self.entry(id).map_or(0, |entry| entry.rank),
        }
    }

    /// See [`Symbols::meaning`].
    #[inline]
    pub fn meaning(&self, part: u32) -> SymbolId {
        self.fixed.meaning(part)
    }

    /// The estimated memory in bytes of the symbols that were added with values.
    pub fn memory_bytes(&self) -> usize {
        self.grown.as_ref().map_or(0, |grown| grown.held.load(Ordering::Relaxed))
    }

    /// Finds the symbols of the initial parts that may begin with themselves. A text can begin with
    /// them, so a limit on these is one on the grammar.
    ///
    /// # Errors
    /// The parts that can begin with each other take too many values.
    pub fn check(&self) -> Result<(), GrammarError> {
        let Some((values, keys)) = self.fixed.values() else { return Ok(()) };
        for (part, key) in keys.iter().enumerate() {
            if values.set(key.0).is_some() {
                self.later(part as u32).map_err(|limit| {
                    begins_with_itself(values.grammar(), values.rule(key.0), limit)
                })?;
            }
        }
        Ok(())
    }

    /// Returns the symbol of a part with a value.
    ///
    /// # Errors
    /// There are too many parts, or the call's budget is used up.
    pub fn later(&self, part: u32) -> Result<SymbolId, LimitExceeded> {
        let Some(grown) = &self.grown else { return Ok(SymbolId::EMPTY) };
        let (key, meaning) = &grown.parts[part as usize];
        if let Some(&known) = meaning.get() {
            return Ok(known);
        }
        let mut growing = grown.growing.lock();
        meter::charge(STEPS)?;
        let mut grow = Grow { live: self, grown, growing: &mut growing };
        let found = grow.part(*key)?;
        Ok(*meaning.get_or_init(|| found))
    }
}

struct Grow<'a> {
    live: &'a Live,
    grown: &'a Grown,
    growing: &'a mut Growing,
}

impl Table for Grow<'_> {
    fn get(&self, id: SymbolId) -> &Symbol {
        self.live.get(id)
    }

    fn is_nullable(&self, id: SymbolId) -> bool {
        self.live.is_nullable(id)
    }

    fn has_marks(&self) -> bool {
        self.live.fixed.has_marks()
    }

    fn intern(&mut self, symbol: Symbol, nullable: bool) -> Result<SymbolId, LimitExceeded> {
        meter::charge(1)?;
        let fixed = &self.live.fixed;
        if let Some(known) = fixed.find(&symbol).or_else(|| self.growing.ids.get(&symbol).copied())
        {
            return Ok(known);
        }
        let rank = match symbol {
            Symbol::Later(part) => fixed.rank_of_part(self.grown.parts[part as usize].0 .0),
            _ => self.rank_above(&symbol.corners(|id| self.is_nullable(id))),
        };
        self.add(symbol, nullable, rank)
    }
}

impl Grow<'_> {
    /// The least rank of a symbol that can begin with some.
    fn rank_above(&self, corners: &[SymbolId]) -> u32 {
        corners.iter().map(|&id| self.live.rank(id) + 1).max().unwrap_or(0)
    }

    fn add(
        &mut self,
        symbol: Symbol,
        nullable: bool,
        rank: u32,
    ) -> Result<SymbolId, LimitExceeded> {
        if self.growing.ids.len() >= MAX_GROWN {
            return Err(LimitExceeded::new("grammar_symbols", MAX_GROWN));
        }
        let shared = match &symbol {
            Symbol::Choice(parts) => parts.len() * 4 + 16,
            _ => 0,
        };
        let bytes = std::mem::size_of::<Entry>() + 2 * std::mem::size_of::<Symbol>() + 24 + shared;
        self.grown.held.fetch_add(bytes, Ordering::Relaxed);
        let place = self.grown.entries.push(Entry { symbol: symbol.clone(), nullable, rank });
        let id = SymbolId((self.live.fixed.len() + place) as u32);
        self.growing.ids.insert(symbol, id);
        Ok(id)
    }

    fn holds(&mut self, question: Question, key: Key) -> Result<bool, LimitExceeded> {
        let before = self.growing.facts.count();
        let found = self.growing.facts.holds(&self.grown.values, question, key);
        let more = self.growing.facts.count() - before;
        self.grown.held.fetch_add(more * 48, Ordering::Relaxed);
        found
    }

    /// The symbol of a part: one that is known from the start on, or one whose meaning is found later.
    fn symbol(&mut self, key: Key) -> Result<SymbolId, LimitExceeded> {
        let values = self.grown.values.clone();
        let mut key = key;
        // Rules and conditions that only refer to other parts.
        while values.depends(key.0) {
            match values.grammar().node(key.0) {
                Node::Rule(..) | Node::Guard(..) => match values.children(key).as_deref() {
                    Some(&[inner]) => key = inner,
                    _ => break,
                },
                _ => break,
            }
        }
        if !values.depends(key.0) {
            if let Some(known) = self.live.fixed.of_part(key.0) {
                return Ok(known);
            }
        }
        let nullable = self.holds(Question::Nullable, key)?;
        if !self.holds(Question::Nonempty, key)? {
            return match nullable {
                true => Ok(SymbolId::EMPTY),
                false => self.intern(Symbol::Choice([].into()), false),
            };
        }
        let part = match self.growing.parts.get(&key) {
            Some(&known) => known,
            None => {
                let part = self.new_part(key);
                self.growing.parts.insert(key, part);
                part
            }
        };
        self.intern(Symbol::Later(part), nullable)
    }

    fn new_part(&mut self, key: Key) -> u32 {
        let bytes = std::mem::size_of::<(Key, OnceLock<SymbolId>)>();
        self.grown.held.fetch_add(bytes + 40, Ordering::Relaxed);
        self.grown.parts.push((key, OnceLock::new())) as u32
    }

    fn sequence(&mut self, parts: &[Key]) -> Result<SymbolId, LimitExceeded> {
        let mut sequence = SymbolId::EMPTY;
        for &part in parts.iter().rev() {
            let first = self.symbol(part)?;
            sequence = self.seq(first, sequence)?;
        }
        Ok(sequence)
    }

    /// Returns the symbol of a part with a value.
    fn part(&mut self, key: Key) -> Result<SymbolId, LimitExceeded> {
        let values = self.grown.values.clone();
        if let Some(set) = values.set(key.0) {
            let nullable = self.holds(Question::Nullable, key)?;
            let mut set = LeftRecursiveSet { grow: self, values, set, key };
            return transformed(&mut set, key, nullable).map(|(symbol, _)| symbol);
        }
        let Some(children) = values.children(key) else { return self.choice(Vec::new(), false) };
        match *values.grammar().node(key.0) {
            Node::Seq(_) => self.sequence(&children),
            Node::Choice(_) => {
                let mut symbols = Vec::with_capacity(children.len());
                for child in children {
                    if self.holds(Question::Productive, child)? {
                        symbols.push(self.symbol(child)?);
                    }
                }
                self.choice(symbols, false)
            }
            Node::Repeat { min, max, .. } => match children[..] {
                [inner] => {
                    let inner = self.symbol(inner)?;
                    self.repeat(inner, min, max)
                }
                _ => self.choice(Vec::new(), false),
            },
            Node::Span(..) | Node::Limit { .. } => match children[..] {
                [inner] => {
                    let inner = self.symbol(inner)?;
                    let nullable = self.is_nullable(inner);
                    self.intern(Symbol::Marked(key.0, inner), nullable)
                }
                _ => self.choice(Vec::new(), false),
            },
            _ => match children[..] {
                [inner] => self.symbol(inner),
                _ => self.choice(Vec::new(), false),
            },
        }
    }
}

/// Parts with values that can begin with each other, as far as the conditions let them.
struct LeftRecursiveSet<'s, 'a> {
    grow: &'s mut Grow<'a>,
    values: Arc<Values>,
    set: u32,
    /// The part whose symbol is made.
    key: Key,
}

impl<'a> Corners for LeftRecursiveSet<'_, 'a> {
    type Part = Key;
    type Table = Grow<'a>;

    fn table(&mut self) -> &mut Grow<'a> {
        self.grow
    }

    fn step(&mut self) -> Result<(), LimitExceeded> {
        meter::charge(1)
    }

    fn is_member(&self, key: Key) -> bool {
        self.values.set(key.0) == Some(self.set)
    }

    fn productions(&mut self, key: Key) -> Result<Vec<(Key, SymbolId)>, LimitExceeded> {
        meter::charge(STEPS)?;
        let Some(children) = self.values.children(key) else { return Ok(Vec::new()) };
        let mut found = Vec::with_capacity(children.len());
        match *self.values.grammar().node(key.0) {
            Node::Seq(_) => {
                for (place, &first) in children.iter().enumerate() {
                    if self.grow.holds(Question::Nonempty, first)? {
                        found.push((first, self.grow.sequence(&children[place + 1..])?));
                    }
                    if !self.grow.holds(Question::Nullable, first)? {
                        break;
                    }
                }
            }
            Node::Repeat { min, max, .. } => {
                for inner in children {
                    if self.grow.holds(Question::Nonempty, inner)? {
                        let symbol = self.grow.symbol(inner)?;
                        let max = max.map(|max| max.saturating_sub(1));
                        let rest = self.grow.repeat(symbol, min.saturating_sub(1), max)?;
                        found.push((inner, rest));
                    }
                }
            }
            _ => {
                for child in children {
                    if self.grow.holds(Question::Nonempty, child)? {
                        found.push((child, SymbolId::EMPTY));
                    }
                }
            }
        }
        Ok(found)
    }

    fn symbol(&mut self, key: Key) -> Result<SymbolId, LimitExceeded> {
        self.grow.symbol(key)
    }

    fn reserve(&mut self, firsts: &[SymbolId], nullable: bool) -> Result<SymbolId, LimitExceeded> {
        meter::charge(STEPS)?;
        let part = self.grow.new_part(self.key);
        let rank = self.grow.rank_above(firsts) + ROOM;
        self.grow.add(Symbol::Later(part), nullable, rank)
    }

    fn resolve(&mut self, reserved: SymbolId, meaning: SymbolId) {
        if let &Symbol::Later(part) = self.grow.live.get(reserved) {
            self.grow.grown.parts[part as usize].1.get_or_init(|| meaning);
        }
    }
}
