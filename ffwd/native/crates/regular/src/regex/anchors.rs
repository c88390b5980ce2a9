//! Conversion of a pattern with anchors and lookaheads to the language of its matches.
//!
//! **Anchors.** A node becomes four languages, one for each *condition* on its span: none, at the
//! start of the text, at its end, or both. An anchor is the empty word under a condition, and in a
//! concatenation a condition forces the part before it (or after it) to be empty. Everything else
//! is a union, so no complement is needed.
//!
//! **Lookaheads** constrain the whole following text, so a pattern with some is converted from its
//! end. A node and the language after its span yield the language of the whole rest of the text
//! from the span's start. In it, a lookahead is an intersection. A repetition has no last copy to
//! start from. Lookaheads inside unbounded ones, except for a common kind that ends with the text,
//! are therefore left to [`super::context`], and so are all lookbehinds.

use super::node::Node;
use super::piece::{beside_anything, Piece, PieceBuilder, Side};
use super::{context, Ast, PatternError, PatternErrorKind};

/// Copies that a repetition with a lookahead in it may have.
const MAX_LOOKAHEAD_COPIES: u32 = 16;

/// The texts in which the pattern matches some span.
pub(super) fn searched(node: &Node) -> Result<Ast, PatternError> {
    if node.looks_behind() {
        return context::searched(node);
    }
    match without_context(node) {
        Err(PatternError { kind: PatternErrorKind::Unsupported(_), .. }) => context::searched(node),
        result => result,
    }
}

/// [`searched`] without lookbehind, and with lookaheads in few repetitions only.
fn without_context(node: &Node) -> Result<Ast, PatternError> {
    let mut builder = PieceBuilder::default();
    let any = Piece::new(Ast::any_text());
    if node.lookahead().is_some() {
        let after = Tail { first: any.clone(), later: any.clone() };
        let tail = tail(&mut builder, node, &after)?;
        let before = if tail.first.ast == tail.later.ast { any } else { builder.nonempty(&any)? };
        let later = builder.concat(&[before, tail.later])?;
        return Ok(builder.union(&[tail.first, later])?.ast);
    }
    let slots = slots(&mut builder, node)?;
    // An empty match under one condition is found in every text.
    if [Slot::Free, Slot::Start, Slot::End].iter().any(|&slot| slots.get(slot).nullable) {
        return Ok(any.ast);
    }
    let strip = |piece: &Piece, sides: &[Side]| {
        Piece::new(sides.iter().fold(piece.ast.clone(), |ast, &side| beside_anything(&ast, side)))
    };
    let free = strip(slots.get(Slot::Free), &[Side::Left, Side::Right]);
    let start = strip(slots.get(Slot::Start), &[Side::Right]);
    let end = strip(slots.get(Slot::End), &[Side::Left]);
    let parts = [
        builder.concat(&[any.clone(), free, any.clone()])?,
        builder.concat(&[start, any.clone()])?,
        builder.concat(&[any, end])?,
        slots.get(Slot::Both).clone(),
    ];
    Ok(builder.union(&parts)?.ast)
}

/// The texts that the pattern matches as a whole.
pub(super) fn whole(node: &Node) -> Result<Ast, PatternError> {
    if node.looks_behind() {
        return context::whole(node);
    }
    match whole_without_context(node) {
        Err(PatternError { kind: PatternErrorKind::Unsupported(_), .. }) => context::whole(node),
        result => result,
    }
}

/// [`whole`] without lookbehind, and with lookaheads in few repetitions only.
fn whole_without_context(node: &Node) -> Result<Ast, PatternError> {
    let mut builder = PieceBuilder::default();
    if node.lookahead().is_some() {
        let end = Piece::new(Ast::Epsilon);
        let after = Tail { first: end.clone(), later: end };
        return Ok(tail(&mut builder, node, &after)?.first.ast);
    }
    let slots = slots(&mut builder, node)?;
    Ok(builder.union(&slots.0)?.ast)
}

/// A condition on a span.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Free,
    Start,
    End,
    Both,
}

const SLOTS: [Slot; 4] = [Slot::Free, Slot::Start, Slot::End, Slot::Both];

impl Slot {
    fn of(start: bool, end: bool) -> Self {
        match (start, end) {
            (false, false) => Self::Free,
            (true, false) => Self::Start,
            (false, true) => Self::End,
            (true, true) => Self::Both,
        }
    }

    fn start(self) -> bool {
        matches!(self, Self::Start | Self::Both)
    }

    fn end(self) -> bool {
        matches!(self, Self::End | Self::Both)
    }
}

/// For each condition, words that match under it.
#[derive(Clone, Debug)]
struct Slots([Piece; 4]);

impl Slots {
    fn only(slot: Slot, piece: Piece) -> Self {
        let mut slots = Self(std::array::from_fn(|_| Piece::new(Ast::Empty)));
        slots.0[slot as usize] = piece;
        slots
    }

    fn get(&self, slot: Slot) -> &Piece {
        &self.0[slot as usize]
    }

    /// The language, if there are no conditions.
    fn free(&self) -> Option<&Piece> {
        self.0[1..].iter().all(Piece::is_empty).then_some(&self.0[0])
    }
}

fn slots(builder: &mut PieceBuilder, node: &Node) -> Result<Slots, PatternError> {
    let epsilon = || Piece::new(Ast::Epsilon);
    match node {
        Node::Text(ast) => Ok(Slots::only(Slot::Free, Piece::new(ast.clone()))),
        Node::Start => Ok(Slots::only(Slot::Start, epsilon())),
        Node::End => Ok(Slots::only(Slot::End, epsilon())),
        Node::Lookahead { offset, .. } | Node::Lookbehind { offset, .. } => {
            Err(PatternError::unsupported(*offset, "lookaround"))
        }
        Node::WordBoundary { .. } => Err(PatternError::unsupported(0, "word boundary")),
        Node::Alternation(parts) => {
            let parts: Vec<Slots> =
                parts.iter().map(|part| slots(builder, part)).collect::<Result<_, _>>()?;
            union(builder, &parts)
        }
        Node::Concat(parts) => {
            let mut whole = Slots::only(Slot::Free, epsilon());
            let mut run: Vec<Piece> = Vec::new();
            for part in parts {
                let part = slots(builder, part)?;
                // Parts without conditions, which most patterns consist of, are joined first.
                if let Some(free) = part.free() {
                    run.push(free.clone());
                    continue;
                }
                let free = Slots::only(Slot::Free, builder.concat(&run)?);
                run.clear();
                whole = concat(builder, &whole, &free)?;
                whole = concat(builder, &whole, &part)?;
            }
            let free = Slots::only(Slot::Free, builder.concat(&run)?);
            concat(builder, &whole, &free)
        }
        Node::Repeat { inner, min, max } => {
            let inner = slots(builder, inner)?;
            repeat(builder, &inner, *min, *max)
        }
    }
}

fn union(builder: &mut PieceBuilder, parts: &[Slots]) -> Result<Slots, PatternError> {
    let mut result = Slots::only(Slot::Free, Piece::new(Ast::Empty));
    for slot in SLOTS {
        let pieces: Vec<Piece> = parts.iter().map(|part| part.get(slot).clone()).collect();
        result.0[slot as usize] = builder.union(&pieces)?;
    }
    if result.get(Slot::Free).nullable {
        for piece in &mut result.0[1..] {
            // The empty word under a condition says nothing where it is free.
            if piece.ast == Ast::Epsilon {
                *piece = Piece::new(Ast::Empty);
            }
        }
    }
    Ok(result)
}

fn concat(builder: &mut PieceBuilder, left: &Slots, right: &Slots) -> Result<Slots, PatternError> {
    let mut parts: [Vec<Piece>; 4] = Default::default();
    for before in SLOTS {
        for after in SLOTS {
            let (a, b) = (left.get(before), right.get(after));
            if a.is_empty() || b.is_empty() {
                continue;
            }
            // An end before `b` makes `b` empty, a start after `a` makes `a` empty.
            let word = match (before.end(), after.start()) {
                (false, false) => builder.concat(&[a.clone(), b.clone()])?,
                (true, false) if b.nullable => a.clone(),
                (false, true) if a.nullable => b.clone(),
                (true, true) if a.nullable && b.nullable => Piece::new(Ast::Epsilon),
                _ => continue,
            };
            let slot = Slot::of(before.start() || after.start(), before.end() || after.end());
            parts[slot as usize].push(word);
        }
    }
    let mut result = Slots::only(Slot::Free, Piece::new(Ast::Empty));
    for slot in SLOTS {
        result.0[slot as usize] = builder.union(&parts[slot as usize])?;
    }
    Ok(result)
}

fn repeat(
    builder: &mut PieceBuilder,
    inner: &Slots,
    min: u32,
    max: Option<u32>,
) -> Result<Slots, PatternError> {
    if let Some(free) = inner.free() {
        return Ok(Slots::only(Slot::Free, builder.repeat(free, min, max)?));
    }
    let epsilon = |slot| Slots::only(slot, Piece::new(Ast::Epsilon));
    if max == Some(0) {
        return Ok(epsilon(Slot::Free));
    }
    let mut terms = Vec::new();
    // The empty word: no copy at all, or all copies empty, for which the condition of one is
    // enough.
    if min == 0 {
        terms.push(epsilon(Slot::Free));
    } else {
        terms.extend(SLOTS.into_iter().filter(|&slot| inner.get(slot).nullable).map(epsilon));
    }
    // Only the first non-empty copy can be at the start, and only the last at the end.
    let many = |builder: &mut PieceBuilder, min: u32, max: Option<u32>| {
        let mut terms = Vec::new();
        if min <= 1 {
            terms.push(inner.clone());
        }
        if max.is_none_or(|max| max >= 2) {
            let middle = builder.repeat(
                inner.get(Slot::Free),
                min.saturating_sub(2),
                max.map(|max| max - 2),
            )?;
            let head = concat(builder, inner, &Slots::only(Slot::Free, middle))?;
            terms.push(concat(builder, &head, inner)?);
        }
        Ok(terms)
    };
    terms.extend(many(builder, min, max)?);
    // Empty copies that complete the count must be where their condition holds: before all
    // non-empty ones, or after them.
    if min >= 2 && !inner.get(Slot::Free).nullable {
        let fewer = many(builder, 0, max.map(|max| max - 1))?;
        let fewer = union(builder, &fewer)?;
        if inner.get(Slot::Start).nullable {
            terms.push(concat(builder, &epsilon(Slot::Start), &fewer)?);
        }
        if inner.get(Slot::End).nullable {
            terms.push(concat(builder, &fewer, &epsilon(Slot::End))?);
        }
    }
    union(builder, &terms)
}

/// The rest of a text from a position on: from the text's start, or from a later position.
#[derive(Clone, Debug)]
struct Tail {
    first: Piece,
    later: Piece,
}

/// The rests of a text that begin with a span of the node, followed by `after`.
fn tail(builder: &mut PieceBuilder, node: &Node, after: &Tail) -> Result<Tail, PatternError> {
    let Some(lookahead) = node.lookahead() else {
        let slots = slots(builder, node)?;
        return plain_tail(builder, &slots, after);
    };
    match node {
        Node::Concat(parts) => {
            let mut rest = after.clone();
            // Adjacent parts without lookaheads are joined.
            let mut end = parts.len();
            while end > 0 {
                let mut begin = end - 1;
                if parts[begin].lookahead().is_some() {
                    rest = tail(builder, &parts[begin], &rest)?;
                } else {
                    while begin > 0 && parts[begin - 1].lookahead().is_none() {
                        begin -= 1;
                    }
                    let run = slots(builder, &Node::Concat(parts[begin..end].to_vec()))?;
                    rest = plain_tail(builder, &run, &rest)?;
                }
                end = begin;
            }
            Ok(rest)
        }
        Node::Alternation(parts) => {
            let tails: Vec<Tail> =
                parts.iter().map(|part| tail(builder, part, after)).collect::<Result<_, _>>()?;
            union_tails(builder, &tails)
        }
        Node::Repeat { inner, min, max } => {
            if let Some(tail) = guarded_tail(builder, inner, (*min, *max), after)? {
                return Ok(tail);
            }
            let max = max
                .filter(|&max| max <= MAX_LOOKAHEAD_COPIES)
                .ok_or_else(|| PatternError::unsupported(lookahead, "lookahead in a repetition"))?;
            let mut rest = after.clone();
            for copy in (0..max).rev() {
                rest = tail(builder, inner, &rest)?;
                if copy >= *min {
                    rest = union_tails(builder, &[after.clone(), rest])?;
                }
            }
            Ok(rest)
        }
        Node::Lookahead { inner, negative, .. } => {
            let any = Piece::new(Ast::any_text());
            let seen = tail(builder, inner, &Tail { first: any.clone(), later: any })?;
            Ok(Tail {
                first: builder.restrict(&after.first, &seen.first, *negative)?,
                later: builder.restrict(&after.later, &seen.later, *negative)?,
            })
        }
        Node::Text(_)
        | Node::Start
        | Node::End
        | Node::Lookbehind { .. }
        | Node::WordBoundary { .. } => Ok(after.clone()),
    }
}

/// [`tail`] of a repetition up to the end of the text. Each copy is one character after lookaheads,
/// as in `(?:(?!--).)*$`. Returns the language with which no (or every) rest may start. None if the
/// repetition is of another kind.
fn guarded_tail(
    builder: &mut PieceBuilder,
    inner: &Node,
    (min, max): (u32, Option<u32>),
    after: &Tail,
) -> Result<Option<Tail>, PatternError> {
    if [&after.first, &after.later].iter().any(|rest| rest.ast != Ast::Epsilon) {
        return Ok(None);
    }
    let mut inner = inner;
    while let Node::Concat(parts) = inner {
        let [only] = parts.as_slice() else { break };
        inner = only;
    }
    let Node::Concat(parts) = inner else { return Ok(None) };
    let Some((Node::Text(Ast::Class(class)), guards)) = parts.split_last() else {
        return Ok(None);
    };
    let any = Piece::new(Ast::any_text());
    let anything = Tail { first: any.clone(), later: any.clone() };
    let mut text = builder.repeat(&Piece::new(Ast::Class(class.clone())), min, max)?;
    for guard in guards {
        let Node::Lookahead { inner, negative, .. } = guard else { return Ok(None) };
        let seen = tail(builder, inner, &anything)?;
        if seen.first.ast != seen.later.ast {
            return Ok(None);
        }
        // A rest that breaks the guard. It is not empty, because a character follows.
        let refused =
            if *negative { seen.later } else { builder.restrict(&any, &seen.later, true)? };
        let refused = builder.nonempty(&refused)?;
        let broken = builder.concat(&[any.clone(), refused])?;
        text = builder.restrict(&text, &broken, true)?;
    }
    Ok(Some(Tail { first: text.clone(), later: text }))
}

fn union_tails(builder: &mut PieceBuilder, tails: &[Tail]) -> Result<Tail, PatternError> {
    let first: Vec<Piece> = tails.iter().map(|tail| tail.first.clone()).collect();
    let later: Vec<Piece> = tails.iter().map(|tail| tail.later.clone()).collect();
    Ok(Tail { first: builder.union(&first)?, later: builder.union(&later)? })
}

/// [`tail`] of a node without lookaheads.
fn plain_tail(
    builder: &mut PieceBuilder,
    slots: &Slots,
    after: &Tail,
) -> Result<Tail, PatternError> {
    let followed = |builder: &mut PieceBuilder, free: &Piece, end: &Piece, after: &Piece| {
        let any = after.ast == Ast::any_text();
        let free =
            if any { Piece::new(beside_anything(&free.ast, Side::Right)) } else { free.clone() };
        let joined = if any && free.ast == Ast::Epsilon {
            after.clone()
        } else {
            builder.concat(&[free, after.clone()])?
        };
        let end = if after.nullable { end.clone() } else { Piece::new(Ast::Empty) };
        builder.union(&[joined, end])
    };
    let free = slots.get(Slot::Free);
    let later = followed(builder, free, slots.get(Slot::End), &after.later)?;
    let from_start = builder.union(&[free.clone(), slots.get(Slot::Start).clone()])?;
    let to_end = builder.union(&[slots.get(Slot::End).clone(), slots.get(Slot::Both).clone()])?;
    let first = if after.first.ast == after.later.ast {
        followed(builder, &from_start, &to_end, &after.first)?
    } else {
        // After an empty span the position is still the start; after any other span it is not.
        let words = builder.nonempty(&from_start)?;
        let last_words = builder.nonempty(&to_end)?;
        let moved = followed(builder, &words, &last_words, &after.later)?;
        let stayed = if from_start.nullable {
            after.first.clone()
        } else if to_end.nullable && after.first.nullable {
            Piece::new(Ast::Epsilon)
        } else {
            Piece::new(Ast::Empty)
        };
        builder.union(&[stayed, moved])?
    };
    Ok(Tail { first, later })
}
