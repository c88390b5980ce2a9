//! The first bytes of a grammar's symbols, and what may follow each symbol.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::rules::leaf::Leaf;
use ffwd_bounds::error::LimitExceeded;
use ffwd_grammar::symbols::{Symbol, SymbolId, Symbols};
use ffwd_grammar::NodeId;
use ffwd_regular::expr::lexeme::after_value;
use ffwd_regular::expr::{ByteSet, LexState, Lexeme, LexemeStore};

/// The first bytes of a JSON value, or of the white space before it.
const JSON: &[u8] = b" \t\n\r\"-0123456789[{tfn";

/// The first bytes of a non-empty text.
#[derive(Clone, Copy, Default)]
pub(crate) struct FirstBytes {
    pub(crate) bytes: ByteSet,
    json: bool,
    /// A token that is taken as a whole, whatever its text is.
    token: bool,
}

impl FirstBytes {
    pub(crate) fn join(&mut self, other: Self) {
        self.bytes = self.bytes.union(&other.bytes);
        self.json |= other.json;
        self.token |= other.token;
    }

    /// All bytes, those of JSON values included.
    pub(crate) fn all(&self) -> ByteSet {
        let mut bytes = self.bytes;
        JSON.iter().filter(|_| self.json).for_each(|&byte| bytes.insert(byte));
        bytes
    }

    /// Whether everything that follows may start with bytes of a set.
    pub(crate) fn is_within(&self, set: &ByteSet) -> bool {
        let json = self.json && !JSON.iter().any(|&byte| set.contains(byte));
        !self.token && !json && self.bytes.union(set) == *set
    }
}

/// The bytes that continue a lexeme.
pub(crate) fn going_on(lexeme: &Lexeme, state: LexState) -> Result<ByteSet, LimitExceeded> {
    let mut bytes = ByteSet::EMPTY;
    if !state.is_final() {
        let row = lexeme.row(state);
        for byte in 0..=255 {
            if row.next(byte)?.is_some() {
                bytes.insert(byte);
            }
        }
    }
    Ok(bytes)
}

/// The first bytes of each leaf.
pub(crate) fn first_bytes(
    leaves: &FxHashMap<NodeId, Leaf>,
    lexemes: &LexemeStore,
) -> Result<FxHashMap<NodeId, FirstBytes>, LimitExceeded> {
    let mut first = FxHashMap::default();
    for (&node, leaf) in leaves {
        let mut begins = FirstBytes::default();
        match leaf {
            Leaf::Json(_) => begins.json = true,
            Leaf::Tokens(_) => begins.token = true,
            Leaf::Lexeme { language, .. } => {
                begins.bytes = lexemes.outline(language)?.first;
            }
        }
        first.insert(node, begins);
    }
    Ok(first)
}

/// The bytes that may follow a JSON value, within another one or in the grammar. Numbers, and words
/// such as `true`, end only before one of these.
pub fn after_values(
    symbols: &Symbols,
    leaves: &FxHashMap<NodeId, Leaf>,
    lexemes: &LexemeStore,
) -> Result<ByteSet, LimitExceeded> {
    let is_json = |node: &NodeId| matches!(leaves.get(node), Some(Leaf::Json(_)));
    let mut after = FirstBytes { bytes: after_value(), ..FirstBytes::default() };
    if !leaves.keys().any(is_json) {
        return Ok(after.bytes);
    }
    let first = first_bytes(leaves, lexemes)?;
    if symbols.has_values() {
        // The order of lexemes is unknown.
        first.values().for_each(|&first| after.join(first));
        return Ok(after.all());
    }
    let mut contexts = Contexts::of(symbols);
    contexts.begin(&first);
    for (_, &symbol) in contexts.leaves.iter().filter(|(node, _)| is_json(node)) {
        after.join(contexts.after(symbol));
    }
    Ok(after.all())
}

/// The position of a symbol within another.
#[derive(Clone, Copy)]
enum Occurrence {
    /// It is last in the other.
    Last,
    Before(SymbolId),
    /// It is repeated: whether another copy may be required, and whether it may be forbidden.
    Repeated {
        must: bool,
        must_not: bool,
    },
}

/// The successors of symbols.
pub(crate) struct Contexts<'s> {
    symbols: &'s Symbols,
    /// The symbols that the start reaches, in the order of ranks.
    reached: Vec<SymbolId>,
    first: Vec<FirstBytes>,
    /// The positions of each symbol that the start reaches.
    places: FxHashMap<SymbolId, Vec<(SymbolId, Occurrence)>>,
    pub(crate) leaves: FxHashMap<NodeId, SymbolId>,
}

impl<'s> Contexts<'s> {
    pub(crate) fn of(symbols: &'s Symbols) -> Self {
        let mut places: FxHashMap<SymbolId, Vec<(SymbolId, Occurrence)>> = FxHashMap::default();
        let mut reached = vec![symbols.start];
        let mut seen = FxHashSet::from_iter([symbols.start]);
        let mut of_leaves = FxHashMap::default();
        let mut next = 0;
        while let Some(&id) = reached.get(next) {
            next += 1;
            let mut stands = |inner: SymbolId, place: Occurrence| {
                places.entry(inner).or_default().push((id, place));
                if seen.insert(inner) {
                    reached.push(inner);
                }
            };
            match symbols.get(id) {
                Symbol::Empty => {}
                Symbol::Leaf(node) => {
                    of_leaves.insert(*node, id);
                }
                &Symbol::Seq(first, then) => {
                    stands(first, Occurrence::Before(then));
                    stands(then, Occurrence::Last);
                }
                Symbol::Choice(parts) => {
                    parts.iter().for_each(|&part| stands(part, Occurrence::Last))
                }
                &Symbol::Star(inner) => {
                    stands(inner, Occurrence::Repeated { must: false, must_not: false });
                }
                &Symbol::Repeat { inner, min, max } => {
                    stands(inner, Occurrence::Repeated { must: min > 1, must_not: max.is_some() });
                }
                &Symbol::Marked(_, inner) | &Symbol::NonEmpty(inner) => {
                    stands(inner, Occurrence::Last)
                }
                &Symbol::Part(part) => stands(symbols.meaning(part), Occurrence::Last),
                Symbol::Later(_) => {}
            }
        }
        // The first lexemes of a symbol have smaller ranks.
        reached.sort_by_key(|&id| symbols.rank(id));
        Self { symbols, reached, first: Vec::new(), places, leaves: of_leaves }
    }

    /// Finds out what symbols begin with, from what leaves do.
    pub(crate) fn begin(&mut self, leaves: &FxHashMap<NodeId, FirstBytes>) {
        let of_leaf = |symbol: &Symbol| match symbol {
            Symbol::Leaf(node) => leaves.get(node).copied().unwrap_or_default(),
            _ => FirstBytes::default(),
        };
        let join = |begins: &mut FirstBytes, first: &FirstBytes| begins.join(*first);
        self.first = self.symbols.beginnings(&self.reached, of_leaf, join);
    }

    /// Whether somewhere everything that can follow a symbol may start with bytes of a set. The end
    /// of the text never does.
    pub(crate) fn may_be_within(&self, symbol: SymbolId, set: &ByteSet) -> bool {
        let within = |id: SymbolId| self.first[id.0 as usize].is_within(set);
        let mut seen = FxHashSet::from_iter([symbol]);
        let mut pending = vec![symbol];
        while let Some(inner) = pending.pop() {
            for &(outer, place) in self.places.get(&inner).into_iter().flatten() {
                let on = match place {
                    Occurrence::Last => true,
                    Occurrence::Before(then) if !within(then) => false,
                    Occurrence::Before(then) if !self.symbols.is_nullable(then) => return true,
                    Occurrence::Before(_) => true,
                    Occurrence::Repeated { must: true, .. } if within(inner) => return true,
                    Occurrence::Repeated { must_not, .. } => must_not || within(inner),
                };
                if on && seen.insert(outer) {
                    pending.push(outer);
                }
            }
        }
        false
    }
    /// The first bytes of all that can follow a symbol.
    fn after(&self, symbol: SymbolId) -> FirstBytes {
        let mut after = FirstBytes::default();
        let mut seen = FxHashSet::from_iter([symbol]);
        let mut pending = vec![symbol];
        while let Some(inner) = pending.pop() {
            for &(outer, place) in self.places.get(&inner).into_iter().flatten() {
                let next = match place {
                    Occurrence::Last => None,
                    Occurrence::Before(then) => Some(then),
                    Occurrence::Repeated { .. } => Some(inner),
                };
                next.iter().for_each(|next| after.join(self.first[next.0 as usize]));
                let goes_on = match place {
                    Occurrence::Before(then) => self.symbols.is_nullable(then),
                    _ => true,
                };
                if goes_on && seen.insert(outer) {
                    pending.push(outer);
                }
            }
        }
        after
    }
}
