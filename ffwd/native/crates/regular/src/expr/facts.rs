//! Cached properties of expressions.

use super::byte_set::ByteSet;
use super::store::{Expr, ExprId};

#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub nullable: bool,
    /// Built without intersection, complement and conditions on the context: such an expression is
    /// empty only if it is `EMPTY`.
    pub positive: bool,
    /// Whether it depends on what was read before.
    pub behind: bool,
    /// Whether it depends on what follows.
    pub ahead: bool,
    /// Whether a repetition in it counts, other than under a complement or a condition.
    pub counts: bool,
    /// How deep a derivative recurses.
    pub depth: u32,
    /// A lower bound on the length of its strings. It is exact if `positive`, except for
    /// magnitudes.
    pub min_len: u32,
    /// An upper bound on the length of its strings; `u32::MAX` if there is none.
    pub max_len: u32,
    /// Known to have arbitrarily long strings.
    pub endless: bool,
    /// ASCII bytes that each of its strings has, as bits.
    pub needs: u128,
    /// ASCII bytes that its strings can have.
    pub may_have: u128,
    /// With any other byte its derivative is `EMPTY`.
    pub first: ByteSet,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            nullable: false,
            positive: true,
            behind: false,
            ahead: false,
            counts: false,
            depth: 1,
            min_len: 0,
            max_len: 0,
            endless: false,
            needs: 0,
            may_have: 0,
            first: ByteSet::EMPTY,
        }
    }
}

/// Any ASCII bytes.
pub(super) const ANY_ASCII: u128 = u128::MAX;

/// Returns the properties of an expression from those of its parts.
pub(super) fn facts_of(facts: &[Facts], expr: &Expr) -> Facts {
    let of = |id: &ExprId| facts[id.index()];
    let any = |ids: &[ExprId], fact: fn(Facts) -> bool| ids.iter().any(|id| fact(of(id)));
    let all = |ids: &[ExprId], fact: fn(Facts) -> bool| ids.iter().all(|id| fact(of(id)));
    let least = |ids: &[ExprId], fact: fn(Facts) -> u32| {
        ids.iter().map(|id| fact(of(id))).min().unwrap_or(0)
    };
    let most = |ids: &[ExprId], fact: fn(Facts) -> u32| {
        ids.iter().map(|id| fact(of(id))).max().unwrap_or(0)
    };
    match expr {
        Expr::Empty | Expr::Epsilon => {
            Facts { nullable: *expr == Expr::Epsilon, ..Facts::default() }
        }
        Expr::Bytes(set) => {
            let may_have = set.ascii();
            let needs = if set.len() == 1 { may_have } else { 0 };
            Facts { min_len: 1, max_len: 1, needs, may_have, first: *set, ..Facts::default() }
        }
        Expr::Magnitude(magnitude) => Facts {
            nullable: magnitude.accepts(),
            min_len: u32::from(!magnitude.accepts()),
            max_len: u32::MAX,
            may_have: ANY_ASCII,
            first: ByteSet::ALL,
            ..Facts::default()
        },
        Expr::Finite(finite) => {
            let mut first = ByteSet::EMPTY;
            for &byte in finite.alphabet() {
                if finite.derive(byte).is_some() {
                    first.insert(byte);
                }
            }
            Facts {
                nullable: finite.accepts(),
                min_len: u32::from(!finite.accepts()),
                max_len: u32::MAX,
                may_have: finite.alphabet().iter().fold(0, |all, &byte| all | 1 << byte),
                first,
                ..Facts::default()
            }
        }
        Expr::Listed(listed) => {
            let extent = listed.extent();
            Facts {
                nullable: listed.ends(),
                min_len: extent.shortest,
                max_len: extent.longest,
                needs: extent.all,
                may_have: extent.any,
                first: ByteSet::ALL,
                ..Facts::default()
            }
        }
        Expr::Substring(substring) => {
            let (min_len, max_len) = substring.lengths();
            Facts {
                nullable: substring.ends(),
                min_len,
                max_len,
                may_have: substring.occurring().ascii(),
                first: substring.occurring(),
                ..Facts::default()
            }
        }
        Expr::Before(id) | Expr::After(id) => Facts {
            nullable: of(id).nullable,
            positive: false,
            behind: matches!(expr, Expr::Before(_)) || of(id).behind,
            ahead: matches!(expr, Expr::After(_)),
            depth: of(id).depth + 1,
            ..Facts::default()
        },
        Expr::Concat(head, tail) => {
            let (head, tail) = (of(head), of(tail));
            // A derivative enters the tail only where the head may be empty.
            let depth = if head.nullable { head.depth.max(tail.depth) } else { head.depth };
            Facts {
                nullable: head.nullable && tail.nullable,
                positive: head.positive && tail.positive,
                behind: head.behind || tail.behind,
                ahead: head.ahead || tail.ahead,
                counts: head.counts || tail.counts,
                depth: depth + 1,
                min_len: head.min_len.saturating_add(tail.min_len),
                max_len: head.max_len.saturating_add(tail.max_len),
                endless: head.positive && tail.positive && (head.endless || tail.endless),
                needs: head.needs | tail.needs,
                may_have: head.may_have | tail.may_have,
                first: match (head.ahead, head.nullable) {
                    (true, _) => ByteSet::ALL,
                    (false, true) => head.first.union(&tail.first),
                    (false, false) => head.first,
                },
            }
        }
        Expr::Or(ids) => Facts {
            nullable: any(ids, |of| of.nullable),
            positive: all(ids, |of| of.positive),
            behind: any(ids, |of| of.behind),
            ahead: any(ids, |of| of.ahead),
            counts: any(ids, |of| of.counts),
            depth: most(ids, |of| of.depth) + 1,
            min_len: least(ids, |of| of.min_len),
            max_len: most(ids, |of| of.max_len),
            endless: any(ids, |of| of.endless),
            needs: ids.iter().fold(ANY_ASCII, |needs, id| needs & of(id).needs),
            may_have: ids.iter().fold(0, |may, id| may | of(id).may_have),
            first: ids.iter().fold(ByteSet::EMPTY, |first, id| first.union(&of(id).first)),
        },
        Expr::And(ids) => Facts {
            nullable: all(ids, |of| of.nullable),
            positive: false,
            behind: any(ids, |of| of.behind),
            ahead: any(ids, |of| of.ahead),
            counts: any(ids, |of| of.counts),
            depth: most(ids, |of| of.depth) + 1,
            min_len: most(ids, |of| of.min_len),
            max_len: least(ids, |of| of.max_len),
            endless: false,
            needs: needed(facts, ids),
            may_have: possible(facts, ids),
            first: ids.iter().fold(ByteSet::ALL, |first, id| first.intersection(&of(id).first)),
        },
        Expr::Not(id) => Facts {
            needs: 0,
            nullable: !of(id).nullable,
            positive: false,
            behind: of(id).behind,
            ahead: of(id).ahead,
            counts: false,
            depth: of(id).depth + 1,
            // An expression that depends on its context may be empty elsewhere.
            min_len: u32::from(of(id).nullable && !of(id).behind && !of(id).ahead),
            max_len: u32::MAX,
            endless: false,
            may_have: ANY_ASCII,
            first: ByteSet::ALL,
        },
        Expr::Repeat { inner, min, max } => {
            let inner = of(inner);
            let max_len = match max {
                Some(max) if inner.max_len < u32::MAX => inner.max_len.saturating_mul(*max),
                _ => u32::MAX,
            };
            Facts {
                nullable: *min == 0 || inner.nullable,
                positive: inner.positive,
                behind: inner.behind,
                ahead: inner.ahead,
                counts: inner.counts || max.is_some() || *min > 1,
                depth: inner.depth + 1,
                min_len: inner.min_len.saturating_mul(*min),
                max_len,
                endless: inner.positive && (inner.endless || max.is_none()),
                needs: if *min > 0 { inner.needs } else { 0 },
                may_have: inner.may_have,
                first: if inner.ahead { ByteSet::ALL } else { inner.first },
            }
        }
    }
}

/// The ASCII bytes that each string of an intersection has.
pub(super) fn needed(facts: &[Facts], ids: &[ExprId]) -> u128 {
    ids.iter().fold(0, |needs, id| needs | facts[id.index()].needs)
}

/// The ASCII bytes that strings of an intersection can have.
pub(super) fn possible(facts: &[Facts], ids: &[ExprId]) -> u128 {
    ids.iter().fold(ANY_ASCII, |may, id| may & facts[id.index()].may_have)
}

#[cfg(test)]
mod tests {
    use crate::expr::{Lexeme, LexemeSpec, Spelling};
    use crate::regex::{rust_dialect, Ast};

    fn lexeme(patterns: &[&str]) -> Lexeme {
        let parts = patterns.iter().map(|pattern| rust_dialect::anchored(pattern).unwrap());
        Lexeme::new(LexemeSpec::new(Spelling::JsonString, [Ast::intersection(parts)])).unwrap()
    }

    #[test]
    fn what_needs_a_byte_that_cannot_come_is_empty() {
        for (patterns, alive) in [
            (["(?s:.*)T(?s:.*)", "[0-9]*[a-z]?[0-9:]+"], false),
            (["(?s:.*)t(?s:.*)", "[0-9]*[a-z]?[0-9:]+"], true),
            (["(?s:.*)[tT](?s:.*)", "[0-9]*[a-z]?[0-9:]+"], true),
            (["(x|yz)+", "[xy]*z?"], true),
            (["(xz|yz)+", "[xy]*"], false),
        ] {
            let lexeme = lexeme(&patterns);
            assert_eq!(lexeme.is_alive(), alive, "{patterns:?}");
            assert!(alive || lexeme.effort() == 0, "{patterns:?}");
        }
    }

    #[test]
    fn long_texts_of_what_has_no_longest_are_not_searched() {
        let lexeme = |pattern| lexeme(&["(?s:.){10000,}", pattern]);
        for pattern in ["([a-z][0-9])+", "a(b|c+)", "(é|\"*)x", "[a-c]{3,}z?"] {
            let lexeme = lexeme(pattern);
            assert!(lexeme.is_alive() && lexeme.effort() == 0, "{pattern}");
        }
        for pattern in ["[a-z]{9999}", "(a|b{300}){33}", "a?"] {
            assert!(!lexeme(pattern).is_alive(), "{pattern}");
        }
        assert!(lexeme("[a-z]{10000}").is_alive());
    }
}
