//! Whether a longest match can consume text that must follow it.
//!
//! A lexeme that ends at its longest match may leave no allowed continuation: `A: /a+/` before
//! `"a"` consumes every `a`. The symbols of the grammar alone exclude this for most lexemes. In
//! each state in which such a lexeme may end, the text may end too, or an unconsumed byte may
//! follow. This byte continues no lexeme of the scope, and starts another such lexeme. `dead_ends`
//! examines the other lexemes.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::rules::leaf::Leaf;
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_grammar::symbols::{Symbol, SymbolId, Symbols};
use ffwd_grammar::{Lexing, Longest, NodeId, ScopeId};
use ffwd_regular::expr::{ByteSet, LexState, Lexeme, LexemeSpec, LexemeStore, Spelling};

/// How many pairs of states of two lexemes are examined; beyond these any byte counts as a
/// continuation.
const MAX_PAIRS: usize = 4_096;
/// The first bytes of a JSON value, or of the white space before it.
const JSON: &[u8] = b" \t\n\r\"-0123456789[{tfn";

/// The first bytes of a non-empty text.
#[derive(Clone, Copy, Default)]
struct FirstBytes {
    bytes: ByteSet,
    json: bool,
    /// A token that is taken as a whole, whatever its text is.
    token: bool,
}

impl FirstBytes {
    fn join(&mut self, other: Self) {
        self.bytes = self.bytes.union(&other.bytes);
        self.json |= other.json;
        self.token |= other.token;
    }

    /// Whether everything that follows may start with bytes of a set.
    fn is_within(&self, set: &ByteSet) -> bool {
        let json = self.json && !JSON.iter().any(|&byte| set.contains(byte));
        !self.token && !json && self.bytes.union(set) == *set
    }
}

/// Lexemes whose longest match may somewhere consume all that can follow.
#[derive(Debug, Default)]
pub struct Swallowing {
    /// The lexemes that nothing else can follow.
    lexemes: FxHashSet<NodeId>,
}

impl Swallowing {
    /// Whether there is one. If not, each accepted prefix has a next byte or is complete.
    pub(crate) fn is_possible(&self) -> bool {
        !self.lexemes.is_empty()
    }

    /// Whether a lexeme is one of them. After each other lexeme the text can end, or continue with
    /// an unconsumed byte that starts another such lexeme.
    pub(crate) fn has(&self, node: NodeId) -> bool {
        self.lexemes.contains(&node)
    }

    /// Those of a grammar.
    pub fn of(
        symbols: &Symbols,
        leaves: &FxHashMap<NodeId, Leaf>,
        lexemes: &LexemeStore,
    ) -> Result<Self, LimitExceeded> {
        let mut swallowing = Self::default();
        let mut scopes: FxHashMap<ScopeId, Vec<Longer>> = FxHashMap::default();
        let mut first: FxHashMap<NodeId, FirstBytes> = FxHashMap::default();
        for (&node, leaf) in leaves {
            let mut begins = FirstBytes::default();
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
            return Ok(swallowing);
        }
        if symbols.has_values() {
            return Self::whatever_follows(&scopes, &first);
        }
        let mut contexts = Contexts::of(symbols);
        let mut taken: Vec<(NodeId, SymbolId, FxHashSet<ByteSet>)> = Vec::new();
        for lexemes in scopes.values() {
            for (node, lexing, lexeme) in lexemes {
                // A lazy one ends as soon as it can.
                if let (Longest::Greedy | Longest::Ignored, Some(&symbol)) =
                    (lexing, contexts.leaves.get(node))
                {
                    taken.push((*node, symbol, taken_after(lexeme, *node, lexemes, &first)?));
                }
            }
        }
        // A lexeme that may itself be consumed is no continuation for another.
        loop {
            contexts.begin(&first);
            let before = swallowing.lexemes.len();
            for (node, symbol, taken) in &taken {
                if taken.iter().any(|taken| contexts.may_be_within(*symbol, taken)) {
                    swallowing.lexemes.insert(*node);
                }
            }
            if swallowing.lexemes.len() == before {
                return Ok(swallowing);
            }
            for node in &swallowing.lexemes {
                first.insert(*node, FirstBytes::default());
            }
            // What follows a token may be consumed, so the token is no sure continuation either.
            for (&node, leaf) in leaves {
                if matches!(leaf, Leaf::Tokens(_)) {
                    first.insert(node, FirstBytes::default());
                }
            }
        }
    }
}

impl Swallowing {
    /// Those of a grammar whose order of lexemes is unknown. If lexemes continue only with bytes
    /// that no lexeme starts with, nothing is consumed; otherwise every lexeme may be.
    fn whatever_follows(
        scopes: &FxHashMap<ScopeId, Vec<Longer>>,
        first: &FxHashMap<NodeId, FirstBytes>,
    ) -> Result<Self, LimitExceeded> {
        let mut begins = FirstBytes::default();
        first.values().for_each(|&first| begins.join(first));
        let json = begins.json.then_some(JSON).into_iter().flatten();
        json.for_each(|&byte| begins.bytes.insert(byte));
        let mut is_safe = true;
        for lexemes in scopes.values() {
            for (node, lexing, lexeme) in lexemes {
                if *lexing != Longest::Lazy {
                    let taken = taken_after(lexeme, *node, lexemes, first)?;
                    let apart = |set: &ByteSet| !set.iter().any(|byte| begins.bytes.contains(byte));
                    is_safe &= taken.iter().all(apart);
                }
            }
        }
        let all = scopes.values().flatten().map(|(node, ..)| *node);
        Ok(Self { lexemes: all.filter(|_| !is_safe).collect() })
    }
}

type Longer = (NodeId, Longest, Arc<Lexeme>);

/// For each state in which a lexeme may end, the bytes that continue some lexeme of its scope. They
/// are stored as distinct sets, which are far fewer than states.
fn taken_after(
    lexeme: &Lexeme,
    node: NodeId,
    scope: &[Longer],
    first: &FxHashMap<NodeId, FirstBytes>,
) -> Result<FxHashSet<ByteSet>, LimitExceeded> {
    let mut taken: FxHashMap<LexState, ByteSet> = FxHashMap::default();
    for (other, _, beside) in scope {
        let apart = |byte: u8| !first[other].bytes.contains(byte);
        if !first[&node].bytes.iter().all(apart) {
            going_on_beside(lexeme, beside, &mut taken)?;
        }
    }
    // Even if nothing is consumed, some continuation is required.
    Ok(taken.into_values().chain([ByteSet::EMPTY]).collect())
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

/// Adds to each state in which the first lexeme may end the bytes that continue the second one
/// after a text that leads there.
fn going_on_beside(
    ending: &Lexeme,
    beside: &Lexeme,
    taken: &mut FxHashMap<LexState, ByteSet>,
) -> Result<(), LimitExceeded> {
    let start = (ending.start(), beside.start());
    let mut seen = FxHashSet::from_iter([start]);
    let mut pending = VecDeque::from([start]);
    while let Some((one, other)) = pending.pop_front() {
        meter::charge(8)?;
        let (ends, goes) = (ending.row(one), beside.row(other));
        for byte in 0..=255 {
            let Some(other) = goes.next(byte)? else { continue };
            if one.accepts() {
                taken.entry(one).or_insert(ByteSet::EMPTY).insert(byte);
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
            taken.insert(ending.start(), ByteSet::range(0, 255));
            return Ok(());
        }
    }
    Ok(())
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
struct Contexts<'s> {
    symbols: &'s Symbols,
    /// The symbols that the start reaches, in the order of ranks.
    reached: Vec<SymbolId>,
    first: Vec<FirstBytes>,
    /// The positions of each symbol that the start reaches.
    places: FxHashMap<SymbolId, Vec<(SymbolId, Occurrence)>>,
    leaves: FxHashMap<NodeId, SymbolId>,
}

impl<'s> Contexts<'s> {
    fn of(symbols: &'s Symbols) -> Self {
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
    fn begin(&mut self, leaves: &FxHashMap<NodeId, FirstBytes>) {
        let of_leaf = |symbol: &Symbol| match symbol {
            Symbol::Leaf(node) => leaves.get(node).copied().unwrap_or_default(),
            _ => FirstBytes::default(),
        };
        let join = |begins: &mut FirstBytes, first: &FirstBytes| begins.join(*first);
        self.first = self.symbols.beginnings(&self.reached, of_leaf, join);
    }

    /// Whether somewhere everything that can follow a symbol may start with bytes of a set. The end
    /// of the text never does.
    fn may_be_within(&self, symbol: SymbolId, set: &ByteSet) -> bool {
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
}
