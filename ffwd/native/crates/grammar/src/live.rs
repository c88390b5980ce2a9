//! The symbols of a grammar while texts are read: those known from the start, and those of rules
//! with a parameter, which are added with the values that texts reach.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::symbols::{Symbol, SymbolId, Symbols};
use super::table::Table;
use super::values::{Facts, Key, Question, Values};
use super::Node;
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;

/// How many symbols may be added with values.
const MAX_GROWN: usize = 16_000_000;
/// The steps of one part with a value.
const STEPS: usize = 16;

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
        if self.growing.ids.len() >= MAX_GROWN {
            return Err(LimitExceeded::new("grammar_symbols", MAX_GROWN));
        }
        let rank = match symbol {
            Symbol::Later(part) => fixed.rank_of_part(self.grown.parts[part as usize].0 .0),
            _ => {
                let corners = symbol.corners(|id| self.is_nullable(id));
                corners.iter().map(|&id| self.live.rank(id) + 1).max().unwrap_or(0)
            }
        };
        let shared = match &symbol {
            Symbol::Choice(parts) => parts.len() * 4 + 16,
            _ => 0,
        };
        let bytes = std::mem::size_of::<Entry>() + 2 * std::mem::size_of::<Symbol>() + 24 + shared;
        self.grown.held.fetch_add(bytes, Ordering::Relaxed);
        let place = self.grown.entries.push(Entry { symbol: symbol.clone(), nullable, rank });
        let id = SymbolId((fixed.len() + place) as u32);
        self.growing.ids.insert(symbol, id);
        Ok(id)
    }
}

impl Grow<'_> {
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
                let part = self.grown.parts.push((key, OnceLock::new())) as u32;
                let bytes = std::mem::size_of::<(Key, OnceLock<SymbolId>)>();
                self.grown.held.fetch_add(bytes + 40, Ordering::Relaxed);
                self.growing.parts.insert(key, part);
                part
            }
        };
        self.intern(Symbol::Later(part), nullable)
    }

    /// Returns the symbol of a part with a value.
    fn part(&mut self, key: Key) -> Result<SymbolId, LimitExceeded> {
        let values = self.grown.values.clone();
        let Some(children) = values.children(key) else { return self.choice(Vec::new(), false) };
        match *values.grammar().node(key.0) {
            Node::Seq(_) => {
                let mut sequence = SymbolId::EMPTY;
                for &child in children.iter().rev() {
                    let first = self.symbol(child)?;
                    sequence = self.seq(first, sequence)?;
                }
                Ok(sequence)
            }
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
