//! Building [`Ast`]s under a budget.

use super::error::{EXPRESSION_SIZE, MAX_SIZE};
use super::{Ast, CharClass, PatternError};

/// Largest number of operands that all steps together may handle.
const MAX_WORK: usize = 1 << 22;

/// A language with the known properties of its tree.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) ast: Ast,
    pub(super) nullable: bool,
    size: usize,
}

impl Piece {
    pub(super) fn new(ast: Ast) -> Self {
        Self { nullable: nullable(&ast), size: size(&ast), ast }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ast == Ast::Empty
    }
}

/// Combines pieces, and stops when the trees get too large.
#[derive(Default)]
pub(super) struct PieceBuilder {
    work: usize,
}

impl PieceBuilder {
    fn charge(&mut self, work: usize, size: usize) -> Result<usize, PatternError> {
        self.work = self.work.saturating_add(work).saturating_add(1);
        if size > MAX_SIZE || self.work > MAX_WORK {
            return Err(PatternError::too_large(0, EXPRESSION_SIZE, MAX_SIZE));
        }
        Ok(size)
    }

    pub(super) fn concat(&mut self, parts: &[Piece]) -> Result<Piece, PatternError> {
        if parts.iter().any(Piece::is_empty) {
            return Ok(Piece::new(Ast::Empty));
        }
        let work = parts.iter().map(|part| width(&part.ast)).sum();
        let size = self.charge(work, total(parts))?;
        let mut kept: Vec<Ast> = Vec::with_capacity(parts.len());
        let mut literal = String::new();
        let flush = |literal: &mut String, kept: &mut Vec<Ast>| {
            if !literal.is_empty() {
                kept.push(Ast::literal(literal));
                literal.clear();
            }
        };
        for part in parts {
            match &part.ast {
                Ast::Literal(text) => literal.push_str(text),
                Ast::Epsilon => {}
                other => {
                    flush(&mut literal, &mut kept);
                    kept.push(other.clone());
                }
            }
        }
        flush(&mut literal, &mut kept);
        let nullable = parts.iter().all(|part| part.nullable);
        Ok(Piece { ast: Ast::concat(kept), nullable, size })
    }

    pub(super) fn union(&mut self, parts: &[Piece]) -> Result<Piece, PatternError> {
        let mut kept: Vec<Piece> = Vec::with_capacity(parts.len());
        for part in parts {
            if !part.is_empty() && kept.last().is_none_or(|last| last.ast != part.ast) {
                kept.push(part.clone());
            }
        }
        let work = kept.iter().map(|part| width(&part.ast)).sum();
        let size = self.charge(work, total(&kept))?;
        let nullable = kept.iter().any(|part| part.nullable);
        // An epsilon adds nothing if another operand contains it.
        if kept.iter().any(|part| part.nullable && part.ast != Ast::Epsilon) {
            kept.retain(|part| part.ast != Ast::Epsilon);
        }
        Ok(Piece { ast: Ast::alternation(kept.into_iter().map(|part| part.ast)), nullable, size })
    }

    pub(super) fn repeat(
        &mut self,
        inner: &Piece,
        min: u32,
        max: Option<u32>,
    ) -> Result<Piece, PatternError> {
        let size = self.charge(1, inner.size.saturating_add(1))?;
        let nullable = min == 0 || inner.nullable || max == Some(0);
        Ok(Piece { ast: Ast::repeat(inner.ast.clone(), min, max), nullable, size })
    }

    /// The words of `left` that `right` has, or if `negative`, has not.
    pub(super) fn restrict(
        &mut self,
        left: &Piece,
        right: &Piece,
        negative: bool,
    ) -> Result<Piece, PatternError> {
        let any = Ast::any_text();
        let none = if negative { right.ast == any } else { right.is_empty() };
        let all = if negative { right.is_empty() } else { right.ast == any };
        if none || left.is_empty() {
            return Ok(Piece::new(Ast::Empty));
        }
        if all {
            return Ok(left.clone());
        }
        let size = self.charge(2, left.size.saturating_add(right.size).saturating_add(2))?;
        let nullable = left.nullable && right.nullable != negative;
        let other = if negative { Ast::complement(right.ast.clone()) } else { right.ast.clone() };
        let mut operands = vec![other];
        match &left.ast {
            // Kept flat, so that a chain of lookaheads is one intersection.
            Ast::Intersection(parts) => operands.extend(parts.iter().cloned()),
            ast if *ast == any => {}
            ast => operands.push(ast.clone()),
        }
        Ok(Piece { ast: Ast::intersection(operands), nullable, size })
    }

    /// The words of the piece that are not empty.
    pub(super) fn nonempty(&mut self, piece: &Piece) -> Result<Piece, PatternError> {
        if !piece.nullable {
            return Ok(piece.clone());
        }
        match &piece.ast {
            Ast::Epsilon => Ok(Piece::new(Ast::Empty)),
            Ast::Repeat { inner, min: 0, max } if !nullable(inner) => {
                self.repeat(&Piece::new((**inner).clone()), 1, *max)
            }
            _ => {
                let any = Ast::Class(CharClass::any());
                self.restrict(piece, &Piece::new(Ast::repeat(any, 1, None)), false)
            }
        }
    }
}

/// The number of operands that the node adds when it is flattened into its parent.
fn width(ast: &Ast) -> usize {
    match ast {
        Ast::Concat(parts) | Ast::Alternation(parts) => parts.len(),
        _ => 1,
    }
}

fn total(parts: &[Piece]) -> usize {
    parts.iter().fold(1, |sum, part| sum.saturating_add(part.size))
}

pub(super) fn size(ast: &Ast) -> usize {
    match ast {
        Ast::Empty
        | Ast::Epsilon
        | Ast::Literal(_)
        | Ast::Magnitude(_)
        | Ast::Finite(_)
        | Ast::Substring(_) => 1,
        Ast::Class(class) => 1 + class.ranges().len() / 8,
        Ast::Concat(parts) | Ast::Alternation(parts) | Ast::Intersection(parts) => {
            parts.iter().fold(1, |sum, part| sum.saturating_add(size(part)))
        }
        Ast::Repeat { inner, .. }
        | Ast::Complement(inner)
        | Ast::Before(inner)
        | Ast::After(inner) => size(inner).saturating_add(1),
        Ast::Approximate { known, possible } => size(known).saturating_add(size(possible)),
    }
}

/// Whether the empty text belongs to the language.
pub(super) fn nullable(ast: &Ast) -> bool {
    match ast {
        Ast::Empty | Ast::Class(_) | Ast::Literal(_) | Ast::Magnitude(_) | Ast::Finite(_) => false,
        Ast::Epsilon | Ast::Substring(_) => true,
        Ast::Concat(parts) | Ast::Intersection(parts) => parts.iter().all(nullable),
        Ast::Alternation(parts) => parts.iter().any(nullable),
        Ast::Repeat { inner, min, .. } => *min == 0 || nullable(inner),
        Ast::Complement(inner) => !nullable(inner),
        // Both sides of the empty text are empty.
        Ast::Before(inner) | Ast::After(inner) => nullable(inner),
        Ast::Approximate { known, .. } => nullable(known),
    }
}

/// The side of a language on which anything may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// A smaller language that, with any text added on the side, is the same: `ab*` followed by
/// anything is `a` followed by anything.
pub(super) fn beside_anything(ast: &Ast, side: Side) -> Ast {
    if nullable(ast) {
        return Ast::Epsilon;
    }
    match ast {
        Ast::Concat(parts) => {
            let mut kept: Vec<Ast> = parts.to_vec();
            if side == Side::Left {
                kept.reverse();
            }
            while kept.last().is_some_and(nullable) {
                kept.pop();
            }
            if let Some(last) = kept.last_mut() {
                *last = beside_anything(last, side);
            }
            if side == Side::Left {
                kept.reverse();
            }
            Ast::concat(kept)
        }
        Ast::Alternation(parts) => {
            Ast::alternation(parts.iter().map(|part| beside_anything(part, side)))
        }
        Ast::Repeat { inner, min: 1, .. } => beside_anything(inner, side),
        Ast::Repeat { inner, min, .. } => Ast::repeat((**inner).clone(), *min, Some(*min)),
        other => other.clone(),
    }
}
