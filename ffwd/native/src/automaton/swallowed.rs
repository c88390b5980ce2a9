//! Whether a longest match can take what must follow it.
//!
//! A lexeme that ends at its longest match may leave nothing that can come next: `A: /a+/` before
//! `"a"` takes every `a`. Most grammars cannot run into that, which is seen here from their symbols
//! alone: wherever a lexeme may end, one of the bytes that may follow it goes on with no lexeme of its
//! scope. Only for the others [`dead_ends`](super::dead_ends) looks at what stands side by side.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::rules::Leaf;
use crate::error::LimitExceeded;
use crate::expr::{ByteSet, LexState, Lexeme, LexemeSpec, LexemeStore, Spelling};
use crate::grammar::symbols::{Symbol, SymbolId, Symbols};
use crate::grammar::{Lexing, Longest, NodeId, ScopeId};

/// How many pairs of states of two lexemes are looked at; for others any byte may go on.
const MAX_PAIRS: usize = 4_096;
/// What a JSON value, or the white space before it, can begin with.
const JSON: &[u8] = b" \t\n\r\"-0123456789[{tfn";

/// What a text that is not empty can begin with.
#[derive(Clone, Copy, Default)]
struct First {
    bytes: ByteSet,
    json: bool,
    /// A token that is taken as a whole, whatever it spells.
    token: bool,
}

impl First {
    fn join(&mut self, other: Self) {
        self.bytes = self.bytes.union(&other.bytes);
        self.json |= other.json;
        self.token |= other.token;
    }

    /// Whether it may be that all begins with bytes of a set.
    fn is_within(&self, set: &ByteSet) -> bool {
        let json = self.json && !JSON.iter().any(|&byte| set.contains(byte));
        !self.token && !json && self.bytes.union(set) == *set
    }
}

/// The first lexeme, in the order of the leaves, whose longest match may take all that can follow it
/// somewhere. `None`: there is none, so after any text that can be read another byte can, or its end.
pub fn swallowing(
    symbols: &Symbols,
    leaves: &FxHashMap<NodeId, Leaf>,
    lexemes: &LexemeStore,
) -> Result<Option<NodeId>, LimitExceeded> {
    let mut scopes: FxHashMap<ScopeId, Vec<(NodeId, Longest, Arc<Lexeme>)>> = FxHashMap::default();
    let mut first: FxHashMap<NodeId, First> = FxHashMap::default();
    for (&node, leaf) in leaves {
        let mut begins = First::default();
        match leaf {
            Leaf::Json(_) => begins.json = true,
            Leaf::Tokens(_) => begins.token = true,
            Leaf::Lexeme { language, lexing } => {
                let spec = LexemeSpec::new(Spelling::Utf8, [language.clone()]);
                let lexeme = lexemes.get(&spec)?;
                if lexeme.is_alive() {
                    begins.bytes = going_on(&lexeme, lexeme.start())?;
                    if let &Lexing::Longest { scope, lexing } = lexing {
                        scopes.entry(scope).or_default().push((node, lexing, lexeme));
                    }
                }
            }
        }
        first.insert(node, begins);
    }
    if scopes.is_empty() {
        return Ok(None);
    }
    let contexts = Contexts::of(symbols, &first);
    let mut found: Vec<NodeId> = Vec::new();
    for lexemes in scopes.values() {
        for (node, lexing, lexeme) in lexemes {
            // A lazy one ends as soon as it can.
            let Some(symbol) = contexts.leaves.get(node) else { continue };
            if *lexing == Longest::Lazy {
                continue;
            }
            let mut taken = ByteSet::EMPTY;
            for (other, _, beside) in lexemes {
                let apart = |byte: u8| !first[other].bytes.contains(byte);
                if !first[node].bytes.iter().all(apart) {
                    taken = taken.union(&going_on_beside(lexeme, beside)?);
                }
            }
            if !taken.is_empty() && contexts.may_be_within(*symbol, &taken) {
                found.push(*node);
            }
        }
    }
    Ok(found.into_iter().min())
}

/// The bytes with which a lexeme goes on.
pub(super) fn going_on(lexeme: &Lexeme, state: LexState) -> Result<ByteSet, LimitExceeded> {
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

/// The bytes with which the second lexeme goes on after some text of the first.
fn going_on_beside(ending: &Lexeme, beside: &Lexeme) -> Result<ByteSet, LimitExceeded> {
    let mut bytes = ByteSet::EMPTY;
    let start = (ending.start(), beside.start());
    let mut seen = FxHashSet::from_iter([start]);
    let mut pending = VecDeque::from([start]);
    while let Some((one, other)) = pending.pop_front() {
        let (ends, goes) = (ending.row(one), beside.row(other));
        for byte in 0..=255 {
            let Some(other) = goes.next(byte)? else { continue };
            if one.accepts() {
                bytes.insert(byte);
            }
            if one.is_final() {
                continue;
            }
            if let Some(one) = ends.next(byte)? {
                if !other.is_final() && seen.insert((one, other)) {
                    pending.push_back((one, other));
                }
            }
        }
        if seen.len() > MAX_PAIRS {
            return Ok(ByteSet::range(0, 255));
        }
    }
    Ok(bytes)
}

/// How a symbol stands in another.
#[derive(Clone, Copy)]
enum Place {
    /// Nothing of the other comes after it.
    Last,
    Before(SymbolId),
    /// It is repeated: whether it may be that it must come again, and that it must not.
    Repeated {
        must: bool,
        must_not: bool,
    },
}

/// What may follow symbols.
struct Contexts<'s> {
    symbols: &'s Symbols,
    first: FxHashMap<SymbolId, First>,
    /// Where each symbol that the start reaches stands.
    places: FxHashMap<SymbolId, Vec<(SymbolId, Place)>>,
    leaves: FxHashMap<NodeId, SymbolId>,
}

impl<'s> Contexts<'s> {
    fn of(symbols: &'s Symbols, leaves: &FxHashMap<NodeId, First>) -> Self {
        let mut places: FxHashMap<SymbolId, Vec<(SymbolId, Place)>> = FxHashMap::default();
        let mut reached = vec![symbols.start];
        let mut seen = FxHashSet::from_iter([symbols.start]);
        let mut of_leaves = FxHashMap::default();
        let mut next = 0;
        while let Some(&id) = reached.get(next) {
            next += 1;
            let mut stands = |inner: SymbolId, place: Place| {
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
                    stands(first, Place::Before(then));
                    stands(then, Place::Last);
                }
                Symbol::Choice(parts) => parts.iter().for_each(|&part| stands(part, Place::Last)),
                &Symbol::Star(inner) => {
                    stands(inner, Place::Repeated { must: false, must_not: false });
                }
                &Symbol::Repeat { inner, min, max } => {
                    stands(inner, Place::Repeated { must: min > 1, must_not: max.is_some() });
                }
                &Symbol::Marked(_, inner) | &Symbol::NonEmpty(inner) => stands(inner, Place::Last),
                &Symbol::Part(part) => stands(symbols.meaning(part), Place::Last),
            }
        }
        // What a symbol can begin with has a smaller rank.
        reached.sort_by_key(|&id| symbols.rank(id));
        let mut first: FxHashMap<SymbolId, First> = FxHashMap::default();
        for id in reached {
            let mut begins = First::default();
            let mut join = |inner: SymbolId| begins.join(first[&inner]);
            match symbols.get(id) {
                Symbol::Empty => {}
                Symbol::Leaf(node) => begins = leaves.get(node).copied().unwrap_or_default(),
                &Symbol::Seq(one, then) => {
                    join(one);
                    if symbols.is_nullable(one) {
                        join(then);
                    }
                }
                Symbol::Choice(parts) => parts.iter().for_each(|&part| join(part)),
                &Symbol::Star(inner)
                | &Symbol::Repeat { inner, .. }
                | &Symbol::Marked(_, inner)
                | &Symbol::NonEmpty(inner) => join(inner),
                &Symbol::Part(part) => join(symbols.meaning(part)),
            }
            first.insert(id, begins);
        }
        Self { symbols, first, places, leaves: of_leaves }
    }

    /// Whether it may be that all that can follow a symbol somewhere begins with bytes of a set. The
    /// end of the text is never among them.
    fn may_be_within(&self, symbol: SymbolId, set: &ByteSet) -> bool {
        let within = |id: SymbolId| self.first[&id].is_within(set);
        let mut seen = FxHashSet::from_iter([symbol]);
        let mut pending = vec![symbol];
        while let Some(inner) = pending.pop() {
            for &(outer, place) in self.places.get(&inner).into_iter().flatten() {
                let on = match place {
                    Place::Last => true,
                    Place::Before(then) if !within(then) => false,
                    Place::Before(then) if !self.symbols.is_nullable(then) => return true,
                    Place::Before(_) => true,
                    Place::Repeated { must: true, .. } if within(inner) => return true,
                    Place::Repeated { must_not, .. } => must_not || within(inner),
                };
                if on && seen.insert(outer) {
                    pending.push(outer);
                }
            }
        }
        false
    }
}
