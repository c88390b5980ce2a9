//! Whether a longest match can consume text that must follow it.
//!
//! A lexeme that ends at its longest match may leave no allowed continuation: `A: /a+/` before
//! `"a"` consumes every `a`. The symbols of the grammar alone exclude this for most lexemes. In
//! each state in which such a lexeme may end, the text may end too, or an unconsumed byte may
//! follow. This byte continues no lexeme of the scope, and starts another such lexeme. `dead_ends`
//! examines the other lexemes. Parts that consume nothing, such as lazy lexemes, JSON values and
//! tokens, are as safe as what follows them.

use std::collections::VecDeque;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::rules::leaf::Leaf;
use crate::rules::successors::{first_bytes, Contexts, FirstBytes};
use ffwd_bounds::error::LimitExceeded;
use ffwd_bounds::meter;
use ffwd_grammar::symbols::Symbols;
use ffwd_grammar::{Lexing, Longest, NodeId, ScopeId};
use ffwd_regular::expr::{ByteSet, LexState, Lexeme, LexemeSpec, LexemeStore, Outline, Spelling};
use ffwd_regular::regex::Ast;

/// How many pairs of states of two lexemes are examined; beyond these any byte counts as a
/// continuation.
const MAX_PAIRS: usize = 4_096;
/// Lexemes whose longest match may somewhere consume all that can follow, and leaves before them.
#[derive(Debug, Default)]
pub struct Swallowing {
    /// The leaves after which nothing may follow.
    pub(super) lexemes: FxHashSet<NodeId>,
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
        Self::from(Precision::Alphabets, symbols, leaves, lexemes)
    }

    /// `precision`: that of the first sets of bytes. All lead to the same result.
    pub(super) fn from(
        precision: Precision,
        symbols: &Symbols,
        leaves: &FxHashMap<NodeId, Leaf>,
        lexemes: &LexemeStore,
    ) -> Result<Self, LimitExceeded> {
        let mut swallowing = Self::default();
        let mut scopes: FxHashMap<ScopeId, Vec<Member>> = FxHashMap::default();
        for (&node, leaf) in leaves {
            let Leaf::Lexeme { language, lexing: Lexing::Longest { scope, lexing } } = leaf else {
                continue;
            };
            let Outline { alive, alphabet, .. } = lexemes.outline(language)?;
            if alive {
                let member = Member { node, lexing: *lexing, language, alphabet };
                scopes.entry(*scope).or_default().push(member);
            }
        }
        if scopes.is_empty() {
            return Ok(swallowing);
        }
        let mut first = first_bytes(leaves, lexemes)?;
        if symbols.has_values() {
            return Self::whatever_follows(precision, &scopes, &first, lexemes);
        }
        let mut contexts = Contexts::of(symbols);
        // All leaves need a continuation; only lexemes that end at their longest match consume any.
        let mut taken: FxHashMap<NodeId, Taken> = FxHashMap::default();
        for members in scopes.values() {
            for member in members {
                if member.lexing != Longest::Lazy && contexts.leaves.contains_key(&member.node) {
                    let of = Taken::new(precision, lexemes, member, members, &first);
                    taken.insert(member.node, of);
                }
            }
        }
        // A leaf after which everything may be consumed is no continuation for another.
        loop {
            contexts.begin(&first);
            let before = swallowing.lexemes.len();
            for (node, &symbol) in &contexts.leaves {
                let is_within = |set: &ByteSet| contexts.may_be_within(symbol, set);
                let consumed = match taken.get_mut(node) {
                    _ if swallowing.has(*node) => false,
                    Some(taken) => taken.is_any(is_within)?,
                    None => is_within(&ByteSet::EMPTY),
                };
                if consumed {
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
        precision: Precision,
        scopes: &FxHashMap<ScopeId, Vec<Member>>,
        first: &FxHashMap<NodeId, FirstBytes>,
        lexemes: &LexemeStore,
    ) -> Result<Self, LimitExceeded> {
        let mut begins = FirstBytes::default();
        first.values().for_each(|&first| begins.join(first));
        let begins = begins.all();
        let mut is_safe = true;
        for members in scopes.values() {
            for member in members {
                if member.lexing != Longest::Lazy {
                    let meets = |set: &ByteSet| !set.intersection(&begins).is_empty();
                    let mut taken = Taken::new(precision, lexemes, member, members, first);
                    is_safe &= !taken.is_any(meets)?;
                }
            }
        }
        let all = scopes.values().flatten().map(|member| member.node);
        Ok(Self { lexemes: all.filter(|_| !is_safe).collect() })
    }
}

/// A lexeme of a scope that ends at its longest match.
struct Member<'l> {
    node: NodeId,
    lexing: Longest,
    language: &'l Ast,
    /// The bytes of its texts, and possibly others.
    alphabet: ByteSet,
}

/// For each state in which a lexeme may end, the bytes that continue some lexeme of its scope.
///
/// Most grammars need no state: what can follow does not occur in any lexeme that competes. So the
/// sets begin as the bytes that occur in those, and only where that does not exclude a dead end are
/// lexemes run side by side, which builds all of their states.
struct Taken<'l> {
    lexemes: &'l LexemeStore,
    ending: &'l Member<'l>,
    /// The lexemes of the scope that may begin as this one does; those of the fewest bytes come
    /// first.
    beside: Vec<&'l Member<'l>>,
    /// The distinct sets, which are far fewer than states.
    sets: FxHashSet<ByteSet>,
    precision: Precision,
}

/// How sets of bytes were found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    /// As all bytes of all lexemes beside.
    Alphabets,
    /// As all bytes of some, and with the states of the others.
    Mixed,
    States,
}

impl<'l> Taken<'l> {
    fn new(
        precision: Precision,
        lexemes: &'l LexemeStore,
        ending: &'l Member<'l>,
        scope: &'l [Member<'l>],
        first: &FxHashMap<NodeId, FirstBytes>,
    ) -> Self {
        let begins = first[&ending.node].bytes;
        let compete = |other: &&Member| !first[&other.node].bytes.intersection(&begins).is_empty();
        let mut beside: Vec<&Member> = scope.iter().filter(compete).collect();
        beside.sort_by_key(|member| member.alphabet.len());
        let all = match precision {
            Precision::Alphabets => {
                beside.iter().fold(ByteSet::EMPTY, |all, member| all.union(&member.alphabet))
            }
            _ => ByteSet::range(0, 255),
        };
        Self { lexemes, ending, beside, sets: FxHashSet::from_iter([all]), precision }
    }

    /// Whether a property holds for the set of any state. It holds for all supersets of a set for
    /// which it holds.
    fn is_any(&mut self, holds: impl Fn(&ByteSet) -> bool) -> Result<bool, LimitExceeded> {
        while self.sets.iter().any(&holds) {
            let alphabets = match self.precision {
                Precision::Alphabets => self.harmless(&holds),
                Precision::Mixed => (ByteSet::EMPTY, 0),
                Precision::States => return Ok(true),
            };
            self.precision = match alphabets {
                (_, 0) => Precision::States,
                _ => Precision::Mixed,
            };
            self.run_beside(alphabets)?;
        }
        Ok(false)
    }

    /// How many of the first lexemes, and all of their bytes together, do not have the property.
    fn harmless(&self, holds: impl Fn(&ByteSet) -> bool) -> (ByteSet, usize) {
        let mut all = ByteSet::EMPTY;
        for (place, member) in self.beside.iter().enumerate() {
            let more = all.union(&member.alphabet);
            if (place == 0 || more != all) && holds(&more) {
                return (all, place);
            }
            all = more;
        }
        (all, self.beside.len())
    }

    /// Finds the sets with the bytes of some lexemes, and the states of the others.
    fn run_beside(&mut self, (bytes, count): (ByteSet, usize)) -> Result<(), LimitExceeded> {
        let mut taken: FxHashMap<LexState, ByteSet> = FxHashMap::default();
        let lexeme = |member: &Member| {
            self.lexemes.get(&LexemeSpec::new(Spelling::Utf8, [member.language.clone()]))
        };
        let ending = lexeme(self.ending)?;
        for member in &self.beside[count..] {
            going_on_beside(&ending, &*lexeme(member)?, &mut taken)?;
        }
        // Even if nothing is consumed, some continuation is required.
        let sets = taken.into_values().map(|set| set.union(&bytes)).chain([bytes]);
        self.sets = sets.collect();
        Ok(())
    }
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
