//! What is known of an expression from its operands, when it is made.

use super::store::{Expr, ExprId, ExprStore};

#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) nullable: bool,
    /// Built without intersection, complement and conditions on what is around: then it is empty
    /// only if it is `EMPTY`.
    pub(super) positive: bool,
    /// Whether it depends on what was read before.
    pub(super) behind: bool,
    /// Whether it depends on what follows.
    pub(super) ahead: bool,
    /// How deep a derivative recurses.
    pub(super) depth: u32,
    /// A lower bound on the length of its strings, exact where `positive` but for magnitudes.
    pub(super) min_len: u32,
    /// An upper bound on the length of its strings; `u32::MAX` if there is none.
    pub(super) max_len: u32,
    /// Known to have arbitrarily long strings.
    pub(super) endless: bool,
    /// ASCII bytes that each of its strings has, as bits.
    pub(super) needs: u128,
    /// ASCII bytes that its strings can have.
    pub(super) may_have: u128,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            nullable: false,
            positive: true,
            behind: false,
            ahead: false,
            depth: 1,
            min_len: 0,
            max_len: 0,
            endless: false,
            needs: 0,
            may_have: 0,
        }
    }
}

/// Any ASCII bytes.
pub(super) const ANY_ASCII: u128 = u128::MAX;

impl ExprStore {
    pub(super) fn facts_of(&self, expr: &Expr) -> Facts {
        let of = |id: &ExprId| self.facts[id.index()];
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
                Facts { min_len: 1, max_len: 1, needs, may_have, ..Facts::default() }
            }
            Expr::Magnitude(magnitude) => Facts {
                nullable: magnitude.accepts(),
                min_len: u32::from(!magnitude.accepts()),
                max_len: u32::MAX,
                may_have: ANY_ASCII,
                ..Facts::default()
            },
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
                    depth: depth + 1,
                    min_len: head.min_len.saturating_add(tail.min_len),
                    max_len: head.max_len.saturating_add(tail.max_len),
                    endless: head.positive && tail.positive && (head.endless || tail.endless),
                    needs: head.needs | tail.needs,
                    may_have: head.may_have | tail.may_have,
                }
            }
            Expr::Or(ids) => Facts {
                nullable: any(ids, |of| of.nullable),
                positive: all(ids, |of| of.positive),
                behind: any(ids, |of| of.behind),
                ahead: any(ids, |of| of.ahead),
                depth: most(ids, |of| of.depth) + 1,
                min_len: least(ids, |of| of.min_len),
                max_len: most(ids, |of| of.max_len),
                endless: any(ids, |of| of.endless),
                needs: ids.iter().fold(ANY_ASCII, |needs, id| needs & of(id).needs),
                may_have: ids.iter().fold(0, |may, id| may | of(id).may_have),
            },
            Expr::And(ids) => Facts {
                endless: false,
                nullable: all(ids, |of| of.nullable),
                positive: false,
                behind: any(ids, |of| of.behind),
                ahead: any(ids, |of| of.ahead),
                depth: most(ids, |of| of.depth) + 1,
                min_len: most(ids, |of| of.min_len),
                max_len: least(ids, |of| of.max_len),
                needs: self.needed(ids),
                may_have: self.possible(ids),
            },
            Expr::Not(id) => Facts {
                endless: false,
                needs: 0,
                nullable: !of(id).nullable,
                positive: false,
                behind: of(id).behind,
                ahead: of(id).ahead,
                depth: of(id).depth + 1,
                // What depends on its surroundings may be empty somewhere else.
                min_len: u32::from(of(id).nullable && !of(id).behind && !of(id).ahead),
                max_len: u32::MAX,
                may_have: ANY_ASCII,
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
                    depth: inner.depth + 1,
                    min_len: inner.min_len.saturating_mul(*min),
                    max_len,
                    endless: inner.positive && (inner.endless || max.is_none()),
                    needs: if *min > 0 { inner.needs } else { 0 },
                    may_have: inner.may_have,
                }
            }
        }
    }

    /// The ASCII bytes that each string of an intersection has.
    pub(super) fn needed(&self, ids: &[ExprId]) -> u128 {
        ids.iter().fold(0, |needs, id| needs | self.facts[id.index()].needs)
    }

    /// The ASCII bytes that strings of an intersection can have.
    pub(super) fn possible(&self, ids: &[ExprId]) -> u128 {
        ids.iter().fold(ANY_ASCII, |may, id| may & self.facts[id.index()].may_have)
    }

    /// Whether an expression is plainly not empty: an intersection of a language that has
    /// arbitrarily long strings with texts of at least so many characters.
    pub fn plainly_alive(&self, id: ExprId) -> bool {
        let (Expr::And(ids), Some(universe)) = (self.get(id), self.universe()) else {
            return false;
        };
        let Expr::Repeat { inner: character, .. } = *self.get(universe) else { return false };
        let is_long = |id: &ExprId| matches!(*self.get(*id), Expr::Repeat { inner, max: None, .. } if inner == character);
        match ids[..] {
            [one, other] => {
                let is_endless = |id: ExprId| self.positive(id) && self.facts[id.index()].endless;
                (is_long(&one) && is_endless(other)) || (is_long(&other) && is_endless(one))
            }
            _ => false,
        }
    }
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
