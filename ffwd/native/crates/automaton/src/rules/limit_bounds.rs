//! Upper bounds on the bytes that complete a part with a limit, from any position in it.
//!
//! While a limit leaves more tokens than that, no token of the part needs a check. The bound exists
//! for parts without nesting: regular languages and their compositions. A token has at least one
//! byte, so bytes bound tokens.

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::rules::leaf::Leaf;
use crate::rules::limit_tables::{Bounds, UNKNOWN_BOUND};
use crate::rules::program::Program;
use crate::rules::tables::Rules;
use crate::stacks::on::On;
use ffwd_bounds::meter;
use ffwd_grammar::symbols::{Symbol, SymbolId};
use ffwd_grammar::{Lexing, NodeId};
use ffwd_regular::expr::{LexemeSpec, Spelling};
use ffwd_regular::regex::Ast;

/// How many symbols are looked at.
const MAX_SYMBOLS: usize = 1 << 16;
/// How many states of a lexeme are looked at.
const MAX_STATES: usize = 512;
/// How often bounds may grow before they are given up.
const MAX_ROUNDS: usize = 64;
/// The most bytes of a character.
const CHARACTER: u32 = 4;

/// The bound of a symbol.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bound {
    /// Bytes of a text of it that is not empty.
    whole: u32,
    /// The most bytes that end it after its first byte.
    inside: u32,
    /// Whether a lexeme of it ends at its longest match.
    longest: bool,
}

impl Rules {
    /// Bounds of the parts with limits; `None` of a grammar without any.
    ///
    /// # Errors
    /// A limit of a lexeme is exceeded.
    pub(crate) fn bounds(&self, on: &impl On) -> Result<Option<&Bounds>> {
        let Some(limits) = &self.limits else { return Ok(None) };
        if let Some(known) = limits.bounds.get() {
            return Ok(Some(known));
        }
        let found = self.find_bounds(on, &self.program)?;
        Ok(Some(limits.bounds.get_or_init(|| found)))
    }

    fn find_bounds(&self, on: &impl On, program: &Program) -> Result<Bounds> {
        let Program { symbols, leaves, limits, .. } = program;
        if symbols.len() > MAX_SYMBOLS || symbols.has_values() {
            return Ok(Bounds::default());
        }
        let ids = || (0..symbols.len() as u32).map(SymbolId);
        let mut bounds =
            vec![Bound { whole: UNKNOWN_BOUND, inside: 0, longest: false }; symbols.len()];
        // Only the symbols in such a part are needed.
        let mut wanted = vec![false; symbols.len()];
        let mut pending: Vec<SymbolId> = ids()
            .filter(|&id| matches!(symbols.get(id), Symbol::Marked(node, _) if limits.contains_key(node)))
            .collect();
        while let Some(id) = pending.pop() {
            meter::charge(1)?;
            if std::mem::replace(&mut wanted[id.0 as usize], true) {
                continue;
            }
            match symbols.get(id) {
                &Symbol::Seq(first, then) => pending.extend([first, then]),
                Symbol::Choice(parts) => pending.extend_from_slice(parts),
                &Symbol::Star(inner)
                | &Symbol::Repeat { inner, .. }
                | &Symbol::Marked(_, inner)
                | &Symbol::NonEmpty(inner) => pending.push(inner),
                &Symbol::Part(part) => pending.push(symbols.meaning(part)),
                Symbol::Leaf(node) => {
                    bounds[id.0 as usize] = match leaves.get(node) {
                        Some(Leaf::Lexeme { language, lexing }) => Bound {
                            longest: !matches!(lexing, Lexing::Anywhere),
                            ..self.bound_of(on, language)?
                        },
                        Some(Leaf::Tokens(_)) => Bound { whole: 1, inside: 0, longest: false },
                        _ => Bound { whole: UNKNOWN_BOUND, inside: UNKNOWN_BOUND, longest: false },
                    };
                }
                Symbol::Empty | Symbol::Later(_) => {}
            }
        }
        let mut round = 0;
        loop {
            let mut changed = false;
            meter::charge(symbols.len())?;
            for id in ids().filter(|id| wanted[id.0 as usize]) {
                let known = bounds[id.0 as usize];
                let mut now = bound(program, &bounds, id);
                now.inside = now.inside.max(known.inside).min(UNKNOWN_BOUND);
                now.whole = now.whole.min(known.whole);
                if now == known {
                    continue;
                }
                if round > MAX_ROUNDS && now.inside > known.inside {
                    now.inside = UNKNOWN_BOUND;
                }
                bounds[id.0 as usize] = now;
                changed = true;
            }
            round += 1;
            if !changed {
                break;
            }
        }
        let mut parts: FxHashMap<NodeId, u32> = FxHashMap::default();
        for id in ids().filter(|id| wanted[id.0 as usize]) {
            if let &Symbol::Marked(node, inner) = symbols.get(id) {
                let inside = bounds[inner.0 as usize].inside;
                let most = parts.entry(node).or_default();
                *most = inside.max(*most);
            }
        }
        let is_roomy = |(node, &max): (&NodeId, &u32)| {
            max == 0 || parts.get(node).is_none_or(|&bytes| bytes < max)
        };
        let all_are_roomy = limits.iter().all(is_roomy);
        Ok(Bounds { parts, all_are_roomy })
    }

    /// Returns the bound of a lexeme alone.
    fn bound_of(&self, on: &impl On, language: &Ast) -> Result<Bound> {
        // An intersection with a bound on characters: the other language also has a completion
        // within the characters that are left.
        if let Ast::Intersection(parts) = language {
            let counts = |part: &Ast| matches!(part, Ast::Repeat { inner, min: 0, .. } if matches!(**inner, Ast::Class(_)));
            let rest: Vec<Ast> = parts.iter().filter(|part| !counts(part)).cloned().collect();
            if rest.len() + 1 == parts.len() && !rest.is_empty() {
                let free = self.bound_of(on, &Ast::intersection(rest))?;
                let inside = free.inside.max(CHARACTER - 1).saturating_mul(CHARACTER);
                let whole = free.whole.max(1).saturating_mul(CHARACTER);
                let cap = |bytes: u32| bytes.min(UNKNOWN_BOUND);
                return Ok(Bound { whole: cap(whole), inside: cap(inside), longest: false });
            }
        }
        let spec = LexemeSpec::new(Spelling::Utf8, [language.clone()]);
        let lexeme = on.lexeme_store().get(&spec)?;
        let bytes = lexeme.bytes_to_end(MAX_STATES)?;
        let (whole, inside) = bytes.unwrap_or((UNKNOWN_BOUND, UNKNOWN_BOUND));
        Ok(Bound { whole, inside, longest: false })
    }
}

fn bound(program: &Program, bounds: &[Bound], id: SymbolId) -> Bound {
    let symbols = &program.symbols;
    let of = |id: SymbolId| bounds[id.0 as usize];
    let needed = |id: SymbolId| if symbols.is_nullable(id) { 0 } else { of(id).whole };
    // The text after a longest match decides whether the lexeme may end.
    let alone = |bound: Bound| if bound.longest { UNKNOWN_BOUND } else { bound.inside };
    let (inside, longest) = match symbols.get(id) {
        Symbol::Empty => (0, false),
        &Symbol::Seq(first, then) => (
            alone(of(first)).saturating_add(needed(then)).max(alone(of(then))),
            of(first).longest || of(then).longest,
        ),
        Symbol::Choice(parts) => (
            parts.iter().map(|&part| of(part).inside).max().unwrap_or(0),
            parts.iter().any(|&part| of(part).longest),
        ),
        &Symbol::Star(inner) => (alone(of(inner)), of(inner).longest),
        &Symbol::Repeat { inner, min, .. } => {
            let more = needed(inner).saturating_mul(min.saturating_sub(1));
            (alone(of(inner)).saturating_add(more), of(inner).longest)
        }
        &Symbol::Marked(_, inner) | &Symbol::NonEmpty(inner) => return of(inner),
        &Symbol::Part(part) => return of(symbols.meaning(part)),
        Symbol::Leaf(_) | Symbol::Later(_) => return of(id),
    };
    let whole = symbols.shortest(id, |id| of(id).whole, |_| of(id).whole).min(UNKNOWN_BOUND);
    Bound { whole, inside, longest }
}
