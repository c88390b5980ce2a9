//! Whether a longest match can consume text that must follow it.
//!
//! A lexeme that ends at its longest match may leave no allowed continuation: `A: /a+/` before
//! `"a"` consumes every `a`. The symbols of the grammar alone exclude this for most lexemes. In
//! each state in which such a lexeme may end, the text may end too, or an unconsumed byte may
//! follow. This byte continues no lexeme of the scope, and starts another such lexeme. `dead_ends`
//! examines the other lexemes. Parts that consume nothing, such as lazy lexemes, JSON values and
//! tokens, are as safe as what follows them.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::rules::leaf::Leaf;
use crate::rules::successors::{first_bytes, Contexts, FirstBytes};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_grammar::symbols::Symbols;
use ffwd_grammar::{Lexing, Longest, NodeId, ScopeId};
use ffwd_regular::expr::{ByteSet, LexState, Lexeme, LexemeSpec, LexemeStore, Spelling};

/// How many pairs of states of two lexemes are examined; beyond these any byte counts as a
/// continuation.
const MAX_PAIRS: usize = 4_096;
/// Lexemes whose longest match may somewhere consume all that can follow, and leaves before them.
#[derive(Debug, Default)]
pub struct Swallowing {
    /// The leaves after which nothing may follow.
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
        for (&node, leaf) in leaves {
            let Leaf::Lexeme { language, lexing: Lexing::Longest { scope, lexing } } = leaf else {
                continue;
            };
            let lexeme = lexemes.get(&LexemeSpec::new(Spelling::Utf8, [language.clone()]))?;
            if lexeme.is_alive() {
                scopes.entry(*scope).or_default().push((node, *lexing, lexeme));
            }
        }
        if scopes.is_empty() {
            return Ok(swallowing);
        }
        let mut first = first_bytes(leaves, lexemes)?;
        if symbols.has_values() {
            return Self::whatever_follows(&scopes, &first);
        }
        let mut contexts = Contexts::of(symbols);
        // All leaves need a continuation; only lexemes that end at their longest match consume any.
        let nothing = || FxHashSet::from_iter([ByteSet::EMPTY]);
        let mut taken: FxHashMap<NodeId, FxHashSet<ByteSet>> =
            contexts.leaves.keys().map(|&node| (node, nothing())).collect();
        for lexemes in scopes.values() {
            for (node, lexing, lexeme) in lexemes {
                if *lexing != Longest::Lazy && contexts.leaves.contains_key(node) {
                    taken.insert(*node, taken_after(lexeme, *node, lexemes, &first)?);
                }
            }
        }
        // A leaf after which everything may be consumed is no continuation for another.
        loop {
            contexts.begin(&first);
            let before = swallowing.lexemes.len();
            for (node, symbol) in &contexts.leaves {
                if taken[node].iter().any(|taken| contexts.may_be_within(*symbol, taken)) {
                    swallowing.lexemes.insert(*node);
                }
            }
            if swallowing.lexemes.len() == before {
                return Ok(swallowing);
            }
            for node in &swallowing.lexemes {
                first.insert(*node, FirstBytes::default());
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
        let begins = begins.all();
        let mut is_safe = true;
        for lexemes in scopes.values() {
            for (node, lexing, lexeme) in lexemes {
                if *lexing != Longest::Lazy {
                    let taken = taken_after(lexeme, *node, lexemes, first)?;
                    let apart = |set: &ByteSet| !set.iter().any(|byte| begins.contains(byte));
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
