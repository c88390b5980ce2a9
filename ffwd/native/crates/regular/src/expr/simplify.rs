//! Simplifications that reduce the operands of unions and intersections, so that equal languages
//! more often have equal ids.

use super::store::{Expr, ExprId, ExprStore};
use ffwd_bounds::error::LimitExceeded;

/// Up to this many alternatives of a union are compared with each other,
const MAX_COMPARED: usize = 12;
/// for this many links of their chains.
const MAX_COMPARED_LINKS: usize = 16;

impl ExprStore {
    /// Drops the alternatives of a union that another one includes.
    pub(super) fn drop_fewer(&self, kept: &mut Vec<ExprId>) {
        if (2..=MAX_COMPARED).contains(&kept.len()) && kept.iter().any(|&id| self.counts(id)) {
            let all = kept.clone();
            let covered = |id| all.iter().any(|&other| other != id && self.is_within(id, other));
            kept.retain(|&id| !covered(id));
        }
    }

    /// Whether an expression includes another one that differs only in the counts of a repetition.
    /// Never true both ways for different expressions.
    fn is_within(&self, id: ExprId, other: ExprId) -> bool {
        if !self.stands_alone(id) || !self.stands_alone(other) {
            return false;
        }
        let (mut id, mut other) = (id, other);
        for _ in 0..MAX_COMPARED_LINKS {
            if id == other {
                return true;
            }
            match (self.get(id), self.get(other)) {
                (&Expr::Concat(head, tail), &Expr::Concat(other_head, other_tail)) => {
                    if !self.is_fewer(head, other_head) {
                        return false;
                    }
                    (id, other) = (tail, other_tail);
                }
                _ => return self.is_fewer(id, other),
            }
        }
        false
    }

    /// Whether one equals the other, or is fewer copies of the same.
    fn is_fewer(&self, id: ExprId, other: ExprId) -> bool {
        if id == other {
            return true;
        }
        let Expr::Repeat { inner, min, max } = *self.get(other) else { return false };
        let (of, least, most) = match *self.get(id) {
            Expr::Repeat { inner, min, max } => (inner, min, max),
            _ => (id, 1, Some(1)),
        };
        of == inner && min <= least && max.is_none_or(|max| most.is_some_and(|most| most <= max))
    }

    /// Returns at most this many expressions whose union equals an intersection with unions;
    /// otherwise itself.
    pub fn alternatives(&mut self, id: ExprId, most: usize) -> Result<Vec<ExprId>, LimitExceeded> {
        let Expr::And(operands) = self.get(id).clone() else { return Ok(vec![id]) };
        let mut all: Vec<Vec<ExprId>> = vec![Vec::new()];
        for &operand in operands.iter() {
            match self.get(operand) {
                Expr::Or(parts) if all.len() * parts.len() <= most => {
                    let with = |parts: &[ExprId], other: &Vec<ExprId>| -> Vec<Vec<ExprId>> {
                        parts.iter().map(|&part| [&other[..], &[part]].concat()).collect()
                    };
                    all = all.iter().flat_map(|other| with(parts, other)).collect();
                }
                _ => all.iter_mut().for_each(|other| other.push(operand)),
            }
        }
        all.iter().map(|parts| self.and(parts)).collect()
    }

    /// Removes operands within unions that the other operands of the intersection imply: `x & (y |
    /// x & z)` is `x & (y | z)`. Repetitions with lookaheads then stop nesting deeper.
    pub(super) fn absorb(&mut self, kept: &[ExprId]) -> Result<Option<Vec<ExprId>>, LimitExceeded> {
        for (place, &id) in kept.iter().enumerate() {
            let Expr::Or(alternatives) = self.get(id) else { continue };
            if !alternatives.iter().any(|&part| self.remainder(kept, part).is_some()) {
                continue;
            }
            let alternatives = alternatives.clone();
            let mut simpler = Vec::with_capacity(alternatives.len());
            for &alternative in alternatives.iter() {
                simpler.push(match self.remainder(kept, alternative) {
                    Some(rest) => self.and(&rest)?,
                    None => alternative,
                });
            }
            let mut parts = kept.to_vec();
            parts[place] = self.or(&simpler)?;
            return Ok(Some(parts));
        }
        Ok(None)
    }

    /// Merges a count of any characters and a count of characters of one kind: `.{3,9} &
    /// [a-z]{0,5}` is `[a-z]{3,5}`.
    pub(super) fn count_once(
        &mut self,
        kept: &[ExprId],
    ) -> Result<Option<Vec<ExprId>>, LimitExceeded> {
        let any = |&id: &ExprId| matches!(*self.get(id), Expr::Repeat { inner, .. } if Some(inner) == self.any_character());
        let Some(counted) = kept.iter().copied().find(any) else { return Ok(None) };
        let run = |id: ExprId| match *self.get(id) {
            Expr::Repeat { inner, min, max } if self.is_character(inner) => Some((inner, min, max)),
            _ => self.is_character(id).then_some((id, 1, Some(1))),
        };
        let others = || kept.iter().copied().filter(|&id| id != counted);
        let Some((of_kind, (kind, min, max))) = others().find_map(|id| Some((id, run(id)?))) else {
            return Ok(None);
        };
        let Some((_, least, most)) = run(counted) else { return Ok(None) };
        let mut parts: Vec<ExprId> = others().filter(|&id| id != of_kind).collect();
        let min = min.max(least);
        let max = most.into_iter().chain(max).min();
        parts.push(match max {
            Some(max) if max < min => ExprId::EMPTY,
            _ => self.repeat(kind, min, max)?,
        });
        Ok(Some(parts))
    }

    /// Returns an operand's constraint besides all of `kept`, if it is smaller than the operand and
    /// still a text (complements alone also contain invalid encodings).
    fn remainder(&self, kept: &[ExprId], id: ExprId) -> Option<Vec<ExprId>> {
        let is_known = |id: &ExprId| kept.binary_search(id).is_ok();
        let Expr::And(members) = self.get(id) else { return is_known(&id).then(Vec::new) };
        if !members.iter().any(is_known) {
            return None;
        }
        let rest: Vec<ExprId> = members.iter().copied().filter(|id| !is_known(id)).collect();
        let text = rest.iter().any(|&id| !matches!(self.get(id), Expr::Not(_)));
        (text || rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use crate::expr::{Lexeme, LexemeSpec, Spelling};
    use crate::regex::{rust_dialect, Ast, CharClass};

    fn lexeme(language: Ast) -> Lexeme {
        Lexeme::new(LexemeSpec::new(Spelling::Utf8, [language])).unwrap()
    }

    fn pattern(text: &str) -> Ast {
        rust_dialect::anchored(text).unwrap()
    }

    fn accepts(lexeme: &Lexeme, text: &str) -> bool {
        let start = Some(lexeme.start());
        let end = text.bytes().try_fold(start, |state, byte| match state {
            Some(state) => lexeme.next(state, byte),
            None => Ok(None),
        });
        end.unwrap().is_some_and(|state| state.accepts())
    }

    /// Returns every text of at most this many of these characters.
    fn texts(of: &str, longest: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        let mut from = 0;
        for _ in 0..longest {
            let to = all.len();
            for at in from..to {
                let longer: Vec<String> = of.chars().map(|c| format!("{}{c}", all[at])).collect();
                all.extend(longer);
            }
            from = to;
        }
        all
    }

    #[test]
    fn alternatives_with_fewer_repetitions_are_dropped_and_nothing_else() {
        for text in [
            "(.{1,3}x){1,4}",
            "(.{1,2}x){0,3}y|(.{1,2}x){0,5}y",
            "(a{2,3}|a{1,4})b|a{5}",
            "(a{1,2}x?){2,3}(b|bx{0,2}|bx{1,4})",
            "((a|ax){1,3}){0,2}b{0,3}|(a|ax)b{1,2}",
        ] {
            let lexeme = lexeme(pattern(text));
            let expected = regex::Regex::new(&format!("^(?s:{text})$")).unwrap();
            for text in texts("abx", 8) {
                assert_eq!(accepts(&lexeme, &text), expected.is_match(&text), "{text}");
            }
        }
        // The start of a part is distinguished only as far as it matters.
        let lexeme = lexeme(pattern("(.{1,30}x){1,60}y"));
        for text in texts("ax", 10) {
            accepts(&lexeme, &text);
        }
        assert!(lexeme.num_states() < 600, "{}", lexeme.num_states());
    }

    #[test]
    fn a_number_of_characters_is_one_with_a_run_of_them() {
        for (text, least, most) in [
            ("[ab]*", 2, Some(4)),
            ("[ab]{3,6}", 1, Some(2)),
            ("a{1,4}", 3, None),
            ("[ab]", 0, None),
        ] {
            let any = Ast::Class(CharClass::any());
            let both = Ast::intersection([pattern(text), Ast::repeat(any, least, most)]);
            let lexeme = lexeme(both);
            let expected = regex::Regex::new(&format!("^(?:{text})$")).unwrap();
            for text in texts("abx", 7) {
                let fits = (least as usize..=most.map_or(99, |most| most as usize))
                    .contains(&text.chars().count());
                assert_eq!(accepts(&lexeme, &text), fits && expected.is_match(&text), "{text}");
            }
        }
    }
}
